"""Recurrent layers: a cell is a formula for one step; a layer runs it over a sequence, in one direction or both."""

import math
from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature, signature
from numbers import Number

from ..arrays.warn import warn
from ..core.tensor import Tensor
from ..ops.creation import zeros
from ..ops.elementwise import relu, sigmoid, tanh
from ..ops.shape import cat, stack, unsafe_chunk
from . import functional as F
from . import init, messages
from .layers import Layer, add_parameters
from .utils.rnn import PackedSequence

casts: Callable[[], bool] = bool  # whether a region of autocast is open: amp puts a function of its own here

# ---- one step: the gates of the input and of the last hidden state, the state before -> the state after, hidden first


def plain(activation):
    def step(x, h, state):
        return (activation(h + x),)

    return step


def lstm(x, h, state):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)."""
    i, f, g, o = unsafe_chunk(h + x, 4, 1)
    c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru(x, h, state):
    """Gated recurrent unit (Cho et al., 2014), with the reset gate behind the hidden weights."""
    (xr, xz, xn), (hr, hz, hn) = unsafe_chunk(x, 3, 1), unsafe_chunk(h, 3, 1)
    z, n = sigmoid(hz + xz), tanh(xn + hn * sigmoid(hr + xr))
    return ((state[0] - n) * z + n,)


# and how many gates
CELLS = {"RNN_TANH": (plain(tanh), 1), "RNN_RELU": (plain(relu), 1), "LSTM": (lstm, 4), "GRU": (gru, 3)}


def init_uniform(module):
    """The default of recurrent layers: uniform within 1 / sqrt(hidden_size)."""
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


# ---- layers over sequences


class RNNBase(Layer):
    """Layers of cells over a sequence (length, batch, input_size), or (batch, length, input_size) if ``batch_first``.

    Returns the outputs of the last layer at all steps and the last state of each layer and direction, (h) or (h, c).
    """

    _shown = "{input_size}, {hidden_size}"
    _usual = dict(proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)  # noqa: C408

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):  # fmt: skip
        check_arguments(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        dropout, names = float(dropout), "mode input_size hidden_size num_layers bias batch_first dropout"
        self._set_up(locals(), f"{names} bidirectional proj_size")
        gates, out = CELLS[mode][1] * hidden_size, proj_size or hidden_size
        width = input_size
        for layer in range(num_layers):
            for suffix in suffixes(self, layer):
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
                shapes |= {"bias_ih": gates, "bias_hh": gates} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                add_parameters(self, {"device": device, "dtype": dtype}, **{k + suffix: s for k, s in shapes.items()})
            width = out * directions(self)
        self.reset_parameters()

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        ends = [s for layer in range(self.num_layers) for s in suffixes(self, layer)]
        return [[p for name, p in self._parameters.items() if name.partition("_l")[2] == s[2:]] for s in ends]

    def reset_parameters(self):
        init_uniform(self)

    def flatten_parameters(self):
        """Nothing: the weights need not lie together."""

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return packed(self, input, hx)
        kind = self.mode.partition("_")[0]
        if input.ndim not in (2, 3):
            tensor = " tensor" if kind == "RNN" else ""
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.ndim}D{tensor} instead")
        batched, batch_dim = input.ndim == 3, 0 if self.batch_first else 1
        state = None if hx is None else two_states(hx) if self.mode == "LSTM" else (hx,)
        if state is not None:
            check_dims(self.mode, batched, [h.dim() for h in state])
        if not batched:
            input = input.unsqueeze(batch_dim)
            state = state and tuple(h.unsqueeze(1) for h in state)
        check_input(self, input)
        state = checked_state(self, state, input, input.shape[batch_dim])
        output, state = computed(self, input.transpose(0, 1) if self.batch_first else input, state)
        if self.batch_first:
            output = output.transpose(0, 1) if self.mode == "LSTM" else output.transpose_(0, 1)
        if not batched:
            output, state = output.squeeze(batch_dim), tuple(h.squeeze(1) for h in state)
        return output, state if self.mode == "LSTM" else state[0]


def directions(module):
    return 2 if module.bidirectional else 1


def suffixes(module, layer):
    """Return the ends of the names of a layer's parameters, by direction."""
    return (f"_l{layer}", f"_l{layer}_reverse")[: directions(module)]


def packed(module, input, hx):
    """Run a module on a packed sequence; states are in the order of the sequences before they were sorted."""
    data, sizes, order, back = input
    check_input(module, data)
    turned = lambda state, to: state if to is None or state is None else tuple(h.index_select(1, to) for h in state)  # noqa: E731
    sizes = sizes.tolist()
    state = None if hx is None else two_states(hx) if module.mode == "LSTM" else (hx,)
    state = checked_state(module, turned(state, order), data, sizes[0])
    output, state = computed(module, data, state, sizes)
    state = turned(state, back)
    return PackedSequence(output, input.batch_sizes, order, back), state if module.mode == "LSTM" else state[0]


def computed(module, *arguments):
    """Run the layers of a module on a sequence and a state."""
    return (lstm_layers if module.mode == "LSTM" else rnn_layers)(module, *arguments)


def check_input(module, input):
    """ValueError or RuntimeError if the input does not fit."""
    dtype = module.weight_ih_l0.dtype
    if input.dtype is not dtype and not casts():
        raise ValueError(messages.RNN_DTYPE.format(input.dtype, dtype))
    if input.shape[-1] != module.input_size:
        raise RuntimeError(messages.INPUT_SIZE.format(module.input_size, input.shape[-1]))


def checked_state(module, state, input, batch):
    """The state to begin with: what was given, or zeros.  RuntimeError if it does not fit."""
    n = module.num_layers * directions(module), batch
    hidden, cell = (*n, module.proj_size or module.hidden_size), (*n, module.hidden_size)
    shapes = (hidden, cell) if module.mode == "LSTM" else (hidden,)
    if state is None:
        return tuple(zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes)
    for i, (h, shape) in enumerate(zip(state, shapes)):
        if tuple(h.shape) != shape:
            which = f"hidden[{i}]" if module.mode == "LSTM" else "hidden"
            raise RuntimeError(f"Expected {which} size {shape}, got {list(h.shape)}")
    return state


def over_time(module, x, start, suffix, sizes):
    """(outputs, last state) of one layer in one direction."""
    get = module._parameters.get
    step, (w_hh, b_hh, w_hr) = CELLS[module.mode][0], (get(k + suffix) for k in ("weight_hh", "bias_hh", "weight_hr"))
    gates = F.linear(x, get("weight_ih" + suffix), get("bias_ih" + suffix))
    gates = gates.unbind(0) if sizes is None else gates.split(sizes)
    backwards, state, over, outputs = suffix.endswith("reverse"), start, [], []
    if sizes is not None and backwards:
        state = rows(start, 0, sizes[-1])
    for g in reversed(gates) if backwards else gates:
        if sizes is not None:  # sequences that are over leave at the end of the batch, or come in there
            n, had = len(g), len(state[0])
            if n < had:
                over.append(rows(state, n, had))
                state = rows(state, 0, n)
            elif n > had:
                state = one_below_another([state, rows(start, had, n)])
        state = step(g, F.linear(state[0], w_hh, b_hh), state)
        if w_hr is not None:
            state = (F.linear(state[0], w_hr), *state[1:])
        outputs.append(state[0])
    if over:
        state = one_below_another([state, *reversed(over)])
    return (stack if sizes is None else cat)(outputs[::-1] if backwards else outputs), state


def lstm_layers(module, x, state, sizes=None):
    """(outputs of the last layer, last states) of a sequence with its steps first, or packed with these sizes."""
    before, after = list(zip(*(h.unbind(0) for h in state))), []
    for layer in range(module.num_layers):
        outputs = []
        for suffix in suffixes(module, layer):
            output, last = over_time(module, x, before[len(after)], suffix, sizes)
            outputs.append(output)
            after.append(last)
        x = cat(outputs, -1) if module.bidirectional else outputs[0]
        if module.dropout and module.training and layer < module.num_layers - 1:
            x = F.dropout(x, module.dropout, True)
    return x, tuple(stack(hs) for hs in zip(*after))


rnn_layers = lstm_layers  # autocast gives each name a form of its own


def rows(state, begin, end):
    """A part of the batch of a state."""
    return tuple(h[begin:end] for h in state)


def one_below_another(states):
    """Parts of a batch as one state."""
    return tuple(cat(hs) for hs in zip(*states))


def check_arguments(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    if isinstance(dropout, bool) or not isinstance(dropout, Number) or not 0 <= dropout <= 1:
        raise ValueError(messages.DROPOUT_RANGE)
    if dropout > 0 and num_layers == 1:
        warn(messages.DROPOUT_OF_ONE_LAYER.format(dropout, num_layers))
    for name, value, kind in (("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
                              ("hidden_size", hidden_size, int)):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def two_states(hx):
    """The states of an LSTM.  IndexError for one, RuntimeError for three, TypeError for a tensor that holds both."""
    state = hx[0], hx[1]
    if isinstance(hx, Tensor):
        raise TypeError("lstm() received an invalid combination of arguments: hx must be tuple of Tensors, not Tensor")
    if len(hx) > 2:
        raise RuntimeError("lstm expects two hidden states")
    return state


def check_dims(mode, batched, dims):
    """PyTorch's error for states with too many or too few dimensions."""
    expected = 3 if batched else 2
    if any(n != expected for n in dims):
        names, have = "hx", f"{dims[0]}-D tensor"
        if mode == "LSTM":
            names, have = "hx and cx", f"({dims[0]}-D, {dims[1]}-D) tensors"
        kind = "batched" if batched else "unbatched"
        raise RuntimeError(f"For {kind} {expected}-D input, {names} should also be {expected}-D but got {have}")


def without_projection(options):
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    return options


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) at each step, or relu."""

    def __init__(self, *args, **options):
        without_projection(options)
        nonlinearity = args[3] if len(args) > 3 else options.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args[:3], *args[4:], **options)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: the state is (h, c); ``proj_size``: h is projected to a smaller size."""

    def __init__(self, *args, **options):
        super().__init__("LSTM", *args, **options)


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args, **options):
        super().__init__("GRU", *args, **without_projection(options))


def shows(kind, *arguments):
    """Set the signature that help() shows of a class in the place of *args."""
    kind.__init__.__signature__ = Signature([itself, *arguments])


itself, _, *arguments = signature(RNNBase.__init__).parameters.values()
shows(LSTM, *arguments)
arguments = [a for a in arguments if a.name != "proj_size"]
shows(GRU, *arguments)
shows(RNN, *arguments[:3], Argument("nonlinearity", Argument.POSITIONAL_OR_KEYWORD, default="tanh"), *arguments[3:])

# ---- cells: one step


class Cell(Layer):
    """One step of a recurrent layer: ``input`` (batch, input_size) or (input_size), and the state."""

    _shown = "{input_size}, {hidden_size}"
    _usual: dict = {"bias": True}
    mode: str

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        gates = CELLS[self.mode][1] * hidden_size
        shapes = {"weight_ih": (gates, input_size), "weight_hh": (gates, hidden_size)}
        shapes |= dict.fromkeys(("bias_ih", "bias_hh"), gates if bias else None)
        self._set_up(locals(), "input_size hidden_size bias", **shapes)

    def reset_parameters(self):
        init_uniform(self)

    def forward(self, input, hx=None):
        kind, several = self.mode.partition("_")[0] + "Cell", self.mode == "LSTM"
        if input.ndim not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if several and isinstance(hx, Tensor):
            raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
        state = None if hx is None else tuple(hx) if several else (hx,)
        for i, h in enumerate(state or ()):
            if h.dim() not in (1, 2):
                which = f"hx[{i}]" if several else "hidden"
                raise ValueError(f"{kind}: Expected {which} to be 1D or 2D, got {h.ndim}D instead")
        if several and state and len(state) != 2:
            raise RuntimeError("lstm_cell expects two hidden states")
        batched = input.ndim == 2
        if not batched:
            input, state = input.unsqueeze(0), state and tuple(h.unsqueeze(0) for h in state)
        if state is None:
            state = (zeros(len(input), self.hidden_size, dtype=input.dtype, device=input.device),) * (1 + several)
        n, size = input.shape
        if size != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {size} expected {self.input_size}")
        for i, h in enumerate(state):
            if len(h) != n:
                raise RuntimeError(f"Input batch size {n} doesn't match hidden{i} batch size {len(h)}")
            if h.shape[1] != self.hidden_size:
                raise RuntimeError(messages.HIDDEN_SIZE.format(i, h.shape[1], self.hidden_size))
        x, h = F.linear(input, self.weight_ih, self.bias_ih), F.linear(state[0], self.weight_hh, self.bias_hh)
        state = CELLS[self.mode][0](x, h, state)
        if not batched:
            state = tuple(h.squeeze(0) for h in state)
        return state if several else state[0]


class RNNCell(Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    _usual = {"bias": True, "nonlinearity": "tanh"}

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    @property
    def mode(self):
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        return f"RNN_{nonlinearity.upper()}"


class LSTMCell(Cell):
    """One step of an LSTM; the state is (h, c)."""

    mode = "LSTM"


class GRUCell(Cell):
    """One step of a GRU."""

    mode = "GRU"
