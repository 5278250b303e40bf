"""The operations: one file a family, one row or a few lines an operation."""
