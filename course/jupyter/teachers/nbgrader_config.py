"""What nbgrader's parts of `python -m course lab --teach` find: the course's settings, without a learner's others."""

from pathlib import Path

c = get_config()  # noqa: F821 - given by nbgrader
load_subconfig("nbgrader_config.py", path=str(Path(__file__).resolve().parents[1]))  # noqa: F821
