"""What lesson 13 says of the numbers that a network begins with, over several seeds."""

import pytest

import engine
from engine import nn

FILLS = {
    "small": lambda weight: nn.init.normal_(weight, std=0.01),
    "large": nn.init.normal_,
    "own": lambda weight: None,
    "kaiming": nn.init.kaiming_normal_,
}


def spreads(fill, seed):
    engine.manual_seed(seed)
    numbers, found = engine.randn(64, 100), []
    with engine.no_grad():
        for _ in range(10):
            layer = nn.Linear(100, 100)
            fill(layer.weight)
            numbers = engine.relu(layer(numbers))
            found.append(numbers.std(dim=0).mean().item())
    return found


@pytest.mark.parametrize("seed", range(10))
def test_ten_layers_lose_the_differences_by_their_own_choice_and_keep_them_by_kaimings(seed):
    own, kaiming = spreads(FILLS["own"], seed), spreads(FILLS["kaiming"], seed)
    assert all(after < before / 2 for before, after in zip(own, own[1:], strict=False))
    assert own[-1] < 1e-3
    assert kaiming[-1] > 0.1
    assert spreads(FILLS["small"], seed)[-1] < 1e-9
    assert spreads(FILLS["large"], seed)[-1] > 3e7


def test_the_own_choice_is_a_uniform_one_of_size_0_058():
    weight = nn.Linear(100, 100).weight.detach()
    assert weight.abs().max() <= 0.1
    assert abs(weight.std() - 0.058) < 0.001


@pytest.mark.parametrize("seed", range(10))
def test_a_new_network_begins_near_the_logarithm_of_ten(seed):
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy(model(engine.rand(200, 64)), engine.randint(0, 10, (200,)))
    assert abs(loss.item() - 2.3026) < 0.15
