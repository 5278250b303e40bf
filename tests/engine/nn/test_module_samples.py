"""Modules and optimizers against PyTorch's own lists of inputs for them (``torch.testing._internal``).

Built from the same seed, a module has the same text, state, and for the same inputs the same outputs, gradients
and buffers; an optimizer with the same options takes the same steps; and what must raise does.
"""

import functools

import numpy as np
import pytest

import engine

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's sample generators need it")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# What takes modules of PyTorch as arguments
FOREIGN = {"TransformerEncoder", "TransformerDecoder", "Transformer"}


def both(infos, place, theirs):
    """{name: (entry of PyTorch's list, the engine's class)} of what the engine has."""
    found = {}
    for info in infos:
        name = theirs(info).__name__
        if theirs(info).__module__.startswith(f"torch.{place.__name__.removeprefix('engine.')}") and hasattr(
            place, name
        ):
            found[name] = info, getattr(place, name)
    return found


def modules():
    from torch.testing._internal.common_modules import module_db

    return both(module_db, engine.nn, lambda info: info.module_cls)


def optimizers():
    from torch.testing._internal.common_optimizers import optim_db

    return both(optim_db, engine.optim, lambda info: info.optim_cls)


def pytest_generate_tests(metafunc):
    wanted = "not slow" not in metafunc.config.getoption("markexpr")  # the lists take seconds to import
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", sorted(set(modules()) - FOREIGN) if wanted else [])
    elif "optimizer" in metafunc.fixturenames:
        metafunc.parametrize("optimizer", sorted(optimizers()) if wanted else [])


@pytest.fixture
def samples():
    import torch_samples

    return torch_samples


def unchanged(value, made):
    return value


def built(library, cls, given, change, training):
    """The module that a sample's arguments make."""
    library.manual_seed(3)
    made = {}
    return cls(*change(list(given.args), made), **change(dict(given.kwargs), made)).train(training)


def differing(samples, info, cls, sample, dtype, training):
    """None, or what differs between the modules of the two libraries."""
    theirs = built(torch, info.module_cls, sample.constructor_input, unchanged, training).to(dtype)
    mine = built(engine, cls, sample.constructor_input, samples.to_engine, training).to(samples.NAMES[dtype])
    if repr(mine) != repr(theirs):
        return f"text {mine!r}, not {theirs!r}"
    if wrong := in_dictionaries(samples, mine.state_dict(), theirs.state_dict()):
        return f"state {wrong}"
    made, given = {}, sample.forward_input
    my_arguments = samples.to_engine([list(given.args), dict(given.kwargs)], made)
    their_arguments = samples.to_leaves([list(given.args), dict(given.kwargs)], made)
    torch.manual_seed(5)
    out, their_error = samples.call(theirs, *their_arguments)
    engine.manual_seed(5)
    got, my_error = samples.call(mine, *my_arguments)
    if their_error or my_error:
        return samples.compare_errors(my_error, their_error)
    got, out = ([v for v in samples.flat(results) if v is not None] for results in (got, out))
    if len(got) != len(out):
        return f"{len(got)} results, not {len(out)}"
    if wrong := [w for w in map(samples.close, got, out) if w]:
        return f"result: {wrong[0]}"
    pairs = [pair for pair in made.values() if pair[0].requires_grad]
    leaves = [p[1] for p in pairs] + list(mine.parameters()), [p[0] for p in pairs] + list(theirs.parameters())
    got, my_error = samples.call(samples.weighted_grads, (engine, got, leaves[0], 1, False), {})
    out, their_error = samples.call(samples.weighted_grads, (torch, out, leaves[1], 1, False), {})
    if their_error or my_error:
        return samples.compare_errors(my_error, their_error)
    return samples.compare_grads(got, out, 1, 5) or in_dictionaries(
        samples, dict(mine.named_buffers()), dict(theirs.named_buffers())
    )


def in_dictionaries(samples, mine, theirs):
    if list(mine) != list(theirs):
        return f"keys {list(mine)}, not {list(theirs)}"
    return next((f"{k}: {wrong}" for k in mine if (wrong := samples.close(mine[k], theirs[k]))), None)


def test_a_module_is_pytorchs(module, samples):
    info, cls = modules()[module]
    found, count = [], 0
    for dtype in {torch.float64, torch.float32} & set(info.dtypes):
        for training in (True, False):
            torch.manual_seed(0)
            for sample in info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=True, training=training
            ):
                if sample.forward_input is None:
                    continue
                try:
                    wrong = differing(samples, info, cls, sample, dtype, training)
                except samples.Foreign:
                    continue
                count += 1
                given = sample.constructor_input
                if wrong:
                    found.append(f"{module} {given.args} {given.kwargs}, {dtype}, {training=}: {wrong}")
    assert not found, f"{len(found)} of {count} samples differ:\n" + "\n".join(found[:10])
    assert count


def made_and_called(cls, change, sample):
    made, given = {}, (sample.constructor_input, sample.forward_input)
    given = [change([list(i.args), dict(i.kwargs)], made) for i in given if i is not None]
    module = cls(*given[0][0], **given[0][1]).double()
    return module(*given[1][0], **given[1][1]) if len(given) > 1 else module


def test_a_module_refuses_what_pytorchs_refuses(module, samples):
    info, cls = modules()[module]
    inputs = {"device": "cpu", "dtype": torch.float64, "requires_grad": False, "training": False}
    for error in info.module_error_inputs_func(info, **inputs) if info.module_error_inputs_func else ():
        sample = error.module_error_input
        _, my_error = samples.call(made_and_called, (cls, samples.to_engine, sample), {})
        _, their_error = samples.call(made_and_called, (info.module_cls, unchanged, sample), {})
        if not isinstance(my_error, samples.Foreign) and (their_error or my_error):
            assert not samples.compare_errors(my_error, their_error), (
                sample.constructor_input.args,
                sample.constructor_input.kwargs,
            )


def trained(library, cls, options, with_closure):
    """The losses of eight steps, and the optimizer's state and text."""
    library.manual_seed(0)
    library.set_default_dtype(library.float64)
    try:
        model = library.nn.Sequential(library.nn.Linear(4, 5), library.nn.Tanh(), library.nn.Linear(5, 2))
        optimizer = cls(model.parameters(), **options)
        x, y, losses = library.randn(7, 4), library.randn(7, 2), []

        def closure():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss

        for _ in range(8):
            loss = optimizer.step(closure) if with_closure else closure()
            if not with_closure:
                optimizer.step()
            losses.append(loss.item())
    finally:
        library.set_default_dtype(library.float32)
    state = optimizer.state_dict()
    names = {k: sorted(map(str, v)) for k, v in state["state"].items()}
    return losses, names, [sorted(group) for group in state["param_groups"]], repr(optimizer)


def test_an_optimizer_is_pytorchs(optimizer, samples):
    info, cls = optimizers()[optimizer]
    for sample in info.optim_inputs_func(device="cpu"):
        for implementation in ({}, *({name: True} for name in info.supported_impls if name in ("foreach", "fused"))):
            options = [{**change(dict(sample.kwargs), {}), **implementation} for change in (samples.to_engine, copied)]
            mine, their_error = None, None
            mine, my_error = samples.call(trained, (engine, cls, options[0], info.step_requires_closure), {})
            theirs, their_error = samples.call(
                trained, (torch, info.optim_cls, options[1], info.step_requires_closure), {}
            )
            if their_error or my_error:
                assert not samples.compare_errors(my_error, their_error), options
                continue
            np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-7, err_msg=str(options))
            assert mine[1:] == theirs[1:], options


def copied(value, made):
    """A sample's options, of which a step changes none of the list's own."""
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in value.items()}


def stepped(cls, params, options, step):
    optimizer = cls(params, **options)
    if step:
        optimizer.step(lambda: 1.0)


def test_an_optimizer_refuses_what_pytorchs_refuses(optimizer, samples):
    info, cls = optimizers()[optimizer]
    for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float64):
        sample, step = error.optimizer_error_input, "STEP" in error.error_on.name
        twins = functools.partial(twin, samples, {})
        _, my_error = samples.call(stepped, (cls, twins(sample.params), twins(dict(sample.kwargs)), step), {})
        _, their_error = samples.call(stepped, (info.optim_cls, sample.params, sample.kwargs, step), {})
        if their_error or my_error:
            assert not samples.compare_errors(my_error, their_error), sample.desc


def twin(samples, made, value):
    """A value of PyTorch's list as the engine's; a parameter with its gradient, and the same one each time."""
    if not isinstance(value, torch.Tensor):
        return samples.inside(value, lambda v, made: twin(samples, made, v), made)
    if id(value) not in made:
        made[id(value)] = samples.tensor_to_engine(value).requires_grad_(value.requires_grad)
        made[id(value)].grad = None if value.grad is None else samples.tensor_to_engine(value.grad)
    return made[id(value)]
