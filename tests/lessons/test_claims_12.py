"""What lesson 12 says of its data and its splits."""

import pytest

import engine
from engine import nn

datasets = pytest.importorskip("sklearn.datasets", reason="the course needs scikit-learn")
STRETCHES = [0, 130, 256, 386, 516, 646, 776, 915, 1029, 1157, 1287, 1415, 1545, 1667, 1797]


@pytest.fixture(scope="module")
def digits():
    found = datasets.load_digits()
    return engine.tensor(found.images / 16, dtype=engine.float32), engine.tensor(found.target)


def share_right(digits, train, test):
    images, y = digits
    x = images.flatten(1)
    differences = (x[test].unsqueeze(1) - x[train]).square().sum(dim=2)
    return (y[train][differences.argmin(dim=1)] == y[test]).float().mean().item()


def test_a_random_split_hides_most_of_the_mistakes_that_new_hands_bring(digits):
    by_hand = []
    for start, stop in zip(STRETCHES, STRETCHES[1:], strict=False):
        others = engine.cat([engine.arange(start), engine.arange(stop, 1797)])
        by_hand.append(share_right(digits, others, engine.arange(start, stop)))
    mistakes = 1 - sum(by_hand) / 14
    assert 1 - min(by_hand) > 0.08
    pairs = (engine.randperm(1797, generator=engine.Generator().manual_seed(s)) for s in range(20))
    at_random = [1 - share_right(digits, p[128:], p[:128]) for p in pairs]
    assert mistakes > 3 * sum(at_random) / 20


def test_the_most_similar_picture_is_by_the_same_hand_half_of_the_time(digits):
    x = digits[0].flatten(1)
    stretch = (engine.arange(1797).unsqueeze(1) >= engine.tensor(STRETCHES)).sum(dim=1)
    same = []
    for seed in range(10):
        order = engine.randperm(1797, generator=engine.Generator().manual_seed(seed))
        train, test = order[128:], order[:128]
        nearest = train[(x[test].unsqueeze(1) - x[train]).square().sum(dim=2).argmin(dim=1)]
        same.append((stretch[nearest] == stretch[test]).float().mean().item())
    assert 0.45 < sum(same) / 10 < 0.6


def test_all_digits_reach_from_the_first_line_to_the_last_and_sideways_there_is_room(digits):
    images, _ = digits
    assert (images[:, 0].sum(dim=1) > 0).all()
    assert (images[:, -1].sum(dim=1) > 0).all()
    assert (images[:, :, 0].sum(dim=1) > 0).float().mean() < 0.05
    assert (images[:, :, -1].sum(dim=1) > 0).float().mean() < 0.15


@pytest.mark.parametrize("seed", range(10))
def test_the_best_of_200_guessers_looks_better_than_chance_and_is_not(seed):
    engine.manual_seed(seed)
    true, guesses = engine.randint(0, 10, (50,)), engine.randint(0, 10, (200, 50))
    right = (guesses == true).float().mean(dim=1)
    again = (engine.randint(0, 10, (1000,)) == engine.randint(0, 10, (1000,))).float().mean()
    assert abs(right.mean() - 0.1) < 0.01
    assert 0.2 <= right.max() < 0.4
    assert abs(again - 0.1) < 0.04


def rolled(image):
    return image.roll(int(engine.randint(-1, 2, ())), dims=0)


def shifted(image):
    by = int(engine.randint(-1, 2, ()))
    return engine.nn.functional.pad(image, (1, 1))[:, 1 - by : 9 - by]


def right_of_new_hands(digits, move, seed):
    """Lesson 14's network on its validation set, in percent, trained with pictures that are moved."""
    images, answers = digits
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = engine.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(12):
        for numbers in engine.randperm(1287).split(32):
            batch = engine.stack([move(images[number]) for number in numbers.tolist()])
            nn.functional.cross_entropy(model(batch), answers[numbers]).backward()
            optimizer.step()
            optimizer.zero_grad()
    with engine.no_grad():
        return 100 * (model(images[1287:1545]).argmax(1) == answers[1287:1545]).float().mean().item()


@pytest.mark.slow
def test_pictures_moved_into_empty_paper_help_and_rolled_ones_do_harm(digits):
    plain, round_the_edge, sideways = (
        [right_of_new_hands(digits, move, seed) for seed in range(4)] for move in (lambda image: image, rolled, shifted)
    )
    assert max(round_the_edge) < min(plain)
    assert min(sideways) > max(plain)
    for found, said in ((plain, [92, 95]), (round_the_edge, [86, 89]), (sideways, [96, 98])):
        assert [min(found), max(found)] == pytest.approx(said, abs=1)


@pytest.mark.parametrize("seed", range(5))
def test_with_replacement_more_than_half_of_the_healthy_are_never_drawn(seed):
    engine.manual_seed(seed)
    ill = engine.arange(1000) < 10
    weights = engine.where(ill, 99.0, 1.0)
    drawn = engine.tensor([*engine.utils.data.WeightedRandomSampler(weights, num_samples=1000)])
    healthy = {i for i in drawn.tolist() if i >= 10}
    assert len(healthy) < 990 / 2
    assert set(range(10)) <= set(drawn.tolist())
