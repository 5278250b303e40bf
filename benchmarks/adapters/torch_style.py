"""Tensors that record: the engine and PyTorch run this same code."""

from ..operations import OPERATIONS
from ..workloads import LENGTH_MATRICES, LENGTH_SCALARS, SIZES, WORKLOADS
from .function_style import CHECKED, weights


def prepare(torch, name, compile=lambda function: function):
    """(step, result) of a workload; ``compile``: what is done to the step."""
    if name in SIZES or name == "loader":
        tensors = [torch.tensor(v) for v in WORKLOADS[name].inputs().values()]
        return loader(torch, *tensors) if name == "loader" else model(torch, name, *tensors, compile)
    leaves = WORKLOADS[name].leaves
    tensors = {k: torch.tensor(v, requires_grad=k in leaves) for k, v in WORKLOADS[name].inputs().items()}
    forward = globals()[name](torch, **tensors) if name in globals() else operation(torch, name, tensors)
    parameters = [tensors[k] for k in leaves]
    optimizer = torch.optim.AdamW(parameters) if name == "block" else None
    shape = tuple(forward().shape)
    given = torch.tensor(weights(shape)) if shape else None

    @compile
    def step():
        for p in parameters:
            p.grad = None
        loss = forward()
        loss.backward(given)
        if optimizer is not None:
            optimizer.step()
        return loss

    def result():
        loss = last(step, CHECKED if optimizer is not None else 1)
        return {"loss": loss, **{k: tensors[k].grad.numpy() for k in leaves}}

    return step, result


def model(torch, name, x, y, compile):
    """A model of modules: a step of training, or what it says of the examples."""
    torch.manual_seed(0)
    linear = [torch.nn.Linear(m, n) for m, n in zip(SIZES[name], SIZES[name][1:], strict=False)]
    net = torch.nn.Sequential(*[layer for pair in linear for layer in (pair, torch.nn.ReLU())][:-1])
    loss_fn, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters())
    answer = compile(net)

    @compile
    def train():
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @torch.no_grad()
    def infer():
        return answer(x)

    step = infer if name == "inference" else train
    return step, lambda: {"loss": last(step, 1 if name == "inference" else CHECKED)}


def last(step, steps):
    """The loss of the last of some steps."""
    for _ in range(steps):
        loss = step()
    return loss.detach().numpy()


def loader(torch, x, y):
    data = torch.utils.data
    batches = data.DataLoader(data.TensorDataset(x, y), batch_size=64, shuffle=True)

    def step():
        for batch in batches:  # noqa: B007
            pass
        return batch

    def result():
        torch.manual_seed(0)
        return {"loss": step()[0].numpy()}

    return step, result


def operation(torch, name, tensors):
    compute = OPERATIONS[name.rpartition("_")[0]]
    return lambda: compute(torch, **tensors)


def seed(torch, x, y, w, b):
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    return lambda: bce(torch.matmul(x, w) + b, y)


def scalars(torch, y, w, b):
    def forward():
        z = y
        for _ in range(LENGTH_SCALARS):
            z = z * w + b
        return z

    return forward


def matrices(torch, x, w):
    def forward():
        z = x
        for _ in range(LENGTH_MATRICES):
            z = (z @ w).tanh() * w + w
        return z.sum()

    return forward


def large(torch, x):
    return lambda: torch.exp(torch.tanh(x * 0.5) * (x + 1) - torch.sigmoid(x)).mean()


def mlp(torch, x, y, w1, b1, w2, b2, w3, b3):
    linear = torch.nn.functional.linear
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    return lambda: bce(linear(torch.relu(linear(torch.relu(linear(x, w1, b1)), w2, b2)), w3, b3), y)


def convnet(torch, x, y, w1, w2, w3, b1, b2, b3):
    f = torch.nn.functional

    def forward():
        h = f.max_pool2d(torch.relu(f.conv2d(x, w1, b1)), 2)
        h = f.max_pool2d(torch.relu(f.conv2d(h, w2, b2)), 2)
        return f.cross_entropy(f.linear(h.flatten(1), w3, b3), y)

    return forward


def block(torch, x, qkv, out, up, down, b_qkv, b_out, b_up, b_down, w1, b1, w2, b2):
    f = torch.nn.functional

    def forward():
        q, k, v = f.linear(f.layer_norm(x, (64,), w1, b1), qkv, b_qkv).split(64, dim=2)
        q, k, v = (a.view(8, 64, 4, 16).transpose(1, 2) for a in (q, k, v))
        h = f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(8, 64, 64)
        h = x + f.linear(h, out, b_out)
        h = h + f.linear(f.gelu(f.linear(f.layer_norm(h, (64,), w2, b2), up, b_up)), down, b_down)
        return (h * h).mean()

    return forward


def softmax(torch, x):
    return lambda: torch.softmax(x, -1)


def layer_norm(torch, x, w, b):
    return lambda: torch.nn.functional.layer_norm(x, (64,), w, b)


def gelu(torch, x):
    return lambda: torch.nn.functional.gelu(x)


def attention(torch, q, k, v):
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
