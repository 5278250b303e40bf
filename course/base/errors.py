"""The text of an exception. The standard library alone."""


def text_of(error: BaseException) -> str:
    """Return an exception's text, whatever its `__str__` does."""
    try:
        return str(error)
    except Exception:
        return f"{type(error).__name__} that cannot be shown"
