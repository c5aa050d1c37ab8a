#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Counted traffic against lower bounds: bench/count.sh [BINARY [ELEMENTS..]], tables in Markdown.
# Fast memories of ELEMENTS numbers, default 4096 and 32768 (32 and 256 KiB of f64), LRU and ideal.
# Statements, whose sizes grow with them (the convolution's do not), against what must move; then
# programs of several, against one by one and the blocks of einsum bound --groups.

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

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# fill NAME AXES: an array of f64
fill() {
  echo "$1[$2] = sin(0.37*($(echo "$2" | sed 's/=[0-9]*//g; s/,/+3*/g')))" |
    "$bin" run - -o "$1=$dir/$1.npy"
}

# of FILE NAME: what the first member of that name is
of() { tr ',{' '\n\n' < "$1" | sed -n "s/^ *\"$2\": \([0-9.e+-]*\).*/\1/p" | head -n 1; }

# count PROGRAM ELEMENTS INPUT..: leaves $dir/lru and $dir/ideal
count() {
  for how in lru ideal; do
    p=$1 n=$2
    (shift 2; for x; do set -- "$@" "$x=$dir/$x.npy"; shift; done
     "$bin" run "$dir/$p.ein" "$@" --count "$n:$how" --json > "$dir/$how")
  done
}

fill A i=514,j=514
fill X c=16,h=66,w=66
fill W o=16,c=16,r=3,s=3
for x in Q K V; do fill $x s=512,d=32; done
cat > "$dir/convolution.ein" << 'END'
input X[c=16,66,66], W[o=16,c,r=3,s=3] : f64
Y[o,h=64,w=64] = sum[c,r,s](X[c,h+r,w+s]*W[o,c,r,s])
END
cat > "$dir/stencils.ein" << 'END'
input A[i=514,j=514] : f64
B[i=512,j=514] = A[i,j] + A[i+1,j] + A[i+2,j]
C[i=512,j=512] = B[i,j] + B[i,j+1] + B[i,j+2]
D[i=510,j=512] = C[i,j]*2 - C[i+1,j] - C[i+2,j]
output D
END
cat > "$dir/attention.ein" << 'END'
input Q[s=512,d=32], K[t=512,d], V[t,e=32] : f64
T[s,t] = sum[d](Q[s,d]*K[t,d]) / sqrt(size(d))
P[s,t] = softmax[t](T[s,t])
Y[s,e] = sum[t](P[s,t]*V[t,e])
output Y
END

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
  count convolution "$s" X W
  printf '| convolution | %s | 16x66x66, 16x16x3x3 | %s | %.4g | %s | %.4g |\n' "$s" \
    $(for how in lru ideal; do of "$dir/$how" moved; of "$dir/$how" ratio; done)
done
echo
echo '| program | elements | moved, LRU | ideal | one by one | blocks of groups |'
echo '|---|---|---|---|---|---|'
for s in "$@"; do
  for p in stencils attention; do
    case $p in stencils) set -- A ;; *) set -- Q K V ;; esac
    count $p "$s" "$@"
    "$bin" bound "$dir/$p.ein" --fast-memory "$s" --groups --json > "$dir/groups"
    printf '| %s | %s | %.0f | %.0f | %.0f | %.0f |\n' "$p" "$s" "$(of "$dir/lru" moved)" \
      "$(of "$dir/ideal" moved)" "$(of "$dir/groups" alone)" "$(of "$dir/groups" io)"
  done
done
