"""Which tensors are leaves."""
