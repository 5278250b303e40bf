"""Neural networks: modules, their parameters and how these begin; ``functional`` holds the functions."""

from . import functional as functional
from . import init as init
from . import utils as utils
from .attention import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential

# fmt: off
from .layers import (  # isort: skip
    BatchNorm1d, BatchNorm2d, BatchNorm3d, Bilinear, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d,
    ConvTranspose3d, Embedding, Flatten, GroupNorm, Identity, LayerNorm, Linear, Unflatten,
)
from .module import Module
from .parameter import Buffer, Parameter
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

from .table import (  # isort: skip
    ELU, GELU, SELU, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AvgPool1d, AvgPool2d,
    BCELoss, BCEWithLogitsLoss, CosineSimilarity, CrossEntropyLoss, Dropout, Hardtanh, HuberLoss, KLDivLoss, L1Loss,
    LeakyReLU, LogSigmoid, LogSoftmax, MaxPool1d, MaxPool2d, MSELoss, NLLLoss, ReLU, ReLU6, Sigmoid, SiLU,
    SmoothL1Loss, Softmax, Softmin, Softplus, Softsign, Tanh, Tanhshrink,
)
# fmt: on
