"""PyTorch, JAX and CuPy on the GPU, on the case files that bench/gpu.c ran, beside what it printed.

  python gpu_peers.py OURS.txt [--seconds S] [--total T] [--most N] [--peers torch,jax,cupy] FILE..

OURS.txt is the output of bench/gpu. Operands lie on the device; a time is the least of a few
batches of calls, each waited for. Who is not there is named. numpy, when asked for, runs on the
host: for trying this out.
"""
import argparse
import math
import re
import time

import numpy as np

import cases

FOLDS = {"": "sum", "sum": "sum", "min": "min", "max": "max"}


def torch_peer():
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("it sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    fold = {"sum": torch.sum, "min": torch.amin, "max": torch.amax}
    return (torch.__version__, torch, lambda a: torch.as_tensor(a, device="cuda"), torch.einsum,
            lambda f, x, axes: fold[f](x, axes), lambda x: torch.cuda.synchronize(), lambda f: f,
            lambda x, axes: x.permute(axes))


def jax_peer():
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    if jax.default_backend() not in ("gpu", "cuda"):
        raise RuntimeError("it sees no GPU")
    return (jax.__version__, jnp, jnp.asarray, lambda e, *x: jnp.einsum(e, *x, optimize=True),
            lambda f, x, axes: getattr(jnp, f)(x, axes), lambda x: x.block_until_ready(), jax.jit,
            jnp.transpose)


def cupy_peer():
    import cupy
    cupy.cuda.runtime.getDeviceCount()
    return (cupy.__version__, cupy, cupy.asarray, lambda e, *x: cupy.einsum(e, *x, optimize=True),
            lambda f, x, axes: getattr(cupy, f)(x, axes),
            lambda x: cupy.cuda.get_current_stream().synchronize(), lambda f: f, cupy.transpose)


def numpy_peer():
    return (np.__version__, np, np.asarray, lambda e, *x: np.einsum(e, *x, optimize=True),
            lambda f, x, axes: getattr(np, f)(x, axes), lambda x: None, lambda f: f, np.transpose)


MAKERS = {"torch": torch_peer, "jax": jax_peer, "cupy": cupy_peer, "numpy": numpy_peer}


def function(case, peer):
    """The case as the peer writes it: einsum, a copy, or a map that broadcasts and is folded."""
    _, xp, _, einsum, fold, _, jit, permute = peer
    if case.py:
        return jit(lambda *x: eval(case.py, {"einsum": einsum},
                                   {"x%d" % k: a for k, a in enumerate(x)}))
    if case.plain and (len(case.ins) > 1 or case.reduced):
        return jit(lambda *x: einsum(case.expr, *x))
    if case.plain:
        order = [case.ins[0].index(a) for a in case.out]
        if order == list(range(len(order))):
            return jit(lambda x: x + 0)
        return jit(lambda x: permute(x, order) + 0)
    axes = list(case.out) + case.reduced
    text = case.map.replace("^", "**") if case.map else "x0"

    def run(*x):
        views = {}
        for k, (labels, a) in enumerate(zip(case.ins, x)):
            a = permute(a, [labels.index(i) for i in axes if i in labels])
            views["x%d" % k] = a[tuple(slice(None) if i in labels else None for i in axes)]
        value = eval(text, {}, views)
        if not case.reduced:
            return value
        return fold(FOLDS[case.fold], value, tuple(range(len(case.out), len(axes))))
    return jit(run)


def seconds(run, sync, budget):
    sync(run())
    best, end = math.inf, time.perf_counter() + budget
    while True:
        begin = time.perf_counter()
        for _ in range(3):
            last = run()
        sync(last)
        best = min(best, (time.perf_counter() - begin) / 3)
        if time.perf_counter() > end:
            return best


def ours(path):
    """{(name, dtype): seconds} of the device."""
    found = {}
    for line in open(path):
        m = re.match(r"(\S+) +(f32|f64) +([0-9.]+) ms ", line)
        if m:
            found[m[1], m[2]] = 1e-3 * float(m[3])
    return found


def operands(case, dtype, most):
    rng = np.random.default_rng(1)
    for k in case.ext:
        case.ext[k] = min(case.ext[k], most)
    return [(rng.random(tuple(case.ext[x] for x in s), np.float32) - 0.5)
            .astype(cases.DTYPES[dtype]) for s in case.ins]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("ours")
    ap.add_argument("files", nargs="+")
    ap.add_argument("--seconds", type=float, default=0.2)
    ap.add_argument("--total", type=float, default=150)
    ap.add_argument("--most", type=int, default=1 << 62)
    ap.add_argument("--peers", default="torch,jax,cupy")
    args = ap.parse_args()
    mine, peers, ratios = ours(args.ours), {}, {}
    for name in args.peers.split(","):
        try:
            peers[name] = MAKERS[name]()
            print("%s %s" % (name, peers[name][0]))
        except Exception as e:  # a broken installation may raise anything
            print("%s: not here: %s" % (name, e))
    end = time.perf_counter() + args.total
    for case in [c for f in args.files for c in cases.load(f)] if peers else []:
        for dtype in ("f64", "f32"):
            if (case.name, dtype) not in mine or time.perf_counter() > end:
                continue
            host = operands(case, dtype, args.most)
            for name, peer in peers.items():
                try:
                    x = [peer[2](a) for a in host]
                    run = function(case, peer)
                    t = seconds(lambda: run(*x), peer[5], args.seconds)
                except Exception as e:  # not enough memory, something it cannot write
                    print("%-20s %s %-6s %s" % (case.name, dtype, name, str(e).split("\n")[0]))
                    continue
                ratio = t / mine[case.name, dtype]
                ratios.setdefault((name, case.group, dtype), []).append(ratio)
                print("%-20s %s %-6s %10.4f ms, %.2f times ours"
                      % (case.name, dtype, name, 1e3 * t, ratio), flush=True)
    for (name, group, dtype), r in sorted(ratios.items()):
        print("geometric mean of %d, %s %s: %s takes %.2f times as long as einsum.h" % (
            len(r), group, dtype, name, math.exp(sum(map(math.log, r)) / len(r))))


if __name__ == "__main__":
    main()
