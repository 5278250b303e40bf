"""Tensors that record: the engine and PyTorch run this same code."""

from ..workloads import LENGTH_MATRICES, LENGTH_SCALARS, WORKLOADS


def prepare(torch, name):
    """(step, result) of a workload."""
    leaves = WORKLOADS[name].leaves
    tensors = {k: torch.tensor(v, requires_grad=k in leaves) for k, v in WORKLOADS[name].inputs().items()}
    forward = globals()[name](torch, **tensors)
    parameters = [tensors[k] for k in leaves]

    def step():
        for p in parameters:
            p.grad = None
        loss = forward()
        loss.backward()
        return loss

    def result():
        return {"loss": step().detach().numpy(), **{k: tensors[k].grad.numpy() for k in leaves}}

    return step, result


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
