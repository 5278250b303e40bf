"""Checkpointing: keep nothing of a part of a model but its inputs, and compute it again in the backward pass.

T. Chen, B. Xu, C. Zhang, C. Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016 (arxiv.org/abs/1604.06174)
"""

import math
import threading
from contextlib import nullcontext
from functools import reduce
from itertools import zip_longest
from weakref import ref

from .. import amp
from ..arrays import dtypes, random
from ..arrays.devices import device_of
from ..arrays.dispatch import modules, scalar_types
from ..arrays.quiet import be_quiet
from ..arrays.running import running, switched
from ..arrays.size import Size
from ..arrays.warn import warn
from ..autograd.function import CustomNode, Function
from ..autograd.modes import enable_grad
from ..core import backward as backward_pass
from ..core import graph
from ..core.graph import Mode, Node, Output, extend, mode
from ..core.observers import forget, observe
from ..core.tensor import Tensor, require_grad
from ..core.versions import check_saved, writes_to
from ..help import public
from . import messages

DETERMINISM = ("default", "none")
extend(Mode, early_stopping=None)  # what a block says, which comes before ``early_stop``


class CheckpointError(RuntimeError):
    """The function did not do the same again."""


def without_contexts():
    """Return the contexts of the forward pass and of the recomputation: none."""
    return nullcontext(), nullcontext()


def checkpoint(function, *args, use_reentrant=None, context_fn=without_contexts, determinism_check="default",
               debug=False, early_stop=True, preserve_rng_state=True, **kwargs):  # fmt: skip
    """``function(*args, **kwargs)``, of which the backward pass recomputes what it needs, with the same random numbers.

    ``use_reentrant=False`` records the graph as usual, but without the saved arrays; once recomputed, those stay as
    long as the graph is retained.  ``use_reentrant=True`` records one node, which runs the function and a backward pass
    of its own.
    """
    if use_reentrant is None:
        warn("torch.utils.checkpoint: " + messages.USE_REENTRANT)
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not without_contexts or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if refuse_part not in backward_pass.attachments:
            backward_pass.attachments.append(refuse_part)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in DETERMINISM:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM)}, but got {determinism_check}")
    if debug:
        raise NotImplementedError("debug is not there: compare the forward pass and the recomputation with prints")
    early_stop = early_stop if mode.early_stopping is None else mode.early_stopping
    before, during = context_fn()
    if not mode.enabled:
        return function(*args, **kwargs)
    region = Region(function, args, kwargs, preserve_rng_state, determinism_check == "default", early_stop, during)
    returned = False
    with before, made_nodes() as nodes:
        result, returned = function(*args, **kwargs), True
    if not returned:
        raise RuntimeError(messages.SUPPRESSED)
    region.forget(nodes)
    return result


def checkpoint_sequential(functions, segments, input, use_reentrant=None, *, preserve_rng_state=True, **kwargs):
    """Modules or functions one after the other, in checkpointed segments; of the last one, all is kept."""
    if use_reentrant is None:
        warn(messages.USE_REENTRANT_SEQUENTIAL)
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    size = len(functions) // segments

    def run(functions):
        return lambda input: reduce(lambda x, function: function(x), functions, input)

    end = 0
    for end in range(size, size * (segments - 1) + 1, size):
        segment = run(functions[end - size : end])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return run(functions[end:])(input)


class set_checkpoint_early_stop(switched):
    """In the block, recomputations end as soon as they have all that is needed, or do not."""

    def __init__(self, enable):
        super().__init__(mode, early_stopping=enable)


class same_random_numbers(random.fork_rng):
    """In the block, the generators go on from their states; after it, as if nothing was drawn.  None: no change."""

    def __init__(self, states):
        super().__init__(enabled=states is not None)
        self.states = states or ()

    def __enter__(self):
        super().__enter__()
        for generator, state in self.states:
            generator.set_state(state)


# ---- use_reentrant=False: the nodes of a region forget the arrays that they saved, until one is asked for


class Enough(BaseException):
    """Ends a recomputation.  No Exception, so that the function does not catch it."""


class made_nodes(switched):
    """The nodes that this thread makes in the block and that save arrays; the last one of enough of them ends it."""

    def __init__(self, enough=math.inf):
        super().__init__(mode, packing=())  # what is not kept is not packed
        self.enough, self.thread, self.recorder = enough, threading.get_ident(), running.recorder
        self.nodes: list[Node] = []
        self.new: list[Node] = []

    def __call__(self, node):
        # not what a capture inside of the block makes
        if threading.get_ident() == self.thread and running.recorder is self.recorder:
            if type(node) is not Output:
                self.complete()
            if type(node) is CustomNode:
                self.new.append(node)
            elif keeps_arrays(node):
                self.nodes.append(node)
                self.end_if_enough()

    def complete(self):
        """Look at a custom function's node, which saves only after it is made."""
        for node in filter(keeps_arrays, self.new):
            self.nodes.append(node)
            self.end_if_enough()
        self.new.clear()

    def end_if_enough(self):
        if len(self.nodes) == self.enough:
            self.enough, self.new = math.inf, []
            raise Enough(self)

    def __enter__(self):
        observe(Node, self)
        super().__enter__()
        return self.nodes

    def __exit__(self, kind, error, traceback):
        super().__exit__()
        forget(Node, self)
        ended = kind is Enough and error.args[0] is self  # else that of a block around this one
        if ended:
            error.__traceback__, error.args = None, ()  # or its frames would hold it, and with it what they computed
        if kind is None:
            self.enough = math.inf
            self.complete()
        return ended


class Region:
    """A call whose nodes have forgotten what they saved."""

    def __init__(self, function, args, kwargs, preserve_rng_state, check, early_stop, context):
        self.call, self.check, self.early_stop, self.context = (function, args, kwargs), check, early_stop, context
        self.states = random.generator_states() if preserve_rng_state else None
        self.casts = amp.same_casts()
        self.inputs = [(t, t.array, next(graph.clock)) for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]

    def forget(self, nodes):
        """Put a Recomputed in the place of what each node has saved."""
        self.forgetful, self.positions, self.count = [], [], 0
        for node in nodes:
            if not keeps_arrays(node):  # it was freed meanwhile, by autograd.grad() in the function
                self.forgetful.append(lambda: None)
                self.positions.append(self.count)
                continue
            new = Recomputed(self, node)
            self.forgetful.append(ref(new))  # weakly: it goes with its node
            self.positions.append(self.count)
            self.count += len(new.metadata)
            if isinstance(node, CustomNode):
                node.ctx._call_record.saved = new
                if ask_once not in backward_pass.attachments:
                    backward_pass.attachments.append(ask_once)
            else:
                node.saved = new

    def recompute(self):
        """Run the function again, and give each Recomputed what the node in its node's place has saved this time."""
        for t, x, since in self.inputs:
            check_saved(x, since, None, t.node)
        function, args, kwargs = self.call
        start = next(graph.clock)
        enough = len(self.forgetful) if self.early_stop else math.inf
        with same_random_numbers(self.states), self.casts(), enable_grad(), self.context:
            with made_nodes(enough) as nodes:
                function(*args, **kwargs)
        be_quiet()
        needed = {i: r() for i, r in enumerate(self.forgetful) if r() is not None}
        self.check_same(needed, nodes)
        for i, r in needed.items():
            saved = saved_by(nodes[i])
            r.values = saved if isinstance(saved, Recomputed) else tuple(unwritten(s, start) for s in saved)
            r.region = None

    def release(self):
        """Let go what was recomputed."""
        for r in (r() for r in self.forgetful):
            if r is not None:
                r.region, r.values = self, None

    def check_same(self, needed, nodes):
        """CheckpointError if other arrays were saved than before."""
        if len(nodes) > len(self.forgetful):
            raise CheckpointError(messages.SAVED_MORE)
        if len(nodes) < len(self.forgetful):
            count = sum(len(metadata(saved_by(n))) for n in nodes)
            raise CheckpointError(messages.SAVED_ANOTHER_NUMBER.format(self.count, count))
        differing = [
            f"tensor at position {self.positions[i] + k}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
            for i, r in needed.items()
            for k, (before, now) in enumerate(zip_longest(r.metadata, metadata(saved_by(nodes[i]))))
            if before != now
        ]
        if differing and self.check:
            raise CheckpointError(messages.METADATA_DIFFERS.format("".join(differing)))


class Recomputed:
    """The saved values of a node in a checkpointed region: a tuple that is computed when it is first read."""

    def __init__(self, region, node):
        saved = saved_by(node)
        self.region, self.values, self.error, self.unread = region, None, None, None
        self.size, self.metadata = len(saved), metadata(saved)
        try:  # of what was overwritten later in the region, the recomputation would have the later values
            for x in map(saved_array, filter(holds_array, () if isinstance(saved, Recomputed) else saved)):
                check_saved(x, node.time)
        except RuntimeError as e:
            self.error = e

    def __len__(self):
        return self.size

    def __iter__(self):
        if self.unread is False:
            raise CheckpointError(messages.READ_TWICE)
        self.unread = self.unread and False
        return iter(self.read())

    def __getitem__(self, i):
        region, look = self.region, self.values is None and not isinstance(i, slice)
        value = self.read()[i]
        if look:  # by a program, at one value: nothing is kept of what was computed for it
            region.release()
        return value

    def read(self):
        if self.error is not None:
            raise self.error
        if self.values is None:
            self.region.recompute()
        return self.values


def ask_once(visit, roots, wanted):
    """An attachment: the ``backward`` of a custom function may ask for what was recomputed once, as in PyTorch."""

    def visit_and_ask_once(node, g, parents):
        if type(node) is not CustomNode or not isinstance(node.ctx._call_record.saved, Recomputed):
            return visit(node, g, parents)
        saved = node.ctx._call_record.saved
        saved.unread = True
        try:
            return visit(node, g, parents)
        finally:
            saved.unread = None

    return visit_and_ask_once


def saved_by(node):
    """Return what a node saved: arrays and plain values, a custom function's pairs, or an inner region's Recomputed."""
    saved = node.ctx._call_record.saved if isinstance(node, CustomNode) else node.saved if node.saved_from else ()
    return saved or ()


def keeps_arrays(node):
    saved = saved_by(node)
    return isinstance(saved, Recomputed) or any(map(holds_array, saved))


def saved_array(s):
    """The array of a saved value; custom functions save (Tensor, None) or (array of an output, its number)."""
    s = s[0] if isinstance(s, tuple) and s else s
    return s.array if isinstance(s, Tensor) else s


def holds_array(s):
    return type(saved_array(s)) in modules and type(saved_array(s)) not in scalar_types


def metadata(saved):
    if isinstance(saved, Recomputed):
        return saved.metadata
    arrays = map(saved_array, filter(holds_array, saved))
    return [{"shape": Size(x.shape), "dtype": dtypes.of[x.dtype], "device": device_of(x)} for x in arrays]


def unwritten(s, since):
    """A saved value, as a copy if it was written in place since then: to the first nodes, all such writes look late."""
    x = saved_array(s)
    writes = writes_to(x) if holds_array(s) else None
    if writes is None or writes.times[-1] > since:
        return s
    if not isinstance(s, tuple):
        return x.copy()
    return (Tensor(x.copy(), s[0].node) if isinstance(s[0], Tensor) else x.copy(), s[1])


# ---- use_reentrant=True: one node, whose backward runs the function and then the backward pass of that


class CheckpointFunction(Function):
    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warn("None of the inputs have requires_grad=True. Gradients will be None")
        ctx.run_function = run_function
        ctx.states = random.generator_states() if preserve_rng_state else None
        ctx.casts = amp.same_casts()
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        args = list(ctx.args)
        for i, t in zip(ctx.places, ctx.saved_tensors):
            args[i] = require_grad(t.detach(), t.requires_grad)
        with same_random_numbers(ctx.states), ctx.casts(), enable_grad():
            outputs = ctx.run_function(*args)
        be_quiet()
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(t, g) for t, g in zip(outputs, grads) if isinstance(t, Tensor) and t.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward_pass.backward(*zip(*pairs))
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


def refuse_part(visit, roots, wanted):
    """An attachment: a backward pass to some inputs alone, which keeps nothing for others, runs no other one."""

    def visit_or_refuse(node, g, parents):
        if type(node) is CustomNode and type(node.ctx) is CheckpointFunction._backward_cls:
            raise RuntimeError(messages.REENTRANT_PART)
        return visit(node, g, parents)

    return None if wanted is None else visit_or_refuse


__dir__ = public("utils.checkpoint", globals())
