#!/usr/bin/env python3
"""Contractions of f16, bf16 and short integers against f32 and against PyTorch.

    python3 bench/reduced.py --threads 1
    python3 bench/reduced.py --threads 2 --cases 'square*' --rounds 9

Each row is one contraction in several dtypes, timed in turn, round after round; the least time of
each counts. `rate` is ours in GFLOP/s (GOP/s of integers), `of f32` our time in f32 over ours,
`torch` PyTorch's time over ours (torch.einsum into bf16 and f16, torch._int_mm for i8). Results are
compared with f64. Needs Python 3, PyTorch, make and a C compiler.
"""
import argparse
import ctypes
import fnmatch
import os
import subprocess
import sys
import time

try:
    import torch
    import kernels
except ImportError as e:
    print("reduced: SKIPPED, %s" % e)
    sys.exit(77)

# name, expression, extents, whether torch._int_mm does it
CASES = [("square256", "ij,jk->ik", "i=256,j=256,k=256"),
         ("square512", "ij,jk->ik", "i=512,j=512,k=512"),
         ("square1024", "ij,jk->ik", "i=1024,j=1024,k=1024"),
         ("odd1001", "ij,jk->ik", "i=1001,j=999,k=1003"),
         ("odd1999", "ij,jk->ik", "i=1999,j=2001,k=1997"),
         ("linear1024", "ij,kj->ik", "i=1024,j=1024,k=1024"),
         ("gram1024", "ji,jk->ik", "i=1024,j=1024,k=1024"),
         ("batched", "bij,bjk->bik", "b=32,i=128,j=128,k=128"),
         ("heads", "bihd,bjhd->bhij", "b=4,i=256,j=256,h=8,d=64")]
DTYPES = [("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"),
          ("u8", "i32")]
TORCH = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i8": torch.int8,
         "u8": torch.uint8, "i32": torch.int32}
EPS = {"f32": 2.0 ** -23, "bf16": 2.0 ** -8, "f16": 2.0 ** -11, "i32": 0}


class Ours:
    """A plan of libbench.so."""

    def __init__(self, lib, threads, expr, ins, out):
        self.so, views = lib.so, ins + [out]
        self.views = views  # which only this keeps alive
        names = {v: k for k, v in TORCH.items()}
        codes = [lib.so.bench_dtype(names[v.dtype].encode()) for v in views]
        dims = [d for v in views for d in tuple(v.shape) + tuple(v.stride())]
        why = ctypes.c_char_p()
        self.plan = lib.so.bench_plan(
            lib.handle(threads), expr.encode(), b"", b"", b"", len(ins),
            (ctypes.c_int * len(views))(*codes), (ctypes.c_int * len(views))(*[
                v.dim() for v in views]), (ctypes.c_int64 * len(dims))(*dims), ctypes.byref(why))
        if not self.plan:
            raise RuntimeError((why.value or b"?").decode())
        self.ins = (ctypes.c_void_p * len(ins))(*[v.data_ptr() for v in ins])
        self.outs = (ctypes.c_void_p * 1)(out.data_ptr())

    def run(self):
        t = (ctypes.c_double * 1)()
        bad = self.so.bench_run(self.plan, 1, self.ins, self.outs, 1, 1, t)
        if bad:
            raise RuntimeError(bad.decode())

    def text(self):
        buf = ctypes.create_string_buffer(1 << 16)
        self.so.bench_describe(self.plan, 0, buf, len(buf))
        return buf.value.decode()


def timed(f, clock):
    def sample(batch):
        t = clock()
        for _ in range(batch):
            f()
        return (clock() - t) / batch
    return sample


def draw(shape, dtype):
    if dtype in ("i8", "u8"):
        low, high = (-128, 128) if dtype == "i8" else (0, 256)
        return torch.randint(low, high, shape, dtype=TORCH[dtype])
    return (torch.rand(shape) * 2 - 1).to(TORCH[dtype])


def entries(lib, opt, expr, ext):
    """(label, rate of ours, sample) of every dtype, ours and PyTorch's, verified."""
    left, out = expr.split("->")
    shapes = [tuple(ext[x] for x in s) for s in left.split(",")]
    for dtype, to in DTYPES:
        if opt.dtype and dtype not in opt.dtype.split(","):
            continue
        ins = [draw(s, dtype) for s in shapes]
        result = torch.zeros(tuple(ext[x] for x in out), dtype=TORCH[to])
        ours = Ours(lib, opt.threads, expr, ins, result)
        if opt.explain:
            print(ours.text(), file=sys.stderr)
        ours.run()
        expected = torch.einsum(expr, *[x.double() for x in ins])
        error = (result.double() - expected).abs().max().item()
        most = (0 if to == "i32" else EPS["f32"] * 64) + EPS[to]  # of the sums, and of the result
        if error > most * expected.abs().max().item():
            raise RuntimeError("%s %s: error %g" % (expr, dtype, error))
        label = "%s>%s" % (dtype, to)
        yield label, timed(ours.run, opt.clock)
        if opt.alone:
            continue
        if dtype == to:
            yield "torch " + label, timed(lambda ins=ins: torch.einsum(expr, *ins), opt.clock)
        elif dtype == "i8" and expr == "ij,jk->ik" and all(n % 8 == 0 for n in ext.values()):
            yield "torch " + label, timed(lambda ins=ins: torch._int_mm(*ins), opt.clock)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--so", default=os.path.join(kernels.ROOT, "build", "libbench.so"))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--cases", default="*")
    p.add_argument("--dtype", default="", help="of operands, by comma; default: all")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--explain", action="store_true")
    p.add_argument("--cpu-time", action="store_true",
                   help="of one thread: its own time, where others use the machine")
    p.add_argument("--alone", action="store_true", help="without PyTorch")
    opt = p.parse_args()
    if opt.cpu_time and opt.threads > 1:
        p.error("--cpu-time is of one thread")
    opt.clock = time.thread_time if opt.cpu_time else time.perf_counter
    if not os.path.exists(opt.so):
        subprocess.run(["make", "-s", "-C", kernels.ROOT, "build/libbench.so"], check=True)
    lib = kernels.Library(opt.so)
    torch.set_num_threads(opt.threads)
    torch.manual_seed(kernels.SEED)
    print("PyTorch %s, %d threads, %d rounds" % (torch.__version__, opt.threads, opt.rounds))
    for name, expr, sizes in CASES:
        if not any(fnmatch.fnmatch(name, c) for c in opt.cases.split(",")):
            continue
        ext = {k: int(v) for k, v in (e.split("=") for e in sizes.split(","))}
        flops = 2.0
        for n in ext.values():
            flops *= n
        batch = max(1, int(2e8 * opt.threads / flops))
        samples = list(entries(lib, opt, expr, ext))
        least = {label: float("inf") for label, _ in samples}
        for r in range(opt.rounds):
            for label, sample in samples:  # what is far slower is timed twice
                if r < 2 or least[label] < 10 * least[label.replace("torch ", "")]:
                    least[label] = min(least[label], sample(batch))
        for label in least:
            if label.startswith("torch"):
                continue
            t = least[label]
            print("%-11s %-10s rate %6.0f  of f32 %5.2f  torch %s" % (
                name, label, flops / t / 1e9, least.get("f32>f32", float("nan")) / t,
                "%5.2f" % (least["torch " + label] / t) if "torch " + label in least else "    -"),
                flush=True)


if __name__ == "__main__":
    main()
