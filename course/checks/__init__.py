"""The exercises' checks, a module a lesson; docs/writing_exercises.md says how to write one."""
