"""PyTorch, JAX and CuPy on the GPU, on the case files that bench/gpu.c ran, beside what it printed.

  python gpu_peers.py OURS.txt [--seconds S] [--total T] [--most N] [--peers torch,jax,cupy]
                      [--attention h,s,t,d] [--layer s,a,h,d,f] FILE..

OURS.txt is the output of bench/gpu. Operands lie on the device; a time is the least of a few
batches of calls, each waited for. Who is not there is named. tf32 and bf16 are PyTorch's alone, so
are attention and a LLaMA layer, with its fused attention. numpy, when asked for, runs on the host:
for trying this out.
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
        m = re.match(r"(\S+) +(f32|f64|tf32|bf16) +([0-9.]+) ms ", line)
        if m:
            found[m[1], m[2]] = 1e-3 * float(m[3])
    return found


def operands(case, dtype, most):
    rng = np.random.default_rng(1)
    for k in case.ext:
        case.ext[k] = min(case.ext[k], most)
    return [(rng.random(tuple(case.ext[x] for x in s), np.float32) - 0.5)
            .astype(cases.DTYPES[dtype]) for s in case.ins]


def torch_kind(dtype, x):
    """An operand, and products of the kind that a line of ours names."""
    import torch
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    return x.bfloat16() if dtype == "bf16" else x


def attention(sizes):
    import torch
    h, s, t, d = sizes
    q, k, v = (torch.randn(1, h, n, d, device="cuda") for n in (s, t, t))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def layer(sizes):
    """The program of examples/models/llama_layer.ein."""
    import torch
    f = torch.nn.functional
    s, a, h, d, w = sizes
    x = torch.randn(s, a, device="cuda")
    wq, wk, wv, wo = (torch.randn(a, a, device="cuda") / a ** 0.5 for _ in range(4))
    w1, w3 = (torch.randn(a, w, device="cuda") / a ** 0.5 for _ in range(2))
    w2 = torch.randn(w, a, device="cuda") / w ** 0.5
    angle = torch.outer(torch.arange(s, device="cuda"),
                        10000.0 ** (-2 * torch.arange(d // 2, device="cuda") / d))
    turn = torch.polar(torch.ones_like(angle), angle)[:, None, :]

    def norm(y):
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)

    def rotate(y):
        z = torch.view_as_complex(y.view(s, h, d // 2, 2)) * turn
        return torch.view_as_real(z).view(s, h, d)

    def run():
        n = norm(x)
        q, k, v = (rotate((n @ m).view(s, h, d)) if m is not wv else (n @ m).view(s, h, d)
                   for m in (wq, wk, wv))
        o = f.scaled_dot_product_attention(*(y.transpose(0, 1)[None] for y in (q, k, v)),
                                           is_causal=True)
        r = x + o[0].transpose(0, 1).reshape(s, a) @ wo
        m = norm(r)
        return r + (f.silu(m @ w1) * (m @ w3)) @ w2
    return run


def programs(mine, peer, args):
    """PyTorch's attention and layer beside ours."""
    made = {"gpu_attention": (attention, args.attention), "llama_layer": (layer, args.layer)}
    for (name, dtype), own in mine.items():
        if name not in made or not made[name][1]:
            continue
        try:
            torch_kind(dtype, None)
            run = made[name][0]([int(x) for x in made[name][1].split(",")])
            t = seconds(run, peer[5], args.seconds)
        except Exception as e:
            print("%-20s %s torch  %s" % (name, dtype, str(e).split("\n")[0]))
            continue
        print("%-20s %s torch  %10.4f ms, %.2f times ours" % (name, dtype, 1e3 * t, t / own))


def load(files):
    """Cases of files; of FILE:functional those of a1*A+b1 and a2*B+b2."""
    for f in files:
        for case in cases.load(f.partition(":")[0]):
            if not f.endswith(":functional"):
                yield case
            elif case.plain and len(case.ins) == 2:
                other = case.functional()
                other.name, other.group = case.name + "+ab", "functional"
                yield other


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("ours")
    ap.add_argument("files", nargs="+")
    ap.add_argument("--seconds", type=float, default=0.2)
    ap.add_argument("--total", type=float, default=150)
    ap.add_argument("--most", type=int, default=1 << 62)
    ap.add_argument("--peers", default="torch,jax,cupy")
    ap.add_argument("--attention")
    ap.add_argument("--layer")
    args = ap.parse_args()
    mine, peers, ratios = ours(args.ours), {}, {}
    for name in args.peers.split(","):
        try:
            peers[name] = MAKERS[name]()
            print("%s %s" % (name, peers[name][0]))
        except Exception as e:  # a broken installation may raise anything
            print("%s: not here: %s" % (name, e))
    end = time.perf_counter() + args.total
    if "torch" in peers:
        programs(mine, peers["torch"], args)
    for case in load(args.files) if peers else []:
        for dtype in ("f64", "f32", "tf32", "bf16"):
            if (case.name, dtype) not in mine or time.perf_counter() > end:
                continue
            host = operands(case, dtype if dtype[0] == "f" else "f32", args.most)
            for name, peer in peers.items():
                if name != "torch" and dtype[0] != "f":
                    continue
                try:
                    x = [peer[2](a) for a in host]
                    if name == "torch":
                        x = [torch_kind(dtype, a) for a in x]
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
