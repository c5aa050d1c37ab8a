#!/usr/bin/env python3
"""The gain of `einsum tune` over plans without a store, on odd-sized einsums.

Usage: bench/tune.py BUILD/einsum [ROUNDS [BUDGET [THREADS [NAME..]]]]

Each case is tuned for BUDGET seconds into a store of its own. Then rounds take both plans in turn,
`einsum bench` with the store and without; the table has the medians of their best times. Where the
store keeps the plan without tuning both are the same plan: its gain is 1, and what is measured of
it says how far to trust the others.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

# Odd extents: no multiple of a vector or a tile, or just beyond one.
CASES = [
    ("gemm small", "ij,jk->ik", "i=17,j=19,k=23", "f64"),
    ("gemm", "ij,jk->ik", "i=131,j=127,k=255", "f64"),
    ("gemm f32", "ij,jk->ik", "i=257,j=255,k=129", "f32"),
    ("gemm wide", "ij,jk->ik", "i=7,j=301,k=1023", "f64"),
    ("gemm tall", "ij,jk->ik", "i=1023,j=301,k=7", "f64"),
    ("gemm inner", "ij,jk->ik", "i=9,j=4097,k=11", "f64"),
    ("gemm outer", "ij,jk->ik", "i=301,j=3,k=303", "f64"),
    ("transposed", "ji,kj->ik", "i=129,j=131,k=127", "f64"),
    ("batch", "bij,bjk->bik", "b=67,i=17,j=15,k=13", "f64"),
    ("batch last", "ijb,jkb->ikb", "b=67,i=9,j=11,k=7", "f64"),
    ("vector", "ij,j->i", "i=513,j=1025", "f64"),
    ("tccg 1", "abcd,dbe->aec", "a=17,b=15,c=13,d=11,e=9", "f64"),
    ("tccg 2", "dbea,ec->abcd", "a=25,b=9,c=23,d=7,e=27", "f64"),
    ("tccg 3", "abxy,xcyd->abcd", "a=13,b=11,c=15,d=9,x=7,y=17", "f32"),
    ("grad", "xre,rij,ej->xei", "x=3,r=3,e=1001,i=19,j=19", "f64"),
    ("mass", "fe,ifj,fej->ei", "f=5,e=1003,i=21,j=11", "f64"),
    ("mttkrp", "ijk,jr,kr->ir", "i=61,j=59,k=57,r=17", "f64"),
    ("chain", "ij,jk,kl->il", "i=101,j=203,k=307,l=5", "f64"),
    ("chain 4", "ij,jk,kl,lm->im", "i=33,j=101,k=31,l=99,m=35", "f64"),
    ("ring", "ija,jkb,kic->abc", "i=9,j=11,k=13,a=15,b=17,c=7", "f64"),
    ("ttm", "ijk,ia,jb,kc->abc", "i=31,j=29,k=27,a=9,b=11,c=13", "f64"),
    ("bilinear", "bi,ijk,bk->bj", "b=129,i=33,j=31,k=35", "f32"),
]


def main():
    binary = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    budget = sys.argv[3] if len(sys.argv) > 3 else "2"
    threads = sys.argv[4] if len(sys.argv) > 4 else "1"
    names = sys.argv[5:]
    env = {k: v for k, v in os.environ.items() if k != "EINSUM_STORE"}

    def run(*words):
        r = subprocess.run([binary, *words, "--json", "-q", "-j", threads], env=env,
                           capture_output=True, text=True, check=True)
        return json.loads(r.stdout)

    gains, measured, same = [], [], []
    print("| case | expression | untuned | tuned | gain | measured | path, variant |")
    print("|---|---|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        for name, expr, sizes, dtype in CASES:
            if names and name not in names:
                continue
            what = [expr, "--sizes", sizes, "--dtype", dtype]
            tuned = run("tune", *what, "--store", store, "--budget", budget)
            times = {0: [], 1: []}
            for _ in range(rounds):
                times[0].append(run("bench", *what)["best_seconds"])
                times[1].append(run("bench", *what, "--store", store)["best_seconds"])
            old, new = statistics.median(times[0]), statistics.median(times[1])
            kept = tuned["path"] == "auto" and tuned["variant"] == "-"
            gain = 1.0 if kept else old / new
            gains.append(gain)
            (same if kept else measured).append(old / new)
            print("| %s | `%s` %s %s | %.4g us | %.4g us | %.3f | %.3f | %s |" % (
                name, expr, sizes, dtype, old * 1e6, new * 1e6, gain, old / new,
                "untuned" if kept else tuned["path"] + ", " + tuned["variant"]), flush=True)

    def mean(x):
        return math.exp(statistics.fmean(map(math.log, x))) if x else math.nan

    print()
    print("%d cases, %s threads, budget %s s: geometric mean of gains %.3f, worst %.3f; %d tuned, "
          "of these %.3f; %d as they were, measured %.3f to %.3f" % (
              len(gains), threads, budget, mean(gains), min(gains), len(measured), mean(measured),
              len(same), min(same, default=math.nan), max(same, default=math.nan)))


if __name__ == "__main__":
    main()
