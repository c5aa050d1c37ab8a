#!/bin/sh
# SPDX-License-Identifier: MIT
#
# DISTAL's kernels (Yadav et al. 2022) over MPI ranks, one thread each: six algorithms for a product
# of matrices, and TTV, TTM, inner product and MTTKRP, as schedules of examples/schedules:
# sh bench/ranks/distal.sh EINSUM [ROUNDS], where EINSUM is built by make MPI=yes. Seconds are those
# of a run without planning and files, medians; results are the bits of one process with so many
# places, and so are bytes. Where every rank has the vector of TTV, the matrix of TTM, nothing must
# move (`ttv, c at all`). `planned`: bytes of the plan by bytes for as many ranks where inputs are
# dealt out and nothing says how statements are cut.
einsum=$(realpath "$1") rounds=${2:-3}
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
launch="mpirun"
mpirun --version | grep -q 'Open MPI' && {
  launch="$launch --oversubscribe"
  [ "$(id -u)" = 0 ] && launch="$launch --allow-run-as-root"
}
figure() { tr ',{}' '\n\n\n' < "$1" | sed -n "s/^ *\"$2\": *//p" | head -n 1; }
median() { sort -g "$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

random() {  # NAME INDICES: an array of sines
  printf 'X[%s] = sin(1.7*%s)\noutput X : f64\n' "$2" \
    "$(echo "$2" | sed 's/=[0-9]*//g; s/,/ + 0.3*/g')" > "$work/r.ein"
  "$einsum" run "$work/r.ein" -o "X=$work/$1.npy" > "$work/log" || { cat "$work/log"; exit 1; }
}
random a i=768,k=768
random t i=192,j=192,k=192
random u i=192,j=192,k=192
random v k=192
random m k=192,l=24

# row PROGRAM SCHEDULE RANKS RESULT INPUTS..
row() {
  program=$1 name=$2 n=$3 result=$4
  shift 4
  sched=$work/$name.sched
  [ -f "$sched" ] || sched=examples/schedules/$name.sched
  "$einsum" run "$program" "$@" -p "$n" -j 1 --fabric copying --schedule "$sched" --json \
    -o "$result=$work/one.npy" > "$work/one" || exit 1
  "$einsum" run "$program" "$@" -p "$n" -j 1 --fabric copying --cost bytes --inputs dealt --json \
    > "$work/dealt" || exit 1
  : > "$work/s"
  i=0
  while [ $i -lt "$rounds" ]; do
    $launch -n "$n" "$einsum" run "$program" "$@" -j 1 --fabric mpi --schedule "$sched" --json \
      -o "$result=$work/Y.npy" < /dev/null > "$work/j" || exit 1
    figure "$work/j" seconds >> "$work/s"
    i=$((i + 1))
  done
  cmp "$work/one.npy" "$work/Y.npy" || exit 1
  bytes=$(figure "$work/j" bytes)
  [ "$bytes" = "$(figure "$work/one" bytes)" ] || { echo "$name: other bytes"; exit 1; }
  case $name in *all) [ "$bytes" = 0 ] || { echo "$name moves $bytes bytes"; exit 1; } ;; esac
  printf '| %s | %d | %s | %s | %s | %s |\n' "$name" "$n" "$(figure "$work/j" messages)" "$bytes" \
    "$(figure "$work/dealt" bytes)" \
    "$(awk -v t="$(median "$work/s")" 'BEGIN { printf "%.1f", 1e3 * t }')"
}

echo "| schedule | ranks | messages | bytes | planned | ms |"
echo "|---|--:|--:|--:|--:|--:|"
for name in cannon pumma summa cosma; do
  row examples/models/mm.ein $name 4 C "A=$work/a.npy" "B=$work/a.npy"
done
for name in cannon pumma summa johnson solomonik cosma; do
  row examples/models/mm.ein $name 8 C "A=$work/a.npy" "B=$work/a.npy"
done
sed 's/^place c x->x/place c x->*/' examples/schedules/ttv.sched > "$work/ttv, c at all.sched"
sed 's/^place C xy->x/place C xy->*/' examples/schedules/ttm.sched > "$work/ttm, C at all.sched"
for n in 2 4 8; do
  row examples/ttv.ein ttv $n A "B=$work/t.npy" "c=$work/v.npy"
  row examples/ttm.ein ttm $n A "B=$work/t.npy" "C=$work/m.npy"
  row examples/ttv.ein 'ttv, c at all' $n A "B=$work/t.npy" "c=$work/v.npy"
  row examples/ttm.ein 'ttm, C at all' $n A "B=$work/t.npy" "C=$work/m.npy"
  row examples/inner.ein inner $n a "B=$work/t.npy" "C=$work/u.npy"
  row examples/mttkrp.ein mttkrp $n A "B=$work/t.npy" "C=$work/m.npy" "D=$work/m.npy"
done
