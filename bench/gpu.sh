#!/bin/sh
# Tests and timings of einsum_cuda.h on a machine with a GPU, in one run of under 8 minutes: what
# the driver says, the oracle's random statements through the device's kernels, timings by its
# events (bench/gpu.c), and those of PyTorch, JAX and CuPy where they are there. All of it goes to
# BUILD/gpu.txt. Where there is no GPU it says why, and writes that. With the stub of CUDA as STUB
# all of it is tried with small sizes, into BUILD/gpu_dry.txt; then what fails is the status.
# Usage: bench/gpu.sh BUILD [STUB]    (make bench-gpu; BUILD/gpu is built)
set -u
build=$1 stub=${2:-} cc=${CC:-cc}
out=$build/gpu.txt
attention=32,2048,2048,128 layer=2048,4096,32,128,11008
peers=torch,jax,cupy least= statements=300 few=20 each=0.12 total=180
library=NULL
if [ -n "$stub" ]; then
  out=$build/gpu_dry.txt
  attention=2,4,4,4 layer=4,4,2,2,4
  peers=numpy least='--most 4' statements=12 few=2 each=0 total=15
  library="\"$stub\""
fi
failed=0
note() { [ "$1" = 0 ] || { echo "status $1"; failed=$1; }; }
timings() { "$build/gpu" ${stub:+-l "$stub" -m 4} "$@"; }
{
  date -u '+%Y-%m-%d %H:%M UTC'
  timings
} > "$out" 2>&1
if grep -q 'no device' "$out"; then
  cat "$out"
  exit 0
fi
{
  echo "== random statements against the oracle, kernels of the device"
  $cc -std=c99 -O1 -w "-DTEST_CUDA=$library" -o "$build/test_kernels_gpu" tests/test_kernels.c \
    -lm -pthread -ldl &&
    timeout 110 "$build/test_kernels_gpu" $statements 31
  note $?
  if [ -n "$stub" ]; then
    echo "no compute-sanitizer for a stub"
  elif command -v compute-sanitizer > /dev/null 2>&1; then
    for tool in memcheck racecheck; do
      echo "== compute-sanitizer $tool"
      timeout 40 compute-sanitizer --tool $tool "$build/test_kernels_gpu" $few 32 2>&1 | tail -5
    done
  else
    echo "no compute-sanitizer"
  fi
  echo "== timings: medians by the device's events"
  h=${attention%%,*} d=${attention##*,} rest=${attention#*,}
  s=${rest%%,*} rest=${rest#*,}
  t=${rest%%,*}
  of_layer=$(echo "$layer" | sed 's/^\(.*\),\(.*\),\(.*\),\(.*\),\(.*\)$/s=\1,a=\2,h=\3,d=\4,f=\5/')
  timings -s $each -t $total "bench/cases/gpu_attention.ein:h=$h,s=$s,t=$t,d=$d" \
    "examples/models/llama_layer.ein:$of_layer" bench/cases/gpu.txt bench/cases/tccg.txt \
    bench/cases/tccg.txt:functional \
    > "$build/gpu_ours.txt"
  note $?
  cat "$build/gpu_ours.txt"
  echo "== others on the same device"
  if [ -z "$stub" ] || "${PYTHON:-python3}" -c 'import numpy' 2> /dev/null; then
    timeout 80 "${PYTHON:-python3}" bench/gpu_peers.py "$build/gpu_ours.txt" --total 60 \
      --peers $peers $least --attention $attention --layer $layer gpu tccg tccg:functional
    note $?
  fi
} >> "$out" 2>&1
cat "$out"
if [ -n "$stub" ]; then
  grep -q 'out of memory\|unsupported\|internal' "$build/gpu_ours.txt" && failed=1
  [ "$failed" = 0 ] && echo "ok: $(grep -c ' ms ' "$build/gpu_ours.txt") timings"
  exit "$failed"
fi
