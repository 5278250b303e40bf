#!/usr/bin/env bash
# A job of Slurm: sbatch deploy/slurm.sh train.py --epochs 3
#SBATCH --job-name=undertorch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.out
#SBATCH --signal=B:TERM@60
set -euo pipefail

# The environment with the engine, and an MPI: the cluster's own, if its module is loaded before mpi4py is installed
# (pip install --no-binary=mpi4py mpi4py), else the one from the wheel, which speaks PMI-2 with Slurm.
# module load mpich
# source /path/to/undertorch/.venv/bin/activate

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export MASTER_ADDR=${SLURMD_NODENAME:-localhost}
export PYTHONUNBUFFERED=1

# srun starts the processes; each of them finds its rank in what Slurm sets. `srun --mpi=list` says what there is.
exec srun --mpi="${SLURM_MPI:-pmi2}" --kill-on-bad-exit=1 \
  python -m engine.distributed.run "$@"
