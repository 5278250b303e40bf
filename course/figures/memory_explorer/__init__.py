"""What an index does to memory."""
