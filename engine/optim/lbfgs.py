"""L-BFGS: steps along an estimate of Newton's direction, from the last changes of parameters and gradient."""

from functools import partial
from typing import NamedTuple

from ..autograd.modes import enable_grad, no_grad
from ..core.tensor import Tensor
from ..ops.shape import cat
from .optimizer import Optimizer, to_scalar


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, "Numerical Optimization", chapter 7), for all parameters together."""

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad}
        options |= {"tolerance_change": tolerance_change, "history_size": history_size}
        super().__init__(params, {**options, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self):
        """The gradients of all parameters as one vector."""
        return cat([(p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)) for p in self._params])

    def _add_grad(self, t, d):
        """Add t * d to the parameters."""
        begin = 0
        for p in self._params:
            p.add_(d[begin : begin + p.numel()].view_as(p), alpha=t)
            begin += p.numel()

    @no_grad()
    def step(self, closure):
        """Move the parameters; returns the loss from before."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        closure = enable_grad()(closure)
        names = "lr max_iter max_eval tolerance_grad tolerance_change line_search_fn history_size"
        lr, max_iter, max_eval, tolerance_grad, tolerance_change, line_search_fn, history_size = (
            self.param_groups[0][name] for name in names.split()
        )
        lr = to_scalar(lr)
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        before = closure()
        loss, evals = float(before), 1
        state["func_evals"] += 1
        g = self._gather_flat_grad()
        if g.abs().max() <= tolerance_grad:
            return before
        d, t, previous, H = (state.get(k) for k in ("d", "t", "prev_flat_grad", "H_diag"))
        ys, ss, ro = (state.get(k) for k in ("old_dirs", "old_stps", "ro"))
        last = state.get("prev_loss")
        for n in range(1, max_iter + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, ys, ss, ro, H = g.neg(), [], [], [], 1
            else:
                H = update_history(g.sub(previous), d.mul(t), ys, ss, ro, H, history_size)
                d = direction(g, ys, ss, ro, H, state.setdefault("al", [None] * history_size))
            previous, last = g.clone(), loss
            t = lr if state["n_iter"] > 1 else min(1.0, 1.0 / g.abs().sum()) * lr
            slope = g.dot(d)
            if slope > -tolerance_change:
                break
            calls = 0
            if line_search_fn is None:
                self._add_grad(t, d)
                if n != max_iter:
                    loss, calls = float(closure()), 1
                    g = self._gather_flat_grad()
            elif line_search_fn != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            else:
                at = partial(self._point_at, closure, [p.clone() for p in self._params], d)
                (t, loss, g, _), calls = strong_wolfe(at, Point(0, loss, g, slope), t, d, most=max_eval - evals)
                self._add_grad(t, d)
            flat = g.abs().max() <= tolerance_grad
            still = d.mul(t).abs().max() <= tolerance_change or abs(loss - last) < tolerance_change
            evals += calls
            state["func_evals"] += calls
            if evals >= max_eval or flat or still:
                break
        state.update(d=d, t=t, old_dirs=ys, old_stps=ss, ro=ro, H_diag=H, prev_flat_grad=previous, prev_loss=last)
        return before

    def _point_at(self, closure, begin, d, t):
        """The Point at a distance t along d; the parameters stay where they began."""
        self._add_grad(t, d)
        loss, g = float(closure()), self._gather_flat_grad()
        for p, value in zip(self._params, begin, strict=True):
            p.copy_(value)
        return Point(t, loss, g, g.dot(d))


def update_history(y, s, ys, ss, ro, H, size):
    """Add a change of the gradient, y, and of the parameters, s, if they curve; returns the scale of the inverse."""
    curve = y.dot(s)
    if not curve > 1e-10:
        return H
    if len(ys) == size:
        for history in (ys, ss, ro):
            del history[0]
    ys.append(y)
    ss.append(s)
    ro.append(1.0 / curve)
    return curve / y.dot(y)


def direction(g, ys, ss, ro, H, shares):
    """Minus the inverse Hessian's estimate times g, by two loops over the changes; ``shares``: a list to work in."""
    d = g.neg()
    for i in reversed(range(len(ys))):
        shares[i] = ss[i].dot(d) * ro[i]
        d.add_(ys[i], alpha=-shares[i].item())
    d = d.mul(H)
    for i in range(len(ys)):
        d.add_(ss[i], alpha=(shares[i] - ys[i].dot(d) * ro[i]).item())
    return d


class Point(NamedTuple):
    """A point along a search direction: its distance, the loss, the gradient, and the slope in that direction."""

    t: float
    loss: float
    gradient: Tensor
    slope: Tensor


def cubic_minimum(a, b, bounds):
    """Return the minimum within bounds of the cubic through two points, or the middle of the bounds if it has none."""
    low, high = bounds
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = first**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = square.sqrt()
    a, b = (a, b) if a.t <= b.t else (b, a)
    t = b.t - (b.t - a.t) * ((b.slope + root - first) / (b.slope - a.slope + 2 * root))
    return min(max(t, low), high)


def strong_wolfe(at, start, t, d, c1=1e-4, c2=0.9, tolerance=1e-9, most=25):
    """(a Point that meets the strong Wolfe conditions, calls): widens a bracket, then narrows it by cubics.

    Nocedal and Wright, algorithms 3.5 and 3.6, with the bounds of steps of Schmidt's minFunc.
    """
    longest = d.abs().max()
    too_high = lambda p: p.loss > start.loss + c1 * p.t * start.slope  # noqa: E731
    level = lambda p: abs(p.slope) <= -c2 * start.slope  # noqa: E731
    new, old, n = at(t), start, 0
    while n < most:
        if too_high(new) or (n > 1 and new.loss >= old.loss) or level(new) or new.slope >= 0:
            break
        old, t = new, cubic_minimum(old, new, (new.t + 0.01 * (new.t - old.t), new.t * 10))
        new, n = at(t), n + 1
    if n < most and level(new) and not (too_high(new) or (n > 1 and new.loss >= old.loss)):
        return new, n + 1
    pair = [old if n < most else start, new]
    low = 0 if pair[0].loss <= pair[1].loss else 1
    stuck = False
    while n < most and not abs(pair[1].t - pair[0].t) * longest < tolerance:
        left, right = min(p.t for p in pair), max(p.t for p in pair)
        t = cubic_minimum(*pair, (left, right))
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new, n = at(t), n + 1
        if too_high(new) or new.loss >= pair[low].loss:
            pair[1 - low] = new
            low = 0 if pair[0].loss <= pair[1].loss else 1
            continue
        done = level(new)
        if not done and new.slope * (pair[1 - low].t - pair[low].t) >= 0:
            pair[1 - low] = pair[low]
        pair[low] = new
        if done:
            break
    return pair[low], n + 1
