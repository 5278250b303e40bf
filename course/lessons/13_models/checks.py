"""Lesson 13, models: the exercises' trials, oracles, usual mistakes and hints."""

import math

import engine
from course.judging.words import Exercise, changed, mistakes, properties
from engine import nn

# 13.1


def small():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def frozen():
    model = small()
    model[0].requires_grad_(False)
    return model


def count(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def count_trial(count):
    yield "Linear(4, 3)", count, nn.Linear(4, 3)
    yield "Linear(4, 3), ReLU, Linear(3, 2)", count, small()
    yield "the same, with the first layer frozen", count, frozen()
    buffers = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    yield "Linear(4, 3), BatchNorm1d(3), which has buffers too", count, buffers
    yield "", count, nn.Conv2d(2, 3, 5)


# 13.2


def found_in(Affine, inputs, outputs):
    layer = Affine(inputs, outputs)
    return {name: tuple(p.shape) for name, p in layer.named_parameters() if p.requires_grad}


def computed(Affine, weight, bias, x):
    layer = Affine(weight.shape[1], weight.shape[0])
    with engine.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer(x).detach()


def reached(Affine, inputs, outputs):
    """Return which of its parameters get a gradient."""
    layer = Affine(inputs, outputs)
    out = layer(engine.ones(2, inputs))
    if out.requires_grad:
        out.sum().backward()
    return {name: p.grad is not None for name, p in layer.named_parameters()}


def begins(Affine):
    """Return how large the weights are at first, and whether the bias is zero."""
    layer = Affine(200, 50)
    size = (layer.weight**2).mean().item() ** 0.5
    return {
        "the weights are": "too small" if size < 0.09 else "too large" if size > 0.11 else "about 0.1 large",
        "some of them are negative": bool((layer.weight < 0).any()),
        "they differ from each other": len(layer.weight.unique()) > 1,
        "the bias is zero": not layer.bias.any(),
    }


def affine_trial(Affine):
    yield "Affine(3, 2): the names and shapes of what is learned", found_in, Affine, 3, 2
    weight, bias = engine.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.0]]), engine.tensor([10.0, -20.0])
    x = engine.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    shown = "weight [[1, 2, 3], [0, -1, 0]], bias [10, -20], x = [[1, 1, 1], [0, 0, 1]]"
    yield shown, computed, Affine, weight, bias, x
    yield "Affine(200, 50): how it begins", begins, Affine
    yield "Affine(3, 2): which of its parameters get a gradient", reached, Affine, 3, 2
    x = engine.arange(12.0).reshape(2, 2, 3)
    yield "the same weight and bias, x of shape (2, 2, 3)", computed, Affine, weight, bias, x
    yield "", computed, Affine, engine.randn(4, 5), engine.randn(4), engine.randn(2, 3, 5)


def layer(weight, bias=lambda i, o: nn.Parameter(engine.zeros(o)), forward=lambda s, x: x @ s.weight.T + s.bias):
    """Make a layer that begins, or computes, in another way."""

    class Attempt(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.weight, self.bias = weight(inputs, outputs), bias(inputs, outputs)

        def forward(self, x):
            return forward(self, x)

    return Attempt


class Around(nn.Module):
    """A ready-made layer in a layer."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


def tenth(i, o):
    return nn.Parameter(engine.randn(o, i) * 0.1)


# 13.3


def parameters_of(Deep, width, depth):
    return sorted(tuple(p.shape) for p in Deep(width, depth).parameters())


def output_of(Deep, width, depth, number, x):
    """Return what it gives with this number everywhere in its layers, whether the model knows of them or not."""
    own = nn.Linear.reset_parameters
    nn.Linear.reset_parameters = lambda layer: [nn.init.constant_(p, number) for p in layer.parameters()]
    try:
        return Deep(width, depth)(x).detach()
    finally:
        nn.Linear.reset_parameters = own


def deep_trial(Deep):
    yield "Deep(4, 2): the shapes of its parameters", parameters_of, Deep, 4, 2
    x = engine.tensor([[1.0, -3.0], [2.0, 0.0]])
    for number in (0.5, -0.5):
        yield f"Deep(2, 3) with all its numbers set to {number}: what it computes", output_of, Deep, 2, 3, number, x
    yield "Deep(2, 3): how many of its parameters get a gradient", concerned, Deep, 2, 3, x
    yield "Deep(4, 2): the shapes of what state_dict() holds", saved, Deep, 4, 2
    yield "", parameters_of, Deep, 3, 5
    yield "", output_of, Deep, 3, 1, 0.25, engine.randn(4, 3)


def saved(Deep, width, depth):
    return sorted(tuple(t.shape) for t in Deep(width, depth).state_dict().values())


def concerned(Deep, width, depth, x):
    model = Deep(width, depth)
    model(x).sum().backward()
    return sum(p.grad is not None for p in model.parameters())


def deep(layers, bend=engine.relu, end=lambda x: x, step=None, first=0, last=lambda width: nn.Linear(width, 1)):
    """`Deep`, with its layers kept or used in another way."""

    class Attempt(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = layers(width, depth)
            self.last = last(width)

        def forward(self, x):
            for layer in self.layers[first:]:
                x = step(layer, x) if step else bend(layer(x))
            return end(self.last(x))

    return Attempt


def linears(width, depth, bias=True):
    return [nn.Linear(width, width, bias=bias) for _ in range(depth)]


def found(width, depth):
    return nn.ModuleList(linears(width, depth))


class ForOptimizersAlone(deep(linears)):
    def parameters(self, recurse=True):
        return iter([p for part in (*self.layers, self.last) for p in part.parameters()])


class OneName(deep(linears)):
    def __init__(self, width, depth):
        super().__init__(width, depth)
        for layer in self.layers:
            self.layer = layer


class WeightsAlone(deep(linears)):
    def __init__(self, width, depth):
        super().__init__(width, depth)
        self.weights = nn.ParameterList([layer.weight for layer in self.layers])


# 13.4


def entropy_trial(loss):
    for shown, scores, answers in (
        ("scores = [[2, 1, -1]], answers = [0]", [[2.0, 1.0, -1.0]], [0]),
        (
            "three examples, scores [[0, 1], [3, -1], [0, 0]], answers = [0, 0, 1]",
            [[0.0, 1.0], [3.0, -1.0], [0.0, 0.0]],
            [0, 0, 1],
        ),
        ("scores = [[1000, 0], [0, 1000]], answers = [1, 1]", [[1000.0, 0.0], [0.0, 1000.0]], [1, 1]),
        ("scores = [[1000, 0], [-1000, -1001]], answers = [0, 1]", [[1000.0, 0.0], [-1000.0, -1001.0]], [0, 1]),
    ):
        yield shown, loss, engine.tensor(scores), engine.tensor(answers)
    scores = engine.tensor([[2.0, 1.0, -1.0], [0.5, 0.0, 3.0]])
    shown = "scores = [[2, 1, -1], [0.5, 0, 3]], answers = [0, 1]: the gradient"
    yield shown, slopes, loss, scores, engine.tensor([0, 1])
    yield "scores = [[2, 1, -1]]: ready-made parts that the result is made of", ready_made, loss
    yield "", loss, engine.tensor([[-1000.0, -1001.0, -1002.0]]), engine.tensor([2])
    yield "", loss, engine.randn(6, 5) * 4, engine.tensor([0, 4, 2, 2, 1, 3])


def slopes(loss, scores, answers):
    scores.requires_grad_()
    loss(scores, answers).backward()
    return scores.grad


READY_MADE = ("softmax", "logsumexp", "entropy", "nllloss")


def ready_made(loss):
    """Those nodes in the graph of a loss that do a part of the exercise."""
    found, todo = set(), [loss(engine.tensor([[2.0, 1.0, -1.0]], requires_grad=True), engine.tensor([0])).grad_fn]
    while todo:
        if node := todo.pop():
            found.add(node.name())
            todo += [following for following, _ in node.next_functions]
    return sorted(name for name in found if any(part in name.lower() for part in READY_MADE))


def minus_log(chance):
    """Compute the loss from the chance of the right answer, in the given way."""
    return lambda scores, answers: -engine.log(chance(scores))[engine.arange(len(answers)), answers].mean()


def log_chances(scores, dim=1, shift=True):
    scores = scores - scores.amax(dim=dim, keepdim=True) if shift else scores
    return scores - engine.log(engine.exp(scores).sum(dim=dim, keepdim=True))


def less(scores):
    return scores - scores.amax(dim=1, keepdim=True)


def log_sum(scores, log):
    top = scores.amax(dim=1, keepdim=True)
    return top + log(engine.exp(scores - top).sum(dim=1, keepdim=True))


def chosen(logs, answers):
    return -logs[engine.arange(len(answers)), answers]


# 13.5


def three_letters():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3))


def a_state(**more):
    state = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 10)).state_dict()
    return {name: engine.full(t.shape, 0.25) for name, t in state.items()} | more


def loaded(load, model, state):
    """Return what the call gives, and which tensors of the model hold what the state holds."""
    names = load(model, state)
    held = {name: bool((t == 0.25).all()) for name, t in model.state_dict().items()}
    return {"given back": names, "loaded": held}


def load_trial(load):
    extra = a_state(old=engine.full((2,), 0.25))
    yield "layers 4-3-10, and a tensor called old, into layers 4-3-3", loaded, load, three_letters(), extra
    yield "layers 4-3-10 into layers 4-3-3", loaded, load, three_letters(), a_state()
    early = {"old": engine.full((2,), 0.25)} | a_state()
    yield "the same, with the tensor called old before the others", loaded, load, three_letters(), early
    part = {name: t for name, t in a_state().items() if name != "0.weight"}
    yield "the same without 0.weight", loaded, load, three_letters(), part
    norm = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    state = {name: engine.full(t.shape, 0.25) for name, t in norm.state_dict().items()}
    yield "a BatchNorm1d, which has buffers, and a layer 3-3: all fits", loaded, load, norm, state
    lying = a_state(**{"0.weight": engine.full((4, 3), 0.25)})
    yield "the same, but 0.weight is (4, 3) in the state and (3, 4) in the model", loaded, load, three_letters(), lying
    state = {name: t for name, t in a_state().items() if name != "0.bias"}
    yield "", loaded, load, three_letters(), state


def until_one_does_not(model, state):
    fits, own = {}, model.state_dict()
    for name, tensor in state.items():
        if name not in own or own[name].shape != tensor.shape:
            break
        fits[name] = tensor
    model.load_state_dict(fits, strict=False)
    return [name for name in state if name not in fits]


def fitting(model, state):
    own = model.state_dict()
    return {n: t for n, t in state.items() if n in own and own[n].shape == t.shape}


def load_what_fits(model, state):
    fits = fitting(model, state)
    with engine.no_grad():
        for name, tensor in model.state_dict().items():
            if name in fits:
                tensor.copy_(fits[name])
    return [name for name in state if name not in fits]


def chosen_first(model, state):
    own = model.state_dict()
    fits = {n: t for n, t in state.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict(fits, strict=False)
    return [name for name in state if name not in fits]


def giving(back):
    return changed(chosen_first, "return", "names =", "not in fits]", f"not in fits]; return {back}")


EXERCISES = (
    Exercise(
        key="13.1",
        points=1,
        answer=count,
        trial=count_trial,
        wrong=mistakes(
            lambda model: sum(p.numel() for p in model.parameters()),
            "Frozen parameters are counted too.",
            lambda model: len(list(model.parameters())),
            "That is how many tensors there are. How many numbers?",
            lambda model: sum(t.numel() for t in model.state_dict().values()),
            "`state_dict` holds buffers too, and what is frozen. Ask for `parameters()`.",
            lambda model: sum(p.shape[0] for p in model.parameters() if p.requires_grad),
            "You counted rows. `numel()` counts all numbers.",
            lambda model: sum(p.numel() for p in model.parameters() if p.requires_grad and p.dim() > 1),
            "The tables are counted. The biases are learned, too.",
            lambda model: sum(1 for p in model.parameters() if p.requires_grad),
            "You count the tensors that are learned. Each of them holds many numbers: `numel()`.",
            lambda model: sum(p.numel() for p in model.parameters() if not p.requires_grad),
            "Those are the frozen ones. Which are learned?",
            lambda model: sum(p.numel() for p in model.parameters() if p.grad is not None),
            "`p.grad` is None until something has arrived. `p.requires_grad` says whether something will.",
            lambda model: sum(p.numel() for p in model.parameters(recurse=False) if p.requires_grad),
            "Those are the model's own. `parameters()` as it is finds those of its layers, too.",
            lambda model: sum(
                p.numel() for m in model.children() for p in m.parameters(recurse=False) if p.requires_grad
            ),
            "`children()` are the parts of a model, and a single layer has none. `parameters()` finds all at once.",
            lambda model: sum(p.numel() for m in model.modules() for p in m.parameters() if p.requires_grad),
            "Counted more than once: `modules()` holds the model itself too, and its `parameters()` are all there are.",
            lambda model: sum(
                p.numel()
                for m in model.modules()
                if isinstance(m, nn.Linear)
                for p in m.parameters()
                if p.requires_grad
            ),
            "Other layers learn, too: BatchNorm1d has a weight and a bias.",
            lambda model: sum(
                p.numel() for name, p in model.named_parameters() if p.requires_grad and "bias" not in name
            ),
            "Whatever is called bias is left out. It is learned like the rest.",
            lambda model: next(p.numel() for p in model.parameters() if p.requires_grad),
            "That is the first parameter alone. Add up all of them.",
            lambda model: sum(sum(p.shape) for p in model.parameters() if p.requires_grad),
            "You add up the sizes. A table of 3 rows and 4 columns holds 3 times 4 numbers.",
            lambda model: sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad),
            "Those are bytes. How many numbers are there?",
        ),
        understood="A layer has a number for each pair of input and output, and one more for each output.",
        hints=(
            "The lesson counts all of them. Which of them are not learned?",
            "Add up `p.numel()` of those p in `model.parameters()` for which `p.requires_grad` is True.",
            "return sum(p.numel() for p in model.parameters() if ...)",
        ),
    ),
    Exercise(
        key="13.2",
        points=2,
        answer=layer(tenth),
        trial=affine_trial,
        wrong=mistakes(
            layer(lambda i, o: engine.randn(o, i) * 0.1, lambda i, o: engine.zeros(o)),
            "Plain tensors are not found, and so not learned. Make them parameters.",
            layer(lambda i, o: engine.randn(o, i, requires_grad=True), lambda i, o: engine.zeros(o)),
            "A tensor that requires a gradient is no parameter yet: `nn.Parameter(...)` says that it belongs here.",
            layer(lambda i, o: nn.Parameter(engine.randn(i, o) * 0.1), forward=lambda s, x: x @ s.weight + s.bias),
            "The weight is the other way round: it has a row for each output, (outputs, inputs).",
            layer(lambda i, o: nn.Parameter(engine.randn(o, i)) * 0.1),
            "`nn.Parameter(...) * 0.1` is a result, and no parameter any more. Multiply inside the brackets.",
            layer(lambda i, o: nn.Parameter(engine.rand(o, i) * 0.1)),
            "`rand` gives numbers from 0 to 1, none of them negative. Asked for is `randn`.",
            layer(tenth, forward=lambda s, x: engine.relu(x @ s.weight.T + s.bias)),
            "There is a bend in it. `nn.Linear` has none.",
            layer(tenth, forward=lambda s, x: x @ s.weight.T),
            "The bias is there, but `forward` does not add it.",
            layer(lambda i, o: nn.Parameter(engine.randn(o, i))),
            "The weights begin ten times too large.",
            layer(tenth, lambda i, o: nn.Parameter(engine.randn(o) * 0.1)),
            "The bias should begin with zeros.",
            layer(tenth, lambda i, o: nn.Parameter(engine.zeros(o), requires_grad=False)),
            "The bias is not learned: it is frozen, or a buffer (saved and moved with the model, and no more).",
            layer(tenth, lambda i, o: nn.Parameter(engine.zeros(i))),
            "The bias is added to the outputs: one number for each of *them*.",
            layer(tenth, lambda i, o: nn.Parameter(engine.zeros(1))),
            "One number for all outputs. In `nn.Linear` each output has its own.",
            layer(tenth, lambda i, o: nn.Parameter(engine.zeros(1, o))),
            "The bias is a row of numbers, of shape (outputs,). Broadcasting puts the axis in front by itself.",
            layer(lambda i, o: nn.Parameter(engine.zeros(o, i))),
            "All weights begin with 0, and so stay alike.",
            layer(lambda i, o: nn.Parameter(engine.randn(o, i) * 0.01)),
            "The weights begin ten times too small.",
            layer(lambda i, o: nn.Parameter(engine.randn(o, i)).mul_(0.1)),
            "A parameter requires a gradient, so nothing may be written into it. Multiply first, and then wrap it.",
            layer(tenth, forward=lambda s, x: x @ s.weight + s.bias),
            "The weight has a row for each *output*. To multiply x by it, turn it: `weight.T`.",
            layer(tenth, forward=lambda s, x: (s.weight @ x.T).T + s.bias),
            "Right for a table. With more dimensions `x.T` turns all of them round: turn the weight, not x.",
            layer(tenth, forward=lambda s, x: x @ s.weight.detach().T + s.bias.detach()),
            "It computes the right numbers, but no gradient reaches the weight and the bias: `detach`, `data` and "
            "`no_grad` cut them off.",
        ),
        properties=properties(
            Around,
            lambda did: "weight" not in str(did.expected) or did.result.keys() == did.expected.keys(),
            "Two parameters are asked for, `self.weight` and `self.bias`. (A layer inside has names of its own.)",
        ),
        understood="What is assigned as a Parameter is found, cleared, moved and saved with the model.",
        hints=(
            "What makes a tensor a part of the model that is learned?",
            "Wrap it in nn.Parameter and assign it to self. The weight has shape (outputs, inputs).",
            "self.weight = nn.Parameter(engine.randn(..., ...) * 0.1)\nforward: return x @ self.weight.T + ...",
        ),
    ),
    Exercise(
        key="13.3",
        points=1,
        answer=deep(lambda w, d: nn.Sequential(*linears(w, d))),
        trial=deep_trial,
        wrong=mistakes(
            deep(linears),
            "The layers are in a plain list, into which a Module does not look.",
            deep(lambda w, d: nn.ModuleList([nn.Linear(w, w)] * d)),
            "That is one layer, several times. Each should have numbers of its own.",
            deep(lambda w, d: nn.ModuleList(linears(w, d)), bend=lambda x: x),
            "The parameters are found. But the bend between the layers is gone.",
            deep(lambda w, d: nn.ModuleList([nn.Sequential(*linears(w, d))])),
            "The parameters are found. But there is one bend after all the layers, and not one after each.",
            deep(lambda w, d: nn.ModuleList(linears(w, d)), end=engine.relu),
            "There is a bend after the last layer now. Its result may be negative, as it was before.",
            deep(lambda w, d: nn.ModuleList(linears(w, d)), bend=lambda x: engine.relu(x).detach()),
            "The parameters are found, but no gradient reaches those before the last layer: no notes lead there.",
            deep(lambda w, d: nn.ModuleList(linears(w, d + 1))),
            "One layer too many: the last one is there already.",
            deep(lambda w, d: nn.ModuleList(linears(w, d - 1))),
            "One layer too few: `depth` does not count the last.",
            deep(lambda w, d: nn.ModuleList(linears(w, d, False))),
            "The layers have lost their bias.",
            deep(found, last=lambda width: nn.Linear(width, width)),
            "The last layer gives one number for each example, not `width` of them.",
            deep(found, step=lambda layer, x: layer(engine.relu(x))),
            "The bend comes after each layer, not before.",
            deep(found, step=lambda layer, x: x + engine.relu(layer(x))),
            "What comes into a layer is added again.",
            deep(found, bend=engine.tanh),
            "That is another bend. It was `relu`.",
            deep(found, first=1),
            "The first layer is found, and never used.",
            ForOptimizersAlone,
            "An optimiser finds them now, and nobody else: `state_dict()` does not save them, and `to` does not "
            "move them.",
            WeightsAlone,
            "The weights are found. The layers have biases, too.",
        ),
        properties=properties(
            OneName,
            lambda did: not isinstance(did.result, list) or len(did.result) == len(did.expected),
            "Not as many parameters are found as there are: `depth` layers and the last one, each with a weight "
            "and a bias.",
        ),
        understood="A Module looks for its parts in its attributes, and in ModuleLists, not in plain lists.",
        hints=(
            "Which of its parts does a Module find by itself?",
            "Modules, and those inside a ModuleList. A plain list hides them.",
            "self.layers = nn.ModuleList(...)",
        ),
    ),
    Exercise(
        key="13.4",
        points=3,
        answer=lambda scores, answers: -log_chances(scores).gather(1, answers.unsqueeze(1)).mean(),
        trial=entropy_trial,
        wrong=mistakes(
            minus_log(lambda s: engine.exp(s) / engine.exp(s).sum(dim=1, keepdim=True)),
            "Right for small scores. exp(1000) is infinite: subtract the largest score of each row first.",
            lambda scores, answers: chosen(log_chances(scores - scores.max(), shift=False), answers).mean(),
            "You subtract the largest score of the whole table: a row far below it is lost. Each row has its own.",
            lambda scores, answers: chosen(log_chances(scores), answers).sum(),
            "That is the sum over the examples. Asked for is the mean.",
            lambda scores, answers: -log_chances(scores).mean(),
            "The mean over *all* answers. Only the right one counts in each row.",
            lambda scores, answers: -chosen(log_chances(scores), answers).mean(),
            "A logarithm of a chance is negative. The loss is *minus* that.",
            lambda scores, answers: chosen(scores, answers).mean(),
            "That is minus the score itself. What about the scores of the other answers?",
            lambda scores, answers: chosen(log_chances(scores, dim=0), answers).mean(),
            "The chances must add up to 1 in each *row*: dim=1.",
            lambda scores, answers: chosen(log_chances(scores, dim=(0, 1)), answers).mean(),
            "You add up over the whole table. The chances must add up to 1 in each *row*: dim=1.",
            minus_log(lambda s: engine.exp(log_chances(s))),
            "The largest score is subtracted. But a chance may still come out as 0, and the logarithm of that is "
            "infinite. The logarithm of a quotient is a difference: take it before you divide.",
            minus_log(lambda s: engine.exp(log_chances(s)) + 1e-9),
            "A small number added to the chances hides the infinity, and makes every loss a little wrong: with a "
            "chance of nearly 0 the loss may be 1000. The logarithm of a quotient is a difference.",
            lambda scores, answers: -log_chances(scores)[:, answers].mean(),
            "`[:, answers]` takes *all* those columns in each row. Each row needs its own answer alone.",
            lambda scores, answers: chosen(log_chances(scores), answers),
            "One loss for each example. Asked for is their mean.",
            nn.functional.cross_entropy,
            "The right numbers, but ready-made. Here you write it yourself.",
            lambda scores, answers: nn.functional.nll_loss(log_chances(scores), answers),
            "The right numbers. But `nll_loss` is from `nn.functional`: pick the right answers' logarithms yourself.",
            lambda scores, answers: chosen(scores - scores.logsumexp(dim=1, keepdim=True), answers).mean(),
            "The right numbers, but `logsumexp` is what you are to write here.",
            lambda scores, answers: chosen(log_chances(scores.detach()), answers).mean(),
            "The loss is right, but it has no past: nothing can be learned from it.",
            lambda scores, answers: -log_chances(scores).amax(dim=1).mean(),
            "That is the chance of the answer with the largest score, and not of the right one.",
            lambda scores, answers: -log_chances(scores).exp()[engine.arange(len(answers)), answers].mean(),
            "That is minus the chance itself. Its logarithm is asked for.",
            lambda scores, answers: chosen(log_chances(scores) / math.log(2), answers).mean(),
            "The logarithm is `log`, to the base e, as e is what the scores are powers of.",
            lambda scores, answers: chosen(scores - log_sum(scores, engine.log2), answers).mean(),
            "`log2` is not what undoes `exp`. The logarithm here is `log`, to the base e.",
            lambda scores, answers: chosen(log_chances(scores), answers).sum() / scores.shape[1],
            "Divided by the number of possible answers. The mean is over the examples.",
            lambda scores, answers: chosen(log_chances(scores.clamp(max=50), shift=False), answers).mean(),
            "`clamp` makes the large scores alike. Subtract the same number from all scores of a row instead.",
            lambda scores, answers: chosen(log_chances(less(scores).clamp(min=-50), shift=False), answers).mean(),
            "The largest score is subtracted, but `clamp` then cuts the others off. A loss may be 1000.",
            lambda scores, answers: chosen(
                log_chances(scores - scores.amin(dim=1, keepdim=True), shift=False), answers
            ).mean(),
            "What you subtract is too small: exp still overflows. Subtract the *largest* score of each row.",
        ),
        understood="Only differences of scores count, so take the largest one away before you raise e to their power.",
        hints=(
            "Only differences between the scores of one row count. Which number may you subtract from all of them?",
            "The largest of each row. Then the logarithm of a chance is the score minus the log of the sum of exp.",
            "scores = scores - scores.max(dim=1, keepdim=True).values\n"
            "logs = scores - engine.log(...)\n"
            "return -logs[engine.arange(len(answers)), answers].mean()",
        ),
    ),
    Exercise(
        key="13.5",
        points=2,
        answer=load_what_fits,
        trial=load_trial,
        wrong=mistakes(
            changed(chosen_first, "fits, strict=False", "state"),
            "`load_state_dict` wants everything to fit. Choose first.",
            changed(chosen_first, " and own[n].shape == t.shape", ""),
            "The last layer has the right name and another shape, and that is not forgiven: compare shapes, too.",
            changed(
                chosen_first,
                "n: t for",
                "n: t.reshape(own[n].shape) for",
                "own[n].shape == t.shape",
                "own[n].numel() == t.numel()",
            ),
            "The same number of entries in another shape does not fit: compare the shapes.",
            changed(chosen_first, "not in fits", "in fits"),
            "The right tensors are loaded. Give back the names of those that were *not*.",
            lambda model, state: model.load_state_dict(fitting(model, state), strict=False).missing_keys,
            "`missing_keys` are names of the *model* that got nothing. Asked for are those of `state` that "
            "found no place.",
            changed(chosen_first, "return [name for name in state if name not in fits]", ""),
            "The right tensors are loaded. But nothing is given back: is a `return` missing?",
            changed(chosen_first, ", strict=False", ""),
            "What you load is not everything that the model has: `strict=False`.",
            giving("set(names)"),
            "A set has no order. Give back a list, as in `state`.",
            giving("sorted(names)"),
            "Sorted by name. Asked for is the order of `state`.",
            giving("len(names)"),
            "That is how many were left out. Which are they?",
            giving("{name: state[name] for name in names}"),
            "The names alone are asked for, not the tensors with them.",
            giving("model"),
            "You give the model back. Names are asked for.",
            lambda model, state: model.load_state_dict(fitting(model, state), strict=False),
            "That is what `load_state_dict` gives, and it begins with what the *model* lacks. Asked for is a list "
            "of the names in `state` that found no place.",
            giving("names + [n for n in model.state_dict() if n not in state]"),
            "What the model has and `state` has not is not asked for.",
            until_one_does_not,
            "You stop at the first that does not fit. More may fit after it.",
            changed(chosen_first, "state.items() if n in own and", "zip(own, state.values(), strict=False) if"),
            "The place does not tell: the third tensor of one may be the fourth of the other. Go by names.",
            changed(chosen_first, "model.state_dict()", "dict(model.named_parameters())"),
            "Buffers are saved as well, and fit: ask `model.state_dict()`, not the parameters.",
        ),
        understood="Names and shapes decide what fits; what was left out has to be reported, since nothing else "
        "will tell you.",
        hints=(
            "`model.state_dict()` tells the names and shapes of the model's own tensors.",
            "Make a dict of what fits, load it with strict=False, and list the other names of `state`.",
            "own = model.state_dict()\nfits = {name: t for name, t in state.items() if ...}\n"
            "model.load_state_dict(fits, strict=False)\nreturn ...",
        ),
    ),
)
