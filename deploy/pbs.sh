#!/usr/bin/env bash
# A job of PBS: qsub -v PROGRAM="train.py --epochs 3" deploy/pbs.sh
#PBS -N undertorch
#PBS -l select=2:ncpus=4:mpiprocs=4
#PBS -l walltime=01:00:00
#PBS -j oe
set -euo pipefail
cd "${PBS_O_WORKDIR:-.}"

# module load mpich
# source /path/to/undertorch/.venv/bin/activate

# PBS writes a line for each process into its node file; the launcher's hostfile wants each computer once.
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
sort -u "${PBS_NODEFILE:?this runs as a job of PBS}" >"$hosts"
nodes=$(wc -l <"$hosts")
processes=$(wc -l <"$PBS_NODEFILE")

# shellcheck disable=SC2086
python -m engine.distributed.run --nnodes "$nodes" --nproc-per-node "$((processes / nodes))" --hostfile "$hosts" \
  ${PROGRAM:?give it by qsub -v PROGRAM=...}
