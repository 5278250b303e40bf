"""The lessons, a folder each: everything of a lesson stands there. README.md says what."""
