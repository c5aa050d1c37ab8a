#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Counted traffic against lower bounds: bench/count.sh [BINARY [ELEMENTS..]], a table in Markdown.
# Fast memories of ELEMENTS numbers, default 4096 and 32768 (32 and 256 KiB of f64), LRU and ideal;
# sizes grow with them.

bin=${1:-build/einsum}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 4096 32768

# row NAME ELEMENTS EXPRESSION SIZES
row() {
  printf '| %s | %s | %s ' "$1" "$2" "$4"
  for how in lru ideal; do
    "$bin" bench "$3" --sizes "$4" --dtype f64 --path none --count "$2:$how" |
      sed -n '1s/^\([0-9.e+]*\) elements moved, \([0-9.e+-]*\) times .*(\(.*\))$/| \1 | \2 /p' |
      tr -d '\n'
  done
  echo '|'
}

echo '| statement | elements | sizes | moved, LRU | / bound | moved, ideal | / bound |'
echo '|---|---|---|---|---|---|---|'
for s in "$@"; do
  r=1
  while [ $(((r + 1) * (r + 1))) -le "$s" ]; do r=$((r + 1)); done
  n=$((5 * r)) m=$((r * 2))
  row matmul "$s" 'ij,jk->ik' "i=$n,j=$n,k=$n"
  row MTTKRP-3 "$s" 'ijk,ja,ka->ia' "i=$m,j=$m,k=$m,a=24"
  row MTTKRP-5 "$s" 'ijklm,ja,ka,la,ma->ia' 'i=20,j=20,k=20,l=20,m=20,a=8'
  row TTMc "$s" 'ijk,jb,kc->ibc' "i=$r,j=$m,k=$m,b=16,c=16"
done
