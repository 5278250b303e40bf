"""Where things are, how they are written, which environment runs them: the standard library alone."""
