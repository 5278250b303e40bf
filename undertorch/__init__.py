"""The command that `pip install undertorch` brings; the engine is `import engine`, the course `import course`."""
