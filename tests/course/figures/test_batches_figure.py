"""The batch explorer: what it shows is what a DataLoader does, and what PyTorch's does with the same seed."""

from itertools import product

import pytest
from over_tables import over

from course.figures import BatchExplorer


@pytest.fixture(scope="module")
def explorer():
    return BatchExplorer()


@over("size, shuffle, drop", product([2, 6, 8], [False, True], [False, True]))
def test_no_example_comes_twice_and_only_the_last_batch_may_be_short(explorer, size, shuffle, drop):
    found = explorer.batches(batch_size=size, shuffle=shuffle, drop_last=drop, epoch=2)
    numbers = [number for batch in found for number in batch]
    assert len(numbers) == len(set(numbers)) == (20 - 20 % size if drop else 20)
    assert {len(batch) for batch in found[:-1]} <= {size}
    assert (numbers == sorted(numbers)) == (not shuffle)


def test_the_order_is_pytorchs():
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(
        list(range(20)), batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    for epoch in (1, 2, 3):
        theirs = [batch.tolist() for batch in loader]
        ours = BatchExplorer().batches(batch_size=6, shuffle=True, drop_last=False, epoch=epoch)
        assert ours == theirs


def test_the_words_say_how_many_batches_and_what_is_left_out(explorer):
    assert explorer.text() == (
        "Epoch 1, 20 examples in order: 4 batches of 6. The last one holds 2. The first batch holds 0, 1, 2, 3, 4, 5."
    )
    assert "3 batches of 6. 2 examples are left out." in explorer.text(drop_last=True)
    assert "4 batches of 5. The first" in explorer.text(batch_size=5)


def test_every_setting_is_drawn_with_each_example_in_its_box(explorer):
    for size, shuffle, drop, epoch in product([2, 7], [False, True], [False, True], [1, 3]):
        values = {"batch_size": size, "shuffle": shuffle, "drop_last": drop, "epoch": epoch}
        drawn = explorer.image(**values).decode()
        assert all(f">{n}</text>" in drawn for batch in explorer.batches(**values) for n in batch)


def test_the_examples_in_no_batch_stand_beside_them():
    explorer = BatchExplorer()
    drawn = explorer.image(drop_last=True).decode()
    assert ">left out</text>" in drawn
    beside = drawn.partition(">left out</text>")[2]
    assert [n for n in range(20) if f"fill='#666666'>{n}</text>" in beside] == [18, 19]
    assert "left out" not in explorer.image().decode()
