#!/bin/sh
# Tests and timings of einsum_cuda.h on a machine with a GPU, in one run of under 8 minutes: what
# the driver says, the oracle's random statements through the device's kernels, timings by its
# events (bench/gpu.c), and those of PyTorch, JAX and CuPy where they are there. All of it goes to
# BUILD/gpu.txt. Where there is no GPU it says why, and writes that.
# Usage: bench/gpu.sh BUILD    (make bench-gpu; BUILD/gpu is built)
set -u
build=$1 cc=${CC:-cc}
out=$build/gpu.txt
{
  date -u '+%Y-%m-%d %H:%M UTC'
  "$build/gpu"
} > "$out" 2>&1
if grep -q 'no device' "$out"; then
  cat "$out"
  exit 0
fi
{
  echo "== random statements against the oracle, kernels of the device"
  if $cc -std=c99 -O1 -w '-DTEST_CUDA=NULL' -o "$build/test_kernels_gpu" tests/test_kernels.c \
    -lm -pthread -ldl; then
    timeout 110 "$build/test_kernels_gpu" 300 31
    echo "status $?"
  fi
  if command -v compute-sanitizer > /dev/null 2>&1; then
    for tool in memcheck racecheck; do
      echo "== compute-sanitizer $tool"
      timeout 40 compute-sanitizer --tool $tool "$build/test_kernels_gpu" 20 32 2>&1 | tail -5
    done
  else
    echo "no compute-sanitizer"
  fi
  echo "== timings: medians by the device's events"
  timeout 130 "$build/gpu" -t 110 bench/cases/gpu.txt bench/cases/tccg.txt > "$build/gpu_ours.txt"
  cat "$build/gpu_ours.txt"
  echo "== others on the same device"
  timeout 100 "${PYTHON:-python3}" bench/gpu_peers.py "$build/gpu_ours.txt" --total 70 gpu tccg
} >> "$out" 2>&1
cat "$out"
