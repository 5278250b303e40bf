"""What the course adds to Jupyter: its kernels, short tracebacks, what is saved of a notebook and of its outputs."""
