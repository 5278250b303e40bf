"""Files, places and environments: the standard library alone."""
