#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/test_mpi.c, test_dtensor.c and, under a stub of CUDA ($CUDA_STUB), test_mpi_devices.c with
# one MPI library: tests/mpi.sh BUILD openmpi|mpich RANKS..
# Compiles them, with every warning that make matrix asks for ($WARN), and runs them on so many
# ranks, which may be more than there are cores; then the command, see tests/mpi_command.sh. Exit
# status 77, with the reason, where that library is missing.
build=$1 library=$2
shift 2
cc=mpicc.$library run=mpirun.$library
command -v "$cc" > /dev/null 2>&1 && command -v "$run" > /dev/null 2>&1 || {
  echo "no $cc and $run (tools/setup installs them)"
  exit 77
}
WARN="$WARN -Wno-misleading-indentation"  # see tests/matrix.sh
# With every compiler, in both languages; the library's own builds the tests. mpi.h brings in
# libraries of C++ unless told not to.
own=$("$cc" -show) || exit 1
for one in gcc clang g++ clang++; do
  command -v $one > /dev/null 2>&1 && [ "$one" != "${own%% *}" ] || continue
  export OMPI_CC=$one MPICH_CC=$one
  case $one in
    *++) files="-x c++ -std=c++11 $(printf '%s\n' $WARN | grep -v prototypes | tr '\n' ' ')
           -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -DEINSUM_IMPLEMENTATION -DCOMPILE_MPI
           tests/compile.c" ;;
    *) files="-std=c99 $WARN -DTEST_MPI tests/test_mpi.c tests/test_dtensor.c
           tests/test_mpi_devices.c" ;;
  esac
  "$cc" -O0 -Werror -Wno-unused-function -Wno-unused-command-line-argument -fsyntax-only \
    $files || exit 1
done
unset OMPI_CC MPICH_CC
for t in mpi dtensor; do
  "$cc" -std=c99 -O0 $WARN -Werror -Wno-unused-function -DTEST_MPI -o "$build/test_${t}_$library" \
    tests/test_$t.c -lm || exit 1
done
options=
if [ "$library" = openmpi ]; then  # root and more ranks than cores are refused otherwise
  options=--oversubscribe
  [ "$(id -u)" = 0 ] && options="$options --allow-run-as-root"
fi
# With sanitizers on 4 ranks, where SANITIZE is set: a minute of compiling. MPI libraries leak.
if [ -n "$SANITIZE" ]; then
  for t in mpi dtensor; do
    name=$build/test_${t}_$library.san
    "$cc" -std=c99 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all $WARN \
      -Wno-unused-function -DTEST_MPI -o "$name" tests/test_$t.c -lm || exit 1
    ASAN_OPTIONS=detect_leaks=0 timeout -k 5 600 "$run" $options -n 4 "$name" || exit 1
  done
  echo "$library: 4 ranks with sanitizers"
fi
for n; do
  for t in mpi dtensor; do
    timeout -k 5 300 "$run" $options -n "$n" "$build/test_${t}_$library" || exit 1
  done
done
if [ -n "$CUDA_STUB" ]; then  # generated kernels are compiled by CC: hundreds of small files
  "$cc" -std=c99 -O0 $WARN -Werror -Wno-unused-function -o "$build/test_mpi_devices_$library" \
    tests/test_mpi_devices.c -lm -ldl -lpthread || exit 1
  for n in 2 4; do
    timeout -k 5 300 "$run" $options -n $n "$build/test_mpi_devices_$library" "$CUDA_STUB" ||
      exit 1
  done
fi
# Examples are linked to one library, which saves a minute.
echo '#include "einsum.h"' | "$cc" -std=c99 -O0 -w -I. -DEINSUM_IMPLEMENTATION -DEINSUM_MPI -x c \
  -c -o "$build/library_$library.o" - || exit 1
done=
for part in IMPLEMENTATION DIST_IMPLEMENTATION MPI_IMPLEMENTATION START; do
  done="$done -DEINSUM_${part}_DONE"
done
command=$build/einsum_$library
for e in 13_ranks 14_cp_ranks 15_attention_ranks 16_training_ranks; do
  "$cc" -std=c99 -O0 $WARN -Werror $done -o "$build/${e}_$library" examples/$e.c \
    "$build/library_$library.o" -lm || exit 1
  timeout -k 5 100 "$run" $options -n 4 "$build/${e}_$library" > "$build/$e.out" &&
    diff -u examples/expected/$e.txt "$build/$e.out" || {
    echo "examples/$e.c has another result"
    exit 1
  }
done
"$cc" -std=c99 -O0 -DWITH_MPI $WARN -Werror -o "$command" tools/einsum.c -lm -pthread &&
  sh tests/mpi_command.sh "$command" "$run" $options -n
