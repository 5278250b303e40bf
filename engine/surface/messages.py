"""What PyTorch says of arguments that do not fit: its sentences, whole, for ``require`` to fill in."""

DROPOUT_PROBABILITY = "dropout probability has to be between 0 and 1, but got {}"
