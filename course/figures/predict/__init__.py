"""Questions asked before a cell runs."""
