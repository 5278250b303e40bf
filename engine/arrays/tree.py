"""Trees: tuples, lists, deques and dicts of tensors, nested to any depth.  What is none of these is a leaf."""

from collections import OrderedDict, defaultdict, deque

DICTS = dict, OrderedDict, defaultdict
BRANCHES = tuple, list, deque, dict


def flatten(tree):
    """(the leaves of a tree in order, its structure)."""
    leaves: list = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves):
    kind = type(tree)
    if kind in (tuple, list) or isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return Structure(kind, None, [_flatten(t, leaves) for t in tree])
    if kind in DICTS:
        more = tree.default_factory if kind is defaultdict else None
        return Structure(kind, list(tree), [_flatten(t, leaves) for t in tree.values()], more)
    if kind is deque:
        return Structure(kind, None, [_flatten(t, leaves) for t in tree], tree.maxlen)
    leaves.append(tree)
    return LEAF


class Structure:
    """The nodes of a tree: their type, the keys of a dict, what stands below, and what more the type is made with."""

    __slots__ = ("keys", "kind", "more", "parts")

    def __init__(self, kind, keys, parts, more=None):
        self.kind, self.keys, self.parts, self.more = kind, keys, parts, more

    def __eq__(self, other):
        same = isinstance(other, Structure) and self.kind is other.kind and self.more == other.more
        return same and self.keys == other.keys and self.parts == other.parts

    def __repr__(self):
        if self is LEAF:
            return "*"
        lines = ",\n  ".join(map(repr, self.parts))
        return f"TreeSpec({self.kind.__name__}, {self.keys}, [{lines}])"

    def short(self):
        """The structure as it would be written down."""
        if self is LEAF:
            return "*"
        inner = [p.short() for p in self.parts]
        if self.keys is not None:
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self.keys, inner)) + "}"
        return f"[{', '.join(inner)}]" if self.kind is list else f"({', '.join(inner)}{',' * (len(inner) == 1)})"

    def build(self, leaves):
        """The tree with these leaves (an iterator)."""
        if self is LEAF:
            return next(leaves)
        parts = [p.build(leaves) for p in self.parts]
        if self.kind is defaultdict:
            return defaultdict(self.more, zip(self.keys, parts))
        if self.kind is deque:
            return deque(parts, self.more)
        if self.keys is not None:
            return self.kind(zip(self.keys, parts))
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)

    def spread(self, prefix):
        """``prefix`` repeated for every leaf below each of its own; None if it does not fit."""
        kind = type(prefix)
        if self is LEAF:
            return [prefix] if not isinstance(prefix, BRANCHES) else None
        if kind is not self.kind and not (kind in DICTS and self.kind in DICTS):
            return None if isinstance(prefix, BRANCHES) else [prefix] * self.count()
        if len(prefix) != len(self.parts) or self.keys is not None and prefix.keys() != set(self.keys):
            return None
        values = prefix if self.keys is None else [prefix[k] for k in self.keys]
        found: list = []
        for part, value in zip(self.parts, values):
            below = part.spread(value)
            if below is None:
                return None
            found += below
        return found

    def count(self):
        """Return the number of leaves."""
        return 1 if self is LEAF else sum(p.count() for p in self.parts)


LEAF = Structure(object, None, [])


def unflatten(structure, leaves):
    """The tree of that structure with these leaves."""
    return structure.build(iter(leaves))


def map_tree(function, tree):
    """The tree with ``function`` of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])
