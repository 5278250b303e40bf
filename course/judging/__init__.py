"""An attempt goes in, a verdict comes out: what an exercise is, what its steps gave, words for the difference."""
