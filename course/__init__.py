"""Starts, builds and checks the course (`python -m course --help`), and checks a learner's exercises in a notebook."""

__all__ = ["check", "hint", "predict", "progress", "solution"]


# On demand, since `python -m course` starts without what the exercises need; unannotated, to be read by any Python.
def __getattr__(name):  # type: ignore[no-untyped-def]
    if name not in __all__:
        raise AttributeError("module 'course' has no attribute " + repr(name))
    from course.figures.predict.figure import predict
    from course.learner import calls

    return predict if name == "predict" else getattr(calls, name)
