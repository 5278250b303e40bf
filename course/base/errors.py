"""What an exception says. The standard library alone."""


def text_of(error: BaseException) -> str:
    """What an exception says, whatever its `__str__` does."""
    try:
        return str(error)
    except Exception:
        return f"{type(error).__name__} that cannot be shown"
