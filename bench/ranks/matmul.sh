#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ScaLAPACK's pdgemm against distributed tensors, and chains of products by it and by plans, see
# matmul.c and chain.c: sh bench/ranks/matmul.sh [ROUNDS [RANKS..]]. Needs OpenMPI, and of Debian
# libscalapack-openmpi-dev and libopenblas-dev.
rounds=${1:-7}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 2 4
cd "$(dirname "$0")/../.." && mkdir -p build || exit 1
for name in matmul chain; do
  mpicc.openmpi -std=c99 -O2 -o build/ranks_$name bench/ranks/$name.c -lscalapack-openmpi \
    -lopenblas -lpthread -lm || exit 1
done
options=--oversubscribe
[ "$(id -u)" = 0 ] && options="$options --allow-run-as-root"
for name in matmul chain; do
  for n; do
    OPENBLAS_NUM_THREADS=1 mpirun.openmpi $options -n "$n" build/ranks_$name "$rounds" || exit 1
  done
done
