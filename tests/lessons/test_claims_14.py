"""What lesson 14 says of its experiments, over several seeds (`slow` where a training takes its time)."""

import pytest

import engine
from engine import nn
from engine.utils.data import DataLoader, Subset, TensorDataset

datasets = pytest.importorskip("sklearn.datasets", reason="the course needs scikit-learn")
loss_fn = nn.CrossEntropyLoss()
EVERY_32ND, EVERY_3RD = range(0, 1287, 32), range(0, 1287, 3)


@pytest.fixture(scope="module")
def sets():
    digits = datasets.load_digits()
    images = engine.tensor(digits.images / 16, dtype=engine.float32)
    everything = TensorDataset(images, engine.tensor(digits.target))
    return {
        "training": Subset(everything, range(1287)),
        "validation": Subset(everything, range(1287, 1545)),
        "sealed": Subset(everything, range(1545, 1797)),
    }


def make_model(width=64, dropped=0.0):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropped), nn.Linear(width, 10))


def epoch(loader, model, optimizer):
    model.train()
    seen, total = 0, 0.0
    for images, answers in loader:
        loss = loss_fn(model(images), answers)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen, total = seen + len(images), total + loss.item() * len(images)
    return total / seen


def judged(model, data):
    """(the share that is right, the loss)"""
    model.eval()
    images, answers = next(iter(DataLoader(data, batch_size=len(data))))
    with engine.no_grad():
        scores = model(images)
    return (scores.argmax(dim=1) == answers).float().mean().item(), loss_fn(scores, answers).item()


def trained(data, epochs, make_optimizer, seed, batch=8, **model):
    """(the model, the mean losses of its epochs)"""
    engine.manual_seed(seed)
    network = make_model(**model)
    optimizer = make_optimizer(network.parameters())
    loader = DataLoader(data, batch_size=batch, shuffle=True)
    return network, [epoch(loader, network, optimizer) for _ in range(epochs)]


def sgd(lr, **options):
    return lambda p: engine.optim.SGD(p, lr=lr, **options)


def adam(lr, **options):
    return lambda p: engine.optim.Adam(p, lr=lr, **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_between_the_writers_opens_after_the_first_epochs(sets, seed):
    engine.manual_seed(seed)
    model = make_model()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(sets["training"], batch_size=8, shuffle=True)
    losses = [(epoch(loader, model, optimizer), judged(model, sets["validation"])[1]) for _ in range(10)]
    assert all(valid < train for train, valid in losses[:2])
    assert losses[-1][1] > 1.5 * losses[-1][0]


@pytest.mark.slow
def test_no_optimiser_makes_up_for_a_wrong_rate(sets):
    ends = {}
    for name, make in {"good": adam(0.003), "quick": adam(0.01), "plain": sgd(0.05), "wrong": adam(0.3)}.items():
        ends[name] = [trained(sets["training"], 3, make, seed)[1][-1] for seed in range(3)]
    assert max(ends["good"]) < min(ends["plain"])
    assert max(ends["quick"]) < min(ends["plain"])
    assert min(ends["wrong"]) > 2.2


@pytest.mark.slow
def test_a_rate_that_falls_makes_the_bad_runs_as_good_as_the_good_ones(sets):
    schedulers, right = engine.optim.lr_scheduler, {}
    plans = {
        "stays": lambda o: schedulers.ConstantLR(o, factor=1.0),
        "jumps": lambda o: schedulers.StepLR(o, step_size=5, gamma=0.1),
        "glides": lambda o: schedulers.CosineAnnealingLR(o, T_max=10),
    }
    loader = DataLoader(sets["training"], batch_size=8, shuffle=True)
    for name, plan in plans.items():
        right[name] = []
        for seed in range(6):
            engine.manual_seed(seed)
            model = make_model()
            optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
            scheduler = plan(optimizer)
            for _ in range(10):
                epoch(loader, model, optimizer)
                scheduler.step()
            right[name].append(judged(model, sets["validation"])[0])
    best = max(right["stays"])
    for falling in (right["jumps"], right["glides"]):
        assert min(falling) > min(right["stays"]) + 0.03
        assert min(falling) > best - 0.03
        assert max(falling) < best + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_large_batches_want_a_larger_rate_up_to_a_limit(sets, seed):
    right = {
        rate: judged(trained(sets["training"], 3, sgd(rate), seed, batch=512)[0], sets["validation"])[0]
        for rate in (0.05, 0.8, 3.2)
    }
    assert right[0.05] < 0.4
    assert right[0.8] > 0.6
    assert right[3.2] < 0.45


@pytest.mark.slow
def test_more_examples_help_by_far_and_weight_decay_helps_the_loss_alone(sets):
    few, more = Subset(sets["training"], EVERY_32ND), Subset(sets["training"], EVERY_3RD)

    def runs(data, decay=0.0, dropped=0.0):
        make = adam(0.01, weight_decay=decay)
        models = (trained(data, 30, make, seed, batch=10, width=256, dropped=dropped)[0] for seed in range(5))
        return zip(*(judged(model, sets["validation"]) for model in models), strict=True)

    (right, losses), (right_more, losses_more) = map(list, (runs(few), runs(more)))
    right_decay, losses_decay = runs(few, decay=0.01)
    right_dropped, losses_dropped = runs(few, dropped=0.5)
    assert min(right_more) > max(*right, *right_decay, *right_dropped) + 0.1
    assert max(*losses_decay, *losses_dropped) < min(losses)
    assert max(right_decay) <= max(right) + 0.03
    assert max(losses_more) < 0.3
    assert min(right_dropped) < min(right)
    assert max(right_dropped) > max(right)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_learns_by_heart_gets_surer_of_wrong_answers(sets, seed):
    engine.manual_seed(seed)
    model = make_model(width=256)
    optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(Subset(sets["training"], EVERY_32ND), batch_size=10, shuffle=True)
    losses = [(epoch(loader, model, optimizer), judged(model, sets["validation"])[1]) for _ in range(30)]
    valid = [v for _, v in losses]
    assert losses[-1][0] < 0.05
    assert valid.index(min(valid)) < 10
    assert valid[-1] > 1.2 * min(valid)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_new_writers_are_read_worse_than_those_one_has_chosen_by(sets, seed):
    model, _ = trained(sets["training"], 12, adam(0.003), seed, width=256)
    assert judged(model, sets["sealed"])[0] < judged(model, sets["validation"])[0]


def large():
    model = make_model()
    for p in model.parameters():
        nn.init.normal_(p)
    return model


FAULTS = {  # how the model is made, what becomes of a batch, the loss, whose parameters are trained
    "right": {},
    "A": {"model": large},
    "B": {"parameters": lambda model: make_model().parameters()},
    "C": {"loss": lambda scores, answers: loss_fn(scores.softmax(dim=1), answers)},
    "D": {"batch": lambda images, answers: (images, answers[engine.randperm(len(answers))])},
    "E": {"batch": lambda images, answers: (images.reshape(64, -1).T, answers)},
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_but_one_is_found_by_one_of_three_looks(sets, fault, seed):
    parts = FAULTS[fault]
    engine.manual_seed(seed)
    model = parts.get("model", make_model)()
    optimizer = engine.optim.SGD(parts.get("parameters", lambda m: m.parameters())(model), lr=0.05)
    images, answers = next(iter(DataLoader(sets["training"], batch_size=8, shuffle=True)))
    inputs, answers = parts.get("batch", lambda *both: both)(images.requires_grad_(), answers)
    model(inputs)[0].sum().backward()
    alone = not images.grad[1:].any()
    optimizer.zero_grad()
    losses = []
    for _ in range(300):
        loss = parts.get("loss", loss_fn)(model(inputs.detach()), answers)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert (abs(losses[0] - 2.3) > 5) == (fault == "A")
    assert (losses[-1] > 1) == (fault in "BC")
    assert (losses[-1] == losses[0]) == (fault == "B")
    assert alone == (fault != "E")
