"""Checkpointing: trading computation for memory."""
