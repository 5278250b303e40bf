"""Tests over a table: one item for all of its rows, which tries each and tells those that fail together."""

import contextlib
import functools
import inspect
import traceback

import pytest

MOST = 10  # failing rows that are told: whatever breaks more than that is one fault


def over(names, rows):
    """Run a test on each row, as ``pytest.mark.parametrize`` would, but in one item: thousands of them take minutes."""
    names, rows = [name.strip() for name in names.split(",")], list(rows)
    assert rows, "a table without rows proves nothing"

    def decorate(test):
        @functools.wraps(test)
        def run(**fixtures):
            told = []
            for number, row in enumerate(rows):
                values = dict(zip(names, row if len(names) > 1 else [row], strict=True))
                try:
                    with own(fixtures, number) as given:
                        test(**given, **values)
                except pytest.skip.Exception:
                    if not number:
                        raise  # PyTorch is not there, for one row as for another
                    pytest.fail(f"a row that is skipped hides those after it: {shown(values)}", pytrace=False)
                except Exception as error:
                    told.append(f"{shown(values)}\n{where(error)}")
                    if len(told) == MOST:
                        break
            if told:
                pytest.fail("\n\n".join([f"{len(told)} of {len(rows)} rows, or more, fail:", *told]), pytrace=False)

        signature = inspect.signature(test)
        left = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        run.__signature__ = signature.replace(parameters=left)
        run.many = len(rows)  # not "rows": `-k row` would choose it
        return run

    return decorate


@contextlib.contextmanager
def own(fixtures, number):
    """The fixtures as a row would have them alone: a folder of its own, nothing patched, and nothing said."""
    given = dict(fixtures)
    with contextlib.ExitStack() as stack:
        if "tmp_path" in given:
            given["tmp_path"] = fixtures["tmp_path"] / str(number)
            given["tmp_path"].mkdir()
        if "monkeypatch" in given:
            given["monkeypatch"] = stack.enter_context(fixtures["monkeypatch"].context())
        if "capsys" in given:
            given["capsys"].readouterr()
        yield given


def shown(values):
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def where(error):
    """The traceback of an error, from the test on."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next)).rstrip()
