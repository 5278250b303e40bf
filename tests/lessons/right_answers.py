"""Right answers that are written in another way than the worked solutions, and ways round what an exercise asks for.

test_exercises.py wants each of the first accepted, and each of the second refused.
"""

import heapq
import math

import numpy as np

import engine
from engine import finfo, nn

ANSWERS, WAYS_ROUND = [], []


def answers(key, kind=ANSWERS):
    """Take a function or a class as one more answer to an exercise."""

    def take(attempt):
        kind.append((key, attempt))
        return attempt

    return take


def goes_round(key):
    """Take one that gives the right numbers, and not in the way that is asked for."""
    return answers(key, WAYS_ROUND)


@answers("01.2")
def answer_01_2_a(n):
    r = engine.arange(n)
    return ((r[:, None] + r) % 2 == 0).float()


@answers("01.2")
def answer_01_2_b(n):
    return engine.tensor([[1.0 - (i + j) % 2 for j in range(n)] for i in range(n)])


@answers("01.2")
def answer_01_2_c(n):
    return engine.tensor([[1.0 - (i + j) % 2 for j in range(n)] for i in range(n)], dtype=engine.float64)


@answers("01.3")
def answer_01_3_a(t):
    return int(engine.argmax(t.sum(1)))


@answers("01.3")
def answer_01_3_b(t):
    means = [row.mean().item() for row in t]
    return means.index(max(means))


@answers("01.4")
def answer_01_4_a(t):
    return t.clamp(min=0)


@answers("01.4")
def answer_01_4_b(t):
    return engine.where(t < 0, 0.0, t)


@answers("01.5")
def answer_01_5_a(p, w):
    return engine.matmul(p, w.transpose(0, 1))


@answers("01.5")
def answer_01_5_b(p, w):
    return (p[:, None] * w).sum(dim=2)


@answers("01.5")
def answer_01_5_c(p, w):
    return (w @ p.T).T


@answers("01.6")
def answer_01_6_a(a):
    a -= 32
    a *= 5
    a /= 9
    return engine.from_numpy(a)


@answers("01.6")
def answer_01_6_b(a):
    t = engine.as_tensor(a)
    t.sub_(32).mul_(5).div_(9)
    return t


@answers("01.6")
def answer_01_6_c(a):
    a[...] = (a - 32) * 5 / 9
    return engine.from_numpy(a)


@answers("02.2")
class WithLoops:
    def __init__(self, memory, shape, stride, offset=0):
        self.memory, self.shape, self.stride, self.offset = memory, shape, stride, offset

    def place(self, *index):
        place = self.offset
        for d in range(len(index)):
            place += index[d] * self.stride[d]
        return place

    @property
    def T(self):
        return self.permute(*reversed(range(len(self.shape))))

    def permute(self, *dims):
        return WithLoops(self.memory, [self.shape[d] for d in dims], [self.stride[d] for d in dims], self.offset)

    def expand(self, *shape):
        stride = list(self.stride)
        for d, size in enumerate(self.shape):
            if size == 1:
                stride[d] = 0
        return WithLoops(self.memory, shape, stride, self.offset)


@answers("02.2")
class WithNumPy:
    def __init__(self, memory, shape, stride, offset=0):
        self.memory, self.shape, self.stride, self.offset = memory, np.array(shape), np.array(stride), offset

    def place(self, *index):
        return int(self.offset + np.dot(index, self.stride))

    def permute(self, *dims):
        return WithNumPy(self.memory, self.shape[list(dims)], self.stride[list(dims)], self.offset)

    def expand(self, *shape):
        return WithNumPy(self.memory, shape, np.where(self.shape == shape, self.stride, 0), self.offset)

    @property
    def T(self):
        return WithNumPy(self.memory, self.shape[::-1], self.stride[::-1], self.offset)


@answers("02.6")
def tiles_by_a_recipe(picture, size):
    lines, points = picture.shape
    return picture.as_strided((lines // size, points // size, size, size), (size * points, size, points, 1))


@answers("03.3")
def answer_03_3_in_two_types(x):
    return (x if x.dtype == engine.float64 else x.float()).mean().float()


@answers("03.3")
def answer_03_3_by_a_wider_sum(x):
    return x.sum(dtype=engine.float64).div(x.numel()).to(engine.float32)


@answers("03.2")
def answer_03_2_limited_before_the_sum(pixels, by):
    return pixels.clamp(max=255 - by) + by


@answers("05.2")
def answer_05_2_with_one_set_for_all_calls(node, seen=None):
    seen = set() if seen is None else seen
    if node is not None and node not in seen:
        seen.add(node)
        for parent, _ in node.next_functions:
            answer_05_2_with_one_set_for_all_calls(parent, seen)
    return len(seen)


@answers("02.3")
def answer_02_3_a(b):
    return b.flatten(1)


@answers("02.3")
def answer_02_3_b(b):
    return b.contiguous().view(len(b), -1)


@answers("02.3")
def answer_02_3_c(b):
    return engine.stack([photo.flatten() for photo in b])


@answers("02.4")
def answer_02_4_a(t):
    return t / t.sum(1)[:, None]


@answers("02.4")
def answer_02_4_b(t):
    return (t.T / t.sum(dim=1)).T


@answers("02.5")
def answer_02_5_a(p, q):
    return (p.unsqueeze(1) - q.unsqueeze(0)).norm(dim=-1)


@answers("02.5")
def answer_02_5_b(p, q):
    d = p[:, None] - q[None]
    return engine.sqrt(d[..., 0] ** 2 + d[..., 1] ** 2)


@answers("02.6")
def answer_02_6_a(p, n):
    return p.unfold(0, n, n).unfold(1, n, n)


@answers("02.6")
def answer_02_6_b(p, n):
    a, b = p.shape
    return p.reshape(a // n, n, b // n, n).transpose(1, 2)


@answers("02.6")
def answer_02_6_c(p, n):
    a, b = p.shape
    return p.as_strided((a // n, b // n, n, n), (b * n, n, b, 1))


@answers("03.2")
def answer_03_2_a(p, by):
    return engine.where(p > 255 - by, 255, p + by).to(engine.uint8)


@answers("03.2")
def answer_03_2_b(p, by):
    return (p.float() + by).clamp(0, 255).to(engine.uint8)


@answers("03.2")
def answer_03_2_c(p, by):
    return p.clamp(max=255 - by) + by


@answers("03.3")
def answer_03_3_a(x):
    return x.mean(dtype=engine.float32)


@answers("03.3")
def answer_03_3_b(x):
    return x.float().sum() / x.numel()


@answers("03.3")
def answer_03_3_c(x):
    return x.double().mean().float()


@answers("03.4")
def answer_03_4_a(d):
    n = 0
    while (engine.tensor(1, dtype=d) + engine.tensor(2.0**-n, dtype=d)).item() > 1:
        n += 1
    return 2.0 ** (1 - n)


@answers("03.5")
def answer_03_5_a(x, y):
    return y.to(x.device) + x


@answers("03.5")
def answer_03_5_b(x, y):
    return x.add(y.cpu().to(x.device))


@answers("04.2")
def answer_04_2_a(g, x):
    k = x.detach().clone()
    k.requires_grad_()
    g(k).backward()
    return float(k.grad)


@answers("04.2")
def answer_04_2_b(g, x):
    k = x.detach().requires_grad_()
    return engine.autograd.grad(g(k), k)[0].item()


@answers("04.2")
def answer_04_2_c(g, x):
    return engine.func.grad(g)(x.detach()).item()


@answers("04.2")
def answer_04_2_d(g, x):
    held, asked = x.grad, x.requires_grad
    x.grad = None
    g(x.requires_grad_()).backward()
    slope = x.grad.item()
    x.requires_grad_(asked)
    x.grad = held
    return slope


@answers("04.3")
def answer_04_3_a(g, x, rate):
    g(x).backward()
    with engine.no_grad():
        x.sub_(rate * x.grad)
        x.grad.zero_()


@answers("04.3")
def answer_04_3_b(g, x, rate):
    x.grad = None
    g(x).backward()
    x.data -= rate * x.grad
    x.grad = None


@answers("04.4")
def answer_04_4_a(g, start, rate, steps):
    x = engine.tensor(start, requires_grad=True)
    positions = [x.item()]
    for _ in range(steps):
        if x.grad is not None:
            x.grad.zero_()
        g(x).backward()
        with engine.no_grad():
            x -= rate * x.grad
        positions.append(x.item())
    return positions


@answers("04.5")
def answer_04_5_a(xs, ys, rate, steps):
    k = engine.zeros(2, requires_grad=True)
    sgd = engine.optim.SGD([k], lr=rate)
    for _ in range(steps):
        sgd.zero_grad()
        ((k[0] * xs * xs + k[1] - ys) ** 2).mean().backward()
        sgd.step()
    return k.tolist()


@answers("05.2")
def answer_05_2_a(node, seen=None):
    seen = set() if seen is None else seen
    if node is not None and node not in seen:
        seen.add(node)
        for parent, _ in node.next_functions:
            answer_05_2_a(parent, seen)
    return len(seen)


@answers("05.3")
def answer_05_3_a(g, x, y):
    return [g * (1 / y), g * (-x / (y * y))]


@answers("05.4")
def answer_05_4_a(node, arriving, found):
    if type(node).__name__ == "AccumulateGrad":
        if node.variable in found:
            found[node.variable] = found[node.variable] + arriving
        else:
            found[node.variable] = arriving
        return
    passed_on = node(arriving)
    passed_on = passed_on if isinstance(passed_on, tuple) else (passed_on,)
    for (parent, _), part in zip(node.next_functions, passed_on, strict=True):
        if parent is not None:
            answer_05_4_a(parent, part, found)


@answers("05.5")
def answer_05_5_a(root):
    """By the order in which a walk in depth has done with the nodes, turned round."""
    order, seen = [], set()

    def visit(node):
        if node is not None and node not in seen:
            seen.add(node)
            for parent, _ in node.next_functions:
                visit(parent)
            order.append(node)

    visit(root)
    arrived, found = {root: engine.tensor(1.0)}, {}
    for node in reversed(order):
        if type(node).__name__ == "AccumulateGrad":
            found[node.variable] = arrived[node]
            continue
        parts = node(arrived[node])
        for (parent, _), part in zip(node.next_functions, parts if type(parts) is tuple else [parts], strict=True):
            if parent is not None:
                arrived[parent] = arrived[parent] + part if parent in arrived else part
    return found


@answers("05.5")
def answer_05_5_b(root):
    heap, arrived, found = [(root.time, 0, root)], {root: 1.0}, {}
    while heap:
        node = heapq.heappop(heap)[2]
        g = engine.as_tensor(arrived.pop(node))
        if hasattr(node, "variable"):
            found[node.variable] = g
            continue
        parts = node(g)
        parts = parts if isinstance(parts, tuple) else (parts,)
        for (parent, _), part in zip(node.next_functions, parts, strict=True):
            if parent is None:
                continue
            if parent not in arrived:
                heapq.heappush(heap, (parent.time, len(heap), parent))
            arrived[parent] = arrived.get(parent, 0) + part
    return found


@answers("06.2")
def leaves_2_a(n, dtype):
    knobs = engine.randn(n).to(dtype) * 0.1
    knobs.requires_grad = True
    return knobs


@answers("06.2")
def leaves_2_b(n, dtype):
    return (engine.randn(n, requires_grad=True).to(dtype) * 0.1).detach().requires_grad_()


@answers("06.2")
def leaves_2_c(n, dtype):
    knobs = engine.randn(n).to(dtype).requires_grad_()
    with engine.no_grad():
        knobs.mul_(0.1)
    return knobs


@answers("06.2")
def leaves_2_d(n, dtype):
    return (engine.randn(n) / 10).to(dtype).requires_grad_(True)


@answers("06.3")
def leaves_3_a(x, functions):
    kept = []
    for function in functions:
        x = function(x)
        x.retain_grad()
        kept.append(x)
    kept[-1].backward()
    return [h.grad for h in kept]


@answers("06.3")
def leaves_3_b(x, functions):
    slopes = []
    for function in functions:
        x = function(x)
        x.register_hook(slopes.append)
    x.backward()
    return slopes[::-1]


@answers("06.3")
def leaves_3_c(x, functions):
    kept = [x := function(x) for function in functions]
    return [engine.autograd.grad(x, h, retain_graph=True)[0] for h in kept]


@answers("06.4")
def leaves_4_a(h, most):
    def hook(arriving):
        return engine.clamp(arriving, min=-most, max=most)

    return h.register_hook(hook)


@answers("06.4")
def leaves_4_b(h, most):
    def hook(arriving):
        new = arriving.clone()
        new[new > most] = most
        new[new < -most] = -most
        return new

    h.register_hook(hook)


@answers("06.5")
def leaves_5_a(y):
    found = {}

    def walk(node):
        if type(node).__name__ == "AccumulateGrad":
            found[node.variable] = True
        for parent, _ in node.next_functions:
            if parent is not None:
                walk(parent)

    walk(y.grad_fn)
    return list(found)


@answers("06.5")
def leaves_5_b(y):
    seen = set()

    def walk(node):
        if node is None or node in seen:
            return []
        seen.add(node)
        own = [node.variable] if hasattr(node, "variable") else []
        return own + [leaf for parent, _ in node.next_functions for leaf in walk(parent)]

    return set(walk(y.grad_fn))


@answers("07.2")
def life_2_a(losses, w):
    total = 0
    for loss in losses:
        total = total + engine.autograd.grad(loss, w, retain_graph=True)[0]
    return total / len(losses)


@answers("07.2")
def life_2_b(losses, w):
    old, w.grad = w.grad, None
    engine.stack(losses).mean().backward()
    new, w.grad = w.grad, old
    return new


@answers("07.3")
def life_3_a(w, xs, ys, size):
    w.grad = None
    for x, y in zip(xs.split(size), ys.split(size), strict=True):
        (((w * x - y) ** 2).sum() / len(xs)).backward()
    return w.grad


@answers("07.3")
def life_3_b(w, xs, ys, size):
    w.grad = None
    for first in range(0, len(xs), size):
        x, y = xs[first : first + size], ys[first : first + size]
        ((w * x - y) ** 2).mean().backward(engine.tensor(len(x) / len(xs)))
    return w.grad


@answers("07.3")
def life_3_c(w, xs, ys, size):
    w.grad = None
    for first in range(0, len(xs), size):
        x, y = xs[first : first + size], ys[first : first + size]
        ((w * x - y) ** 2).sum().backward()
    w.grad /= len(xs)
    return w.grad


@answers("07.3")
def life_3_d(w, xs, ys, size):  # more often than asked, with less memory
    w.grad = None
    for x, y in zip(xs, ys, strict=True):
        ((w * x - y) ** 2 / len(xs)).backward()
    return w.grad


@answers("07.4")
def life_4_a(w, numbers):
    state, losses = 1.0, []
    for number in numbers:
        after = (w * state + number).tanh()
        loss = (after - 0.5) ** 2
        loss.backward()
        with engine.no_grad():
            w -= 0.5 * w.grad
            w.grad.zero_()
        losses.append(loss.item())
        state = after.item()
    return losses


@answers("07.5")
def life_5_a(s):
    return s.softmax(0)


@answers("07.5")
def life_5_b(s):
    e = engine.exp(s - s.max().detach())
    return e / e.sum()


@answers("08.2")
@engine.no_grad()
def answer_07_2_a(predict, xs, ys):
    return float(((predict(xs) - ys) ** 2).mean())


@answers("08.2")
def answer_07_2_b(predict, xs, ys):
    with engine.inference_mode():
        return nn.functional.mse_loss(predict(xs), ys).item()


@answers("08.3")
def answer_07_3_a(w, widths):
    losses, places = [], []
    for width in widths:
        loss = (w * w).sum()
        losses.append(loss.item())
        places.append(engine.tensor(w.tolist()))
        loss.backward()
        with engine.no_grad():
            w -= width * w.grad
        w.grad = None
    return places[losses.index(min(losses))]


@answers("08.4")
def answer_07_4_a(parameters, n):
    learn = []
    for i, p in enumerate(parameters):
        p.requires_grad = i >= n
        if i < n:
            p.grad = None
        else:
            learn.append(p)
    return learn


@answers("08.5")
def answer_07_5_a(judge, w, position, following, reward):
    target = (reward + 0.9 * judge(w, following)).detach()
    return (target - judge(w, position)).pow(2)


@answers("09.2")
def answer_08_2_a(numbers, keep, take):
    found = []
    for n in numbers:
        found.append((found[-1] * keep if found else 0) + n * take)
    return engine.stack(found)


@answers("09.2")
def answer_08_2_b(numbers, keep, take):
    s = engine.zeros(1)
    out = []
    for n in numbers:
        s = keep * s + take * n
        out.append(s)
    return engine.cat(out)


@answers("09.2")
def answer_08_2_c(numbers, keep, take):
    found, state = engine.zeros(len(numbers)), 0.0
    for place, number in enumerate(numbers):
        state = keep * state + take * number
        found[place] = state
    return found


@answers("09.3")
def answer_08_3_a(x):
    mask = x == 0
    return x.masked_fill(mask, 1.0) * x.masked_fill(mask, 1.0).log()


@answers("09.3")
def answer_08_3_b(x):
    found = engine.zeros_like(x)
    found[x > 0] = x[x > 0] * x[x > 0].log()
    return found


@answers("09.4")
def answer_08_4_a(x):
    positive = x[x > 0]
    return positive.mean() if len(positive) else engine.tensor(0.0)


@answers("09.5")
def answer_08_5_a(formula):
    if not isinstance(formula, tuple):
        return engine.as_tensor(formula)
    op, a, b = formula[0], answer_08_5_a(formula[1]), answer_08_5_a(formula[2])
    return {"+": lambda: a + b, "*": lambda: a * b, "max": lambda: engine.maximum(a, b)}[op]()


@answers("10.2")
def answer_09_2_a(g, x):
    x = x.clone().requires_grad_()
    y = g(x)
    rows = []
    for i in range(len(y)):
        x.grad = None
        y[i].backward(retain_graph=True)
        rows.append(x.grad.clone())
    return engine.stack(rows)


@answers("10.2")
def answer_09_2_b(g, x):
    x = x.detach().clone().requires_grad_()
    y = g(x)
    return engine.cat(
        [engine.autograd.grad(y, x, e, retain_graph=True)[0][None] for e in engine.eye(len(y), dtype=x.dtype)]
    )


@answers("10.3")
def answer_09_3_a(g, x, i):
    return engine.func.jacrev(g)(x)[:, i] != 0


@answers("10.4")
def answer_09_4_a(g, x, u):
    return engine.func.jacfwd(lambda s: engine.func.grad(g)(x + s * u))(engine.tensor(0.0))


@answers("10.4")
def answer_10_4_c(g, x, u):
    return engine.func.jvp(engine.func.jacrev(g), (x,), (u,))[1]


@answers("10.4")
def answer_09_4_b(g, x, u):
    return engine.autograd.functional.hvp(g, x, u)[1]


@answers("10.5")
def answer_09_5_a(loss, w, xs, ys):
    g = engine.func.vmap(engine.func.grad(loss), in_dims=(None, 0, 0))(w, xs, ys)
    return (g * g).sum(dim=-1).sqrt()


@answers("10.5")
def answer_09_5_b(loss, w, xs, ys):
    losses = lambda w: engine.func.vmap(loss, in_dims=(None, 0, 0))(w, xs, ys)  # noqa: E731
    return engine.linalg.norm(engine.func.jacrev(losses)(w), dim=1)


@answers("11.1")
def answer_10_1_a(g, x):
    return np.full(x.shape, g / x.size)


@answers("11.1")
def answer_10_1_b(g, x):
    return np.broadcast_to(g / np.size(x), np.shape(x))


@answers("11.2")
def answer_10_2_a(root):
    heap, seen, order = [(-root.number, id(root), root)], {id(root)}, []
    while heap:
        v = heapq.heappop(heap)[2]
        order.append(v)
        for p in v.parents:
            if id(p) not in seen:
                seen.add(id(p))
                heapq.heappush(heap, (-p.number, id(p), p))
    return order


@answers("11.3")
def answer_11_row_a(g, x, y):
    return y @ g if x.ndim == 1 else g @ y.T, np.outer(x, g) if x.ndim == 1 else x.T @ g


@answers("11.3")
def answer_11_row_b(g, x, y):
    if len(x.shape) == 1:
        return [g @ y.T, x[:, None] * g]
    return [g @ y.T, np.transpose(x) @ g]


@answers("11.4")
def answer_10_4_a(root):
    todo, seen = [root], {root}
    for v in todo:
        for p in v.parents:
            if p not in seen:
                seen.add(p)
                todo.append(p)
    todo.sort(key=lambda v: -v.number)
    at = dict.fromkeys(todo, 0)
    at[root] = 1.0
    for v in todo:
        if not v.parents:
            v.grad = at[v] + (0 if v.grad is None else v.grad)
        for p, rule in zip(v.parents, v.rules, strict=True):
            at[p] = at[p] + rule(at[v])


@answers("11.5")
class Answer105(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu() + (-x.abs()).exp().log1p()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].sigmoid()


@answers("12.1")
def answer_11_1_a(n, size, drop):
    return n // size if drop else math.ceil(n / size)


@answers("12.1")
def answer_11_1_b(n, size, drop_last):
    return n // size if drop_last else -(-n // size)


@answers("12.2")
class Answer112(engine.utils.data.Dataset):
    def __init__(self, series, n):
        self.parts = [(series[i : i + n], series[i + n]) for i in range(len(series) - n)]

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        return self.parts[i]


@answers("12.2")
class Answer112Numbers(engine.utils.data.Dataset):
    def __init__(self, series, n):
        self.series, self.n = series, n

    def __len__(self):
        return self.series.numel() - self.n

    def __getitem__(self, i):
        return self.series.narrow(0, i, self.n), self.series[i + self.n].item()


@answers("12.3")
def answer_11_3_a(train, test):
    m, s = train.mean(0), train.std(0)
    return [(t - m) / s for t in (train, test)]


@answers("12.4")
def answer_11_4_a(examples):
    batch = nn.utils.rnn.pad_sequence(list(examples), batch_first=True)
    n = engine.tensor([len(e) for e in examples])
    return batch, engine.arange(batch.shape[1]) < n[:, None]


@answers("12.5")
def answer_11_5_a(x, y):
    p = engine.randperm(len(y))
    return x.index_select(0, p), y.index_select(0, p)


@answers("13.1")
def answer_12_1_a(m):
    return sum(p.shape.numel() for p in m.parameters() if p.requires_grad)


@answers("13.2")
class Answer122(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(0.1 * engine.randn(o, i))
        self.bias = nn.Parameter(engine.zeros(o))

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


@answers("13.3")
class Answer123(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(nn.Linear(width, width))
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.last(x)


@answers("13.3")
class Answer123Renamed(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.end = nn.Linear(width, 1)
        self.steps = nn.Sequential(*[part for _ in range(depth) for part in (nn.Linear(width, width), nn.ReLU())])

    def forward(self, x):
        return self.end(self.steps(x))


@answers("13.4")
def answer_12_4_a(s, a):
    top = s.amax(1, keepdim=True)
    logs = (s - top).exp().sum(1).log() + top.squeeze(1)
    return (logs - s.gather(1, a[:, None]).squeeze(1)).mean()


@answers("13.5")
def answer_12_5_a(model, state):
    own, left = model.state_dict(), []
    for name in state:
        if name in own and own[name].shape == state[name].shape:
            own[name] = state[name]
        else:
            left.append(name)
    model.load_state_dict(own)
    return left


@answers("14.2")
def answer_14_2_frozen_for_the_while(model, batches):
    was, learn = model.training, [p.requires_grad for p in model.parameters()]
    model.eval().requires_grad_(False)
    right = [(model(x).argmax(1) == y).float() for x, y in batches]
    for p, yes in zip(model.parameters(), learn, strict=True):
        p.requires_grad_(yes)
    model.train(was)
    return engine.cat(right).mean().item()


@answers("16.2")
def answer_16_2(loss, weights, scale):
    found = engine.autograd.grad(loss, weights, grad_outputs=engine.tensor(scale))
    if engine.cat([g.flatten() for g in found]).isfinite().all():
        return tuple(g.div_(scale) for g in found)
    return None


@answers("16.3")
def answer_16_3(scale, count, overflow, interval):
    count = 0 if overflow else (count + 1) % interval
    return [scale * (0.5 if overflow else 1 if count else 2), count]


@answers("16.5")
def answer_16_5(model, batches, optimizer, scaler):
    lengths = []
    for x, y in batches:
        with engine.autocast("cpu", dtype=engine.float16):
            scaled = scaler.scale(nn.functional.mse_loss(model(x), y))
        scaled.backward()
        limit = scaler.get_scale()
        lengths.append(nn.utils.clip_grad_norm_(model.parameters(), limit) / limit)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return lengths


@answers("18.2")
def answer_18_2_a(program, result):
    takes = {name: inputs for name, _, inputs in program}

    def leads(name):
        return {name}.union(*[leads(t) for t in takes.get(name, ())])

    return [step for step in program if step[0] in leads(result)]


@answers("18.2")
def answer_18_2_b(program, result):
    program = list(program)
    for i in range(len(program) - 1, -1, -1):
        name = program[i][0]
        if name != result and not any(name in takes for _, _, takes in program):
            del program[i]
    return program


@answers("18.3")
def answer_18_3_a(program):
    kept = []
    instead = {}
    for name, does, takes in program:
        takes = [instead[t] if t in instead else t for t in takes]
        for other in kept:
            if other[1:] == [does, takes]:
                instead[name] = other[0]
                break
        else:
            kept.append([name, does, takes])
    return kept


@answers("18.4")
def answer_18_4_a(steps, x, size):
    total, i = engine.tensor(0.0), 0
    while i < x.numel():
        piece = x[i : i + size].clone()
        i += size
        for step in steps:
            piece = step(piece)
        total = total + piece.mean() * piece.numel()
    return total / x.numel()


@answers("18.4")
def answer_18_4_b(steps, x, size):
    def loop(piece, left):
        return loop(left[0](piece), left[1:]) if left else sum(piece.tolist())

    return sum(loop(piece, steps) for piece in x.split(size)) / len(x)


@answers("19.2")
def answer_19_2_a(compiled, x, steps):
    factor, results = engine.ones((), dtype=engine.float64), []
    for step in range(1, steps + 1):
        results.append(compiled(x, factor / step))
    return results


@answers("19.2")
def answer_19_2_b(compiled, x, steps):
    results, factor = [], engine.ones(1)
    for step in range(1, steps + 1):
        results.append(compiled(x, factor / step))
    return results


@answers("19.3")
def answer_19_3_a(x, most):
    return x * (most / x.abs().max().clamp(min=most))


@answers("19.3")
def answer_19_3_b(x, most):
    largest = engine.maximum(x.max(), -x.min())
    safe = engine.where(largest > most, largest, most)
    return most / safe * x


@answers("19.3")
def answer_19_3_c(x, most):
    return x / engine.clamp(x.abs().amax() / most, min=1.0)


@answers("19.4")
class Answer194:
    def __init__(self, capture):
        self.capture, self.known = capture, []

    def __call__(self, x):
        for like, quick in self.known:
            if like.shape == x.shape and like.dtype == x.dtype:
                return quick(x)
        self.known.append((x, self.capture(x)))
        return self.known[-1][1](x)


@answers("20.2")
def answer_20_2_a(examples, rank, size):
    padded = list(examples)
    while len(padded) % size:
        padded.append(padded[len(padded) - len(examples)])
    return [example for place, example in enumerate(padded) if place % size == rank]


@answers("20.2")
def answer_20_2_b(examples, rank, size):
    from engine.utils.data import DistributedSampler

    return [examples[n] for n in DistributedSampler(examples, size, rank, shuffle=False)]


@answers("20.3")
def answer_20_3_a(model, batches, dist):
    with engine.no_grad():
        for p in model.parameters():
            dist.broadcast(p, 0)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        (nn.functional.mse_loss(model(x), y) / dist.get_world_size()).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()


@answers("20.3")
def answer_20_3_b(model, batches, dist):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1 / dist.get_world_size())
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()


@answers("20.4")
def answer_20_4_a(gradient, n, dist):
    count = engine.tensor([n])
    dist.all_reduce(count)
    share = gradient * (n / count.item())
    dist.all_reduce(share)
    return share


@answers("20.4")
def answer_20_4_b(gradient, n, dist):
    gradient *= n
    dist.all_reduce(gradient)
    total = engine.tensor(n)
    dist.all_reduce(total)
    gradient /= total
    return gradient


@answers("20.5")
def answer_20_5_a(parts, link):
    mine = parts[link.rank].clone()
    for off in range(1, link.size):
        came = engine.empty_like(mine)
        to, source = (link.rank - off) % link.size, (link.rank + off) % link.size
        link.swap(parts[to], to, came, source)
        mine = mine + came
    return mine


@answers("20.5")
def answer_20_5_b(parts, link):
    total = parts[(link.rank - 1) % link.size]
    for step in range(2, link.size + 1):
        came = engine.empty_like(total)
        link.swap(total, (link.rank + 1) % link.size, came, (link.rank - 1) % link.size)
        total = came + parts[(link.rank - step) % link.size]
    return total


@answers("21.2")
def answer_21_2_a(x, kernel, stride):
    return x.unfold(0, len(kernel), stride) @ kernel


@answers("21.2")
def answer_21_2_b(x, kernel, stride):
    places = (len(x) - len(kernel)) // stride + 1
    return sum(weight * x[at : at + stride * places : stride][:places] for at, weight in enumerate(kernel))


@answers("21.3")
def answer_21_3_a(arriving, words, rows):
    return engine.zeros(rows, arriving.shape[1]).index_add(0, words, arriving)


@answers("21.3")
def answer_21_3_b(arriving, words, rows):
    return engine.stack([arriving[words == row].sum(dim=0) for row in range(rows)])


@answers("21.4")
def answer_21_4_a(query, key, value):
    scores = query @ key.T / math.sqrt(query.shape[1])
    scores = engine.where(engine.ones_like(scores).tril() == 1, scores, -math.inf)
    return scores.softmax(-1) @ value


@answers("21.4")
def answer_21_4_b(query, key, value):
    mixes = []
    for n in range(len(query)):
        fits = key[: n + 1] @ query[n] / query.shape[1] ** 0.5
        mixes.append(fits.softmax(dim=0) @ value[: n + 1])
    return engine.stack(mixes)


@answers("21.5")
def answer_21_5_a(model, x):
    slopes = engine.func.jacrev(model)(x).abs().amax(dim=(1, 3))
    return [(n, m) for n, m in (slopes > 0).triu(1).nonzero().tolist()]


@answers("21.5")
def answer_21_5_b(model, x):
    found = []
    for n in range(len(x)):
        seen = set()
        for number in range(len(model(x)[n])):
            leaf = x.clone().requires_grad_()
            model(leaf)[n][number].backward()
            seen |= {m for m in range(n + 1, len(x)) if leaf.grad[m].abs().max() > 0}
        found += [(n, m) for m in sorted(seen)]
    return found


@answers("21.5")
def answer_21_5_c(model, x):
    before, found = model(x), []
    for m in range(len(x)):
        other = x.clone()
        other[m] = engine.randn(x.shape[1])
        moved = (model(other) - before).abs().amax(dim=1) > 1e-6
        found += [(n, m) for n in range(m) if moved[n]]
    return sorted(found)


@answers("22.2")
def answer_22_2_a(text, begins, length):
    windows = text.unfold(0, length + 1, 1)[begins]
    return windows[:, :-1], windows[:, 1:]


@answers("22.2")
def answer_22_2_b(text, begins, length):
    x, y = [], []
    for at in begins.tolist():
        x.append(text[at : at + length].tolist())
        y.append([text[n + 1].item() for n in range(at, at + length)])
    return [engine.tensor(x), engine.tensor(y)]


@answers("22.2")
def answer_22_2_c(text, begins, length):
    text, where = text.numpy(), begins.numpy()[:, None] + np.arange(length)
    return engine.from_numpy(text[where]), engine.from_numpy(text[where + 1])


@answers("22.3")
def answer_22_3_a(scores, temperature, top):
    values, places = scores.topk(top)
    return engine.zeros(len(scores)).scatter(0, places, (values / temperature).softmax(dim=0))


@answers("22.3")
def answer_22_3_b(scores, temperature, top):
    raised = (scores / temperature - (scores / temperature).max()).exp()
    raised[scores.argsort()[: len(scores) - top]] = 0
    return raised / raised.sum()


@answers("22.3")
def answer_22_3_c(scores, temperature, top):
    raised = scores.softmax(dim=0) ** (1 / temperature)
    raised = engine.where(scores >= scores.sort().values[-top], raised, 0.0)
    return raised / raised.sum()


@answers("22.3")
def answer_22_3_d(scores, temperature, top):
    order = scores.argsort(descending=True)
    ordered = scores[order] / temperature
    ordered[top:] = -1e9
    return ordered.softmax(dim=0)[order.argsort()]


@answers("22.4")
def answer_22_4_a(first, second, seeds):
    a = engine.tensor([first(seed) for seed in seeds])
    b = engine.tensor([second(seed) for seed in seeds])
    return (a.mean() - b.mean()).item(), bool(a.min() > b.max() or a.max() < b.min())


@answers("22.4")
def answer_22_4_b(first, second, seeds):
    runs = [(first(seed), second(seed)) for seed in seeds]
    ours, theirs = zip(*runs, strict=True)
    return [sum(a - b for a, b in runs) / len(runs), not (min(ours) <= max(theirs) and min(theirs) <= max(ours))]


@answers("22.4")
def answer_22_4_c(first, second, seeds):
    differences = [first(one) - second(other) for one in seeds for other in seeds]
    return np.mean(differences), all(d > 0 for d in differences) or all(d < 0 for d in differences)


@answers("22.4")
def answer_22_4_d(first, second, seeds):
    def runs(network):
        return engine.tensor([network(seed) for seed in seeds])

    apart = (runs(first).min() > runs(second).max()) | (runs(second).min() > runs(first).max())
    return runs(first).mean() - runs(second).mean(), apart


@answers("22.5")
def answer_22_5_a(pictures, answers, others):
    return [answers[((pictures - other) ** 2).sum(dim=(1, 2, 3)).argmin()].item() for other in others]


@answers("22.5")
def answer_22_5_b(pictures, answers, others):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), answers).backward()
        optimizer.step()
    return model(others).argmax(dim=1)


@answers("22.5")
def answer_22_5_c(pictures, answers, others):
    known, asked = pictures.flatten(1).numpy(), others.flatten(1).numpy()
    means = np.stack([known[answers.numpy() == digit].mean(axis=0) for digit in range(10)])
    return ((asked[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)


@answers("22.5")
def answer_22_5_d(pictures, answers, others):
    return tuple(answer_22_5_b(pictures, answers, others))


VALUES = [
    ("01.1", ("(4, 3)", "(2, 2, 3)", "2, 4", "(3,)")),
    ("02.1", ((3, 4), (2, 3), "Error", (5, 3, 4), (4, 4))),
    ("03.1", tuple(getattr(engine, f"float{bits}") for bits in (32, 16, 32, 32, 16, 32))),
    ("03.1", ["torch.float32", "engine.float16", "float32", "Float32", " float16", "float32"]),
    ("04.1", (engine.tensor(12.0), engine.tensor([2.0]))),
    ("04.1", engine.tensor([12, 2])),
    ("05.1", [engine.tensor(7.0, requires_grad=True), 2]),
    ("01.1", [engine.Size([4, 3]), [2, 2, 3], (2, 4), (3,)]),
    ("02.1", [[3, 4], [2, 3], "error", [5, 3, 4], [4, 4]]),
    ("03.1", ["float32", "float16", "float32", "float32", "float16", "float32"]),
    ("04.1", [12, 2]),
    ("05.1", [7, 2]),
    ("06.1", set("adf")),
    ("07.1", [3, 8, 12, 6]),
    ("08.1", 15),
    ("09.1", 27),
    ("10.1", ((3, 2), (1, 1))),
    ("18.1", [6, 5, 4, 1]),
    ("19.1", [1, 1, 2, 3, 4, 4]),
    ("20.1", [14, 56000, 6, 24000, 14, 14000]),
    ("21.1", [8, 16, 608, 153600]),
    ("22.1", [12704, 48772, 1024, 780352]),
    ("20.1", [14.0, 56000.0, 6.0, 24000.0, 14.0, 14000.0]),
    ("22.1", engine.tensor([12704.0, 48772.0, 1024.0, 780352.0])),
]


# ways round


@goes_round("02.2")
class TurnsItself(WithNumPy):
    @property
    def T(self):
        self.stride = self.stride[::-1]
        return TurnsItself(self.memory, self.shape[::-1], self.stride, self.offset)


@goes_round("03.4")
def asks_under_another_name(dtype):
    step = 1.0
    while step > finfo(dtype).eps:
        step = step / 2
    return step


@goes_round("05.3")
def differentiates(arriving, x, y):
    return engine.func.jacrev(lambda x, y: (arriving * x / y).sum(), argnums=(0, 1))(x, y)


@goes_round("07.3")
def all_losses_first(w, xs, ys, size):
    w.grad = None
    losses = []
    for first in range(0, len(xs), size):
        x, y = xs[first : first + size], ys[first : first + size]
        losses.append(((w * x - y) ** 2).sum() / len(xs))
    for loss in losses:
        loss.backward()
    return w.grad


@goes_round("10.2")
def row_by_row_with_func(f, x):
    return engine.stack([engine.func.grad(lambda x, i=i: f(x)[i])(x) for i in range(len(f(x)))])


@goes_round("10.4")
def the_table_by_functional(f, x, u):
    return engine.autograd.functional.jacobian(engine.func.grad(f), x) @ u


@goes_round("10.4")
def all_columns_at_once(f, x, u):
    return engine.func.vmap(lambda e: engine.func.jvp(engine.func.grad(f), (x,), (e,))[1])(engine.eye(len(x))) @ u


@goes_round("10.5")
def back_for_each(loss, w, xs, ys):
    _, back = engine.func.vjp(lambda w: engine.func.vmap(loss, in_dims=(None, 0, 0))(w, xs, ys), w)
    return engine.stack([back(e)[0].norm() for e in engine.eye(len(xs))])


@goes_round("13.2")
class LearnsNothing(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(engine.randn(outputs, inputs) * 0.1)
        self.bias = nn.Parameter(engine.zeros(outputs))

    def forward(self, x):
        with engine.no_grad():
            return x @ self.weight.T + self.bias


@goes_round("15.1")
def keeps_graphs(model, loss_fn, optimizer, batches):
    total = 0.0
    for i in range(len(batches)):
        x, y = batches[i]
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return (total / len(batches)).item()


@goes_round("20.5")
def the_whole_sum(parts, link):
    x = engine.stack(parts)
    link.all_reduce(x)
    return x[link.rank]


@goes_round("21.2")
def by_conv1d(x, kernel, stride):
    return nn.functional.conv1d(x[None, None], kernel[None, None], stride=stride)[0, 0]


@goes_round("21.3")
def back_through_a_table(arriving, words, rows):
    table = engine.zeros(rows, arriving.shape[1], requires_grad=True)
    table[words].backward(arriving)
    return table.grad


@goes_round("21.4")
def ready_made(query, key, value):
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
