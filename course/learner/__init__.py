"""What a learner calls in a notebook, and what is theirs: copies, progress, written answers."""
