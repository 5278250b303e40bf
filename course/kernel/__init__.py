"""The course's additions to Jupyter: kernels, short tracebacks, what is saved of a notebook and of its outputs."""
