"""The optimizers: a formula each, which changes raw arrays in place.

Small parameters are laid end to end, so that one call of a NumPy function serves many (``FlatParameters``).  On a GPU
the same formula is one kernel, which takes a list of parameters as they are (``Listed``).  Where loops can be compiled
it is one loop over all parameters (``Looped``).
"""

import math
from functools import partial
from itertools import accumulate
from operator import attrgetter, is_

import numpy as np

from ..arrays import dtypes, loops
from ..arrays import threads as blocks
from ..arrays.devices import device_of
from ..arrays.dispatch import kernels, xp_of
from ..arrays.quiet import be_quiet
from ..arrays.shapes import common_shape
from ..autograd.modes import enable_grad
from ..core.tensor import Tensor
from ..core.versions import wrote
from ..core.views import rebase_history
from ..ops.elementwise import maximum, sqrt
from ..ops.writes import size_error
from .optimizer import Optimizer

# elements of a parameter that is packed with others, and of all in a pack: by measurement
SMALL, PACKED = 1 << 13, 1 << 16
# A launch takes a GPU as long as some 100 000 elements.  What a kernel is given was limited to 4096 bytes before CUDA
# 12.1: an array takes 32, and there are up to five arrays a parameter.
LISTED, IN_LIST = 1 << 18, 16  # elements of a parameter that is listed with others, and how many are in a list

held_array = attrgetter("array")
texts: dict = {}  # formula, options that are on and dtype -> the loop that does it, as text


def as_number(x):
    """An option that may be a tensor of one element, as a Python number."""
    return x.item() if isinstance(x, Tensor) else x


class Algorithm(Optimizer):
    """An optimizer that is a formula: ``_formula`` changes the array of a parameter, and of its states, in place."""

    _counts_steps = True  # whether there is a state "step"
    _begins_otherwise = False  # whether the first step is another formula than those that follow
    _switches: tuple = ("weight_decay", "maximize")  # options that decide which lines of the formula there are
    _options: list[str]  # arguments that each group may have otherwise, in the order in which they are saved
    _newer: dict = {}  # options that older files lack, and what stands for them there
    _read: tuple = ((), ())  # options that are asked for before the states, and after them

    def __init__(self, params, arguments):
        defaults = {name: arguments[name] for name in self._options}
        for name in ("differentiable", "capturable"):
            if defaults.get(name):
                raise NotImplementedError(f"steps are neither recorded nor captured in a graph: leave {name} False")
        if defaults.get("foreach") and defaults.get("fused"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.update({**self._newer, **group})
            for own in filter(None, map(self.state.get, group["params"])) if self._counts_steps else ():
                if len(own) and not isinstance(own["step"], Tensor):
                    own["step"] = new_step(float(own["step"]))

    def _set_up_unsaved(self):
        super()._set_up_unsaved()
        self._packs = {}  # number of the group -> Packs

    def _state_names(self, group):
        """The names of the arrays that are kept for each parameter."""
        return ()

    def _number_of_writes(self, group):
        """Return the number of writes of a step, as PyTorch counts them."""
        return 1

    def _lines(self, group):
        """Choose the lines of the formula."""
        return [bool(group[name]) for name in self._switches]

    def _check_loaded(self, group, params):
        """KeyError if an option or a state is missing, RuntimeError for a state of another shape.

        Then what was loaded is another optimizer's, or another model's.
        """
        early, late = self._read
        for name in early:
            group[name]
        names = self._state_names(group)
        for p in params if names else ():
            own = self.state.get(p)
            for name in names if own else ():
                state = own.get(name) if self._begins_otherwise else own[name]
                if state is not None and state.array.shape != p.array.shape:
                    whole = common_shape(state.array.shape, p.array.shape)
                    raise size_error(state if whole != state.array.shape else p, whole)
            if own and self._counts_steps:
                own["step"]
        for name in late:
            group[name]

    def _formula(self, group, step, p, g, *states):
        """The ``step``-th step, from 1 on, of a parameter p with the gradient g."""
        raise NotImplementedError

    def _signed_formula(self, group, step, p, g, *states):
        self._formula(group, step, p, -g if group["maximize"] else g, *states)

    def _text_of_loop(self, group, form, names, dtype):
        """The loop that does ``_formula``, as text; None if that is not one of this file, or does what no loop can."""
        own = type(self)._formula, type(self)._signed_formula
        if any(f.__module__ != __name__ for f in own):
            return None
        key = (*own, *form, *names, dtype)
        if texts.get(key) is None:
            update = partial(self._signed_formula, group, 2.0)
            texts[key] = loops.text_of(update, ("p", "g", *names), dtype, ("p", *names))
        return texts[key]

    def step(self, closure=None):  # help() says of it what it says of ``Optimizer.step``
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        be_quiet()
        for i, group in enumerate(self.param_groups):
            params = [p for p in group["params"] if p._grad is not None]
            packs = self._packs.get(i)
            if packs is None or not packs.still(self, params, group):
                self._check_loaded(group, params)
                packs = self._packs[i] = Packs(self, self._state_names(group), params, group, self._lines(group))
            writes = self._number_of_writes(group)
            written: dict = {}  # of this call: the kernels and their numbers
            for pack in packs.packs:
                pack.move(self, group, pack.next_step(), written)
                pack.note(writes)
        return loss


class Packs:
    """The parameters of a group that have gradients, in packs, as long as they and their states keep their arrays."""

    def __init__(self, optimizer, names, params, group=None, form=()):
        self.names, self.params, self.form = names, params, form
        for p in params if names or optimizer._counts_steps else ():
            optimizer.state[p]  # made here, so that the states keep the order of the parameters
        self.loops, self.arrived = group is not None and loops.available(), loops.arrived
        self.packs, self.missing = [], False  # missing: whether a loop has no machine code yet
        if self.loops:
            params = [p for part in self.in_loops(optimizer, names, params, group, form) for p in part]
        self.packs += [pack_of(alike)(optimizer, names, alike) for alike in packable(optimizer, names, params)]

    def in_loops(self, optimizer, names, params, group, form):
        """Take parameters into packs that are loops; lists of the others."""
        found, others = loopable(optimizer, names, params)
        yield others
        for alike in found:
            text = optimizer._text_of_loop(group, form, names, alike[0].array.dtype)
            loop = text and loops.loop_of(text, sum(p.array.size for p in alike))
            pack = loop and Looped(optimizer, names, alike, loop)
            if pack and pack.apart:
                self.packs.append(pack)
            else:
                self.missing = self.missing or bool(text) and text not in loops.loops
                yield alike

    def still(self, optimizer, params, group):
        """Tell whether the packs are still valid: nothing was replaced, and no missing loop has come since."""
        return (
            optimizer._state_names(group) == self.names
            and optimizer._lines(group) == self.form
            and len(params) == len(self.params)
            and self.loops == loops.available()
            and not (self.missing and (loops.state.waits or self.arrived != loops.arrived))
            and all(map(is_, params, self.params))
            and all(pack.still(optimizer.state) for pack in self.packs)
        )


def loopable(optimizer, names, params):
    """(lists of parameters of one dtype and step that one loop can take, the others)"""
    found: dict = {}
    others = []
    if len(set(params)) < len(params):  # one that comes twice takes two steps
        return (), params
    for p in params:
        state = optimizer.state.get(p, {})
        x, *states = (t.shared() for t in (p, *map(state.get, names)) if t is not None)
        if loops.fits(x) and all(loops.fits(s) and (s.dtype, s.shape) == (x.dtype, x.shape) for s in states):
            found.setdefault(kind_of(optimizer, names, p), []).append(p)
        else:
            others.append(p)
    return found.values(), others


def pack_of(params):
    return Listed if type(params[0].array) in kernels else FlatParameters


def packable(optimizer, names, params):
    """Lists of parameters: small ones of one dtype, device and step together, the others alone."""
    found: dict = {}
    alone = len(set(params)) < len(params)  # one that comes twice takes two steps
    for p in params:
        x = p.shared()
        if alone or not pack_of([p]).takes(x):
            yield [p]
            continue
        kind = kind_of(optimizer, names, p)
        pack = found.setdefault(kind, [])
        if pack and pack_of([p]).full(pack, x):
            yield pack
            pack = found[kind] = []
        pack.append(p)
    yield from found.values()


def kind_of(optimizer, names, p):
    """Return what the parameters of a pack have in common: dtype, device, step and which states there are."""
    state = optimizer.state.get(p, {})
    return (
        p.array.dtype,
        device_of(p.array),
        *(as_number(state.get(name, 0)) if name == "step" else name in state for name in ("step", *names)),
    )


class FlatParameters:
    """One parameter, or several whose values, gradients and states lie end to end in flat arrays.

    The states stay there: the tensors in ``optimizer.state`` are parts of it.  Values and gradients are copied.
    """

    def __init__(self, optimizer, names, params):
        self.params, self.arrays = params, [p.array for p in params]
        self.own = [optimizer.state[p] for p in params] if names or optimizer._counts_steps else []
        fresh = any(state.get(name) is None for state in self.own for name in names)
        self.steps = [step_tensor(state) for state in self.own] if optimizer._counts_steps else []
        self.count = self.steps[0].item() if self.steps else 0.0 if fresh else 1.0
        self.kept = []  # (state, name, tensor, its array)
        begin = optimizer.defaults.get("initial_accumulator_value", 0.0)
        self.lay_out(names, begin, xp_of(self.arrays[0]))

    @staticmethod
    def takes(x):
        """Tell whether a parameter is small enough for a pack with others."""
        return x.size <= SMALL

    @staticmethod
    def full(pack, x):
        """Tell whether a pack has no room for another parameter."""
        return sum(q.array.size for q in pack) + x.size > PACKED

    def lay_out(self, names, begin, xp):
        ends = [*accumulate(x.size for x in self.arrays)]
        self.places = [(end - x.size, end, x.shape) for end, x in zip(ends, self.arrays)]
        if len(self.params) > 1:
            self.p, self.g = (xp.empty(ends[-1], self.arrays[0].dtype) for _ in range(2))
            self.parts = [(self.p[a:b].reshape(shape), self.g[a:b].reshape(shape)) for a, b, shape in self.places]
        self.states = [self.lay_end_to_end(name, begin, xp) for name in names]

    def lay_end_to_end(self, name, begin, xp):
        """The array of one state of all parameters, whose tensors become its parts."""
        single = len(self.params) == 1
        flat = None if single else xp.full(self.p.shape, begin, self.p.dtype)
        for x, state, (a, b, shape) in zip(self.arrays, self.own, self.places):
            tensor = state.get(name)
            if tensor is None:
                tensor = state[name] = Tensor(xp.full_like(x, begin) if single else flat_part(flat, a, b, shape))
            elif not single:
                new = flat_part(flat, a, b, shape)
                new[...] = tensor.array
                tensor.array = new
            self.kept.append((state, name, tensor, tensor.shared()))
        return self.kept[-1][3] if single else flat

    def keep_states(self, names, begin, xp):
        """A row of arrays for each parameter: its own, and those of its states, which stay where they are."""
        self.rows = []
        for x, state in zip(self.arrays, self.own or [{}] * len(self.arrays)):
            for name in names:
                if state.get(name) is None:
                    state[name] = Tensor(xp.full_like(x, begin))
                self.kept.append((state, name, state[name], state[name].shared()))
            self.rows.append([x, *(state[name].array for name in names)])

    def still(self, states):
        """Tell whether parameters, states and counts are those that the pack was made of, or left behind."""
        return (
            all(map(is_, map(held_array, self.params), self.arrays))
            and all(map(is_, map(states.get, self.params), self.own))
            and all(state.get(name) is t and t.array is x for state, name, t, x in self.kept)
            and all(s.get("step") is t and t.array == self.count for s, t in zip(self.own, self.steps))
        )

    def move(self, optimizer, group, step, written):
        """Let the optimizer change values and states."""
        if len(self.params) == 1:
            arrays = self.arrays[0], self.params[0]._grad.array, *self.states
            change(partial(optimizer._signed_formula, group, step), arrays)
            return
        for x, p, (value, gradient) in zip(self.arrays, self.params, self.parts):
            value[...] = x
            gradient[...] = p._grad.array
        optimizer._formula(group, step, self.p, -self.g if group["maximize"] else self.g, *self.states)
        for x, (value, _) in zip(self.arrays, self.parts):
            x[...] = value

    def next_step(self):
        """The number of this step, from 1 on; where nothing counts them, of those since the states were new."""
        self.count = 1.0 + (self.steps[0].array.item() if self.steps else self.count)
        for t in self.steps:
            if type(t.array) is np.ndarray:  # somebody may look at its memory
                t.array[...] = self.count
            else:
                t.array = t.array.dtype.type(self.count)
        return self.count

    def note(self, writes):
        """Note that the parameters have new values."""
        for p in self.params:
            for _ in range(writes):
                wrote(p)
            if "views" in p.__dict__:
                rebase_history(p, None)


class Listed(FlatParameters):
    """Parameters on a GPU, which one kernel changes where they are, and their states too."""

    @staticmethod
    def takes(x):
        return x.size <= LISTED and x.flags.c_contiguous

    @staticmethod
    def full(pack, x):
        return len(pack) == IN_LIST

    def lay_out(self, names, begin, xp):
        self.keep_states(names, begin, xp)
        for i, row in enumerate(self.rows):
            if all(a.flags.c_contiguous for a in row):  # what a kernel is told of an array is less for one dimension
                self.rows[i] = [a.reshape(-1) for a in row]

    def move(self, optimizer, group, step, written):
        rows = []
        for (x, *states), p in zip(self.rows, self.params):
            g = p._grad.array
            rows.append((x, g if g.shape == x.shape else g.reshape(-1), *states))
        update = partial(optimizer._signed_formula, group, step)
        kernels[type(self.arrays[0])].update(update, rows, written.setdefault(step, {}))


class Looped(FlatParameters):
    """Parameters that one loop changes where they are, and their states too."""

    def __init__(self, optimizer, names, params, loop):
        super().__init__(optimizer, names, params)
        self.loop = loop

    def lay_out(self, names, begin, xp):
        self.keep_states(names, begin, xp)
        self.apart = loops.Table(self.rows).apart()
        small = [x.size for x in self.arrays if x.size <= loops.SMALL]
        flat, end = np.empty(sum(small), self.arrays[0].dtype), 0
        self.copied, self.placed, rows = [], [], []  # small gradients are copied; of large ones the place is told
        for i, (p, (x, *states)) in enumerate(zip(self.params, self.rows)):
            if x.size <= loops.SMALL:
                start, end = end, end + x.size
                g = flat[start:end].reshape(x.shape)
                self.copied.append((p, g))
            else:
                g = x  # until there is one
                self.placed.append((p, i, x.shape))
            rows.append((x, g, *states))
        self.table = loops.Table(rows)

    def move(self, optimizer, group, step, written):
        update = partial(optimizer._signed_formula, group, step)
        first = optimizer._begins_otherwise and step == 1
        numbers = None if first else loops.numbers_of(update, self.table.width)
        if numbers is None:
            for p, (x, *states) in zip(self.params, self.rows):
                change(update, (x, p._grad.array, *states))
            return
        for p, part in self.copied:
            part[...] = p._grad.array
        held = [self.table.point(i, 1, p._grad.array, shape) for p, i, shape in self.placed]
        self.table.run(self.loop, numbers)
        del held


def change(update, arrays):
    """``update(*arrays)``, of large ones block by block."""
    if all(map(blocks.is_large, arrays)):
        blocks.block_by_block(update, arrays, arrays[0].ndim, blocks.rows_of(arrays[0].size, arrays[0].size))
    else:
        update(*arrays)


def flat_part(flat, a, b, shape):
    """A piece of a flat array: the same memory, but (on the host) an array of its own, which is saved by itself."""
    piece = np.frombuffer(flat[a:b].view(np.uint8).data, flat.dtype) if type(flat) is np.ndarray else flat[a:b]
    return piece.reshape(shape)


def step_tensor(state):
    """The count of steps in the state of a parameter, as a tensor; a new one begins at 0."""
    step = state.get("step", 0.0)
    if not isinstance(step, Tensor):
        step = state["step"] = new_step(step)
    return step


def new_step(count):
    dtype = dtypes.float64 if dtypes.get_default_dtype() is dtypes.float64 else dtypes.float32
    return Tensor(dtype.np.type(count))


def check_options(**options):
    """ValueError for options that are negative, or tensors of several elements."""
    for name, value in options.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if not value >= 0:
            titles = {"lr": "learning rate", "eps": "epsilon value"}
            raise ValueError(f"Invalid {titles.get(name, f'{name} value')}: {value}")


# What follows reuses its temporaries: a fresh array of a million elements costs as much as the arithmetic on it.


def scaled_product(x, y, factor):
    """x * y * factor"""
    out = x * y
    out *= factor
    return out


def move(x, target, share):
    """x += (target - x) * share"""
    way = target - x
    way *= share
    x += way


class SGD(Algorithm):
    """p -= lr * g, with momentum in one of two forms (Sutskever et al., 2013)."""

    _counts_steps = False
    _begins_otherwise = True
    _switches = "weight_decay", "momentum", "nesterov", "maximize"
    _options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused".split()
    _newer = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}
    _read = (), ("momentum", "weight_decay", "lr", "dampening")

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):  # fmt: skip
        check_options(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, locals())

    def _state_names(self, group):
        return ("momentum_buffer",) if group["momentum"] else ()

    def _formula(self, group, step, p, g, buffer=None):
        if group["weight_decay"]:
            g = g + p * as_number(group["weight_decay"])
        if buffer is not None:
            if step == 1:
                buffer[...] = g
            else:
                buffer *= group["momentum"]
                buffer += g * (1 - group["dampening"])
            g = g + buffer * group["momentum"] if group["nesterov"] else buffer
        p -= g * as_number(group["lr"])


class Adam(Algorithm):
    """Running means of g and g**2 (Kingma and Ba, 2015); ``amsgrad``: the largest g**2 mean (Reddi et al., 2018)."""

    _switches = "weight_decay", "decoupled_weight_decay", "amsgrad", "maximize"
    _options = ("lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
               "decoupled_weight_decay").split()  # fmt: skip
    _newer = {"amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
              "decoupled_weight_decay": False, "fused": None}  # fmt: skip
    _read = ("betas",), ("lr", "weight_decay", "eps")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None,
                 decoupled_weight_decay=False):  # fmt: skip
        check_options(lr=lr, eps=eps)
        for name, option in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if foreach and isinstance(option, Tensor):
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        check_options(weight_decay=weight_decay)
        if not all(isinstance(beta, float) for beta in betas) and not all(isinstance(beta, Tensor) for beta in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        betas = tuple(betas)
        super().__init__(params, locals())

    def _state_names(self, group):
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]

    def _number_of_writes(self, group):
        return 2 if group["decoupled_weight_decay"] and group["weight_decay"] else 1

    def _formula(self, group, step, p, g, mean, square, largest=None):
        lr, (beta1, beta2), decay = as_number(group["lr"]), map(as_number, group["betas"]), group["weight_decay"]
        if decay and group["decoupled_weight_decay"]:
            p *= 1 - lr * decay
        elif decay:
            g = g + p * decay
        move(mean, g, 1 - beta1)
        square *= beta2
        square += scaled_product(g, g, 1 - beta2)
        if largest is not None:
            largest[...] = maximum(largest, square)
            square = largest
        root = math.sqrt(1 - beta2**step)  # mean / (sqrt(square) / root + eps), with both parts multiplied by root
        divisor = sqrt(square)
        divisor += group["eps"] * root
        change = mean / divisor
        change *= lr * root / (1 - beta1**step)
        p -= change


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class RMSprop(Algorithm):
    """g divided by the root of a running mean of g**2 (Hinton, 2012); ``centered``: of its variance (Graves, 2013)."""

    _switches = "weight_decay", "momentum", "centered", "maximize"
    _options = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable".split()
    _newer = {"momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False,
              "capturable": False}  # fmt: skip
    _read = (), ("lr", "alpha", "eps", "weight_decay")

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):  # fmt: skip
        check_options(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, locals())

    def _state_names(self, group):
        optional = {"momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return ("square_avg", *(name for name, wanted in optional.items() if wanted))

    def _formula(self, group, step, p, g, square, *others):
        lr, alpha, others = as_number(group["lr"]), group["alpha"], [*others]
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        square *= alpha
        square += scaled_product(g, g, 1 - alpha)
        variance = square
        if group["centered"]:
            mean = others.pop()
            move(mean, g, 1 - alpha)
            variance = square - mean * mean
        g = g / (sqrt(variance) + group["eps"])
        if others:
            buffer = others.pop()
            buffer *= group["momentum"]
            buffer += g
            g = buffer
        p -= g * lr


class Adagrad(Algorithm):
    """g divided by the root of the sum of all g**2 so far (Duchi et al., 2011)."""

    _options = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused".split()
    _newer = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _read = (), ("lr", "weight_decay", "lr_decay", "eps")

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):  # fmt: skip
        check_options(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                      initial_accumulator_value=initial_accumulator_value, eps=eps)  # fmt: skip
        super().__init__(params, locals())
        for group in self.param_groups:
            Packs(self, self._state_names(group), group["params"])  # the states are there from the beginning

    def __setstate__(self, state):
        super().__setstate__(state)
        for own in self.state.values():
            own["step"]  # each has one from the beginning

    def _state_names(self, group):
        return ("sum",)

    def _formula(self, group, step, p, g, total):
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        total += g * g
        p -= g / (sqrt(total) + group["eps"]) * (as_number(group["lr"]) / (1 + (step - 1) * group["lr_decay"]))
