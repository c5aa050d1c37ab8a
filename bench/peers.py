"""Other implementations of a case: for each a name and a function that returns the results.

A maker gets (case, operands) and yields (name, function); function() returns one result per field,
as what the peer gives (array()) makes it a NumPy array. Only natural ways of writing a case are
peers; what a peer cannot say at all it does not yield.
"""
import importlib
import os

import numpy as np

from cases import FOLDS, aligned, evaluate, numpy_names

ALL = ["numpy", "torch", "opt_einsum", "jax", "tblis"]
MODULES = {"numpy": "numpy", "torch": "torch", "opt_einsum": "opt_einsum", "jax": "jax",
           "tblis": "pytblis"}


def find(names, threads):
    """{name: version or why it is not there}; sets the threads of those that need to be told."""
    found, missing = {}, {}
    for name in names:
        try:
            module = importlib.import_module(MODULES[name])
        except Exception as e:  # a broken installation may raise anything
            missing[name] = "%s: %s" % (type(e).__name__, e)
            continue
        found[name] = str(getattr(module, "__version__", "")) or version(MODULES[name])
        if name == "torch":
            module.set_num_threads(threads)
        if name == "tblis":
            module.set_num_threads(threads)
    return found, missing


def version(package):
    from importlib import metadata
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"


def array(x):
    """A peer's result as a NumPy array."""
    return x.numpy() if hasattr(x, "numpy") else np.asarray(x)


def copies(case):
    """The order of the input's axes in the output of a permuted copy, else None."""
    if not case.plain or len(case.ins) != 1 or sorted(case.ins[0]) != sorted(case.out):
        return None
    return [case.ins[0].index(x) for x in case.out]


def matmul_views(case):
    """How two operands become (.., m, k) and (.., k, n) by permuting axes, so that the result is in
    place: (axes of the first, of the second, swap), and how a result that is not is permuted; else
    None. One index of each kind m, n, k."""
    if not case.plain or len(case.ins) != 2:
        return None
    for swap in (False, True):
        a, b = case.ins[::-1] if swap else case.ins
        batch = [x for x in case.out if x in a and x in b]
        m = [x for x in case.out if x in a and x not in b]
        n = [x for x in case.out if x in b and x not in a]
        k = [x for x in a if x in b and x not in case.out]
        if (len(m), len(n), len(k)) != (1, 1, 1) or len(a + b) != 2 * len(batch) + 4:
            continue
        if case.out[-2:] == m[0] + n[0]:
            return ([a.index(x) for x in batch + m + k], [b.index(x) for x in batch + k + n], swap)
        if len(batch) and sorted(case.out) == sorted(batch + m + n) and case.out[-1] == n[0]:
            order = batch + m + n
            return ([a.index(x) for x in batch + m + k], [b.index(x) for x in batch + k + n], swap,
                    [order.index(x) for x in case.out])
    return None


def tensordot_axes(case):
    """The axes of a tensordot whose result is in place, else None."""
    if not case.plain or len(case.ins) != 2:
        return None
    a, b = case.ins
    k = [x for x in a if x in b]
    free = "".join(x for x in a if x not in k) + "".join(x for x in b if x not in k)
    if not k or free != case.out or set(k) & set(case.out):
        return None
    return [[a.index(x) for x in k], [b.index(x) for x in k]]


def numpy_copy(case, data, order):
    views = [s[0].transpose(order) for s in data.sets]

    def copyto():
        for v, o in zip(views, data.outs):
            np.copyto(o, v)
        return data.outs
    yield "np.copyto", copyto
    if order == sorted(order):  # ascontiguousarray would hand back its argument
        yield "np.copy", lambda: [v.copy() for v in views]
    else:
        yield "np.ascontiguousarray", lambda: [np.ascontiguousarray(v) for v in views]


def numpy_matmul(case, data, views):
    pa, pb, swap = views[:3]
    back = np.argsort(views[3]) if len(views) > 3 else None
    calls = []
    for s, o in zip(data.sets, data.outs):
        a, b = s[::-1] if swap else s
        calls.append((a.transpose(pa), b.transpose(pb), o if back is None else o.transpose(back)))

    def matmul():
        for a, b, o in calls:
            np.matmul(a, b, out=o)
        return data.outs
    yield "np.matmul", matmul


def numpy_maps(case, data):
    views = [aligned(case, s) for s in data.sets]
    if not case.reduced:
        names = numpy_names()
        yield "numpy", lambda: [evaluate(case, v, names) for v in views]
        into = {"x0*x1": np.multiply, "x0+x1": np.add, "x0-x1": np.subtract, "exp(x0)": np.exp,
                "2.5*x0": lambda x, out: np.multiply(x, 2.5, out=out),
                "relu(x0)": lambda x, out: np.maximum(x, 0, out=out)}.get(case.map)
        if into:
            yield "np.out=", lambda: [into(*v, out=o) for v, o in zip(views, data.outs)]
    elif not case.map:
        axes = tuple(range(len(case.out), len(case.out) + len(case.reduced)))
        yield "numpy", lambda: [FOLDS[case.fold].reduce(v[0], axis=axes) for v in views]
    else:
        names, fold = numpy_names(), FOLDS[case.fold]

        def rows():  # a block of rows whose broadcast fits a cache
            for (x, y), o in zip(views, data.outs):
                for i in range(0, len(o)):
                    part = evaluate(case, [x[i:i + 1], y], names)
                    fold.reduce(part, axis=-1, out=o[i:i + 1])
            return data.outs
        yield "np rows", rows


def numpy_peers(case, data):
    if case.py:
        names = numpy_names()
        yield "numpy", lambda: [evaluate(case, s, names) for s in data.sets]
        return
    if not case.plain:
        yield from numpy_maps(case, data)
        return
    order = copies(case)
    if order is not None:
        yield from numpy_copy(case, data, order)
        return
    if len(case.ins) == 1:
        axes = tuple(case.ins[0].index(x) for x in case.reduced)
        if [x for x in case.ins[0] if x in case.out] == list(case.out):
            yield "np.sum", lambda: [s[0].sum(axis=axes) for s in data.sets]
    yield "numpy", lambda: [np.einsum(case.expr, *s, optimize=True) for s in data.sets]
    if case.group == "random":  # into the layout asked for: a result of its own may be any view
        yield "np.out=", lambda: [np.einsum(case.expr, *s, out=o, optimize=True)
                                  for s, o in zip(data.sets, data.outs)]
    if case.group in ("overhead", "dg"):
        yield "numpy c_einsum", lambda: [np.einsum(case.expr, *s) for s in data.sets]
    if len(case.ins) != 2:
        return
    views, axes = matmul_views(case), tensordot_axes(case)
    if views:
        yield from numpy_matmul(case, data, views)
    if case.ins[0] == case.ins[1] == case.out:
        yield "np.out=", lambda: [np.multiply(*s, out=o) for s, o in zip(data.sets, data.outs)]
    elif case.ins[0] == case.ins[1] and not case.out:
        yield "np.vdot", lambda: [np.vdot(*s) for s in data.sets]
    elif len(case.ins[0]) == 2 and len(case.ins[1]) == 1 and axes:
        pairs = [(s[0] if axes[0] == [1] else s[0].T, s[1]) for s in data.sets]
        yield "np.dot", lambda: [np.dot(*s, out=o) for s, o in zip(pairs, data.outs)]
    elif axes and not views:
        yield "np.tensordot", lambda: [np.tensordot(*s, axes=axes) for s in data.sets]


def torch_names(torch):
    def both(f, g):
        return lambda x, y: f(x, y) if torch.is_tensor(y) else g(x, y)
    return {"einsum": torch.einsum, "max_": both(torch.maximum, lambda x, y: x.clamp(min=y)),
            "min_": both(torch.minimum, lambda x, y: x.clamp(max=y)),
            "abs_": torch.abs, "exp": torch.exp, "relu": torch.relu,
            "softmax": lambda x: torch.softmax(x, -1)}


def torch_maps(torch, case, sets, outs):
    views = [aligned(case, s, TorchAxes(torch)) for s in sets]
    names = torch_names(torch)
    if not case.reduced:
        yield "torch", lambda: [evaluate(case, v, names) for v in views]
        into = {"x0*x1": torch.mul, "x0+x1": torch.add, "x0-x1": torch.sub, "exp(x0)": torch.exp,
                "2.5*x0": lambda x, out: torch.mul(x, 2.5, out=out),
                "2.5*x0+x1": lambda x, y, out: torch.add(y, x, alpha=2.5, out=out),
                "x0*x1+x2": lambda x, y, z, out: torch.addcmul(z, x, y, out=out)}.get(case.map)
        if into:
            yield "torch out=", lambda: [into(*v, out=o) for v, o in zip(views, outs)]
        return
    axes = tuple(range(len(case.out), len(case.out) + len(case.reduced)))
    fold = {"": torch.sum, "sum": torch.sum, "min": torch.amin, "max": torch.amax}[case.fold]
    if not case.map:
        yield "torch", lambda: [fold(v[0], axes) for v in views]
        return

    def rows():
        for (x, y), o in zip(views, outs):
            for i in range(0, len(o), 2):
                torch_part = evaluate(case, [x[i:i + 2], y], names)
                fold(torch_part, -1, out=o[i:i + 2])
        return outs
    yield "torch rows", rows
    p = {"(x0-x1)^2": 2.0, "abs(x0-x1)": 1.0}.get(case.map)
    if p and case.fold == "sum" and case.ins == ["ik", "jk"]:
        exact = "donot_use_mm_for_euclid_dist"
        if p == 1.0:
            yield "torch.cdist", lambda: [torch.cdist(*s, p=1.0) for s in sets]
        else:
            yield "torch.cdist", lambda: [
                torch.cdist(*s, compute_mode=exact).square_() for s in sets]


class TorchAxes:
    """What aligned() needs of NumPy."""

    def __init__(self, torch):
        self.torch = torch

    def transpose(self, a, order):
        return a.permute(order)


def torch_peers(case, data):
    import torch
    torch.set_grad_enabled(False)
    sets = [[torch.from_numpy(a) for a in s] for s in data.sets]
    outs = [torch.from_numpy(o) for o in data.outs]
    if case.py:
        names = torch_names(torch)
        yield "torch", lambda: [evaluate(case, s, names) for s in sets]
        return
    if not case.plain:
        yield from torch_maps(torch, case, sets, outs)
        return
    order = copies(case)
    if order is not None:
        views = [s[0].permute(order) for s in sets]
        yield "torch.copy_", lambda: [o.copy_(v) for v, o in zip(views, outs)]
        if order == sorted(order):
            yield "torch.clone", lambda: [v.clone() for v in views]
        else:
            yield "torch.contiguous", lambda: [v.contiguous() for v in views]
        return
    if len(case.ins) == 1:
        axes = [case.ins[0].index(x) for x in case.reduced]
        yield "torch.sum", lambda: [torch.sum(s[0], axes) for s in sets]
    yield "torch", lambda: [torch.einsum(case.expr, *s) for s in sets]
    views = matmul_views(case)
    if views and len(views) == 3:
        pa, pb, swap = views
        calls = []
        for s in sets:
            a, b = s[::-1] if swap else s
            calls.append((a.permute(pa), b.permute(pb)))
        yield "torch.matmul", lambda: [torch.matmul(a, b, out=o) for (a, b), o in zip(calls, outs)]
    if case.ins == [case.out, case.out]:
        yield "torch out=", lambda: [torch.mul(*s, out=o) for s, o in zip(sets, outs)]
    if len(case.ins) == 2 and [len(x) for x in case.ins] == [2, 1] and len(case.out) == 1:
        first = case.ins[0].index(case.reduced[0]) == 0
        yield "torch.mv", lambda: [torch.mv(s[0].T if first else s[0], s[1], out=o)
                                   for s, o in zip(sets, outs)]


def opt_einsum_peers(case, data):
    import opt_einsum
    if case.plain and copies(case) is None and len(case.ins) > 1:
        yield "opt_einsum", lambda: [opt_einsum.contract(case.expr, *s) for s in data.sets]


def jax_peers(case, data):
    import jax
    import jax.numpy as jnp
    sets = [[jnp.asarray(a) for a in s] for s in data.sets]
    if case.plain:
        def f(*a):
            return jnp.einsum(case.expr, *a)
    elif case.py:
        names = {"softmax": lambda x: jax.nn.softmax(x, -1), "einsum": jnp.einsum}

        def f(*a):
            return evaluate(case, a, names)
    else:
        names = {"max_": jnp.maximum, "min_": jnp.minimum, "abs_": jnp.abs, "exp": jnp.exp,
                 "relu": lambda x: jnp.maximum(x, 0)}
        fold = {"": jnp.sum, "sum": jnp.sum, "min": jnp.min, "max": jnp.max}[case.fold]
        axes = tuple(range(len(case.out), len(case.out) + len(case.reduced)))

        def f(*a):
            value = evaluate(case, aligned(case, a, jnp), names)
            return fold(value, axis=axes) if axes else value
    # A jitted copy may return its argument; adding nothing would hide it, so such a case has none.
    if copies(case) == list(range(len(case.out))):
        return
    g = jax.jit(f)
    yield "jax", lambda: [r.block_until_ready() for r in [g(*s) for s in sets]]


def tblis_peers(case, data):
    import pytblis
    if case.plain and copies(case) is None:
        yield "tblis", lambda: [pytblis.einsum(case.expr, *s) for s in data.sets]
    elif case.plain:
        def add():
            for s, o in zip(data.sets, data.outs):
                pytblis.transpose_add(case.expr, s[0], out=o)
            return data.outs
        yield "tblis.add", add


MAKERS = {"numpy": numpy_peers, "torch": torch_peers, "opt_einsum": opt_einsum_peers,
          "jax": jax_peers, "tblis": tblis_peers}


def gemm_rate(dtype, trials):
    """The best large matrix product of NumPy and PyTorch, as GFLOP/s."""
    import time
    n, best = (2048 if trials > 1 else 1024), 0.0
    a = np.ones((n, n), dtype)
    c = np.empty_like(a)
    calls = [lambda: np.matmul(a, a, out=c)]
    if os.environ.get("BENCH_TORCH") == "1":
        import torch
        ta, tc = torch.from_numpy(a), torch.from_numpy(c)
        calls.append(lambda: torch.matmul(ta, ta, out=tc))
    for _ in range(trials):
        for f in calls:
            t = time.perf_counter()
            f()
            best = max(best, 2e-9 * n ** 3 / (time.perf_counter() - t))
    return best
