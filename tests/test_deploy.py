"""The files for clusters, as far as they can be looked at without one; what the prediction for many machines says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import machines
from course.commands import doctor
from engine.distributed import launch, run

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.sh")), ids=lambda path: path.name)
def test_a_script_is_one_for_bash_and_calls_the_launcher(path):
    if bash := shutil.which("bash"):
        assert not subprocess.run([bash, "-n", path], capture_output=True).stderr
    text = path.read_text(encoding="utf-8")
    options = re.findall(r"--[\w-]+", " ".join(re.findall(r"engine\.distributed\.run((?:.*\\\n)*.*)", text)))
    assert "engine.distributed.run" in text and set(options) <= run.parser()._option_string_actions.keys()
    assert re.search(r"(?m)^#(SBATCH|PBS) ", text) and "set -euo pipefail" in text


def test_the_job_for_kubernetes_has_what_the_operator_asks_for():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((DEPLOY / "mpijob.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    spec = job["spec"]
    assert spec.keys() <= {"slotsPerWorker", "mpiImplementation", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath"}
    assert spec["mpiImplementation"] in ("OpenMPI", "Intel", "MPICH")
    assert spec["mpiReplicaSpecs"].keys() == {"Launcher", "Worker"}
    for kind in spec["mpiReplicaSpecs"].values():
        (container,) = kind["template"]["spec"]["containers"]
        assert kind["replicas"] >= 1 and container.keys() >= {"name", "image"}
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    options = run.parser().parse_args(launcher["command"][3:])
    assert int(options.nnodes) == spec["mpiReplicaSpecs"]["Worker"]["replicas"]
    assert int(options.nproc_per_node) == spec["slotsPerWorker"] and options.program == "train.py"


def test_the_hostfile_names_computers_and_numbers():
    lines = [line for line in (DEPLOY / "hosts").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert lines and all(re.fullmatch(r"\w+:\d+", line) for line in lines)


@pytest.mark.parametrize(
    "text, family",
    [("MPICH Version:      5.0.2", "MPICH"), ("Open MPI v5.0.11, package", "Open MPI"),
     ("HYDRA build details:", "MPICH"),
     ("Intel(R) MPI Library 2021.14", "Intel MPI"), ("mpiexec (OpenRTE) 4.1", "Open MPI"), ("something", None)],
)  # fmt: skip
def test_an_mpi_is_known_by_its_version(text, family):
    assert launch.family_of(text) == family


def test_commands_of_each_mpi():
    mpich, openmpi = launch.MPI("MPICH", "5.0", "mpiexec"), launch.MPI("Open MPI", "5.0", "mpirun")
    assert launch.command(mpich, 8, 4, "hosts") == (["mpiexec", "-n", "8", "-f", "hosts", "-ppn", "4"], {})
    command, more = launch.command(openmpi, 2)
    assert command == ["mpirun", "-n", "2", "--bind-to", "none"] and more["PRTE_MCA_rmaps_default_mapping_policy"]
    with pytest.raises(launch.NoMPI, match="whose mpiexec is not on the PATH"):
        launch.command(launch.MPI("MPICH", "5.0", None), 2)


def test_the_launcher_takes_torchruns_arguments():
    words = ["--nnodes=2", "--nproc_per_node", "4", "--rdzv-backend=c10d", "--rdzv_endpoint=a:1", "--max-restarts=3",
             "--standalone", "--node_rank=0", "-m", "train", "--epochs", "3"]  # fmt: skip
    options = run.parser().parse_args(words)
    assert (options.nproc_per_node, options.program, options.arguments) == ("4", "train", ["--epochs", "3"])
    assert options.module and options.max_restarts == 3
    assert run.number_of("1:2", "--nnodes") == 2 and run.number_of("cpu", "--nproc-per-node") >= 1
    with pytest.raises(SystemExit, match="a number of at least 1"):
        run.number_of("none", "--nnodes")


def test_the_doctor_tries_two_ranks():
    found = doctor.machines()
    assert found.what == "Machines" and found.state in (doctor.OK, doctor.NOTE)
    pytest.importorskip("mpi4py")
    assert "two processes reach each other" in found.found


def test_a_prediction_follows_the_formulas():
    alpha, beta = machines.fitted({n: 2e-6 + 1e-9 * n for n in (4, 1000, 10**6, 10**8)})
    assert alpha == pytest.approx(2e-6) and beta == pytest.approx(1e-9)
    assert machines.all_reduce_time(1, 1e6, alpha, beta) == 0
    assert machines.all_reduce_time(2, 1e6, alpha, beta) == pytest.approx(2 * (2e-6 + 0.5e-3))
    assert machines.all_reduce_time(8, 1e6, alpha, beta, "tree") == pytest.approx(6 * (2e-6 + 1e-3))
    how = {"forward": 0.1, "backward": 0.2, "optimizer": 0.01}
    alone, slow = machines.step_time(1, 1e8, alpha, beta, **how), 2e-8
    assert alone == pytest.approx(0.31)
    hidden = machines.step_time(64, 1e6, alpha, beta, **how, buckets=8)
    assert hidden < machines.step_time(64, 1e6, alpha, beta, **how, overlap=False)
    late = machines.step_time(64, 1e8, alpha, slow, **how, buckets=8, overlap=False)
    assert late == pytest.approx(0.31 + 8 * machines.all_reduce_time(64, 1e8 / 8, alpha, slow))
    assert machines.step_time(4, 1e6, alpha, beta, **how, sharded=True) == pytest.approx(
        machines.step_time(4, 1e6, alpha, beta, **how) - 0.0075 + 3 * (alpha + beta * 0.25e6)
    )
