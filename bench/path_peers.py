#!/usr/bin/env python3
"""Contraction order search against opt_einsum: same networks, flops and time side by side.

    python3 bench/path_peers.py              everything (some minutes)
    python3 bench/path_peers.py --quick      fewer networks
    python3 bench/path_peers.py check        only: are the costs those of opt_einsum

Needs opt_einsum 3.4 and numpy, and a C compiler (CC, CFLAGS from the environment). Times of
opt_einsum are those of the path function alone, on sets of labels, without parsing.
"""
import argparse
import importlib
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import types

try:
    import pytest  # noqa: F401  opt_einsum.testing imports it, for importorskip only
except ImportError:
    stub = types.ModuleType("pytest")
    stub.importorskip = importlib.import_module
    sys.modules["pytest"] = stub

import opt_einsum as oe
from opt_einsum import paths
from opt_einsum.path_random import random_greedy_128
from opt_einsum.testing import rand_equation

HERE = os.path.dirname(os.path.abspath(__file__))


class Bench:
    """The C program, fed through pipes."""

    def __init__(self, folder):
        exe = os.path.join(folder, "path_bench")
        cc = shlex.split(os.environ.get("CC", "cc"))
        flags = shlex.split(os.environ.get("CFLAGS", "-O2"))
        source = os.path.join(HERE, "path_bench.c")
        subprocess.run(cc + ["-std=c99"] + flags + [source, "-o", exe, "-lm"], check=True)
        self.proc = subprocess.Popen([exe, "-"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def ask(self, text):
        self.proc.stdin.write(text)
        self.proc.stdin.flush()
        return self.proc.stdout.readline().split()

    def run(self, net, algo, seconds=0.0, seed=1, repeat=1):
        words = self.ask(net.text + "run %s 0 %.9f 0 %d %d 0\n" % (algo, seconds, seed, repeat))
        return float(words[3]), float(words[4]), int(words[7])

    def cost(self, net, path):
        pairs = [tuple(sorted(p)) if len(p) == 2 else (p[0], -1) for p in path]
        flat = " ".join("%d %d" % p for p in pairs)
        words = self.ask(net.text + "cost %d %s\n" % (len(pairs), flat))
        return float(words[1]) if words[1] != "error" else None


class Net:
    def __init__(self, name, inputs, output, sizes):
        self.name = name
        self.inputs = [frozenset(x) for x in inputs]
        self.output = frozenset(output)
        self.sizes = dict(sizes)
        ids = {c: i for i, c in enumerate(self.sizes)}
        rows = ["net %s %d %d" % (name, len(self.inputs), len(ids))]
        rows.append(" ".join(str(int(self.sizes[c])) for c in self.sizes))
        for term in self.inputs + [self.output]:
            labels = sorted(ids[c] for c in term)
            rows.append(" ".join(map(str, [len(labels)] + labels)))
        self.text = "\n".join(rows) + "\n"

    def cost(self, path):
        """opt_cost, as opt_einsum.contract_path adds it up."""
        terms, total = list(self.inputs), 0
        for positions in path:
            positions = tuple(sorted(positions, reverse=True))
            _, terms, removed, union = oe.helpers.find_contraction(positions, terms, self.output)
            total += oe.helpers.flop_count(union, bool(removed), len(positions), self.sizes)
        return total

    def peer(self, function):
        start = time.perf_counter()
        path = function(self.inputs, self.output, self.sizes)
        seconds = time.perf_counter() - start
        return seconds, float(self.cost(path))


def chain(n, seed):
    rng = random.Random(seed)
    sizes = {i: rng.randint(2, 64) for i in range(n + 1)}
    return Net("chain%d" % n, [(i, i + 1) for i in range(n)], (0, n), sizes)


def chain_optimum(net):
    import numpy as np

    e = np.array([float(net.sizes[i]) for i in range(len(net.sizes))])
    n = len(e) - 1
    cost = np.zeros((n + 1, n + 1))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            splits = cost[i, i + 1 : j] + cost[i + 1 : j, j] + 2 * e[i] * e[j] * e[i + 1 : j]
            cost[i, j] = splits.min()
    return cost[0, n]


def rand_net(n, reg, seed):
    eq, _, sizes = rand_equation(n, reg, n_out=2, d_min=2, d_max=6, seed=seed,
                                 return_size_dict=True)
    inputs, output = eq.split("->")
    return Net("rand%d_%d_%d" % (n, reg, seed), inputs.split(","), output, sizes)


def random_net(rng):
    """Labels in any number of terms, scalars, disconnected parts, repeated terms, extents 0, 1."""
    n, nlabel = rng.randint(1, 9), rng.randint(1, 14)
    terms = [set() for _ in range(n)]
    output = set()
    for label in range(nlabel):
        for _ in range(rng.choice([1, 2, 2, 2, 3, 4, n])):
            rng.choice(terms).add(label)
        if rng.random() < 0.3:
            output.add(label)
    if rng.random() < 0.3:
        terms[rng.randrange(n)] = set(terms[rng.randrange(n)])
    output &= set().union(*terms)
    low = rng.choice([0, 1, 2, 2])
    return Net("random", terms, output, {i: rng.randint(low, 7) for i in range(nlabel)})


def check(bench, rounds):
    rng = random.Random(1)
    wrong = 0
    for _ in range(rounds):
        net = random_net(rng)
        path, left = [], len(net.inputs)
        while left > 1 or not path:
            if left == 1 or rng.random() < 0.1:
                path.append((rng.randrange(left),))
            else:
                path.append(tuple(rng.sample(range(left), 2)))
                left -= 1
        wrong += bench.cost(net, path) != net.cost(path)
    print("costs: %d random paths, %d differ from opt_einsum" % (rounds, wrong))
    return wrong


def chains(bench, count):
    print("\nchain of 1000, extents 2..64 (opt_einsum: greedy)")
    for seed in range(count):
        net = chain(1000, seed)
        peer_time = statistics.median(net.peer(paths.greedy)[0] for _ in range(7))
        peer_flops = net.peer(paths.greedy)[1]
        seconds, flops, _ = bench.run(net, "greedy", repeat=201)
        optimum = chain_optimum(net)
        _, flops200, _ = bench.run(net, "random", 0.2)
        _, flops_auto, _ = bench.run(net, "auto")
        print(
            "  seed %d  opt_einsum %.2f ms  greedy %.3f ms: %.1f times faster, %.3f of its flops"
            "   of the optimum: greedy %.3f  auto %.4f  200 ms %.4f"
            % (seed, 1e3 * peer_time, 1e3 * seconds, peer_time / seconds, flops / peer_flops,
               flops / optimum, flops_auto / optimum, flops200 / optimum)
        )


def networks(bench, count):
    print("\nrand_equation(n, reg, n_out=2, d_min=2, d_max=6): flops relative to the peer's,")
    print("geometric mean (worst), in a tenth of its time and in its time; %d networks each"
          % count)
    for n in (10, 20, 50, 100):
        for reg in (3, 5):
            peers = {"random-greedy-128": random_greedy_128}
            if n <= 20:
                peers["auto-hq"] = paths.auto_hq
            if n == 10 or (n == 20 and reg == 3):
                peers["dp"] = paths.dynamic_programming
            if n == 10 and reg == 3:
                peers["optimal"] = paths.optimal
            for name, function in peers.items():
                few = min(count, 2) if name == "optimal" else count
                ratios = {0.1: [], 1.0: []}
                shares = {0.1: [], 1.0: []}
                times = []
                for seed in range(few):
                    net = rand_net(n, reg, seed)
                    peer_time, peer_flops = net.peer(function)
                    times.append(peer_time)
                    for share in ratios:
                        method = "auto" if n <= 20 else "random"
                        seconds, flops, _ = bench.run(net, method, share * peer_time)
                        ratios[share].append(flops / peer_flops)
                        shares[share].append(seconds / peer_time)
                cells = []
                for share, r in ratios.items():
                    mean = math.exp(sum(map(math.log, r)) / len(r))
                    used = statistics.median(shares[share])
                    cells.append("%9.3g (%8.3g) in %.3f" % (mean, max(r), used))
                print("  n %3d reg %d  %-18s %8.1f ms   %s   %s"
                      % (n, reg, name, 1e3 * statistics.median(times), cells[0], cells[1]),
                      flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="all",
                        choices=["all", "check", "chains", "networks"])
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        print("opt_einsum", oe.__version__)
        if args.what in ("all", "check"):
            wrong = check(bench, 300 if args.quick else 2000)
        if args.what in ("all", "chains"):
            chains(bench, 2 if args.quick else 5)
        if args.what in ("all", "networks"):
            networks(bench, 3 if args.quick else 8)
        bench.proc.stdin.close()
        bench.proc.wait()
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
