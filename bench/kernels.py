#!/usr/bin/env python3
"""Verifies and times single einsums against other libraries and the roofline of this machine.

    python3 bench/kernels.py --set tccg --dtype f64 --threads 1
    python3 bench/kernels.py --set perf --cases 'dg,transpose*' --threads 1,2 --peers numpy,torch
    python3 bench/kernels.py --set dg --threads 1,2
    python3 bench/kernels.py --set tccg,perf --quick
    python3 bench/kernels.py --set drawn --seed 3 --count 100 --regret

bench/README.md says how to read what comes out. Needs Python 3, NumPy, make and a C compiler.
"""
import argparse
import ctypes
import glob
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("kernels: SKIPPED, NumPy is not installed")
    sys.exit(77)

import cases as C
import drawn
import peers as P
import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SEED = 20240607
CORETYPES = ["", "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"]
READ, COPY, COPY_NT = range(3)  # of bench.h's kinds
JEMALLOC = ["/usr/lib/*/libjemalloc.so.2", "/usr/lib*/libjemalloc.so.2"]
PEAKS = {"fma": 0, "addmin": 1, "subfma": 2, "absadd": 3}


# ---- the library ---------------------------------------------------------------------------------

class Library:
    """build/libbench.so, see bench/bench.h."""

    def __init__(self, path):
        so = self.so = ctypes.CDLL(path)
        p, i, s, z = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
        for name, result, args in [
                ("bench_open", p, [i]), ("bench_close", None, [p]), ("bench_version", s, []),
                ("bench_dtype", i, [s]), ("bench_plan", p, [p, s, s, s, s, i, p, p, p, p]),
                ("bench_free", None, [p]), ("bench_run", s, [p, i, p, p, i, i, p]),
                ("bench_call", s, [p, p, p, i, i, p]), ("bench_describe", z, [p, i, s, z]),
                ("roof_peak", ctypes.c_double, [i, i, i, i]), ("roof_isa", s, []),
                ("roof_stream", ctypes.c_double, [i, z, i, i])]:
            f = getattr(so, name)
            f.restype, f.argtypes = result, args
        if hasattr(so, "bench_fix"):  # those of before have it not
            so.bench_fix.argtypes = [p, s, s]
            for name in ("bench_path", "bench_variants"):
                f = getattr(so, name)
                f.restype, f.argtypes = z, [p, s, z]
        if hasattr(so, "bench_plan_rows"):
            so.bench_plan_rows.restype = p
            so.bench_plan_rows.argtypes = [p, s, s, s, s, i, i, p, p, p, p]
        self.handles = {}

    def handle(self, threads):
        if threads not in self.handles:
            self.handles[threads] = self.so.bench_open(threads)
        return self.handles[threads]


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


class FirstCore:
    """Binds the calling thread to the first core it may use; the pool's threads are on the others.
    Unbound, it may share one with them while the first is idle."""

    def __init__(self, threads):
        self.threads = threads if hasattr(os, "sched_setaffinity") else 1

    def __enter__(self):
        if self.threads > 1:
            self.may = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {min(self.may)})

    def __exit__(self, *_):
        if self.threads > 1:
            os.sched_setaffinity(0, self.may)


class Ours:
    """One case through a plan, or through the one-call interface; its fields one after another, or
    as rows of one plan."""

    def __init__(self, lib, case, dtype, data, threads, call=False, rows=False, fix=("", "")):
        self.lib, self.data, self.fields, self.call = lib.so, data, case.fields, call
        self.threads = threads
        ins, outs, prog = data.sets[0], data.outs[:1], case.prog
        if rows:
            self.fields, outs, prog = 1, data.outs, case.rows()
            ins = data.sets[0][:-1] + [s[-1] for s in data.sets]
        views = ins + outs
        code = lib.so.bench_dtype(dtype.encode())
        dims = [d for v in views for d in v.shape + tuple(s // v.itemsize for s in v.strides)]
        why = ctypes.c_char_p()
        args = [x.encode() for x in (case.expr, case.map, case.fold, prog)]
        plan = lib.so.bench_plan_rows if rows else lib.so.bench_plan
        counts = [len(ins), len(outs)] if rows else [len(ins)]
        if fix != ("", ""):
            lib.so.bench_fix(lib.handle(threads), *[x.encode() for x in fix])
        self.plan = plan(
            lib.handle(threads), *args, *counts, (ctypes.c_int * len(views))(
                *[code] * len(views)), (ctypes.c_int * len(views))(*[v.ndim for v in views]),
            (ctypes.c_int64 * max(1, len(dims)))(*dims), ctypes.byref(why))
        if fix != ("", ""):
            lib.so.bench_fix(lib.handle(threads), b"", b"")
        if not self.plan:
            raise RuntimeError((why.value or b"?").decode().split("\n")[0])
        self.ins = pointers(ins if rows else [a for s in data.sets for a in s])
        self.outs = pointers(data.outs)

    def sample(self, batch, n):
        t = (ctypes.c_double * n)()
        with FirstCore(self.threads):
            if self.call:
                bad = self.lib.bench_call(self.plan, self.ins, self.outs, batch, n, t)
            else:
                bad = self.lib.bench_run(self.plan, self.fields, self.ins, self.outs, batch, n, t)
        if bad:
            raise RuntimeError(bad.decode())
        return list(t)

    def results(self):
        return self.data.outs

    def text(self, function, *args):
        buf = ctypes.create_string_buffer(1 << 16)
        function(self.plan, *args, buf, len(buf))
        return buf.value.decode()

    def describe(self, as_json=0):
        return self.text(self.lib.bench_describe, as_json)

    def predicted(self):
        """Seconds."""
        return json.loads(self.describe(1))["seconds"]

    def free(self):
        self.lib.bench_free(self.plan)


class Peer:
    """A peer's function, timed from Python."""

    def __init__(self, function):
        self.function, self.last = function, None

    def sample(self, batch, n):
        f, clock, times = self.function, time.perf_counter, []
        for _ in range(n):
            t = clock()
            for _ in range(batch):
                self.last = f()
            times.append((clock() - t) / batch)
        return times

    def results(self):
        return [P.array(x) for x in self.last]

    def free(self):
        self.function = self.last = None


# ---- ceilings ------------------------------------------------------------------------------------

class Roof:
    """Ceilings, at working sets of powers of two. Each is measured when it is first needed and
    again, briefly, with every later case that needs it: the best stands for the whole run."""
    LARGEST = 1 << 30

    def __init__(self, lib, threads, quick):
        self.so, self.threads, self.known, self.quick = lib.so, threads, {}, quick
        self.largest = 1 << 24 if quick else self.LARGEST

    def keep(self, key, measure):
        if key in self.known and self.quick:
            return
        trials = 1 if self.quick or key in self.known else 5
        self.known[key] = max(self.known.get(key, 0.0), 1e9 * measure(trials))

    def stream_key(self, kind, nbytes):
        size = 1 << max(13, min(self.largest, int(nbytes)).bit_length())
        return ("stream", kind, min(size, self.largest))

    def stream(self, kind, nbytes):
        key = self.stream_key(kind, nbytes)
        self.keep(key, lambda n: self.so.roof_stream(kind, key[2], self.threads, n))

    def measure(self, case, dtype):
        """Brings the ceilings that a case needs up to date."""
        total = sum(case.traffic(dtype))
        self.keep(("peak", case.peak, dtype), lambda n: self.so.roof_peak(
            PEAKS[case.peak], dtype == "f64", self.threads, n))
        self.keep(("gemm", dtype), lambda n: P.gemm_rate(C.DTYPES[dtype], n))
        for kind in (READ, COPY, COPY_NT):
            self.stream(kind, total)
        for kind in (COPY, COPY_NT):
            self.stream(kind, self.largest)

    def of(self, case, dtype):
        """Seconds by the ceilings: the roofline; one with the GEMM rate as its peak and the copy
        rate of memory for all bytes; and the sum of that one's parts, without overlap."""
        read, write = case.traffic(dtype)
        total = read + write

        def rate(kinds, nbytes):
            return max(self.known[self.stream_key(k, nbytes)] for k in kinds)
        peak = self.known["peak", case.peak, dtype]
        bound = {"flops": case.flops / peak, "read": read / rate([READ], total),
                 "bytes": total / rate([READ, COPY, COPY_NT], total)}
        gemm = case.flops / (self.known["gemm", dtype] if case.peak == "fma" else peak)
        memory = total / rate([COPY, COPY_NT], self.largest)
        return {"roof": max(bound.values()), "bound": max(bound, key=bound.get),
                "roof_gemm": max(gemm, memory), "no_overlap": gemm + memory,
                "read": read, "write": write}


# ---- one case ------------------------------------------------------------------------------------

def free_memory():
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            return next(int(s.split()[1]) << 10 for s in f if s.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 1 << 62


def give_back():
    """Lets jemalloc return what a case used; before the next one is timed its pages are there."""
    mallctl = getattr(ctypes.CDLL(None), "mallctl", None)
    if mallctl is not None:
        mallctl(b"arena.0.purge", None, None, None, ctypes.c_size_t(0))


def entries(opt, lib, case, dtype, data):
    """(name, maker of an implementation) of the library and of every peer."""
    yield "einsum", lambda: Ours(lib, case, dtype, data, opt.threads)
    if opt.other:
        yield "before", lambda: Ours(opt.other, case, dtype, data, opt.threads)
    if opt.threads > 1:
        yield "einsum 1t", lambda: Ours(lib, case, dtype, data, 1)
    if case.fields > 1:
        yield "einsum rows", lambda: Ours(lib, case, dtype, data, opt.threads, rows=True)
    if case.base:
        yield "einsum plain", lambda: Ours(lib, case.base, dtype, data, opt.threads)
    if case.group == "overhead" and case.base is None:
        yield "einsum call", lambda: Ours(lib, case, dtype, data, opt.threads, True)
    for peer in opt.found:
        try:
            for name, function in P.MAKERS[peer](case, data):
                yield name, lambda f=function: Peer(f)
        except Exception as e:  # whatever a peer raises is its result
            yield peer, lambda e=e: (_ for _ in ()).throw(e)


def prepare(opt, lib, case, dtype, data):
    """Makes and verifies every implementation: {name: record}, {name: implementation}."""
    records, ready = {}, {}
    exact = {c: [C.reference(c, s) for s in data.sets] for c in (case, case.base) if c}
    for name, make in entries(opt, lib, case, dtype, data):
        expected = exact[case.base if name == "einsum plain" else case]
        limit = max(C.tolerance(case, dtype, e) for e in expected)
        records[name] = rec = {"times": [], "error": "", "deviation": None}
        try:
            for o in data.outs:
                o.fill(np.nan)
            impl = make()
            rec["first"] = impl.sample(1, 1)[0]
            got = impl.results()
            rec["deviation"] = max(C.deviation(g, e) for g, e in zip(got, expected))
            if not rec["deviation"] <= limit:
                rec["error"] = "wrong by %.3g, more than %.3g" % (rec["deviation"], limit)
            if not rec["error"] or not name.startswith("einsum"):
                ready[name] = impl
        except Exception as e:  # reported in the table
            rec["error"] = ("%s: %s" % (type(e).__name__, e)).split("\n")[0][:160]
    return records, ready


def busy():
    """Seconds for which anything ran on the processors this process may use; 0: not known."""
    try:
        may = {"cpu%d" % i for i in os.sched_getaffinity(0)}
        with open("/proc/stat", encoding="ascii") as f:
            lines = [s.split() for s in f]
        # user, nice, system, interrupts, what the host took
        ticks = sum(int(s[i]) for s in lines if s[0] in may for i in (1, 2, 3, 6, 7, 8))
        return ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0


def disturbed(wall, cpu, others, threads):
    """What part of the time others had the processor: of one thread, when it did not run."""
    if threads == 1:
        return max(0.0, 1 - cpu / max(wall, 1e-9))
    return max(0.0, others / max(threads * wall, 1e-9))


def measure(opt, records, ready):
    """Rounds over all implementations in turn; how many samples a round takes depends on them. Says
    what part of the time others had the processors."""
    plan = {}
    wall, cpu, all_ran = time.perf_counter(), time.process_time(), busy()
    for name, impl in ready.items():
        once = records[name]["first"]
        once = once if once > 1 else impl.sample(1, 1)[0]
        batch = max(1, min(100000, math.ceil(2e-5 / max(once, 1e-9))))
        if batch > 1:
            once = min(impl.sample(batch, 3))
            batch = max(1, min(100000, math.ceil(5e-5 / max(once, 1e-9))))
        plan[name] = [once, batch, max(1, min(100, int(opt.seconds / (once * batch))))]
    fastest = min((p[0] for p in plan.values()), default=0)
    for r in range(opt.rounds):
        for name, impl in ready.items():
            once, batch, n = plan[name]
            if once > 20 * fastest and once > opt.patience and r >= 1:
                continue
            if opt.threads > 1:
                time.sleep(0.1)  # idle workers of the one before stop spinning
                impl.sample(1, 1)
            records[name]["times"] += impl.sample(batch, n)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return disturbed(wall, cpu, busy() - all_ran - cpu, opt.threads)


# ---- the choice against all others ---------------------------------------------------------------

PATHS = ["none", "naive", "greedy", "dp"]


def ways(lib, case, dtype, data, threads):
    """All that a plan may be told: paths of several factors, and kernels of the path it takes."""
    def ask(path):
        plan = Ours(lib, case, dtype, data, threads, fix=(path, "any"))
        steps, variants = plan.text(lib.so.bench_path), plan.text(lib.so.bench_variants).split("\n")
        plan.free()
        return steps, [v for v in variants if v]
    taken, several = ask(""), len(case.ins) > 2
    steps = taken[0] if several else ""
    return [(p, "") for p in PATHS if several] + [(steps, v) for v in taken[1]]


def regret(opt, lib, case, dtype, data):
    """What the plan takes over the fastest of all that it might have been, and over its prediction;
    the fastest's name."""
    own = Ours(lib, case, dtype, data, opt.threads)
    found, seen = [("as planned", own)], {own.describe()}
    for fix in ways(lib, case, dtype, data, opt.threads):
        try:
            other = Ours(lib, case, dtype, data, opt.threads, fix=fix)
        except RuntimeError:
            continue  # this way is not one of this problem
        if other.describe() in seen or other.predicted() > 50 * own.predicted():
            other.free()  # the same, or hopeless
            continue
        seen.add(other.describe())
        once = other.sample(1, 2)[-1]
        if once > 4 * min(own.sample(1, 2)):
            other.free()
            continue
        found.append((" ".join(fix).strip(), other))
    times = {name: [] for name, _ in found}
    for _ in range(opt.rounds):
        for name, impl in found:
            once = min(impl.sample(1, 2))
            batch = max(1, min(10000, math.ceil(5e-5 / max(once, 1e-9))))
            times[name] += impl.sample(batch, max(1, min(20, int(opt.seconds / (once * batch)))))
    median = {name: sorted(t)[len(t) // 2] for name, t in times.items()}
    best, predicted = min(median, key=median.get), own.predicted()
    for _, impl in found:
        impl.free()
    return {"regret": median["as planned"] / median[best], "best": best, "candidates": len(seen),
            "predicted": predicted / median["as planned"] if predicted else None}


def run_case(opt, lib, roof, case, dtype, offset):
    row = {"case": case.name, "group": case.group, "expr": case.expr, "ext": case.ext,
           "dtype": dtype, "threads": opt.threads, "offset": offset, "flops": case.flops,
           "fields": case.fields,
           "skipped": "", "impl": {}}
    need = (5 if "jax" in opt.found else 3) * sum(case.traffic("f64"))  # JAX has its own copies
    if need > free_memory():
        row["skipped"] = "needs %.0f GiB of memory, %.0f are free" % (need / 2 ** 30,
                                                                     free_memory() / 2 ** 30)
        return row
    roof.measure(case, dtype)
    row.update(roof.of(case, dtype))
    data = C.Operands(case, dtype, SEED, offset)
    records, ready = prepare(opt, lib, case, dtype, data)
    if opt.explain and "einsum" in ready:
        print(ready["einsum"].describe(), file=sys.stderr)
    row["disturbed"] = measure(opt, records, ready)
    if opt.regret and "einsum" in ready:
        row["choice"] = regret(opt, lib, case, dtype, data)
    for impl in ready.values():
        impl.free()
    ready.clear()
    del data
    give_back()
    for name, rec in records.items():
        t = sorted(rec["times"])
        row["impl"][name] = {"best": t[0] if t else None, "median": t[len(t) // 2] if t else None,
                             "samples": len(t), "error": rec["error"],
                             "deviation": rec["deviation"]}
    return row


def progress(row):
    if row["skipped"]:
        return "%-24s %s skipped: %s" % (row["case"], row["dtype"], row["skipped"])
    text = []
    for name, r in row["impl"].items():
        text.append("%s %s" % (name, "FAILED (%s)" % r["error"] if r["error"] else
                               report.seconds(r["median"])))
    if "choice" in row:
        text.append("regret %.2f (%s), predicted %s" % (
            row["choice"]["regret"], row["choice"]["best"],
            report.text(row["choice"]["predicted"])))
    if row["disturbed"] > report.DISTURBED:
        text.append("(DISTURBED: others had the processor for %.0f %%)" % (100 * row["disturbed"]))
    return "%-24s %s +%d roof %s: %s" % (row["case"], row["dtype"], row["offset"],
                                         report.seconds(row["roof"]), ", ".join(text))


# ---- plans of the same problem -------------------------------------------------------------------

def normal_plan(lib, opt, case, dtype, back):
    """A plan's JSON without the order of operands, with the letters it had before."""
    ours = Ours(lib, case, dtype, C.Untouched(case, dtype), opt.threads)
    found = json.loads(ours.describe(1))
    ours.free()
    for s in found["statements"]:
        for key in ("einsum", "operands", "path"):
            s.pop(key, None)
        for key in ("indices", "parts"):
            s[key] = {back.get(k, k): v for k, v in s.get(key, {}).items()}
    return found


def compare_plans(opt):
    """Number of plans that differ though only names and the order of operands do."""
    lib, count, different = Library(opt.so), 0, 0
    for case in [c for c in opt.selected if c.plain and len(c.ins) == 2]:
        letters = sorted(set("".join(case.ins)))
        rename = dict(zip(letters, letters[1:] + letters[:1]))
        back = {v: k for k, v in rename.items()}
        for dtype in [d for d in case.dtypes if d in opt.dtype]:
            plan = normal_plan(lib, opt, case, dtype, {})
            for other, names in ((case.changed(True, {}), {}), (case.changed(False, rename), back),
                                 (case.changed(True, rename), back)):
                count += 1
                if normal_plan(lib, opt, other, dtype, names) != plan:
                    different += 1
                    print("%s %s: %s is planned differently from %s" % (
                        case.name, dtype, other.expr, case.expr))
    print("plans: %d variants, %d planned differently" % (count, different))
    return different


# ---- the measuring process and the one that starts it --------------------------------------------

def child(opt):
    """Measures with one number of threads, which must be known before libraries are loaded."""
    if hasattr(os, "sched_setaffinity"):
        may = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, (may[opt.cpu:] + may[:opt.cpu])[:opt.threads])
    opt.found, missing = P.find(opt.peers, opt.threads)
    lib = Library(opt.so)
    opt.other = Library(opt.against) if opt.against else None
    roof = Roof(lib, opt.threads, opt.quick)
    rows = []
    with open(opt.child, "w", encoding="utf-8") as out:
        for case in opt.selected:
            for dtype in [d for d in case.dtypes if d in opt.dtype]:
                for offset in opt.offset:
                    row = run_case(opt, lib, roof, case, dtype, offset)
                    rows.append((row, case, dtype))
                    out.write(json.dumps(row) + "\n")  # in case this process does not live on
                    out.flush()
                    print(progress(row), file=sys.stderr, flush=True)
    for kind in () if opt.quick else range(len(report.STREAMS)):
        roof.stream(kind, roof.largest)
    known = {" ".join(map(str, k)): v for k, v in sorted(roof.known.items(), key=str)}
    with open(opt.child, "w", encoding="utf-8") as out:
        for row, case, dtype in rows:
            if not row["skipped"]:
                row.update(roof.of(case, dtype))
            out.write(json.dumps(row) + "\n")
        out.write(json.dumps({"ceilings": known, "threads": opt.threads, "found": opt.found,
                              "missing": missing, "isa": lib.so.roof_isa().decode()}) + "\n")


def allocator():
    """(what it is, environment): memory that was used once stays in the process, on huge pages, so
    that peers, which make their results anew, do not pay for pages. glibc's cannot do that for
    aligned blocks (PyTorch's), so that jemalloc is taken where it is installed."""
    found = [f for d in JEMALLOC for f in glob.glob(d)]
    if found:
        return "jemalloc that keeps its memory", {
            "LD_PRELOAD": found[0], "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always,"
            "oversize_threshold:0,narenas:1"}
    return "glibc on huge pages (with libjemalloc2 installed peers would be faster)", {
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def environment(threads, coretype, torch):
    env = dict(os.environ)
    n = str(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                 "BLIS_NUM_THREADS", "TBLIS_NUM_THREADS", "NPROC"):
        env[name] = n
    env.update({"JAX_ENABLE_X64": "1",  # OMP_PROC_BIND would bind the threads of all others too
                "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1",
                "BENCH_TORCH": "1" if torch else "0"})
    env.update(allocator()[1])
    if threads == 1:
        env["XLA_FLAGS"] = (env.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
                            " intra_op_parallelism_threads=1").strip()
    env.pop("OPENBLAS_CORETYPE", None)
    if coretype:
        env["OPENBLAS_CORETYPE"] = coretype
    return env


CORE_TEST = """
import time, numpy as np
for t in "f8", "f4":
    a = np.ones((1024, 1024), t); c = np.empty_like(a); best = 9.0
    for _ in range(8):
        s = time.perf_counter(); np.matmul(a, a, out=c); best = min(best, time.perf_counter() - s)
    print(2e-9 * 1024 ** 3 / best)
"""


def find_coretype():
    """(the OPENBLAS_CORETYPE with the fastest products, {coretype: [f64, f32 GFLOP/s]}); "" is
    OpenBLAS's own choice, which has to be beaten clearly. Best of two turns."""
    rates = {}
    for core in CORETYPES * 2:
        env = environment(1, core, False)
        done = subprocess.run([sys.executable, "-c", CORE_TEST], env=env, capture_output=True,
                              text=True)
        if done.returncode == 0:
            new = [float(x) for x in done.stdout.split()]
            rates[core] = [max(p) for p in zip(rates.get(core, new), new)]
    score = {k: math.sqrt(v[0] * v[1]) for k, v in rates.items()}
    best = max(score, key=score.get, default="")
    return (best if score and score[best] > 1.05 * score.get("", 0) else ""), rates


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            info = dict(s.split(":", 1) for s in f if ":" in s)
        keys = {k.strip(): v.strip() for k, v in info.items()}
        return "%s (family %s, model %s)" % (keys["model name"], keys["cpu family"], keys["model"])
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


def load():
    return "%.1f" % os.getloadavg()[0] if hasattr(os, "getloadavg") else "unknown"


def run_children(opt):
    rows, heads = [], []
    for threads in opt.thread_list:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "rows")
            env = environment(threads, opt.coretype, "torch" in opt.peers)
            if opt.isa:
                env["BENCH_ISA"] = opt.isa  # read by bench_so.c
            if opt.cpu_time:
                env["BENCH_CLOCK"] = "cpu"
            args = [sys.executable, os.path.abspath(__file__)] + sys.argv[1:]
            done = subprocess.run(args + ["--child", out, "--threads", str(threads)], env=env)
            if os.path.exists(out):
                with open(out, encoding="utf-8") as f:
                    for line in f:
                        row = json.loads(line)
                        (heads if "ceilings" in row else rows).append(row)
            if done.returncode != 0:
                print("kernels: the run with %d threads ended with status %d; what it measured "
                      "before is reported" % (threads, done.returncode), file=sys.stderr)
                opt.broken = True
    return rows, heads


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--set", default="tccg", help="by comma: tccg, perf, random, dg, "
                   "dg:ELEMENTS, drawn")
    p.add_argument("--seed", type=int, default=1, help="of the set drawn")
    p.add_argument("--count", type=int, default=100, help="cases of the set drawn")
    p.add_argument("--regret", action="store_true", help="time all that a plan might have been, "
                   "too, and hold predictions against measurements")
    p.add_argument("--cases", default="*", help="names (with * and ?) and groups, by comma")
    p.add_argument("--dtype", default="f64", help="f64, f32 or both by comma")
    p.add_argument("--threads", default="1", help="numbers of threads, by comma")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.06, help="of an implementation in a round")
    p.add_argument("--patience", type=float, default=0.5, help="an implementation 20 times slower "
                   "than the fastest, and slower than this many seconds, has one round")
    p.add_argument("--quick", action="store_true", help="two short rounds, fewer ceilings")
    p.add_argument("--peers", default=",".join(P.ALL), help="of %s, or none" % ",".join(P.ALL))
    p.add_argument("--offset", default="0", help="bytes operands stand behind a line, by comma; "
                   "of several the library's slowest is reported")
    p.add_argument("--as-written", action="store_true", help="TCCG strings read as row-major")
    p.add_argument("--functional", action="store_true", help="contractions of two operands A, B "
                   "as those of a1*A+b1, a2*B+b2, beside the plain ones")
    p.add_argument("--summary", action="store_true", help="only means, not every case")
    p.add_argument("--plans", action="store_true", help="compare plans of renamed problems")
    p.add_argument("--explain", action="store_true", help="print the plans")
    p.add_argument("--cpu", type=int, default=0, help="the first processor to run on")
    p.add_argument("--isa", default="", help="instruction set of the library, as in "
                   "ein_cpu_desc.isa; default: the best there is")
    p.add_argument("--coretype", help="OPENBLAS_CORETYPE for NumPy; default: the fastest")
    p.add_argument("--cpu-time", action="store_true", help="time that the processor ran this "
                   "process, on one thread: where others keep the machine busy")
    p.add_argument("--so", default=os.path.join(ROOT, "build", "libbench.so"))
    p.add_argument("--against", default="", help="libbench.so of another version, as a peer")
    p.add_argument("--out", default="", help="prefix of the files; default build/bench/SET")
    p.add_argument("--child", help=argparse.SUPPRESS)
    opt = p.parse_args()
    opt.dtype = opt.dtype.split(",")
    opt.thread_list = [int(x) for x in opt.threads.split(",")]
    opt.threads, opt.broken = opt.thread_list[0], False
    opt.offset = [int(x) for x in opt.offset.split(",")]
    opt.peers = [x for x in opt.peers.split(",") if x not in ("", "none")]
    if set(opt.peers) - set(P.ALL):
        p.error("peers are " + ", ".join(P.ALL))
    if opt.quick:
        opt.rounds, opt.seconds, opt.patience = min(opt.rounds, 2), 0.01, 0.05
    opt.selected = [c for s in opt.set.split(",") for c in C.select(
        drawn.cases(opt.seed, opt.count) if s == "drawn" else C.load(s, opt.as_written),
        opt.cases)]
    if opt.functional:
        opt.selected = [c.functional() for c in opt.selected if c.plain and len(c.ins) == 2]
    if not opt.selected:
        p.error("no case of %s is called %s" % (opt.set, opt.cases))
    return opt


def main():
    opt = arguments()
    if opt.child:
        child(opt)
        return 0
    if not os.path.exists(opt.so):
        subprocess.run(["make", "-s", "-C", ROOT, "build/libbench.so"], check=True)
    if opt.plans:
        return 1 if compare_plans(opt) else 0
    head = ["Command: `kernels.py %s`" % " ".join(sys.argv[1:]),
            "Machine: %s, %d processors, %s" % (processor(), os.cpu_count(), platform.release()),
            "Seed %d, %d rounds%s%s" % (
                SEED, opt.rounds, ", quick: fractions are rough" if opt.quick else "",
                ", TCCG strings read as row-major" if opt.as_written else ""),
            "Memory of the peers: %s; load average before %s" % (allocator()[0], load())]
    if opt.coretype is None:
        opt.coretype, rates = ("", {}) if opt.quick or "numpy" not in opt.peers else find_coretype()
        if rates:
            head.append("NumPy's OpenBLAS, 1024^3 on one thread, f64 and f32 GFLOP/s: %s; taken: %s"
                        % (", ".join("%s %.0f %.0f" % (k or "its own choice", *v)
                                     for k, v in rates.items()), opt.coretype or "its own choice"))
    for line in head:
        print(line, file=sys.stderr)
    rows, heads = run_children(opt)
    for h in heads:
        head.append(report.ceilings(h))
    prefix = opt.out or os.path.join(ROOT, "build", "bench",
                                     opt.set.replace(",", "_").replace(":", "_"))
    os.makedirs(os.path.dirname(os.path.abspath(prefix)), exist_ok=True)
    wrong = report.write(rows, head, prefix, opt.summary)
    return 1 if wrong or opt.broken else 0


if __name__ == "__main__":
    sys.exit(main())
