#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Programs whose groups are blocks, timed with two builds in turn: bench/groups.sh OLD NEW [ROUNDS
# [SECONDS [THREADS]]], where both are build/programs_bench of a version. Medians of the rounds'
# best and median times of a run in ms, and how many times as fast the new one is; f32. Workspaces
# in MB are those of the command beside each.

old=$1 new=$2 rounds=${3:-5} seconds=${4:-0.3} threads=${5:-1}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

cat > "$dir/stencils.ein" << 'END'
input A[i,j] : f32
B[i=i-2,j] = A[i,j] + A[i+1,j] + A[i+2,j]
C[i=i-2,j=j-2] = B[i,j] + B[i,j+1] + B[i,j+2]
D[i=i-4,j=j-2] = C[i,j]*2 - C[i+1,j] - C[i+2,j]
output D
END
cat > "$dir/attention.ein" << 'END'
input Q[s,d], K[t,d], V[t,e] : f32
T[s,t] = sum[d](Q[s,d]*K[t,d]) / sqrt(size(d))
P[s,t] = softmax[t](T[s,t])
Y[s,e] = sum[t](P[s,t]*V[t,e])
output Y
END
cat > "$dir/ttm.ein" << 'END'
input X[i,j,k], A[i,a], B[j,b], C[k,c] : f32
Y[a,b,c] = sum[i,j,k](X[i,j,k]*A[i,a]*B[j,b]*C[k,c])
output Y
END
cat > "$dir/ttmfree.ein" << 'END'
input X[n,j,k], B[j,b], C[k,c] : f32
T[n,b,k] = sum[j](X[n,j,k]*B[j,b])
Y[n,b,c] = sum[k](T[n,b,k]*C[k,c])
output Y
END
cat > "$dir/maps.ein" << 'END'
input A[i,j], B[i,j] : f32
C[i,j] = exp(A[i,j])*B[i,j]
R[i] = sum[j](C[i,j])
D[i,j] = C[i,j]/R[i]
E[j,i] = D[i,j] - B[i,j]
output E
END
cat > "$dir/layers.ein" << 'END'
input X[n,a], W[a,b], U[b,a] : f32
H[n,b] = relu(sum[a](X[n,a]*W[a,b]))
Y[n,a] = X[n,a] + sum[b](H[n,b]*U[b,a])
M[n] = mean[a](Y[n,a])
Z[n,a] = Y[n,a] - M[n]
output Z
END
cp "$(dirname "$0")"/../examples/models/mha.ein "$(dirname "$0")"/../examples/models/softmax.ein \
  "$dir"

median() {
  sort -g |
    awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR+1)/2] : (x[NR/2]+x[NR/2+1])/2 }'
}

# workspace BENCH NAME SIZES: of the plan that the command beside it makes
workspace() {
  "$(dirname "$1")/einsum" plan "$dir/$2.ein" --sizes "$3" -j "$threads" --json |
    sed -n 's/.*"workspace_bytes": \([0-9]*\),.*/\1/p' | awk '{ printf "%.3g", $1 / 1e6 }'
}

echo '| program | sizes | old, ms | new, ms | times as fast, best, median | old, MB | new, MB |'
echo '|---|---|--:|--:|--:|--:|--:|'
while read -r name sizes; do
  : > "$dir/old"; : > "$dir/new"
  i=0
  while [ $i -lt "$rounds" ]; do
    "$old" "$dir/$name.ein" "$sizes" "$threads" plan "$seconds" >> "$dir/old" || exit 1
    "$new" "$dir/$name.ein" "$sizes" "$threads" plan "$seconds" >> "$dir/new" || exit 1
    i=$((i + 1))
  done
  for v in old new; do
    awk '{ print $1 }' "$dir/$v" | median > "$dir/$v.median"
    awk '{ print $2 }' "$dir/$v" | median > "$dir/$v.best"
  done
  printf '| %s | %s | %.4g | %.4g | %.2f, %.2f | %s | %s |\n' "$name" "$sizes" \
    "$(cat "$dir/old.best")" "$(cat "$dir/new.best")" $(paste "$dir/old.best" \
    "$dir/new.best" "$dir/old.median" "$dir/new.median" | awk '{ print $1/$2, $3/$4 }') \
    "$(workspace "$old" "$name" "$sizes")" "$(workspace "$new" "$name" "$sizes")"
done << 'END'
stencils i=514,j=514
stencils i=2050,j=2050
stencils i=4098,j=4098
attention s=512,t=512,d=32,e=32
attention s=1024,t=1024,d=64,e=64
attention s=2048,t=2048,d=64,e=64
attention s=4096,t=4096,d=128,e=128
mha s=1024,a=512,h=8,d=64
softmax s=2048,t=2048
ttm i=200,j=200,k=200,a=20,b=20,c=20
ttm i=400,j=400,k=400,a=16,b=16,c=16
ttmfree n=2000,j=64,k=64,b=16,c=16
ttmfree n=300,j=200,k=200,b=32,c=32
maps i=2000,j=2000
maps i=20000,j=200
layers n=8192,a=256,b=1024
layers n=65536,a=64,b=128
END
