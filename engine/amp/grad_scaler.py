"""``GradScaler`` keeps gradients in float16 from vanishing."""

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

from ..arrays import dtypes
from ..arrays.devices import has_cuda
from ..arrays.warn import warn
from ..autograd.modes import no_grad
from ..core.tensor import Tensor
from ..nn.utils import gradients, multiplied  # type: ignore[attr-defined]  # not public
from ..ops.creation import full
from . import messages


class OptState(Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


def per_optimizer_state():
    """Return the state of an optimizer at the beginning of an iteration."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class OnDevices(dict):
    """{device: a copy of a tensor there}: each is made when it is asked for."""

    def __init__(self, t):
        self.t = t

    def __missing__(self, device):
        self[device] = self.t.to(device=device, copy=True)
        return self[device]


class GradScaler:
    """Multiplies the loss, so that small gradients in float16 do not vanish, and divides the gradients by the same."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):  # fmt: skip
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not has_cuda():
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale, self._init_growth_tracker = init_scale, 0
            self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
            self._growth_interval = growth_interval
            self._scale = self._growth_tracker = None  # tensors on the device of the first loss
            self._per_optimizer_states = defaultdict(per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname):
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(messages.SCALE_IS_NONE.format(funcname, name))
        return self._scale, self._growth_tracker

    def scale(self, outputs):
        """A tensor, or those in sequences, times the scale."""
        return self._scaled(outputs, OnDevices(self._scale)) if self._enabled else outputs

    def _scaled(self, value, scales):
        if isinstance(value, Tensor):
            if self._scale is None:
                scales.t = self._scale = full((), self._init_scale, dtype=dtypes.float32, device=value.device)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=value.device)
            return value * scales[value.device]
        if isinstance(value, Iterable):
            values = (self._scaled(v, scales) for v in value)
            return type(value)(values) if isinstance(value, (list, tuple)) else values
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    @no_grad()
    def _unscale_grads_(self, optimizer, inv_scale, allow_fp16):
        """Multiply all gradients; {device: 1.0 if one of them there is not finite, else 0.0}."""
        inverse = OnDevices(inv_scale)
        found_inf = OnDevices(full((), 0.0, dtype=dtypes.float32, device=inv_scale.device))
        grads = gradients(p for group in optimizer.param_groups for p in group["params"])
        if all(g.dtype is not dtypes.float16 for g in grads):
            left, infinite = multiplied(grads, inv_scale)
            if len(left) < len(grads):
                found_inf[inv_scale.device].fill_(float(infinite))
            grads = left
        for g in grads:
            if g.dtype is dtypes.float16 and not allow_fp16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            flag = found_inf[g.device]
            if not g.isfinite().all():
                flag.fill_(1.0)
            g.copy_(g * inverse[g.device])
        return found_inf

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer's parameters by the scale, to clip them, say.  Once an iteration."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        known["found_inf_per_device"] = self._unscale_grads_(optimizer, scale.double().reciprocal().float(), False)
        known["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """``optimizer.step`` with unscaled gradients, unless one of them is inf or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_by_itself(optimizer, known, args, kwargs)
        else:
            if known["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not known["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            infinite = any(found.item() for found in known["found_inf_per_device"].values())
            result = None if infinite else optimizer.step(*args, **kwargs)
        known["stage"] = OptState.STEPPED
        return result

    def _step_by_itself(self, optimizer, known, args, kwargs):
        """The step of an optimizer that looks at ``grad_scale`` and ``found_inf`` itself."""
        scale = getattr(optimizer, "grad_scale", None)
        if known["stage"] is OptState.READY:
            one = full((), 1.0, dtype=dtypes.float32, device=self._scale.device)
            known["found_inf_per_device"] = self._unscale_grads_(optimizer, one, True)
            scale = self._scale * (1 if scale is None else scale)
        optimizer.grad_scale = scale
        optimizer.found_inf = sum(found.to(self._scale.device) for found in known["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    @no_grad()
    def update(self, new_scale=None):
        """Lower the scale if a step of this iteration was left out, or count; ``new_scale``: set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(messages.NEW_SCALE_TYPE)
            scale.copy_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [f.item() for known in states for f in known["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            count = 0 if any(found) else int(tracker.item()) + 1
            if any(found):
                scale.mul_(self._backoff_factor)
            elif count == self._growth_interval:
                grown, count = scale * self._growth_factor, 0
                if grown.isfinite():
                    scale.copy_(grown)
            tracker.fill_(count)
        self._per_optimizer_states = defaultdict(per_optimizer_state)

    def get_scale(self):
        """The scale; 1.0 of a scaler that is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        """Tell whether the scaler scales."""
        return self._enabled

    def state_dict(self):
        """The scale and how it grows, in plain values; empty if it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Take over the state of another scaler.  RuntimeError if that was not enabled."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(messages.STATE_IS_EMPTY)
        self._init_scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        own = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(messages.PICKLED_TOO_EARLY)
            own.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(),
                       _scale=None, _growth_tracker=None)  # fmt: skip
        return own
