#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Weak scaling over MPI ranks, one thread each: the statements of Deinsum's list (Ziogas et al.
# 2022, section VI), whose sizes grow with the ranks by its rules from sizes that a small machine
# can hold: sh bench/ranks/weak.sh EINSUM [ROUNDS [RANKS..]], where EINSUM is built by make MPI=yes.
# Seconds are those of a run without planning and files; medians. Results are the bits that one
# process with so many places has. `moved`: bytes of the run, where inputs are dealt out; `planned`:
# as the model has them.
einsum=$(realpath "$1") rounds=${2:-5}
shift $(($# > 2 ? 2 : $#))
[ $# -gt 0 ] || set -- 1 2 4
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
commas() { printf '%s' "$1" | sed 's/./&,/g; s/,$//'; }

# row NAME OPERANDS RESULT BASE ROOT RANK DTYPE RANKS: extents BASE * RANKS^(1/ROOT); those of the
# indices in RANK stay 24
row() {
  name=$1 operands=$2 result=$3 n=$8 type=$7
  size=$(awk -v b="$4" -v r="$5" -v n="$n" 'BEGIN { printf "%d", b * n ^ (1 / r) + 0.5 }')
  sum=$(printf '%s' "$operands" | tr -d ,"$result" | fold -w 1 | sort -u | tr -d '\n')
  inputs= product= files= number=0 all=
  for labels in $(echo "$operands" | tr , ' '); do
    index=$(commas "$labels")
    sizes=
    for i in $(echo "$index" | tr , ' '); do
      extent=$size
      case $6 in *$i*) extent=24 ;; esac
      sizes="$sizes${sizes:+,}$i=$extent"
    done
    all="$all${all:+,}$sizes"
    value="sin(1.7*$(echo "$index" | sed 's/,/ + 0.3*/g') + $number)"
    [ "$type" = c128 ] && value="complex($value, $value*$value)"
    printf 'X[%s] = %s\noutput X : %s\n' "$sizes" "$value" "$type" > "$work/r.ein"
    "$einsum" run "$work/r.ein" -o "X=$work/$number.npy" > "$work/log" 2>&1 ||
      { cat "$work/log"; exit 1; }
    inputs="$inputs${inputs:+, }A$number[$index]"
    product="$product${product:+*}A$number[$index]"
    files="$files A$number=$work/$number.npy"
    number=$((number + 1))
  done
  printf 'input %s : %s\nY[%s] = sum[%s](%s)\noutput Y\n' "$inputs" "$type" \
    "$(commas "$result")" "$(commas "$sum")" "$product" > "$work/p.ein"
  plan="-p $n -j 1 --cost bytes --inputs dealt --json"
  "$einsum" plan "$work/p.ein" --sizes "$(echo "$all" | tr , '\n' | sort -u | tr '\n' , |
    sed 's/,$//')" $plan > "$work/plan" || exit 1
  "$einsum" run "$work/p.ein" $files $plan --fabric copying -o "Y=$work/one.npy" > "$work/j" ||
    exit 1
  : > "$work/t"
  i=0
  while [ $i -lt "$rounds" ]; do
    $launch -n "$n" "$einsum" run "$work/p.ein" $files $plan --fabric mpi -o "Y=$work/Y.npy" \
      < /dev/null > "$work/j" || exit 1
    figure "$work/j" seconds >> "$work/t"
    i=$((i + 1))
  done
  cmp "$work/one.npy" "$work/Y.npy" || exit 1
  printf '| %s | %s | %d | %d | %s | %s | %s |\n' "$name" "$type" "$n" "$size" \
    "$(awk -v t="$(median "$work/t")" 'BEGIN { printf "%.1f", 1e3 * t }')" \
    "$(figure "$work/j" bytes)" "$(figure "$work/plan" total)"
}

echo "| statement | dtype | ranks | extent | ms | moved | planned |"
echo "|---|---|--:|--:|--:|--:|--:|"
while read -r name operands result base root rank; do
  for type in f64 c128; do
    for n; do row "$name" "$operands" "$result" "$base" "$root" "$rank" $type "$n"; done
  done
done << 'END'
1MM ij,jk ik 512 3 -
2MM ij,jk,kl il 512 3 -
3MM ij,jk,kl,lm im 512 3 -
MTTKRP-03-M0 ijk,ja,ka ia 128 4 a
MTTKRP-03-M1 ijk,ia,ka ja 128 4 a
MTTKRP-03-M2 ijk,ia,ja ka 128 4 a
MTTKRP-05-M0 ijklm,ja,ka,la,ma ia 16 6 a
MTTKRP-05-M2 ijklm,ia,ja,la,ma ka 16 6 a
MTTKRP-05-M4 ijklm,ia,ja,ka,la ma 16 6 a
TTMc-05-M0 ijklm,jb,kc,ld,me ibcde 12 6 bcde
END
