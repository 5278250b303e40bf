"""The processes in which an attempt runs: what they give up beforehand, and the way to them and back."""
