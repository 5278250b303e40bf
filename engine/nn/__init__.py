"""Neural networks: modules, their parameters and how these begin; ``functional`` holds the functions."""

from ..help import public
from . import functional, init, utils
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential

# fmt: off
from .attention import (  # isort: skip
    MultiheadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer,
)
from .layers import (  # isort: skip
    BatchNorm1d, BatchNorm2d, BatchNorm3d, Bilinear, CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d,
    ConstantPad2d, ConstantPad3d, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
    Embedding, EmbeddingBag, Flatten, GroupNorm, Identity, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm,
    Linear, PReLU, RMSNorm, ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, Unflatten, ZeroPad1d, ZeroPad2d, ZeroPad3d,
)
from .module import Module
from .parameter import Buffer, Parameter
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .sync_batch_norm import SyncBatchNorm

from .table import (  # isort: skip
    CELU, ELU, GELU, GLU, SELU, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AlphaDropout, AvgPool1d, AvgPool2d, BCELoss, BCEWithLogitsLoss, CosineSimilarity, CrossEntropyLoss, Dropout,
    Dropout1d, Dropout2d, Dropout3d, Fold, Hardshrink, Hardsigmoid, Hardswish, Hardtanh,
    HuberLoss, KLDivLoss, L1Loss, LeakyReLU, LogSigmoid, LogSoftmax, MSELoss, MaxPool1d, MaxPool2d, Mish, NLLLoss,
    ReLU, ReLU6, SiLU, Sigmoid, SmoothL1Loss, Softmax, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink,
    Threshold, Unfold,
)
# fmt: on
from . import modules, parallel  # isort: skip

__dir__ = public("nn", globals())
