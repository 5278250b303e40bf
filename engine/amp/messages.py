"""The messages of autocast and the scaler, in PyTorch's words, each on one line."""

# fmt: off
BCE_UNSAFE = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models use a sigmoid layer right before the binary cross entropy layer.\nIn this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
DTYPE_NOT_SUPPORTED = "In {0} autocast, but the target dtype is not supported. Disabling autocast.\n{0} Autocast only supports dtypes of {1} currently."
NEW_SCALE_TYPE = "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
NOT_CALLABLE = "autocast()(func) requires a callable, but got {}. Did you mean to use autocast as a context manager? For example:\n    with torch.autocast(device_type=...):\n        output = model(input)"
PICKLED_TOO_EARLY = "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
SCALE_IS_NONE = "Attempted {} but {} is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
STATE_IS_EMPTY = "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
