#!/usr/bin/env python3
"""Nanoseconds per call of numpy.einsum and numpy.matmul on 2x2 f64 matrices; the peer of the first
lines of core_bench. Usage: python3 bench/numpy_overhead.py"""
import statistics
import sys
import time

try:
    import numpy as np
except ImportError:
    print("numpy_overhead: skipped, NumPy is not installed")
    sys.exit(77)

a, b = np.arange(1.0, 5.0).reshape(2, 2), np.arange(5.0, 9.0).reshape(2, 2)
c = np.empty((2, 2))
calls = {
    "numpy.einsum": lambda: np.einsum("ij,jk->ik", a, b),
    "numpy.einsum, out=": lambda: np.einsum("ij,jk->ik", a, b, out=c),
    "numpy.einsum, optimize=True": lambda: np.einsum("ij,jk->ik", a, b, optimize=True),
    "numpy.matmul, out=": lambda: np.matmul(a, b, out=c),
}
times = {name: [] for name in calls}
for _ in range(15):
    for name, fn in calls.items():
        n = 5000
        start = time.perf_counter()
        for _ in range(n):
            fn()
        times[name].append((time.perf_counter() - start) / n * 1e9)
print(f"NumPy {np.__version__}, Python {sys.version.split()[0]}")
for name, t in times.items():
    print(f"2x2 f64 ij,jk->ik  {name:28s} {statistics.median(t):9.1f} ns")
