"""Shapes that meet, drawn."""
