#!/bin/sh
# What including einsum.h costs: seconds to compile its declarations and its implementation (best
# of three), and the bytes of code and data the implementation adds. Usage: sh bench/compile_cost.sh
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
echo "einsum.h: $(wc -l < "$top/einsum.h") lines, $(wc -c < "$top/einsum.h") bytes"
for cc in gcc clang; do
  command -v "$cc" > /dev/null || continue
  for flags in -O0 -O2 '-O3 -march=native'; do
    for unit in declare implement; do
      best=
      for i in 1 2 3; do
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
