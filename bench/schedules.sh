#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Six algorithms for a product of n x n matrices as schedules: elements that a place receives, on
# average; those that the papers say it uses, of which it has some itself; what the busiest of them
# receives and sends at least, whatever is done; time on a clock. Writes time lines of Cannon and
# SUMMA, in four steps on 16 places of 512 x 512, to bench/cannon.svg and bench/summa.svg.
# bench/schedules.sh [build/einsum [n]]

einsum=${1:-build/einsum} n=${2:-4096}
here=$(dirname "$0")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf 'input A[m,k], B[k,n]\nC[i,j] = A[i,k] * B[k,j]\n' > "$dir/mm.ein"

# NAME PLACES FORMULA, in n and p
line() {
  sched=$here/../examples/schedules/$1.sched
  "$einsum" run "$dir/mm.ein" --sizes "m=$n,k=$n,n=$n" --schedule "$sched" -p "$2" --json \
    --fabric sim > "$dir/json" || exit 1
  least=$("$einsum" bound 'ij,jk->ik' --sizes "i=$n,j=$n,k=$n" -p "$2" --grids --json \
    --fast-memory "$((3 * n * n))" | sed 's/.*"per_place": \([0-9.]*\).*/\1/')
  awk -v name="$1" -v p="$2" -v n="$n" -v least="$least" -v formula="$3" '
    { match($0, /"tasks": [0-9]+, "messages": [0-9]+, "bytes": [0-9]+/)
      split(substr($0, RSTART, RLENGTH), x, /[:,] */)
      sub(/.*"planned_seconds": /, ""); seconds = $0 + 0
      printf "| %s | %d | %d | %d | %d | %d | %.1f |\n", name, p, x[4], x[6] / 8 / p, formula,
        least, 1000 * seconds }' "$dir/json"
}

echo '| algorithm | places | messages | received | used | at least | predicted, ms |'
echo '|---|--:|--:|--:|--:|--:|--:|'
line cannon 16 "$(awk -v n="$n" 'BEGIN { printf "%d", 2 * n * n / 4 }')"
line pumma 16 "$(awk -v n="$n" 'BEGIN { printf "%d", 2 * n * n / 4 }')"
line summa 16 "$(awk -v n="$n" 'BEGIN { printf "%d", 2 * n * n / 4 }')"
line johnson 64 "$(awk -v n="$n" 'BEGIN { printf "%d", 3 * n * n / 16 }')"
line solomonik 32 "$(awk -v n="$n" 'BEGIN { printf "%d", 2 * n * n / 8 + n * n / 32 }')"
line cosma 16 "$(awk -v n="$n" 'BEGIN { printf "%d", n * n / 4 + n * n / 8 + n * n / 16 }')"

sed 's/split(k, ko, ki, 4)/split(k, ko, ki, 128)/' "$here/../examples/schedules/summa.sched" \
  > "$dir/summa.sched"
cp "$here/../examples/schedules/cannon.sched" "$dir"
for name in cannon summa; do
  "$einsum" run "$dir/mm.ein" --sizes m=512,k=512,n=512 --schedule "$dir/$name.sched" -p 16 \
    --fabric sim --svg "$here/$name.svg" > /dev/null || exit 1
done
