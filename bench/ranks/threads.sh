#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two ranks of MPI, one thread each, against two threads of one process on the same programs and
# places, in turn: sh bench/ranks/threads.sh EINSUM [ROUNDS], where EINSUM is built by make MPI=yes.
# Seconds are those of a run without planning and files; medians.
einsum=$(realpath "$1") rounds=${2:-7}
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
launch="mpirun -n 2"
mpirun --version | grep -q 'Open MPI' && {
  launch="$launch --oversubscribe"
  [ "$(id -u)" = 0 ] && launch="$launch --allow-run-as-root"
}
seconds() { tr ',{}' '\n\n\n' | sed -n 's/^ *"seconds": *//p' | head -n 1; }
median() { sort -g "$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# row NAME PROGRAM INPUTS..: of random data, made by the command itself
row() {
  name=$1 program=$2
  shift 2
  rm -f "$work"/t "$work"/m
  i=0
  while [ $i -lt "$rounds" ]; do
    "$einsum" run "$program" "$@" -p 2 -j 2 --fabric threads --cost bytes --json > "$work/j" ||
      exit 1
    seconds < "$work/j" >> "$work/t"
    $launch "$einsum" run "$program" "$@" -p 2 -j 1 --fabric mpi --cost bytes --json \
      > "$work/j" || exit 1
    seconds < "$work/j" >> "$work/m"
    i=$((i + 1))
  done
  awk -v n="$name" -v t="$(median "$work/t")" -v m="$(median "$work/m")" \
    'BEGIN { printf "| %s | %.1f | %.1f | %.2f |\n", n, 1e3 * t, 1e3 * m, m / t }'
}

random() {  # NAME EXPR SHAPE: an array of sines, which needs no reader of text
  printf 'X[%s] = sin(%s)\noutput X\n' "$2" "$3" > "$work/r.ein"
  "$einsum" run "$work/r.ein" -o "X=$work/$1.npy" > "$work/log" || { cat "$work/log"; exit 1; }
}
random a i=1024,j=1024 '1.7*i + 0.3*j'
random q s=1024,d=64 '0.7*s + 1.3*d'
cat > "$work/mm.ein" << 'END'
input A[i,k], B[k,j] : f64
C[i,j] = A[i,k]*B[k,j]
END
cat > "$work/attention.ein" << 'END'
input Q[s,d], K[t,d], V[t,e] : f64
T[s,t] = sum[d](Q[s,d]*K[t,d])/sqrt(size(d))
P[s,t] = softmax[t](T[s,t])
Y[s,e] = sum[t](P[s,t]*V[t,e])
output Y
END
cat > "$work/rows.ein" << 'END'
input A[i,j] : f64
B[i,j] = exp(A[i,j]*0.5)
S[i] = sum[j](B[i,j]*A[i,j])
M[j] = max[i](B[i,j])
output S, M
END
echo "| program | two threads, ms | two ranks, ms | ratio |"
echo "|---|---|---|---|"
row "product, 1024" "$work/mm.ein" "A=$work/a.npy" "B=$work/a.npy"
row "attention, 1024 x 64" "$work/attention.ein" "Q=$work/q.npy" "K=$work/q.npy" "V=$work/q.npy"
row "element-wise and folds, 1024 x 1024" "$work/rows.ein" "A=$work/a.npy"
