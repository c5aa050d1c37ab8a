#!/bin/sh
# Runs one fuzz target for some seconds. Inputs that broke it are kept in BUILD/fuzz.
# Usage: tests/fuzz.sh BUILD NAME SECONDS
# The corpus grows in BUILD/corpus/NAME from one run to the next; programs start from the examples.
set -u
build=$1
name=$2
seconds=$3
target=$build/fuzz_$name
if ! grep -q '^LIBFUZZER := yes' "$build/found.mk"; then
  exec "$target" $((seconds * 500))
fi
corpus=$build/corpus/$name
mkdir -p "$corpus" "$build/fuzz"
if [ "$name" = program ]; then
  for f in examples/*.ein; do cp "$f" "$corpus/"; done
fi
if [ "$name" = npy ]; then
  for f in examples/data/*.npy; do head -c 1000 "$f" > "$corpus/$(basename "$f")"; done
fi
"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=2048 -seed=1 \
  -artifact_prefix="$build/fuzz/$name-" -print_final_stats=1 -verbosity=1 "$corpus" \
  > "$build/fuzz/$name.log" 2>&1
status=$?
if [ $status -ne 0 ]; then
  tail -n 60 "$build/fuzz/$name.log"
  echo "fuzz_$name: failed; the input is in $build/fuzz"
  exit 1
fi
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz/$name.log")
echo "fuzz_$name: $runs inputs in $seconds s"
