#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ScaLAPACK's pdgemm against distributed tensors, see matmul.c: sh bench/ranks/matmul.sh [ROUNDS
# [RANKS..]]. Needs OpenMPI, and of Debian libscalapack-openmpi-dev and libopenblas-dev.
rounds=${1:-7}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 2 4
cd "$(dirname "$0")/../.." && mkdir -p build || exit 1
mpicc.openmpi -std=c99 -O2 -o build/ranks_matmul bench/ranks/matmul.c -lscalapack-openmpi \
  -lopenblas -lpthread -lm || exit 1
options=--oversubscribe
[ "$(id -u)" = 0 ] && options="$options --allow-run-as-root"
for n; do
  OPENBLAS_NUM_THREADS=1 mpirun.openmpi $options -n "$n" build/ranks_matmul "$rounds" || exit 1
done
