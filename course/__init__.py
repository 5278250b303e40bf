"""Starts, builds and checks the course: `python -m course --help`."""
