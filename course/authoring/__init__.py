"""For authors: begin a lesson, make notebooks from texts, quote lines, count minutes, compare outputs."""
