#!/bin/sh
# What including einsum.h costs: time to compile its declarations, its core, its implementation,
# and that with the CPU and places backends (best of RUNS), and the bytes of code and data that they
# add; lines of every part. Usage: [RUNS=3] sh bench/compile_cost.sh
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
  echo "#include \"$top/einsum.h\""
  echo 'int f(void);'
  echo 'int f(void) { return (int)ein_dtype_size(EIN_F32); }'
} > "$dir/declare.c"
{ echo '#define EINSUM_IMPLEMENTATION'; cat "$dir/declare.c"; } > "$dir/implement.c"
{ echo '#define EINSUM_CORE_ONLY'; cat "$dir/implement.c"; } > "$dir/core.c"
{ echo '#define EINSUM_CPU'; echo '#define EINSUM_DIST'; cat "$dir/implement.c"; } > "$dir/all.c"
for parts in src backends/cpu backends/cpu-kernels backends/dist; do
  echo "$parts: $(cat "$top/$parts"/*.h | wc -l) lines in $(ls "$top/$parts"/*.h | wc -l) parts:"
  for p in $(grep -v '^#' "$top/$parts/LIST"); do
    printf ' %s %d' "$p" "$(wc -l < "$top/$parts/$p.h")"
  done
  echo
done
echo "einsum.h: $(wc -l < "$top/einsum.h") lines, $(wc -c < "$top/einsum.h") bytes"
for cc in gcc clang; do
  command -v "$cc" > /dev/null || continue
  for flags in -O0 -O2 '-O3 -march=native'; do
    for unit in declare core implement all; do
      best=
      for i in $(seq "${RUNS:-3}"); do
        start=$(date +%s%N)
        # shellcheck disable=SC2086
        "$cc" -std=c99 $flags -c "$dir/$unit.c" -o "$dir/$unit.o"
        t=$((($(date +%s%N) - start) / 1000000))
        if [ -z "$best" ] || [ "$t" -lt "$best" ]; then best=$t; fi
      done
      printf '%-6s %-18s %-10s %6d ms  %s bytes of text and data\n' "$cc" "$flags" "$unit" "$best" \
        "$(size "$dir/$unit.o" | awk 'NR == 2 { print $1 + $2 }')"
    done
  done
done
