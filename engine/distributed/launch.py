"""Which MPI there is, and the command that starts so many processes with it.

mpi4py says which library it has loaded: one from a wheel, beside this Python, or a system's or cluster's own.  Its
``mpiexec`` is the one of the same family.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ASKS = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
FAMILIES = {"Open MPI": r"Open ?MPI|OpenRTE|PRRTE|prterun", "Intel MPI": r"Intel", "MPICH": r"MPICH|HYDRA|MVAPICH"}
INSTALL = "pip install 'undertorch[machines]' (mpi4py, and an MPI from a wheel)"


class NoMPI(Exception):
    """The error where several processes cannot be started: it says why, and what to do."""


@dataclass(frozen=True)
class MPI:
    """An MPI: its family, its version, and its launcher (None: none fits, start by srun)."""

    family: str
    version: str
    mpiexec: str | None


def family_of(text):
    """The family that a version text is of; None for another program's."""
    return next((name for name, pattern in FAMILIES.items() if re.search(pattern, text)), None)


def said_by(*command):
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout + done.stderr


@cache
def found():
    """The MPI that mpi4py uses.  NoMPI where there is none."""
    text = said_by(sys.executable, "-c", ASKS)
    if text is None:
        raise NoMPI(f"mpi4py or its MPI is missing: {INSTALL}")
    family = family_of(text) or "MPI"
    version = re.search(r"\d+\.[\w.]+", text)
    return MPI(family, version[0].rstrip(".") if version else "", mpiexec_of(family))


def mpiexec_of(family):
    """The launcher of a family: that of UNDERTORCH_MPIEXEC, beside this Python, or on the PATH."""
    if given := os.environ.get("UNDERTORCH_MPIEXEC"):
        return given
    folders = [Path(sys.executable).parent, Path(sys.prefix) / "bin", Path(sys.prefix) / "Library" / "bin"]
    programs = [folder / name for folder in folders for name in ("mpiexec", "mpirun", "mpiexec.exe")]
    names = [str(program) for program in programs if program.is_file()]
    names += [shutil.which(name) for name in ("mpiexec", "mpirun")]
    for name in dict.fromkeys(filter(None, names)):
        if family_of(said_by(name, "--version") or "") == family:
            return name
    return None


def command(mpi, processes, per_node=None, hostfile=None):
    """(the beginning of a command that starts so many processes, what to add to the environment)."""
    if mpi.mpiexec is None:
        srun = shutil.which("srun") if "SLURM_JOB_ID" in os.environ else None
        if srun is None:
            raise NoMPI(f"mpi4py uses {mpi.family} {mpi.version}, whose mpiexec is not on the PATH")
        return [srun, f"--ntasks={processes}"], {}
    start, more = [mpi.mpiexec, "-n", str(processes)], {}
    if mpi.family == "Open MPI":
        start += ["--bind-to", "none"]
        start += ["--hostfile", hostfile] if hostfile else []
        start += ["--map-by", f"ppr:{per_node}:node:oversubscribe"] if per_node and hostfile else []
        more["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # as in a container; else it refuses
            more |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    else:
        start += ["-f", hostfile] if hostfile else []
        start += ["-ppn", str(per_node)] if per_node and hostfile else []
    return start, more
