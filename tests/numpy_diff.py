#!/usr/bin/env python3
"""Differential test of ein_einsum against numpy.einsum(optimize=False).

  numpy_diff.py [-n COUNT] [--seed N] [--case N] [--so PATH] [--cpu THREADS] [--isa NAME]

Builds the shared library from einsum_so.c with $CC (default cc) into build/, unless --so names
one. With --cpu the kernels and threads of einsum_cpu.h run. Prints one summary line; exits 0 when
everything agrees, 1 otherwise, and 77 (skipped) when NumPy is missing.

Accepted differences, with their reason:
  - non-ASCII letters are labels here, NumPy takes a-z and A-Z only;
  - NumPy limits operands and axes (64 each), there is no limit here;
  - NumPy rounds partial sums of halves, here a result is rounded once: floating results must agree
    with the exact sum within the error of the computation type, and with NumPy's own result within
    the error of its type; where a partial sum may overflow, NumPy's value is not looked at.
  - "ii" over the extents 0 and n is rejected here; NumPy takes 0 for "not seen yet" and reads n
    elements outside the operand.
Repeated output labels are an error in both (ein_einsum_ex gives them a meaning).
"""
import argparse
import ctypes
import os
import random
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("numpy_diff: SKIPPED, NumPy is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = ["?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
NAMES = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "c64", "c128"]
CODES = {}  # NumPy dtype -> ein_dtype, filled from the library
ACCEPTED_STATUS = {"EIN_ERR_SYNTAX", "EIN_ERR_SHAPE", "EIN_ERR_NAME", "EIN_ERR_ARGUMENT",
                   "EIN_ERR_DTYPE"}

# (expression, shapes): the documentation of numpy.einsum, of opt_einsum, and threads about both.
EXAMPLES = [
    # numpy.einsum
    ("ii", [(5, 5)]), ("ii->i", [(5, 5)]), ("ij->i", [(5, 5)]), ("ji", [(2, 3)]),
    ("ij->ji", [(2, 3)]), ("i,i", [(5,), (5,)]), ("ij,j", [(5, 5), (5,)]),
    ("...j,j", [(5, 5), (5,)]), ("...j->...", [(5, 5)]), (",ij", [(), (2, 3)]),
    ("..., ...", [(), (2, 3)]), ("i,j", [(2,), (5,)]), ("ijk,jil->kl", [(3, 4, 5), (4, 3, 2)]),
    ("ki,...k->i...", [(3, 2), (4, 3)]), ("k...,jk", [(3, 2), (4, 3)]),
    ("ki,jk->ij", [(3, 2), (4, 3)]),
    ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 3), (2, 3, 3), (2, 5, 4), (2, 2, 3)]),
    ("a,b,c,d->abcd", [(2,), (3,), (4,), (5,)]), ("ij,jk->ki", [(3, 4), (4, 5)]),
    ("i...->...", [(3, 4)]), ("ij,ij->ij", [(3, 4), (3, 4)]), ("a,b", [(3,), (4,)]),
    ("ea,fb,abcd,gc,hd->efgh", [(3, 3), (3, 3), (3, 3, 3, 3), (3, 3), (3, 3)]), ("ij->", [(3, 4)]),
    ("ij->j", [(3, 4)]), ("ij,kj->ik", [(3, 4), (5, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("ba", [(2, 3)]), ("bca->abc", [(2, 3, 4)]),
    # opt_einsum
    ("pi,qj,ijkl,rk,sl->pqrs", [(4, 4), (4, 4), (4, 4, 4, 4), (4, 4), (4, 4)]),
    ("ijk,jkl->il", [(3, 4, 5), (4, 5, 2)]), ("ijk,klm,mni->", [(3, 4, 5), (5, 2, 3), (3, 4, 3)]),
    ("bdik,acaj,ikab,ajac,ikbd->", [(2, 3, 4, 5), (2, 3, 2, 4), (4, 5, 2, 2), (2, 4, 2, 3),
        (4, 5, 2, 3)]),
    ("a,ab,abc->abc", [(3,), (3, 4), (3, 4, 5)]), ("a,b,ab->ab", [(3,), (4,), (3, 4)]),
    ("ea,fb,gc,hd,abcd->efgh", [(2, 3), (2, 3), (2, 3), (2, 3), (3, 3, 3, 3)]),
    ("abcd,ac,bd->", [(2, 3, 2, 3), (2, 2), (3, 3)]), ("ab,ab,c->", [(2, 3), (2, 3), (4,)]),
    ("ab,ab,cd,cd->", [(2, 3), (2, 3), (4, 5), (4, 5)]),
    ("ab,ab,cd,cd->ac", [(2, 3), (2, 3), (4, 5), (4, 5)]),
    ("ab,ab,cd,cd,ef,ef->", [(2, 3), (2, 3), (4, 5), (4, 5), (2, 2), (2, 2)]),
    ("ab,cd,ef->abcdef", [(2, 3), (2, 3), (2, 3)]), ("ab,cd,de->abcde", [(2, 3), (4, 5), (5, 2)]),
    ("ab,cd,de->be", [(2, 3), (4, 5), (5, 2)]), ("ab,bcd,cd->abcd", [(2, 3), (3, 4, 5), (4, 5)]),
    ("ab,bcd,cd->abd", [(2, 3), (3, 4, 5), (4, 5)]), ("eb,cb,fb->cef", [(3, 2), (4, 2), (5, 2)]),
    ("dd,fb,be,cdb->cef", [(3, 3), (4, 2), (2, 5), (3, 3, 2)]),
    ("bca,cdb,dbf,afc->", [(2, 3, 4), (3, 5, 2), (5, 2, 3), (4, 3, 3)]),
    ("dcc,fce,ea,dbf->ab", [(2, 3, 3), (4, 3, 5), (5, 2), (2, 3, 4)]),
    ("fdf,cdd,ccd,afe->ae", [(3, 2, 3), (2, 2, 2), (2, 2, 2), (4, 3, 5)]),
    ("abcd,ad", [(2, 3, 4, 5), (2, 5)]),
    ("ed,fcd,ff,bcf->be", [(2, 3), (4, 5, 3), (4, 4), (2, 5, 4)]),
    ("baa,dcf,af,cde->be", [(2, 3, 3), (4, 5, 6), (3, 6), (5, 4, 2)]),
    ("bd,db,eac->ace", [(2, 3), (3, 2), (4, 5, 2)]),
    ("fff,fae,bef,def->abd", [(2, 2, 2), (2, 3, 4), (5, 4, 2), (3, 4, 2)]),
    ("efc,dbc,acf,fd->abe", [(2, 3, 4), (5, 3, 4), (2, 4, 3), (3, 5)]),
    ("ba,ac,da->bcd", [(2, 3), (3, 4), (5, 3)]), ("ab,ab", [(2, 3), (2, 3)]),
    ("ab,ba", [(2, 3), (3, 2)]), ("abc,abc", [(2, 3, 4), (2, 3, 4)]),
    ("abc,bac", [(2, 3, 4), (3, 2, 4)]), ("abc,cba", [(2, 3, 4), (4, 3, 2)]),
    ("ab,bc", [(2, 3), (3, 4)]), ("ab,cb", [(2, 3), (4, 3)]), ("ba,bc", [(3, 2), (3, 4)]),
    ("ba,cb", [(3, 2), (4, 3)]), ("abcd,cd", [(2, 3, 4, 5), (4, 5)]),
    ("abcd,ab", [(2, 3, 4, 5), (2, 3)]), ("abcd,cdef", [(2, 3, 2, 3), (2, 3, 2, 3)]),
    ("abcd,cdef->feba", [(2, 3, 2, 3), (2, 3, 2, 3)]), ("abcd,efdc", [(2, 3, 2, 3), (2, 3, 3, 2)]),
    ("aab,bc->ac", [(2, 2, 3), (3, 4)]), ("ab,bcc->ac", [(2, 3), (3, 4, 4)]),
    ("aab,bcc->ac", [(2, 2, 3), (3, 4, 4)]), ("aab,bcc->ca", [(2, 2, 3), (3, 4, 4)]),
    ("aab,ccb->ac", [(2, 2, 3), (4, 4, 3)]),
    ("aab,fa,df,ecc->bde", [(3, 3, 2), (4, 3), (5, 4), (2, 3, 3)]),
    ("ecb,fef,bad,ed->ac", [(2, 3, 4), (5, 2, 5), (4, 3, 2), (2, 2)]),
    ("bcf,bbb,fbf,fc->", [(3, 2, 4), (3, 3, 3), (4, 3, 4), (4, 2)]),
    ("bb,ff,be->e", [(3, 3), (2, 2), (3, 4)]),
    ("bcb,bb,fc,fff->", [(3, 2, 3), (3, 3), (4, 2), (4, 4, 4)]),
    ("fbb,dfd,fc,fc->", [(2, 3, 3), (4, 2, 4), (2, 5), (2, 5)]),
    ("afd,ba,cc,dc->bf", [(2, 3, 4), (5, 2), (3, 3), (4, 3)]),
    ("adb,bc,fa,cfc->d", [(2, 3, 4), (4, 5), (2, 2), (5, 2, 5)]),
    ("bbd,bda,fc,db->acf", [(2, 2, 3), (2, 3, 4), (5, 3), (3, 2)]),
    ("dba,ead,cad->bce", [(2, 3, 4), (5, 4, 2), (3, 4, 2)]),
    ("aef,fbc,dca->bde", [(2, 3, 4), (4, 5, 2), (3, 2, 2)]),
    ("abhe,hidj,jgba,hiab,gab", [(2, 3, 2, 3), (2, 3, 2, 3), (3, 2, 3, 2), (2, 3, 2, 3),
        (2, 2, 3)]),
    ("cdij,def,fabc,ij,cf,a->be", [(2, 3, 2, 3), (3, 4, 2), (2, 3, 2, 2), (2, 3), (2, 2), (3,)]),
    ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]), ("i,ij,j", [(3,), (3, 4), (4,)]),
    ("ea,fb,abcd,gc,hd->efgh", [(2, 2), (2, 2), (2, 2, 2, 2), (2, 2), (2, 2)]),
    # regressions
    ("ab,ac->", [(3, 4), (3, 5)]), ("ac,b->abc", [(2, 4), (3,)]), ("ij,j->", [(0, 4), (4,)]),
    ("ij,j->", [(4, 0), (0,)]), ("abc,a,b->c", [(2, 0, 3), (2,), (0,)]),
    ("abc,a,b->c", [(2, 3, 0), (2,), (3,)]), ("abc,a,b->c", [(0, 3, 2), (0,), (3,)]),
    ("a,b,c,d,e,ab,ac,ad,bc,bd,cd,ce", [(2,), (3,), (2,), (3,), (2,), (2, 3), (2, 2), (2, 3),
        (3, 2), (3, 3), (2, 3), (2, 2)]),
    ("ij,j,jk->", [(3, 4), (4,), (4, 5)]),
    ("a,c,d,db,ab,cb,ac,cd,ad,b->dbc", [(2,), (3,), (4,), (4, 5), (2, 5), (3, 5), (2, 3), (3, 4),
        (2, 4), (5,)]),
    ("cq,cqje,rji,cqik,cqlf,slk->cresf", [(2, 2), (2, 2, 2, 2), (2, 2, 3), (2, 2, 3, 2),
        (2, 2, 3, 2), (2, 3, 2)]),
    ("abcdefghijklmnop,ponmlkjihgfedcba->", [(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2),
        (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)]),
    ("jk,ijkl->il", [(4, 5), (3, 4, 5, 6)]), ("ij,ijkl->kl", [(4, 5), (4, 5, 6, 3)]),
    ("ij,jk,kl,lm", [(2, 3), (3, 4), (4, 5), (5, 2)]), ("ij,i->", [(5, 1), (5,)]),
    ("i,i,i->i", [(4,), (1,), (4,)]), ("ij,ij->", [(1, 4), (3, 1)]), ("->", [()]), ("", [()]),
    (",", [(), ()]), (",->", [(), ()]), ("...", [(2, 3)]), ("...,...", [(2, 3), (3,)]),
    ("a...a", [(3, 2, 3)]), ("a...a->...", [(3, 2, 3)]), ("a...a->a...", [(3, 2, 3)]),
    ("...a,...a->...", [(2, 1, 3), (4, 3)]), (" i j , j ->i", [(2, 3), (3,)]),
]
# Both must reject these.
REJECTED = [
    ("ij,i->", [(5, 1), (2,)]), ("ij,jk", [(2, 3), (4, 5)]), ("ii", [(2, 3)]), ("ii", [(1, 3)]),
    ("i->ii", [(3,)]), ("i->j", [(3,)]), ("ij", [(3,)]), ("i", [(3, 4)]), ("i,j", [(3,)]),
    ("i", [(3,), (3,)]), ("i-j", [(3,)]), ("i>", [(3,)]), ("i->i->", [(3,)]), ("i..", [(3, 4)]),
    ("......", [(3,)]), ("...i...", [(3,)]), ("i1", [(3, 3)]), ("i_", [(3, 3)]),
    ("i;j", [(3,), (3,)]), ("...i->i", [(3, 4)]), ("i->i,", [(3,)]), ("i\tj", [(3, 4)]),
    ("i->...i...", [(3,)]), ("i\n", [(3,)]), ("-", [()]), (">", [()]), ("i - > i", [(3,)]),
    ("i. ..", [(3, 2)]), ("...,...", [(2, 3), (4,)]), ("ij,ij", [(2, 3), (2, 2)]),
    ("i,", [(3,), (3,)]),
]


class View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("space", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
                ("buffer", ctypes.c_void_p), ("buffer_bytes", ctypes.c_size_t)]


def library(path):
    if path is None:
        build = os.path.join(os.path.dirname(HERE), "build")
        os.makedirs(build, exist_ok=True)
        path = os.path.join(build, "libeinsum_test.so")
        new = "%s.%d" % (path, os.getpid())  # two of these programs may build at the same time
        subprocess.check_call([os.environ.get("CC", "cc"), "-O2", "-std=c99", "-shared", "-fPIC",
                               os.path.join(HERE, "einsum_so.c"), "-o", new, "-lm", "-pthread"])
        os.replace(new, path)
    lib = ctypes.CDLL(path)
    views = ctypes.POINTER(View)
    lib.ein_einsum.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, views, views]
    lib.ein_einsum_out.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, views, views,
                                   ctypes.POINTER(ctypes.c_int64), ctypes.c_int]
    lib.ein_status_name.restype = ctypes.c_char_p
    lib.ein_ctx_message.restype = ctypes.c_char_p
    lib.ein_ctx_message.argtypes = [ctypes.c_void_p]
    lib.ein_ctx_create.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    lib.ein_ctx_destroy.argtypes = [ctypes.c_void_p]
    lib.ein_dtype_find.argtypes = [ctypes.c_char_p]
    for dtype, name in zip(DTYPES, NAMES):
        CODES[np.dtype(dtype)] = lib.ein_dtype_find(name.encode())
    return lib


def fill(view, x):
    """A ztensor over an array; the arrays its fields borrow are kept in the result."""
    rank, item = x.ndim, x.dtype.itemsize
    shape = (ctypes.c_int64 * (rank + 1))(*x.shape)
    strides = (ctypes.c_int64 * (rank + 1))(*[s // item for s in x.strides])
    view.dtype, view.rank = CODES[x.dtype], rank
    view.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    view.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    view.data = x.__array_interface__["data"][0]
    return shape, strides


class Library:
    def __init__(self, path, cpu=0, isa=""):
        self.lib = library(path)
        self.ctx = ctypes.c_void_p()
        if cpu > 0:
            make = self.lib.test_cpu_ctx
            make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_char_p]
            self.ctx = ctypes.c_void_p(make(cpu, isa.encode()))
            if not self.ctx:
                sys.exit("numpy_diff: this machine lacks " + isa)
        elif self.lib.ein_ctx_create(None, ctypes.byref(self.ctx)) != 0:
            raise MemoryError

    def message(self):
        return self.lib.ein_ctx_message(self.ctx).decode("utf-8", "replace")

    def status(self, code):
        return self.lib.ein_status_name(code).decode()

    def views(self, operands):
        views = (View * max(1, len(operands)))()
        return views, [fill(v, x) for v, x in zip(views, operands)]

    def shape(self, expr, operands, ctx=True):
        """(status, dtype, shape) of the result."""
        views, keep = self.views(operands)
        out, room = View(), 256
        shape = (ctypes.c_int64 * room)()
        code = self.lib.ein_einsum_out(self.ctx if ctx else None, expr, len(operands), views,
                                       ctypes.byref(out), shape, room)
        del keep
        return self.status(code), out.dtype, tuple(shape[: out.rank])

    def run(self, expr, operands, out, ctx=True):
        views, keep = self.views(operands)
        result = View()
        keep.append(fill(result, out))
        code = self.lib.ein_einsum(self.ctx if ctx else None, expr, len(operands), views,
                                   ctypes.byref(result))
        del keep
        return self.status(code)


# ---- random arrays -------------------------------------------------------------------------------

def values(rng, dtype, n, small):
    """n random values whose products stay far from overflow in floating point."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.6
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if small or rng.random() < 0.5:
            return rng.integers(max(info.min, -3), 4, n).astype(dtype)
        return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    x = rng.uniform(-1, 1, n)
    if dtype.kind == "c":
        x = (x + 1j * rng.uniform(-1, 1, n)) / 1.42
    return x.astype(dtype)


class Buffer:
    """Bytes with a view into them: permuted, strided, reversed, misaligned, with gaps."""

    def __init__(self, rnd, shape, dtype, plain=0.35, align=True):
        dtype = np.dtype(dtype)
        rank, item = len(shape), dtype.itemsize
        self.shape, self.dtype = shape, dtype
        if rnd.random() < plain:
            order, steps, offset = list(range(rank)), [1] * rank, 0
        else:
            order = list(range(rank))
            if rnd.random() < 0.6:
                rnd.shuffle(order)
            steps = [rnd.choice([1, 1, 1, 2, 3]) * rnd.choice([1, 1, -1]) for _ in shape]
            offset = rnd.randrange(0, 3) * item
            if not align or rnd.random() < 0.15:
                offset += rnd.randrange(1, 16)
        strides, span, gaps = [0] * rank, 1, 1
        for axis in reversed(order):
            gaps *= abs(steps[axis])
            if gaps > 20:
                steps[axis] = 1
            strides[axis] = span * steps[axis]
            span *= max(1, shape[axis]) * abs(steps[axis])
        base = sum(-strides[a] * (max(1, shape[a]) - 1) for a in range(rank) if strides[a] < 0)
        self.offset = offset + base * item
        self.strides = tuple(s * item for s in strides)
        self.bytes = np.zeros(span * item + offset + 8 * item, np.uint8)

    def view(self, data=None):
        data = self.bytes if data is None else data
        return np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)


def operand(rnd, rng, shape, dtype, small):
    """An input view; some axes of extent > 1 may have stride 0."""
    repeat = [n > 1 and rnd.random() < 0.05 for n in shape]
    inner = tuple(1 if r else n for n, r in zip(shape, repeat))
    b = Buffer(rnd, inner, dtype)
    x = b.view()
    x[...] = values(rng, dtype, inner, small)
    return np.broadcast_to(x, shape) if any(repeat) else x


# ---- random expressions --------------------------------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def spaces(rnd, text):
    if rnd.random() > 0.1:
        return text
    out = ""
    i = 0
    while i < len(text):
        token = next((t for t in ("...", "->") if text.startswith(t, i)), text[i])
        out += " " * rnd.choice([0, 0, 1, 2]) + token
        i += len(token)
    return out + " " * rnd.choice([0, 1])


def expression(rnd):
    """(expression, shapes) that NumPy accepts; the index space stays small."""
    many = rnd.random() < 0.04
    nop = rnd.randint(20, 30) if many else rnd.choice([1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 6])
    big = not many and rnd.random() < 0.05
    limit = 4000 if many else 1000000 if big else rnd.choice([300, 3000, 30000])
    extents = [1, 3, 8, 31, 64, 100, 300] if big else [1, 2, 2, 3, 3, 4, 5, 6, 7, 17]
    pool = rnd.sample(LETTERS, rnd.randint(1, 16 if many else 8))
    extent, space = {}, 1
    for label in pool:
        n = 0 if rnd.random() < 0.015 else rnd.choice(extents)
        if space * max(1, n) > limit:
            n = 1
        extent[label], space = n, space * max(1, n)
    ndots = rnd.choice([0, 0, 0, 1, 1, 2, 3]) if rnd.random() < 0.4 else -1
    dots = []
    for _ in range(max(0, ndots)):
        n = rnd.choice([1, 2, 3, 4])
        dots.append(n if space * n <= limit else 1)
        space *= dots[-1]
    terms, shapes = [], []
    for _ in range(nop):
        rank = rnd.choice([0, 1, 1, 2, 2] if many else [0, 1, 1, 2, 2, 3, 3, 4, 5, 6])
        labels = [rnd.choice(pool) for _ in range(rank)]
        volume = 1
        for label in labels:
            volume *= max(1, extent[label])
        if volume > 300000 or rnd.random() < 0.7:
            labels = list(dict.fromkeys(labels))
        shape, ones = [], {}
        for label in labels:
            if label not in ones:
                ones[label] = 1 if rnd.random() < 0.06 else extent[label]
            shape.append(ones[label])
        if ndots >= 0 and rnd.random() < 0.8:
            at, k = rnd.randint(0, len(labels)), rnd.randint(0, ndots)
            part = [1 if rnd.random() < 0.2 else n for n in dots[ndots - k:]]
            labels.insert(at, "...")
            shape[at:at] = part
        terms.append("".join(labels))
        shapes.append(tuple(shape))
    text = ",".join(terms)
    used = sorted(set(text) - set(",."))
    if rnd.random() < 0.7:
        out = [c for c in used if rnd.random() < 0.5]
        rnd.shuffle(out)
        if "..." in text or rnd.random() < 0.02:
            out.insert(rnd.randint(0, len(out)), "...")
        text += "->" + "".join(out)
    return spaces(rnd, text), shapes


def result_space(expr, operands):
    """Terms of each sum, as a bound on the length of the chain of roundings."""
    sizes = {}
    for term, x in zip(expr.replace(" ", "").split("->")[0].split(","), operands):
        head, _, tail = term.partition("...")
        for label, n in list(zip(head, x.shape)) + (list(zip(tail[::-1], x.shape[::-1]))):
            sizes[label] = max(sizes.get(label, 1), n)
    total = 1
    for n in sizes.values():
        total *= n
    return total


# ---- comparison ----------------------------------------------------------------------------------

class Failure(Exception):
    pass


def eps_of(dtype):
    return float(np.finfo(dtype).eps)


def numpy_out(expr, operands, dtype):
    """NumPy's result in an array of that dtype, which takes part in the promotion."""
    natural = np.asarray(np.einsum(expr, *operands, optimize=False))
    if natural.dtype == dtype:
        return natural
    out = np.zeros(natural.shape, dtype)
    np.einsum(expr, *operands, out=out, casting="same_kind", optimize=False)
    return out


def compare(expr, operands, got):
    """got against NumPy's result in an array of its dtype."""
    ref = numpy_out(expr, operands, got.dtype)
    if got.shape != ref.shape:
        raise Failure("shape %s, NumPy %s" % (got.shape, ref.shape))
    if got.dtype.kind in "biu":
        if not np.array_equal(got, ref):
            raise Failure("differs:\n%s\nNumPy\n%s" % (got, ref))
        return
    work = np.result_type(got.dtype, *[x.dtype for x in operands])
    wide = np.complex128 if work.kind == "c" else np.float64
    exact_in = [x.astype(work).astype(wide) for x in operands]
    exact = np.einsum(expr, *exact_in, optimize=False)
    size = np.einsum(expr, *[np.abs(x) for x in exact_in], optimize=False)
    length = result_space(expr, operands) + 4 * len(operands)
    eps = eps_of(np.float32 if work == np.float16 else work)
    steps = 2 * length if length < 100 else 20 * length ** 0.5 + 180
    tiny = np.finfo(got.dtype).smallest_subnormal
    bound = size * eps * steps + np.abs(exact) * eps_of(got.dtype) + tiny
    safe = size < 0.9 * float(np.finfo(got.dtype).max)  # beyond, overflow depends on the order
    error = np.where(safe, np.abs(np.where(safe, got, 0).astype(wide) - exact), 0)
    if not np.all(error <= bound):
        raise Failure("error %g, bound %g\n%s\nexact\n%s" % (
            np.max(error), np.max(bound), got, exact))
    # NumPy may round partial sums of halves, or to a narrow output.
    eps = max(eps_of(work), eps_of(got.dtype))
    tiny = max(np.finfo(work).smallest_subnormal, tiny)
    loose = bound + 4 * length * (size * eps + tiny)
    safe &= np.isfinite(ref)
    error = np.where(safe, np.abs(np.where(safe, got, 0).astype(wide) - np.where(safe, ref, 0)), 0)
    if not np.all(error <= loose):
        raise Failure("error %g against NumPy, bound %g\n%s\nNumPy\n%s" % (
            np.max(error), np.max(loose), got, ref))


def check(einsum, rnd, expr, operands, ref, ctx, plain=False):
    text = expr.encode()
    status, code, shape = einsum.shape(text, operands, ctx)
    if status != "EIN_OK":
        raise Failure("ein_einsum_out: %s %s" % (status, einsum.message()))
    if code != CODES[ref.dtype] or shape != ref.shape:
        raise Failure("result is %d %s, NumPy has %s %s" % (code, shape, ref.dtype, ref.shape))
    dtype = ref.dtype
    if not plain and rnd.random() < 0.1:
        dtype = np.dtype(rnd.choice([d for d in DTYPES if np.can_cast(ref.dtype, d, "same_kind")]))
    target = Buffer(rnd, ref.shape, dtype, plain=1.0 if plain else 0.4)
    target.bytes[...] = 0xA5
    if dtype.kind == "b":
        target.bytes[...] = 1
    before = target.bytes.copy()
    saved = [x.copy() for x in operands]
    status = einsum.run(text, operands, target.view(), ctx)
    if status != "EIN_OK":
        raise Failure("%s %s" % (status, einsum.message()))
    got = target.view().copy()
    target.view(before)[...] = got
    if not np.array_equal(before, target.bytes):
        raise Failure("wrote outside the output")
    for k, x in enumerate(operands):
        if x.tobytes() != saved[k].tobytes():
            raise Failure("operand %d was changed" % k)
    compare(expr, operands, got)


def overlap_case(einsum, rnd, rng, expr, operands, ref, ctx):
    """The output lies over an operand: same place, shifted, or another view of its memory."""
    k = rnd.randrange(len(operands))
    x, dtype = operands[k], ref.dtype
    item = dtype.itemsize
    room = np.zeros(x.nbytes + ref.nbytes + 64, np.uint8)
    ordered = rnd.random() < 0.5
    inner = np.ndarray(x.shape, x.dtype, room, 0, order="C" if ordered else "F")
    inner[...] = x
    if ref.size > 0 and rnd.random() < 0.4:
        offset = 0
    else:
        offset = min(rnd.randrange(0, 4) * item + rnd.choice([0, 0, 0, 1]), 60)
    out = np.ndarray(ref.shape, dtype, room, offset, order=rnd.choice("CF"))
    if rnd.random() < 0.3 and ref.ndim > 0:
        out = out[::-1]
    kept = operands[k].copy()
    operands = operands[:k] + [inner] + operands[k + 1:]
    status = einsum.run(expr.encode(), operands, out, ctx)
    if status != "EIN_OK":
        raise Failure("overlap: %s %s" % (status, einsum.message()))
    operands[k] = kept
    try:
        compare(expr, operands, out.copy())
    except Failure as e:
        raise Failure("output over operand %d at byte %d: %s" % (k, offset, e))


def describe(expr, operands):
    return "%r %s" % (expr, " ".join("%s%s%s" % (x.dtype.str, list(x.shape), list(x.strides))
                                     for x in operands))


def accept_case(einsum, rnd, rng, counts):
    expr, shapes = expression(rnd)
    same = rnd.random() < 0.6
    first = rnd.choice(DTYPES)
    operands = [operand(rnd, rng, s, first if same else rnd.choice(DTYPES), len(shapes) > 8)
                for s in shapes]
    ctx = rnd.random() < 0.75
    try:
        with np.errstate(all="ignore"):
            ref = np.asarray(np.einsum(expr, *operands, optimize=False))
    except ValueError as e:
        return reject(einsum, expr, operands, ctx, counts, str(e))
    counts["with ctx" if ctx else "without ctx"] += 1
    with np.errstate(all="ignore"):
        try:
            check(einsum, rnd, expr, operands, ref, ctx)
            if rnd.random() < 0.15:
                counts["overlapping"] += 1
                overlap_case(einsum, rnd, rng, expr, operands, ref, ctx)
        except Failure as e:
            raise Failure("%s\n%s" % (describe(expr, operands), e))


def reject(einsum, expr, operands, ctx, counts, why):
    """NumPy said no: so must the library, in both calls."""
    try:
        text = expr.encode()
    except UnicodeEncodeError:
        return
    counts["rejected"] += 1
    status, _, _ = einsum.shape(text, operands, ctx)
    if status not in ACCEPTED_STATUS:
        raise Failure("%s\nNumPy rejects (%s), ein_einsum_out says %s" % (
            describe(expr, operands), why, status))
    out = np.zeros((), operands[0].dtype if operands else np.float64)
    status = einsum.run(text, operands, out, ctx)
    if status not in ACCEPTED_STATUS:
        raise Failure("%s\nNumPy rejects (%s), ein_einsum says %s" % (
            describe(expr, operands), why, status))
    if ctx and not einsum.message():
        raise Failure("%s\nno message" % describe(expr, operands))


def mutate(rnd, expr, shapes):
    """A malformed or mismatching neighbour, which may still be legal."""
    kind = rnd.randrange(6)
    if kind <= 2:  # edit the text
        for _ in range(rnd.choice([1, 1, 2])):
            i = rnd.randint(0, len(expr))
            piece = rnd.choice(["", ".", "..", "...", ",", "->", "-", ">", " ", "a", "i", "Z", "0",
                                "_", "\t", "[", "->i", "i,"])
            expr = expr[:i] + piece + expr[i + rnd.choice([0, 0, 1, 2]):]
    elif kind == 3:  # another extent
        k = rnd.randrange(len(shapes))
        if shapes[k]:
            a = rnd.randrange(len(shapes[k]))
            s = list(shapes[k])
            s[a] = rnd.choice([0, 1, 2, 3, 5])
            shapes = shapes[:k] + [tuple(s)] + shapes[k + 1:]
    elif kind == 4:  # another rank
        k = rnd.randrange(len(shapes))
        s = shapes[k][:-1] if shapes[k] and rnd.random() < 0.5 else shapes[k] + (2,)
        shapes = shapes[:k] + [s] + shapes[k + 1:]
    elif rnd.random() < 0.5 and len(shapes) > 1:
        shapes = shapes[:-1]
    else:
        shapes = shapes + [(2,)]
    return expr, shapes


def diagonal_of_nothing(expr, operands):
    """A label repeated within one operand over the extents 0 and n."""
    for term, x in zip(expr.replace(" ", "").split("->")[0].split(","), operands):
        head, dots, tail = term.partition("...")
        axes = list(zip(head, x.shape)) + (list(zip(tail[::-1], x.shape[::-1])) if dots else [])
        for label, n in axes:
            if n == 0 and any(c == label and m != 0 for c, m in axes):
                return True
    return False


def error_case(einsum, rnd, rng, counts):
    expr, shapes = mutate(rnd, *expression(rnd))
    if result_size(shapes) > 20000:
        return
    operands = [operand(rnd, rng, s, "f8", False) for s in shapes]
    ctx = rnd.random() < 0.8
    try:
        ref = np.asarray(np.einsum(expr, *operands, optimize=False))
    except ValueError as e:
        return reject(einsum, expr, operands, ctx, counts, str(e))
    if diagonal_of_nothing(expr, operands):
        return reject(einsum, expr, operands, ctx, counts, "it should")
    counts["mutants accepted"] += 1
    try:
        check(einsum, rnd, expr, operands, ref, ctx)
    except Failure as e:
        raise Failure("%s\nNumPy accepts; %s" % (describe(expr, operands), e))


def result_size(shapes):
    total = 1
    for s in shapes:
        for n in s:
            total *= max(1, n)
    return total if len(shapes) < 7 else 0


def example_case(einsum, rnd, rng, expr, shapes, dtype, ctx):
    operands = [operand(rnd, rng, s, dtype, True) for s in shapes]
    with np.errstate(all="ignore"):
        ref = np.asarray(np.einsum(expr, *operands, optimize=False))
        try:
            check(einsum, rnd, expr, operands, ref, ctx)
        except Failure as e:
            raise Failure("example %s\n%s" % (describe(expr, operands), e))


def more_than_numpy(einsum, rng):
    """What only this library accepts."""
    a, b = rng.random((3, 4)), rng.random((4, 5))
    out = np.zeros((3, 5))
    greek = "\u03b1\u03b2,\u03b2\u03b3->\u03b1\u03b3".encode()
    if einsum.run(greek, [a, b], out) != "EIN_OK" or not np.allclose(out, a @ b):
        raise Failure("Greek labels")
    many = [rng.uniform(0.9, 1.1, 3) for _ in range(100)]
    out = np.zeros(3)
    if einsum.run((",".join("i" * 100) + "->i").encode(), many, out) != "EIN_OK":
        raise Failure("100 operands: %s" % einsum.message())
    if not np.allclose(out, np.prod(np.array(many), 0)):
        raise Failure("100 operands: wrong result")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=6000, help="random expressions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--so", help="shared library to test")
    parser.add_argument("--cpu", type=int, default=0, help="threads of einsum_cpu.h; 0: portable")
    parser.add_argument("--isa", default="", help="instruction set for --cpu")
    parser.add_argument("--keep-going", type=int, default=1, help="failures before it stops")
    args = parser.parse_args()
    einsum = Library(args.so, args.cpu, args.isa)
    print("numpy_diff: NumPy %s, seed %d" % (np.__version__, args.seed))
    counts = dict.fromkeys(["examples", "with ctx", "without ctx", "overlapping", "rejected",
                            "mutants accepted"], 0)
    failures = 0
    cases = []
    for expr, shapes in EXAMPLES:
        for dtype in ("f4", "f8", "i4", "c16", "?"):
            cases.append((example_case, (expr, shapes, dtype, dtype != "f4")))
    cases += [(REJECTED, r) for r in REJECTED]
    cases += [(accept_case, None)] * args.n + [(error_case, None)] * (args.n // 2)
    cases.append((more_than_numpy, None))
    for i, (kind, extra) in enumerate(cases):
        if args.case is not None and i != args.case:
            continue
        rnd = random.Random(args.seed * 1000003 + i)
        rng = np.random.default_rng(args.seed * 1000003 + i)
        try:
            if kind is example_case:
                counts["examples"] += 1
                example_case(einsum, rnd, rng, *extra)
            elif kind is REJECTED:
                reject(einsum, extra[0], [np.ones(s) for s in extra[1]], True, counts, "listed")
            elif kind is more_than_numpy:
                more_than_numpy(einsum, rng)
            else:
                kind(einsum, rnd, rng, counts)
        except Failure as e:
            failures += 1
            print("numpy_diff: FAIL case %d (--seed %d --case %d)\n%s" % (i, args.seed, i, e))
            if failures >= args.keep_going:
                break
    einsum.lib.ein_ctx_destroy(einsum.ctx)
    print("numpy_diff: %s: %s, %d disagreements" % (
        "ok" if failures == 0 else "FAILED",
        ", ".join("%d %s" % (n, name) for name, n in counts.items()), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
