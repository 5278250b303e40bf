"""Schedulers: how the learning rates of an optimizer change from step to step."""

import math
from bisect import bisect_right
from collections import Counter
from itertools import chain, repeat
from math import inf, pi
from types import BuiltinFunctionType, FunctionType

from ..arrays.running import outside_of_captures
from ..arrays.warn import warn
from ..core.tensor import Tensor
from ..help import public
from . import messages
from .optimizer import Optimizer, to_scalar


def cloned(value):
    return value.clone() if isinstance(value, Tensor) else value


def values(optimizer, key):
    """An option of all groups."""
    return [cloned(group[key]) for group in optimizer.param_groups]


def set_value(group, key, value):
    """Set an option; one that is a tensor keeps its memory."""
    if isinstance(group[key], Tensor):
        group[key].fill_(to_scalar(value))
    else:
        group[key] = value


def for_each(name, optimizer, value, message=messages.NUMBER_OF_VALUES):
    """A value for each group.  ValueError for a list of another length."""
    n = len(optimizer.param_groups)
    given = value if isinstance(value, (list, tuple)) else [value] * n
    if len(given) != n:
        raise ValueError(message.format(name, len(given), n))
    return [*map(cloned, given)]


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def own_state(x):
    """Return the state to save of a scheduler, a callable object, a function (None), or a list of these."""
    if isinstance(x, (list, tuple)):
        return [*map(own_state, x)]
    if hasattr(x, "optimizer"):
        return x.state_dict()
    return None if x is None or isinstance(x, (FunctionType, BuiltinFunctionType)) else x.__dict__.copy()


def take_over(x, state):
    """Give back what ``own_state`` saved.  IndexError if a list was longer."""
    if state is None:
        return
    if isinstance(x, (list, tuple)):
        for i, saved in enumerate(state):
            take_over(x[i] if saved is not None else None, saved)
    elif hasattr(x, "optimizer"):
        x.load_state_dict(state)
    else:
        x.__dict__.update(state)


class LRScheduler:
    """Sets the learning rate of each group of an optimizer at every ``step``.  A subclass writes ``get_lr``."""

    _get_lr_called_within_step = False
    _is_initial = False
    _apart = ""  # the attribute that is saved as its ``own_state``

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", cloned(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(messages.NO_INITIAL_LR.format(i))
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer.__dict__.setdefault("_opt_called", False)  # from now on the optimizer says whether it was stepped
        self._initial_step()

    def _initial_step(self):
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """All but the optimizer."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", self._apart)}
        return {**state, self._apart: own_state(getattr(self, self._apart))} if self._apart else state

    def load_state_dict(self, state_dict):
        """Go on from a ``state_dict``."""
        if not self._apart:
            self.__dict__.update(state_dict)
            return
        apart = state_dict.pop(self._apart)
        self.__dict__.update(state_dict)
        state_dict[self._apart] = apart
        take_over(getattr(self, self._apart), apart)

    def get_last_lr(self):
        """The learning rates of the groups, as they were set last."""
        return self._last_lr

    def get_lr(self):
        """The next learning rates of the groups."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self._next_rates()

    def _next_rates(self):
        raise NotImplementedError

    @outside_of_captures
    def step(self, epoch=None):
        """Set the next learning rates; to be called after ``optimizer.step()``."""
        if self._step_count == 1:
            if not (hasattr(self.optimizer.step, "hooked") and hasattr(self.optimizer, "_opt_called")):
                warn(messages.OVERRIDDEN)
            elif not self.optimizer._opt_called:
                warn(messages.TOO_EARLY)
        self._step_count += 1
        if epoch is not None:
            warn(messages.EPOCH_PARAMETER)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        if epoch is None:
            self.last_epoch += 1
        else:
            self.last_epoch = epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        set_rates(self, closed or self.get_lr)


def set_rates(scheduler, rates):
    """Set the learning rates that a method of a scheduler gives."""
    scheduler._get_lr_called_within_step = True
    try:
        new = rates()
    finally:
        scheduler._get_lr_called_within_step = False
    for group, lr in zip(scheduler.optimizer.param_groups, new, strict=True):
        set_value(group, "lr", lr)
    scheduler._last_lr = values(scheduler.optimizer, "lr")


class FromTheLastRate(LRScheduler):
    """A scheduler whose rates follow from those before: a subclass writes formulas for one group.

    ``_next_rate(lr, base_lr)`` is the rate after ``lr``, and ``_closed_form(base_lr)`` that of any epoch.
    """

    def _next_rates(self):
        bases = chain(self.base_lrs, repeat(None))  # of fewer groups, if another optimizer's state was loaded
        return [self._next_rate(lr, base) for lr, base in zip(values(self.optimizer, "lr"), bases)]

    def _get_closed_form_lr(self):
        return [self._closed_form(base) for base in self.base_lrs]


class WithFunctions(LRScheduler):
    """A scheduler with a function of the epoch for each group; functions are not saved, callable objects are."""

    _apart = "lr_lambdas"

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = for_each("lr_lambdas", optimizer, lr_lambda, "Expected {2} {0}, but got {1}")
        super().__init__(optimizer, last_epoch)


class LambdaLR(WithFunctions):
    """The first learning rate times a function of the epoch."""

    def _next_rates(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(WithFunctions):
    """The last learning rate times a function of the epoch."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        for f in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _next_rates(self):
        rates = values(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, rates, strict=True)]


class StepLR(FromTheLastRate):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def _closed_form(self, base_lr):
        return base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(FromTheLastRate):
    """Times ``gamma`` at each of the epochs ``milestones``."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        return lr * self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else lr

    def _closed_form(self, base_lr):
        return base_lr * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(FromTheLastRate):
    """Times ``factor`` for the first ``total_iters`` epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def _closed_form(self, base_lr):
        return base_lr * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(FromTheLastRate):
    """Times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        way = self.end_factor - self.start_factor
        return lr * (1.0 + way / (self.total_iters * self.start_factor + (self.last_epoch - 1) * way))

    def _closed_form(self, base_lr):
        way = self.end_factor - self.start_factor
        return base_lr * (self.start_factor + way * min(self.total_iters, self.last_epoch) / self.total_iters)


class ExponentialLR(FromTheLastRate):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        return lr if self._is_initial else lr * self.gamma

    def _closed_form(self, base_lr):
        return base_lr * self.gamma**self.last_epoch


class PolynomialLR(FromTheLastRate):
    """Down to zero in ``total_iters`` epochs, as a power of what is left of them."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left = [1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1)]
        return lr * (left[0] / left[1]) ** self.power

    def _closed_form(self, base_lr):
        return base_lr * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(FromTheLastRate):
    """Down to ``eta_min`` in ``T_max`` epochs and up again, along a cosine (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _next_rate(self, lr, base_lr):
        epoch, T, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return lr
        if self._step_count == 1 and epoch > 0:
            return low + (base_lr - low) * (1 + math.cos(epoch * pi / T)) / 2
        if (epoch - 1 - T) % (2 * T) == 0:
            return lr + (base_lr - low) * (1 - math.cos(pi / T)) / 2
        return (1 + math.cos(pi * epoch / T)) / (1 + math.cos(pi * (epoch - 1) / T)) * (lr - low) + low

    def _closed_form(self, base_lr):
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to ``eta_min`` along a cosine in T_0 epochs, then again, each time ``T_mult`` as long."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_rates(self):
        share = (1 + math.cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    @outside_of_captures
    def step(self, epoch=None):
        """Set the next learning rates; ``epoch`` may be a fraction, such as epoch + batch / batches."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        set_rates(self, self.get_lr)


# ---- momentum that goes the other way


class WithMomentum(LRScheduler):
    """A scheduler that may also change momentum (Adam: beta1) between ``base_momentum`` and ``max_momentum``."""

    def _begin_momentum(self, base_momentum, max_momentum, last_epoch):
        defaults = self.optimizer.defaults
        if not self.cycle_momentum:
            return
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        highs = for_each("max_momentum", self.optimizer, max_momentum)
        lows = for_each("base_momentum", self.optimizer, base_momentum)
        if last_epoch == -1:
            for group, high, low in zip(self.optimizer.param_groups, highs, lows):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(WithMomentum):
    """Up to ``max_lr`` and far down in ``total_steps`` steps (Smith and Topin, 2018); stepped after every batch."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        counts = {"total_steps": total_steps}
        if total_steps is None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if None in counts.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, n in counts.items():
            if n <= 0 or not isinstance(n, int):
                raise ValueError(f"Expected positive integer {name}, but got {n}")
        self.total_steps = math.prod(counts.values())
        up = {"end_step": float(pct_start * self.total_steps) - 1, "start_lr": "initial_lr", "end_lr": "max_lr",
              "start_momentum": "max_momentum", "end_momentum": "base_momentum"}  # fmt: skip
        down = {"end_step": self.total_steps - 1, "start_lr": "max_lr", "end_lr": "min_lr",
                "start_momentum": "base_momentum", "end_momentum": "max_momentum"}  # fmt: skip
        self._schedule_phases = [up, down]
        if three_phase:
            back = {**down, "end_step": float(2 * pct_start * self.total_steps) - 2, "end_lr": "initial_lr"}
            self._schedule_phases = [up, back, {**down, "start_lr": "initial_lr", "start_momentum": "max_momentum"}]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, for_each("max_lr", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = lr / div_factor, lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(pi * share) + 1)

    def _next_rates(self):
        step, first = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            first = phase["end_step"] if phase is not self._schedule_phases[-1] else first
        share = (step - first) / (phase["end_step"] - first)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(start, end, share))
        return rates


class CyclicLR(WithMomentum):
    """Up from ``base_lr`` to ``max_lr`` and down, over and over (Smith, 2017); stepped after every batch."""

    _apart = "_scale_fn_custom"

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular",
                 gamma=1.0, scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8,
                 max_momentum=0.9, last_epoch=-1):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", lr)
        self.max_lrs = for_each("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self._begin_momentum(base_momentum, max_momentum, last_epoch)
        if cycle_momentum:
            self.base_momentums = for_each("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each("max_momentum", optimizer, max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The height of a cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def _next_rates(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, ends, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


# ---- schedulers of schedulers


class OfSchedulers(LRScheduler):
    """Several schedulers of one optimizer; their states are saved with this one's."""

    _apart = "_schedulers"
    _verb = ""

    def _check_schedulers(self, optimizer, schedulers):
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler{self._verb}, but got no scheduler.")
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(messages.REDUCE_ON_PLATEAU.format(name, i))
            if optimizer is not s.optimizer:
                kinds = type(s).__name__, type(optimizer).__name__
                raise ValueError(messages.ANOTHER_OPTIMIZER.format(name, kinds[0], i, s.optimizer, kinds[1]))


class SequentialLR(OfSchedulers):
    """One scheduler after another: the next one begins anew at each of the epochs ``milestones``."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._check_schedulers(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(messages.NUMBER_OF_SCHEDULERS.format(len(schedulers), len(milestones)))
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        taken_back(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    @outside_of_captures
    def step(self):
        """Set the next learning rates; to be called after ``optimizer.step()``."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def taken_back(scheduler):
    """Undo the first step that every scheduler took when it was made."""
    for s in getattr(scheduler, "_schedulers", ()):
        taken_back(s)
    if not hasattr(scheduler, "_schedulers"):
        scheduler.last_epoch -= 1


class ChainedScheduler(OfSchedulers):
    """Schedulers that all take every step."""

    _verb = " to be chained"

    def __init__(self, schedulers, optimizer=None):
        self._check_schedulers(optimizer or (schedulers[0].optimizer if schedulers else None), schedulers)
        self._schedulers, self.optimizer = schedulers, optimizer or schedulers[0].optimizer
        self._last_lr = values(self.optimizer, "lr")

    @outside_of_captures
    def step(self):
        """Let each scheduler take a step."""
        for s in self._schedulers:
            s.step()
        self._last_lr = values(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a metric has not improved by ``threshold`` for more than ``patience`` epochs."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel",
                 cooldown=0, min_lr=0, eps=1e-8):  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_each("min_lrs", optimizer, min_lr, "expected {2} {0}, got {1}")
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = values(optimizer, "lr")
        self._check_modes(mode, threshold_mode)
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def load_state_dict(self, state_dict):
        """Go on from a ``state_dict``.  ValueError for a mode that is unknown: it is another scheduler's."""
        super().load_state_dict(state_dict)
        self._check_modes(self.mode, self.threshold_mode)

    def _check_modes(self, mode, threshold_mode):
        for name, value, known in ("mode", mode, ("min", "max")), ("threshold mode", threshold_mode, ("rel", "abs")):
            if value not in known:
                raise ValueError(f"{name} {value} is unknown!")
        self.mode_worse = inf if mode == "min" else -inf

    def _reset(self):
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @outside_of_captures
    def step(self, metrics, epoch=None):
        """Look at the metric of an epoch, a number or a tensor of one element."""
        current = float(metrics)
        if epoch is not None:
            warn(messages.EPOCH_PARAMETER)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values(self.optimizer, "lr")

    @property
    def in_cooldown(self):
        return self.cooldown_counter > 0

    def _is_better(self, value, best):
        sign = -1.0 if self.mode == "min" else 1.0
        margin = sign * self.threshold
        bound = best * (1.0 + margin) if self.threshold_mode == "rel" else best + margin
        return value < bound if self.mode == "min" else value > bound

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(messages.NUMBER_OF_GROUPS.format(len(groups), len(self.min_lrs)))
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_value(group, "lr", new)


class _LRScheduler(LRScheduler):
    """The base class under its old name, which programs still derive their own from."""


__dir__ = public("optim.lr_scheduler", globals())
