"""Every collective, with every dtype and operation, against what each rank can compute by itself."""

import math
from functools import reduce
from itertools import product

from together import OURS, check, d, nn, only_here, raised, t

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
DTYPES = DTYPES if OURS else [name for name in DTYPES if name != "int16"]  # which gloo does not know
OPS = "SUM PRODUCT MIN MAX AVG BAND BOR BXOR".split()


def rank():
    return d.get_rank()


def size():
    return d.get_world_size()


def of(r, shape=(5,), dtype="float32"):
    """What rank r has: small whole numbers, so that every order of sums gives the same."""
    n = math.prod(shape)
    x = (t.arange(n) * 7 + 3 * r + 1) % 5
    return (x % 2 == 0 if dtype == "bool" else x).reshape(shape).to(getattr(t, dtype))


def every(shape=(5,), dtype="float32"):
    return [of(r, shape, dtype) for r in range(size())]


def combined(op, tensors):
    kind = tensors[0].dtype
    wide = [x.to(t.int64 if not kind.is_floating_point else t.float64) for x in tensors]
    if op == "AVG":
        return (sum(wide) / len(wide)).to(kind)
    functions = {
        "SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b, "MIN": t.minimum, "MAX": t.maximum,
        "BAND": lambda a, b: a & b, "BOR": lambda a, b: a | b, "BXOR": lambda a, b: a ^ b,
    }  # fmt: skip
    return reduce(functions[op], wide).to(kind)


def allowed(op, dtype):
    floating = getattr(t, dtype).is_floating_point
    return not floating if op[0] == "B" else op != "AVG" or floating


def same(a, b):
    assert a.dtype is b.dtype and a.shape == b.shape and t.equal(a, b), (a, b)


@check
def all_reduce_of_every_dtype_and_operation():
    for dtype in DTYPES:
        for op in OPS:
            if allowed(op, dtype):
                x = of(rank(), (5,), dtype)
                assert d.all_reduce(x, getattr(d.ReduceOp, op)) is None
                same(x, combined(op, every((5,), dtype)))


@check
def reduce_to_each_rank():
    for dtype in DTYPES:
        for root, op in product(range(size()), ("SUM", "AVG") if allowed("AVG", dtype) else ("SUM",)):
            x = of(rank(), (2, 3), dtype)
            d.reduce(x, root, getattr(d.ReduceOp, op))
            if rank() == root:
                same(x, combined(op, every((2, 3), dtype)))
            elif OURS:  # gloo uses it for what is on the way
                same(x, of(rank(), (2, 3), dtype))


@check
def broadcast_of_every_dtype_from_each_rank():
    for dtype in DTYPES:
        for root in range(size()):
            x = of(rank(), (3, 2), dtype)
            d.broadcast(x, root)
            same(x, of(root, (3, 2), dtype))


@check
def all_gather_of_every_dtype():
    for dtype in DTYPES:
        out = [t.zeros(4, dtype=getattr(t, dtype)) for _ in range(size())]
        d.all_gather(out, of(rank(), (4,), dtype))
        for r, x in enumerate(out):
            same(x, of(r, (4,), dtype))


@check
def all_gather_single_and_its_older_name():
    for call in (d.all_gather_single, d.all_gather_into_tensor):
        out = t.zeros(size() * 4)
        call(out, of(rank(), (4,)))
        same(out, t.cat(every((4,))))


@check
def gather_to_each_rank():
    for dtype in DTYPES:
        for root in range(size()):
            out = [t.zeros(3, dtype=getattr(t, dtype)) for _ in range(size())] if rank() == root else None
            d.gather(of(rank(), (3,), dtype), out, dst=root)
            for r, x in enumerate(out or ()):
                same(x, of(r, (3,), dtype))


@check
def scatter_from_each_rank():
    for dtype in DTYPES:
        for root in range(size()):
            out = t.zeros(3, dtype=getattr(t, dtype))
            d.scatter(out, every((3,), dtype) if rank() == root else None, src=root)
            same(out, of(rank(), (3,), dtype))


@check
def reduce_scatter_of_lists_and_of_one_tensor():
    for dtype in DTYPES:
        out = t.zeros(2, dtype=getattr(t, dtype))
        d.reduce_scatter(out, list(of(rank(), (size() * 2,), dtype).chunk(size())))
        expected = combined("SUM", every((size() * 2,), dtype)).chunk(size())[rank()]
        same(out, expected)
        for call in (d.reduce_scatter_single, d.reduce_scatter_tensor):
            out = t.zeros(2, dtype=getattr(t, dtype))
            call(out, of(rank(), (size() * 2,), dtype))
            same(out, expected)


@check
def all_to_all_single_with_equal_parts():
    for dtype in DTYPES:
        out = t.zeros(size() * 2, dtype=getattr(t, dtype))
        d.all_to_all_single(out, of(rank(), (size() * 2,), dtype))
        same(out, t.cat([of(r, (size() * 2,), dtype).chunk(size())[rank()] for r in range(size())]))


@check
def all_to_all_single_with_uneven_parts():
    """Rank r sends r + s rows to rank s, none at all from 0 to 0."""
    there = [rank() + s for s in range(size())]
    given = t.cat([t.full((n, 2), 10.0 * rank() + s) for s, n in enumerate(there)])
    out = t.zeros(sum(there), 2)
    d.all_to_all_single(out, given, there, there)
    same(out, t.cat([t.full((r + rank(), 2), 10.0 * r + rank()) for r in range(size())]))


@only_here
def all_to_all_with_uneven_tensors():
    out = [t.zeros(r + 1) for r in range(size())]
    d.all_to_all(out, [t.full((rank() + 1,), float(rank())) for _ in range(size())])
    for r, x in enumerate(out):
        same(x, t.full((r + 1,), float(r)))


@check
def tensors_that_are_empty():
    x = t.zeros(0)
    d.all_reduce(x)
    d.broadcast(x, 0)
    out = [t.zeros(0, 3) for _ in range(size())]
    d.all_gather(out, t.zeros(0, 3))
    return [x.shape[0], out[0].shape[1]]


@check
def tensors_without_dimensions_and_of_other_strides():
    x = t.tensor(1.5)
    d.all_reduce(x)
    same(x, t.tensor(1.5 * size()))
    x = of(rank(), (2, 3)).t()
    d.all_reduce(x)
    same(x, combined("SUM", every((2, 3))).t())
    x = of(rank(), (4,))
    d.all_reduce(x[::2])
    if not OURS:  # gloo writes elsewhere, and sends no transposed tensors
        return
    assert t.equal(x[::2], combined("SUM", every((4,)))[::2]) and t.equal(x[1::2], of(rank(), (4,))[1::2])
    if rank() % 2 == 0 and rank() + 1 < size():
        d.send(of(7, (2, 3)).t(), rank() + 1)
    elif rank() % 2:
        x = t.zeros(2, 3).t()
        assert d.recv(x, rank() - 1) == rank() - 1
        same(x, of(7, (2, 3)).t())


@check
def tensors_that_require_grad_are_overwritten():
    x = t.ones(2, requires_grad=True)
    d.all_reduce(x)
    assert x.is_leaf and x.requires_grad
    return x.tolist()


@check
def messages_around_a_ring():
    right, left = (rank() + 1) % size(), (rank() - 1) % size()
    for dtype in DTYPES:
        x = t.zeros(3, dtype=getattr(t, dtype))
        works = [d.isend(of(rank(), (3,), dtype), right), d.irecv(x, left)]
        assert all(w.wait() for w in works) and all(w.is_completed() for w in works)
        same(x, of(left, (3,), dtype))


@check
def messages_with_tags_in_another_order():
    other = rank() ^ 1
    a, b = t.zeros(2), t.zeros(2)
    works = [d.isend(t.full((2,), 1.0), other, tag=1), d.isend(t.full((2,), 2.0), other, tag=2)]
    works += [d.irecv(b, other, tag=2), d.irecv(a, other, tag=1)]
    for w in works:
        w.wait()
    return [a.tolist(), b.tolist()]


@check
def a_message_from_whoever_sends():
    if rank():
        d.send(t.tensor([float(rank())]), 0)
        return None
    found = []
    for _ in range(size() - 1):
        x = t.zeros(1)
        assert d.recv(x) == x.item()
        found.append(x.item())
    return sorted(found)


@check
def a_batch_of_messages():
    right, left, x = (rank() + 1) % size(), (rank() - 1) % size(), t.zeros(2)
    ops = [d.P2POp(d.isend, of(rank(), (2,)), right), d.P2POp(d.irecv, x, left)]
    for work in d.batch_isend_irecv(ops):
        work.wait()
    same(x, of(left, (2,)))


@check
def several_collectives_under_way():
    tensors = [t.full((n + 1,), float(rank() + n)) for n in range(6)]
    works = [d.all_reduce(x, async_op=True) for x in tensors]
    for work in reversed(works):
        assert work.wait()
    return [x[0].item() for x in tensors] + [work.is_completed() for work in works]


@check
def what_a_work_gives():
    out = [t.zeros(2) for _ in range(size())]
    work = d.all_gather(out, of(rank(), (2,)), async_op=True)
    work.wait()
    same(out[-1], of(size() - 1, (2,)))
    future = d.all_reduce(t.ones(2), async_op=True).get_future()
    return [future.wait()[0].tolist(), d.all_reduce(t.ones(1), async_op=True).get_future().then(
        lambda f: f.value()[0] * 2).wait().tolist()]  # fmt: skip


@check
def objects():
    every = [None] * size()
    d.all_gather_object(every, {"rank": rank(), "t": t.arange(rank()), "many": "x" * rank()})
    assert [e["rank"] for e in every] == list(range(size())) and every[-1]["t"].numel() == size() - 1
    given = [1, "two", (3.5, None)] if rank() == 1 else [None] * 3
    d.broadcast_object_list(given, src=1)
    mine = [None]
    d.scatter_object_list(mine, [f"for {r}" * r for r in range(size())] if rank() == 0 else None)
    gathered = [None] * size() if rank() == 0 else None
    d.gather_object([rank()], gathered)
    if rank() == 0:
        d.send_object_list(["x", {"y": 1}], dst=1)
    received = [None, None]
    if rank() == 1:
        assert d.recv_object_list(received, src=0) == 0
    return [[e["many"] for e in every], given, mine, gathered, received]


@only_here
def objects_that_would_need_a_pickle_are_refused():
    return raised(d.broadcast_object_list, [nn.ReLU()], src=rank())[0]


@check
def groups_of_some_ranks():
    odd, even = d.new_group([r for r in range(size()) if r % 2]), d.new_group(range(0, size(), 2))
    mine = odd if rank() % 2 else even
    x = t.tensor([float(rank())])
    d.all_reduce(x, group=mine)
    assert x.item() == sum(r for r in range(size()) if r % 2 == rank() % 2)
    other = even if rank() % 2 else odd
    assert d.get_rank(other) == d.get_world_size(other) == -1
    root = d.get_global_rank(mine, 0)
    x = t.tensor([float(rank())])
    d.broadcast(x, src=root, group=mine)
    assert x.item() == rank() % 2
    d.broadcast(x, group=mine, group_src=0)
    d.barrier(mine)
    d.destroy_process_group(mine)
    assert not OURS or raised(d.barrier, mine)[0] == "ValueError"
    return d.get_process_group_ranks(d.group.WORLD)


@check
def groups_of_neighbours():
    mine, every = d.new_subgroups(group_size=size() // 2)
    x = t.ones(1)
    d.all_reduce(x, group=mine)
    return [x.item(), len(every), d.get_rank(mine)]


@only_here
def a_group_in_another_order_of_ranks():
    mine = d.new_group(list(range(size()))[::-1], sort_ranks=False)
    out = [t.zeros(1) for _ in range(size())]
    d.all_gather(out, t.tensor([float(rank())]), mine)
    return [d.get_rank(mine), [x.item() for x in out]]


@check
def who_is_not_in_a_group_is_told():
    import warnings

    group = d.new_group([0])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert d.all_reduce(t.ones(1), group=group) is None
    return [str(w.message) for w in told]


@check
def barriers():
    d.barrier()
    d.barrier(async_op=True).wait()
    d.monitored_barrier()


@check
def errors_before_anything_is_sent():
    ones, n = t.ones(2), size()
    calls = [
        (d.all_reduce, [1]), (d.all_reduce, ones, d.ReduceOp.BAND), (d.broadcast, ones),
        (d.broadcast, ones, 0, None, False, 0),
        (d.all_gather, ones, ones), (d.all_gather, [ones, 1], ones), (d.all_gather, [ones] * (n + 1), ones),
        (d.all_gather, [t.ones(3)] * n, ones), (d.all_gather, [ones] * n, ones.long()),
        (d.gather, ones, None, rank()), (d.gather, ones, [ones] * n, (rank() + 1) % n),
        (d.scatter, ones, None, rank()), (d.scatter, ones, [ones] * n, (rank() + 1) % n),
        (d.scatter, ones, [ones] * (n + 1), rank()), (d.scatter, ones, [t.ones(3)] * n, rank()),
        (d.reduce_scatter, ones, [ones] * (n + 1)), (d.send, ones, rank()), (d.broadcast, ones, n + 3),
        (d.all_to_all_single, t.ones(n), t.ones(n), [1] * (n + 1), [1] * n),
        (d.all_to_all_single, t.ones(n), t.ones(n), [2] * n, [1] * n), (d.all_to_all, [ones], [ones] * n),
        (d.new_group, [0, 0]), (d.new_group, [0, n]), (d.new_group, [0], 3), (d.init_process_group, "gloo"),
        (d.P2POp, d.send, ones, 0), (d.batch_isend_irecv, ["x"]), (d.new_subgroups, n + 1), (d.new_subgroups, 0),
        (d.get_group_rank, d.group.WORLD, n) if n > 9 else (d.new_subgroups_by_enumeration, []),
        (d.get_rank, 5) if OURS and n > 9 else (d.Backend, 3),
    ]  # fmt: skip
    found = [raised(*call) for call in calls]
    return [[kind, words.split("\n")[0][:60]] for kind, words in found]


@only_here
def other_shapes_on_other_ranks_are_told_to_all():
    x = t.ones(3 + rank())
    return [
        raised(d.all_reduce, x), raised(d.broadcast, x, 0), raised(d.all_gather, [t.ones(3 + rank())] * size(), x),
        raised(d.all_reduce, t.ones(2), d.ReduceOp.SUM if rank() else d.ReduceOp.MAX),
        raised(d.broadcast, t.ones(2), min(rank(), 1)),
        raised(d.all_reduce, t.ones(2).to(t.int64 if rank() else t.float64)),
        raised(d.barrier) if rank() else raised(d.all_reduce, x),
        raised(d.all_to_all_single, t.ones(size()), t.ones(size()), [1] * size(), [2, *[1] * (size() - 2), 0]),
    ]  # fmt: skip


@only_here
def half_precision_is_rounded_once_for_two_ranks():
    x = t.tensor([1.0, 1 / 3], dtype=t.bfloat16) * (rank() + 1)
    expected = sum((t.tensor([1.0, 1 / 3], dtype=t.bfloat16) * (r + 1)).float() for r in range(size()))
    d.all_reduce(x)
    assert (x.float() - expected).abs().max() <= 0.01 * size()


@only_here
def tensors_on_a_device_go_through_host_memory():
    x = t.full((3,), float(rank()), device="sim")
    d.all_reduce(x)
    out = [t.zeros(3, device="sim") for _ in range(size())]
    d.all_gather(out, x)
    assert str(x.device) == "sim:0" and str(out[0].device) == "sim:0"
    return [x.tolist(), out[-1].tolist()]


@only_here
def a_write_into_a_saved_tensor_is_noticed():
    w = t.ones(2, requires_grad=True)
    x = t.ones(2)
    y = (w * x).sum()
    d.all_reduce(x)
    return raised(y.backward)[0]


@check
def a_large_tensor():
    x = t.full((300_000,), float(rank() + 1))
    d.all_reduce(x)
    return [x[0].item(), x[-1].item()]
