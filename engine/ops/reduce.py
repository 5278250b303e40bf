"""..."""
METHODS = IN_PLACE = FUNCTIONS = ""
