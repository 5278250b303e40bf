"""The whole table of operations against PyTorch's own samples; what differs on purpose is in docs/differences.md.

For every operation that both have, PyTorch's generators give ordinary inputs, reference inputs with edge cases
(strides, broadcasts, no elements, nan and inf) and calls that must raise.  Values, dtypes, shapes, gradients, second
gradients and errors have to be the same.
"""

import functools
import itertools
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's sample generators need it")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# (operations, what differs, the row of docs/differences.md that says why): a difference that is not here is an error
ACTIVATIONS = " ".join(f"nn.functional.{n}" for n in "elu selu celu hardtanh relu6 hardshrink softshrink".split())
DIFFERENCES = [
    ("sort argsort msort topk kthvalue", r"result: value|gradient 1 .* value", "Order of equal elements"),
    (ACTIVATIONS, r"gradient . of input 0: value", "`nan` in the slope of an activation"),
    ("abs", r"gradient 1 of input 0: value np.float64\(nan\)", "The slope of `abs` at `nan`"),
    ("digamma lgamma nn.functional.mish", r"gradient . .* value", "Gradients at poles and beyond overflow"),
    (
        "addbmm addcdiv addcmul nn.functional.conv3d nn.functional.conv_transpose2d nn.functional.conv_transpose3d "
        "nn.functional.normalize nn.functional.embedding_bag logcumsumexp",
        r"result: value|gradient 1 .* value",
        "Half precision inside of an operation",
    ),
    (
        "remainder __rmod__ nn.functional.scaled_dot_product_attention",
        r"gradient .: no error; .* is not implemented",
        "Derivatives that PyTorch lacks",
    ),
    ("acosh_ asinh_ atanh_", r"gradient 1: no error; .* 'inplace version", "Derivatives that PyTorch lacks"),
    ("clamp", r"gradient 1: no error; .* output with shape", "Derivatives that PyTorch lacks"),
    ("addmm_ addmv_ baddbmm_ float_power_ masked_scatter_", r"message", "Words for wrong arguments"),
    ("addbmm_", r"raises RuntimeError: output with shape", "`addbmm_` of a smaller tensor"),
    ("as_strided", r"raises NotImplementedError", "`as_strided` outside of the elements"),
    (
        "nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.threshold",
        r"raises NotImplementedError",
        "Integers in pooling and thresholds",
    ),
    (
        "__radd__ __rmul__ __rand__ __ror__ __rxor__ __rsub__ __rmod__ __rpow__",
        r"no error; .* descriptor|result: .* NotI",
        "Reflected operators by name",
    ),
    ("nn.functional.conv2d nn.functional.conv3d", r"message .*stride", "Which of two errors"),
]
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool")
REFERENCE = ("float64", "float32", "int64")  # of these dtypes the reference inputs too
needed_rows, compared = set(), set()
MOST = 32  # samples of an operation and dtype, evenly chosen
LARGEST = 20000  # elements


@functools.cache
def samples():
    import torch_samples

    return torch_samples


def names():
    return sorted(samples().rows())


@functools.cache
def documented():
    """The first cells of the rows of docs/differences.md."""
    text = (Path(__file__).parents[3] / "docs" / "differences.md").read_text(encoding="utf-8")
    return {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")}


def calls(op):
    """(what it is, a sample, whether to look at second gradients) of an entry of PyTorch's list."""
    for name in DTYPES:
        dtype = getattr(torch, name)
        if dtype in op.supported_dtypes("cpu"):
            given = itertools.islice(samples().samples(op, dtype, name in REFERENCE), 1000)
            found = [s for s in given if size(s) <= LARGEST]
            for sample in evenly(found):
                yield name, sample, name == "float64" and op.supports_gradgrad
    if op.error_inputs_func:
        for error in op.error_inputs("cpu"):
            if size(error.sample_input) <= LARGEST:
                yield "error", error.sample_input, False


def evenly(found):
    return found[:: -(-len(found) // MOST) or 1]


def size(sample):
    given = [sample.input, *sample.args, *sample.kwargs.values()]
    return max((v.numel() for v in given if isinstance(v, torch.Tensor)), default=0)


def known(name, wrong):
    """Whether a row of the table says that an operation differs in this way."""
    rows = {row for operations, what, row in DIFFERENCES if name in operations.split() and re.match(what, wrong)}
    needed_rows.update(rows)
    return bool(rows)


def pytest_generate_tests(metafunc):
    """The names of the operations are known after an import of seconds: only those wait for it who want slow tests."""
    wanted = "not slow" not in metafunc.config.getoption("markexpr")
    if metafunc.function in (test_pytorchs_samples, test_what_pytorch_makes_of_nothing_and_of_one_element):
        metafunc.parametrize("name", names() if wanted else [])
    elif metafunc.function is test_in_place:
        rows = samples().rows() if wanted else {}
        metafunc.parametrize("name", sorted(n for n in rows if any(map(samples().in_place, rows[n]))))


def test_pytorchs_samples(name):
    found, left_out, count = [], set(), 0
    for op in samples().rows()[name]:
        function = samples().function_of(op)
        for kind, sample, second in calls(op):
            try:
                wrong = samples().compare_sample(op, function, sample, second)
            except samples().Foreign as reason:
                left_out.add(str(reason))
                continue
            count += 1
            if wrong and not known(name, wrong):
                found.append(f"{kind} {op.variant_test_name}: {name}({samples().shown(sample)[:200]}): {wrong}")
    assert not found, f"{len(found)} of {count} samples differ:\n" + "\n".join(found[:10])
    assert count or left_out
    assert left_out <= documented(), "what is left out is in docs/differences.md"
    compared.add(name)


def test_in_place(name):
    found, count = [], 0
    for op in samples().rows()[name]:
        theirs, mine = samples().in_place(op) or (None, None)
        for kind in ("float64", "int64") if mine else ():
            if getattr(torch, kind) in op.supported_dtypes("cpu"):
                chosen = itertools.islice(samples().samples(op, getattr(torch, kind), False), MOST)
                for sample in [s for s in chosen if isinstance(s.input, torch.Tensor)][::3]:
                    wrong = samples().compare_sample(op, mine, sample, False, theirs)
                    count += 1
                    if wrong and not known(name + "_", wrong):
                        found.append(f"{kind}: {name}_({samples().shown(sample)[:200]}): {wrong}")
    assert not found, f"{len(found)} of {count} samples differ:\n" + "\n".join(found[:10])


def test_what_pytorch_makes_of_nothing_and_of_one_element(name):
    """Those with the fewest elements are the likeliest to be left out of the samples."""
    found = []
    for op in samples().rows()[name] if not name.startswith("__") else ():  # "Reflected operators by name"
        function = samples().function_of(op)
        for kind, shape in itertools.product(("float64", "float32", "float16", "int64"), ((), (1,), (0,), (3, 0))):
            dtype = getattr(torch, kind)
            if dtype not in op.supported_dtypes("cpu") or not (dtype.is_floating_point or shape in ((), (1,))):
                continue
            x = torch.full(shape, 0.5 if dtype.is_floating_point else 1, dtype=dtype)
            sample = samples().SampleInput(x.requires_grad_(dtype.is_floating_point and op.supports_autograd))
            if samples().call(op.op, (x,), {})[1] is None:  # other errors are not of interest here
                wrong = samples().compare_sample(op, function, sample, False)
                if wrong and not known(name, wrong):
                    found.append(f"{kind} {shape}: {wrong}")
    assert not found, "\n".join(found)


def test_every_exemption_is_a_row_of_the_document():
    assert {row for _, _, row in DIFFERENCES} <= documented()


def test_every_exemption_is_needed():
    if compared != set(names()):
        pytest.skip("known only after the samples of all operations")
    assert needed_rows == {row for _, _, row in DIFFERENCES}
