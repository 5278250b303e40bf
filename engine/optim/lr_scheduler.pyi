# Written by `python docs/update.py`.
from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
from engine import Size, Tensor, _dtype, _device, _Number, _ValuesAndIndices, _MinAndMax, _SignAndLogabsdet

class ChainedScheduler(LRScheduler):
    def __init__(self, schedulers: Any, optimizer: Any = None) -> None: ...
    def step(self) -> Any: ...
    optimizer: Any
class ConstantLR(LRScheduler):
    def __init__(self, optimizer: Any, factor: Any = 0.3333333333333333, total_iters: Any = 5, last_epoch: Any = -1) -> None: ...
    factor: Any
    total_iters: Any
class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer: Any, T_max: Any, eta_min: Any = 0.0, last_epoch: Any = -1) -> None: ...
    T_max: Any
    eta_min: Any
class CosineAnnealingWarmRestarts(LRScheduler):
    def __init__(self, optimizer: Any, T_0: Any, T_mult: Any = 1, eta_min: Any = 0.0, last_epoch: Any = -1) -> None: ...
    def step(self, epoch: Any = None) -> Any: ...
    T_0: Any
    T_cur: Any
    T_i: Any
    T_mult: Any
    eta_min: Any
    last_epoch: Any
class CyclicLR(LRScheduler):
    def __init__(self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: Any = 2000, step_size_down: Any = None, mode: Any = 'triangular', gamma: Any = 1.0, scale_fn: Any = None, scale_mode: Any = 'cycle', cycle_momentum: Any = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: Any = -1) -> None: ...
    def scale_fn(self, x: Any) -> Any: ...
    base_lrs: Any
    base_momentums: Any
    cycle_momentum: Any
    gamma: Any
    max_lrs: Any
    max_momentums: Any
    mode: Any
    optimizer: Any
    scale_mode: Any
    step_ratio: Any
    total_size: Any
    use_beta1: Any
class ExponentialLR(LRScheduler):
    def __init__(self, optimizer: Any, gamma: Any, last_epoch: Any = -1) -> None: ...
    gamma: Any
class LRScheduler:
    def __init__(self, optimizer: Any, last_epoch: Any = -1) -> None: ...
    def get_last_lr(self) -> Any: ...
    def get_lr(self) -> Any: ...
    def load_state_dict(self, state_dict: Any) -> Any: ...
    def state_dict(self) -> dict[_str, Any]: ...
    step: Callable[..., Any]
    base_lrs: Any
    last_epoch: Any
    optimizer: Any
class LambdaLR(LRScheduler):
    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: Any = -1) -> None: ...
    lr_lambdas: Any
class LinearLR(LRScheduler):
    def __init__(self, optimizer: Any, start_factor: Any = 0.3333333333333333, end_factor: Any = 1.0, total_iters: Any = 5, last_epoch: Any = -1) -> None: ...
    end_factor: Any
    start_factor: Any
    total_iters: Any
class MultiStepLR(LRScheduler):
    def __init__(self, optimizer: Any, milestones: Any, gamma: Any = 0.1, last_epoch: Any = -1) -> None: ...
    gamma: Any
    milestones: Any
class MultiplicativeLR(LRScheduler):
    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: Any = -1) -> None: ...
    lr_lambdas: Any
class OneCycleLR(LRScheduler):
    def __init__(self, optimizer: Any, max_lr: Any, total_steps: Any = None, epochs: Any = None, steps_per_epoch: Any = None, pct_start: Any = 0.3, anneal_strategy: Any = 'cos', cycle_momentum: Any = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: Any = 25.0, final_div_factor: Any = 10000.0, three_phase: Any = False, last_epoch: Any = -1) -> None: ...
    cycle_momentum: Any
    optimizer: Any
    total_steps: Any
    use_beta1: Any
class PolynomialLR(LRScheduler):
    def __init__(self, optimizer: Any, total_iters: Any = 5, power: Any = 1.0, last_epoch: Any = -1) -> None: ...
    power: Any
    total_iters: Any
class ReduceLROnPlateau(LRScheduler):
    def __init__(self, optimizer: Any, mode: Any = 'min', factor: Any = 0.1, patience: Any = 10, threshold: Any = 0.0001, threshold_mode: Any = 'rel', cooldown: Any = 0, min_lr: Any = 0, eps: Any = 1e-08) -> None: ...
    @property
    def in_cooldown(self) -> Any: ...
    def load_state_dict(self, state_dict: Any) -> Any: ...
    def step(self, metrics: Any, epoch: Any = None) -> Any: ...
    best: Any
    cooldown: Any
    cooldown_counter: Any
    default_min_lr: Any
    eps: Any
    factor: Any
    last_epoch: Any
    min_lrs: Any
    mode: Any
    mode_worse: Any
    num_bad_epochs: Any
    optimizer: Any
    patience: Any
    threshold: Any
    threshold_mode: Any
class SequentialLR(LRScheduler):
    def __init__(self, optimizer: Any, schedulers: Any, milestones: Any, last_epoch: Any = -1) -> None: ...
    def step(self) -> Any: ...
    last_epoch: Any
    optimizer: Any
class StepLR(LRScheduler):
    def __init__(self, optimizer: Any, step_size: Any, gamma: Any = 0.1, last_epoch: Any = -1) -> None: ...
    gamma: Any
    step_size: Any
