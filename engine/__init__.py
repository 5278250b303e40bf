"""A compact autograd engine on NumPy, under PyTorch's names and semantics."""

import warnings

from . import methods

# PyTorch gives inf and nan without a word; so does the engine, in every thread (NumPy's errstate is a thread's own)
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"engine\.")

for family in methods.families:
    globals().update({name: vars(family)[name] for name in family.FUNCTIONS.split()})
