#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What ranks move where inputs are dealt out, counted in runs, beside the best cut into blocks and
# what any cut must move: sh bench/ranks/dealt.sh EINSUM [RANKS..], where EINSUM is built by make
# MPI=yes. Words: elements a place, of the best of all cuts (`best`) and at least (`least`), see
# bench/grids.sh; counted: bytes of the run by places and elements (`run`), of the place that
# receives, and that sends most, and what the plan said in all (`planned`), a place. Chains are run
# as one statement, and in pairs, which have no single cut to be compared with.
einsum=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- 4 8 16
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
launch="mpirun"
mpirun --version | grep -q 'Open MPI' && {
  launch="$launch --oversubscribe"
  [ "$(id -u)" = 0 ] && launch="$launch --allow-run-as-root"
}
figure() { tr ',{}' '\n\n\n' < "$1" | sed -n "s/^ *\"$2\": *//p" | head -n 1; }
commas() { printf '%s' "$1" | sed 's/./&,/g; s/,$//'; }

# row NAME OPERANDS RESULT SIZES RANKS
row() {
  sum=$(printf '%s' "$2" | tr -d ,"$3" | fold -w 1 | sort -u | tr -d '\n')
  inputs= product= files= number=0
  for labels in $(echo "$2" | tr , ' '); do
    index=$(commas "$labels")
    dims=
    for i in $(echo "$index" | tr , ' '); do
      dims="$dims${dims:+,}$i=$(echo "$4" | tr , '\n' | sed -n "s/^$i=//p")"
    done
    printf 'X[%s] = sin(1.7*%s)\noutput X : f64\n' "$dims" "$(echo "$index" | sed 's/,/ + /g')" \
      > "$work/r.ein"
    "$einsum" run "$work/r.ein" -o "X=$work/$number.npy" > "$work/log" 2>&1 ||
      { cat "$work/log"; exit 1; }
    inputs="$inputs${inputs:+, }A$number[$index]"
    product="$product${product:+*}A$number[$index]"
    files="$files A$number=$work/$number.npy"
    number=$((number + 1))
  done
  folded=$product
  [ -n "$sum" ] && folded="sum[$(commas "$sum")]($product)"
  left=Y
  [ -n "$3" ] && left="Y[$(commas "$3")]"
  printf 'input %s : f64\n%s = %s\noutput Y\n' "$inputs" "$left" "$folded" > "$work/p.ein"
  case $1 in
    2MM-pairs) printf 'input %s : f64\n%s\noutput Y\n' "$inputs" 'T[i,k] = A0[i,j]*A1[j,k]
Y[i,l] = T[i,k]*A2[k,l]' > "$work/p.ein" ;;
    3MM-pairs) printf 'input %s : f64\n%s\noutput Y\n' "$inputs" 'T[i,k] = A0[i,j]*A1[j,k]
U[k,m] = A2[k,l]*A3[l,m]
Y[i,m] = T[i,k]*U[k,m]' > "$work/p.ein" ;;
  esac
  plan="-p $5 --cost bytes --inputs dealt --json"
  "$einsum" plan "$work/p.ein" --sizes "$4" $plan > "$work/plan" || exit 1
  $launch -n "$5" "$einsum" run "$work/p.ein" $files $plan -j 1 --fabric mpi < /dev/null \
    > "$work/run" || exit 1
  best=- least=-
  if [ "$(grep -o '"out"' "$work/plan" | wc -l)" = 1 ]; then
    "$einsum" bound "$2->$3" --sizes "$4" -p "$5" --grids --json > "$work/grids" || exit 1
    best=$(sed 's/.*"best": *//' "$work/grids" | tr ',{}' '\n\n\n' | sed -n 's/^ *"words": *//p')
    least=$(figure "$work/grids" per_place)
  fi
  places() { sed 's/.*"places": \[//; s/\].*//' "$work/run" | tr ',{}' '\n\n\n' |
    sed -n "s/^ *\"$1\": *//p" | sort -g | tail -n 1; }
  awk -v name="$1" -v p="$5" -v run="$(figure "$work/run" bytes)" -v best="$best" \
    -v least="$least" -v planned="$(figure "$work/plan" total)" \
    -v got="$(places received_bytes)" -v sent="$(places sent_bytes)" 'BEGIN {
    printf("| %s | %d | %s | %s | %.6g | %.6g | %.6g | %.6g | %s |\n", name, p,
           least == "-" ? "-" : sprintf("%.6g", least), best == "-" ? "-" : sprintf("%.6g", best),
           planned / 8 / p, run / 8 / p, got / 8, sent / 8,
           best == "-" ? "-" : sprintf("%.3f", run / 8 / p / best)) }'
}

echo "| statement | ranks | least | best | planned | run | received most | sent most | run / best |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
while read -r name operands result sizes; do
  [ "$result" = none ] && result=
  for n; do row "$name" "$operands" "$result" "$sizes" "$n"; done
done << 'END'
1MM ij,jk ik i=256,j=256,k=256
2MM ij,jk,kl il i=256,j=256,k=256,l=256
3MM ij,jk,kl,lm im i=256,j=256,k=256,l=256,m=256
2MM-pairs ij,jk,kl il i=256,j=256,k=256,l=256
3MM-pairs ij,jk,kl,lm im i=256,j=256,k=256,l=256,m=256
MTTKRP-03-M0 ijk,ja,ka ia i=64,j=64,k=64,a=24
MTTKRP-03-M1 ijk,ia,ka ja i=64,j=64,k=64,a=24
MTTKRP-03-M2 ijk,ia,ja ka i=64,j=64,k=64,a=24
MTTKRP-05-M0 ijklm,ja,ka,la,ma ia i=16,j=16,k=16,l=16,m=16,a=24
MTTKRP-05-M2 ijklm,ia,ja,la,ma ka i=16,j=16,k=16,l=16,m=16,a=24
MTTKRP-05-M4 ijklm,ia,ja,ka,la ma i=16,j=16,k=16,l=16,m=16,a=24
TTMc-03 ijk,jb,kc ibc i=64,j=64,k=64,b=24,c=24
TTMc-05-M0 ijklm,jb,kc,ld,me ibcde i=16,j=16,k=16,l=16,m=16,b=6,c=6,d=6,e=6
TTM ijk,kc ijc i=64,j=64,k=64,c=24
TTV ijk,k ij i=64,j=64,k=64
inner-product ijk,ijk none i=64,j=64,k=64
END
