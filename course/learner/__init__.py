"""The learner's side: calls in a notebook, and what is theirs: copies, progress, written answers."""
