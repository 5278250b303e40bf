"""SyncBatchNorm: batch normalization over the batches of all ranks together."""

from ..arrays.dispatch import modules
from ..autograd.function import Function
from ..collectives import calls
from ..collectives.groups import group, is_initialized
from ..core.tensor import Tensor
from ..ops.norms import update
from . import functional as F
from .layers import BatchNorm, InstanceNorm


class SyncNorm(Function):
    """The normalization, with one collective each way: counts, means and variances; sums of gradients."""

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, ranks):
        x = input.array
        xp, channels = modules[type(x)], x.shape[1]
        axes, thin = (0, *range(2, x.ndim)), (1, channels, *(1,) * (x.ndim - 2))
        wide = x.astype("float32") if x.dtype.itemsize == 2 else x
        count = x.size // channels
        mine = xp.zeros(2 * channels + 1, wide.dtype)
        if count:
            mine[:channels], mine[channels:-1], mine[-1] = wide.mean(axes), wide.var(axes), count
        every = xp.empty((ranks.size(), mine.size), mine.dtype)
        calls.all_gather_single(Tensor(every), Tensor(mine), ranks)
        counts = every[:, -1:]
        n = counts.sum()
        mean = (every[:, :channels] * counts).sum(0) / n
        var = ((every[:, channels:-1] + (every[:, :channels] - mean) ** 2) * counts).sum(0) / n
        rate = 1 / xp.sqrt(var + eps)
        update(running_mean, mean, momentum)
        update(running_var, var * (n / max(float(n) - 1, 1)), momentum)
        normal = (wide - mean.reshape(thin)) * rate.reshape(thin)
        out = normal if weight is None else normal * weight.array.reshape(thin)
        out = out if bias is None else out + bias.array.reshape(thin)
        ctx.save_for_backward(input, weight)
        ctx.kept = normal, rate, n, axes, thin, ranks
        return Tensor(out.astype(x.dtype))

    @staticmethod
    def backward(ctx, g):
        normal, rate, n, axes, thin, ranks = ctx.kept
        x, weight = ctx.saved_tensors
        g = g.array.astype(normal.dtype)
        xp, channels = modules[type(g)], normal.shape[1]
        sums = xp.concatenate([g.sum(axes), (g * normal).sum(axes)])
        by_bias, by_weight = sums[:channels].copy(), sums[channels:].copy()
        calls.all_reduce(Tensor(sums), group=ranks)
        into = g - (sums[:channels].reshape(thin) + normal * sums[channels:].reshape(thin)) / n
        into = into * rate.reshape(thin)
        if weight is None:
            return Tensor(into.astype(x.array.dtype)), *(None,) * 7
        into = into * weight.array.reshape(thin)
        kind = weight.array.dtype
        by_weight, by_bias = (Tensor(v.astype(kind)) if need else None
                              for v, need in zip((by_weight, by_bias), ctx.needs_input_grad[1:3]))  # fmt: skip
        return Tensor(into.astype(x.array.dtype)), by_weight, by_bias, *(None,) * 5


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the batches of all ranks of a group, by default of all processes."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
                 device=None, dtype=None, *, bias=True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _normalized(self, input, mean, var, training, momentum):
        ranks = (self.process_group or group.WORLD) if training and self.training and is_initialized() else None
        if ranks is None or ranks.size() == 1:
            return F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum, self.eps)
        return SyncNorm.apply(input, self.weight, self.bias, mean, var, self.eps, momentum, ranks)

    def _check_input_dim(self, input):
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """A module whose layers of batch normalization are SyncBatchNorm, with the same parameters and buffers."""
        new = module
        if isinstance(module, BatchNorm) and not isinstance(module, InstanceNorm):
            new = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                      process_group, bias=module.bias is not None)  # fmt: skip
            if module.affine:
                new.weight, new.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(new, name, getattr(module, name))
            new.training = module.training
        for name, child in module.named_children():
            new.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return new
