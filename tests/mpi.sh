#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/test_mpi.c with one MPI library: tests/mpi.sh BUILD openmpi|mpich RANKS.. Compiles it, with
# every warning that make matrix asks for ($WARN), and runs it on so many ranks, which may be more
# than there are cores. Exit status 77, with the reason, where that library is missing.
build=$1 library=$2
shift 2
cc=mpicc.$library run=mpirun.$library
command -v "$cc" > /dev/null 2>&1 && command -v "$run" > /dev/null 2>&1 || {
  echo "no $cc and $run (tools/setup installs them)"
  exit 77
}
name=$build/test_mpi_$library
"$cc" -std=c99 -O1 $WARN -Werror -Wno-unused-function -o "$name" tests/test_mpi.c -lm || exit 1
options=
if [ "$library" = openmpi ]; then  # root and more ranks than cores are refused otherwise
  options=--oversubscribe
  [ "$(id -u)" = 0 ] && options="$options --allow-run-as-root"
fi
for n; do
  timeout -k 5 300 "$run" $options -n "$n" "$name" || exit 1
done
