"""The answers of `python -m course`, where no other room has them."""
