"""Einsums drawn from wide distributions: shapes that nobody has tuned for.

A family draws index strings, and a range for each index. Extents are log-uniform in their range, as
often odd as even, or primes; of many draws the one stays whose arrays are nearest to a size that is
itself drawn, log-uniform from what fits the first cache to four times the last one.
"""
import itertools
import math
import random

from cases import Case

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEAST = 16 << 10       # bytes of all operands in f64
FLOPS = 2.5e9          # the most of one case
TRIES = 150


def cache_bytes():
    """The largest cache of the first processor; 32 MiB where it is not told."""
    found = [32 << 20]
    for i in range(5):
        try:
            with open("/sys/devices/system/cpu/cpu0/cache/index%d/size" % i, encoding="ascii") as f:
                text = f.read().strip()
            found.append(int(text[:-1]) << {"K": 10, "M": 20}[text[-1]])
        except (OSError, ValueError, KeyError):
            continue
    return max(found[1:] or found)


def extent(rng, low, high):
    n = int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))
    if low == high:
        return low
    odd = rng.random() < 0.5
    return max(low, min(high, n | 1 if odd else (n + 1) & ~1))


def prime(rng, low, high):
    n = extent(rng, low, high)
    while any(n % d == 0 for d in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


def pair_flops(left, right, kept, ext):
    union = set(left) | set(right)
    return math.prod(ext[x] for x in union) * (2 if union - kept else 1)


def flops(ins, out, ext):
    """Of the cheapest order of pairs: 1 per point of a product, 2 where an index is summed."""
    if len(ins) == 1:
        return math.prod(ext[x] for x in set(ins[0]))
    best = math.inf
    for i, j in itertools.combinations(range(len(ins)), 2):
        rest = [x for k, x in enumerate(ins) if k not in (i, j)]
        kept = set(out).union(*rest)
        cost = pair_flops(ins[i], ins[j], kept, ext)
        if rest and cost < best:
            cost += flops(rest + ["".join(sorted((set(ins[i]) | set(ins[j])) & kept))], out, ext)
        best = min(best, cost)
    return best


def shuffled(rng, labels):
    return "".join(rng.sample(labels, len(labels)))


# ---- families: (operands, output, {index: (least, most)}) ----------------------------------------

def matrix(rng):
    ins, out = rng.choice([("mk kn", "mn"), ("mk nk", "mn"), ("km kn", "mn"), ("km nk", "mn"),
                           ("mk kn", "nm"), ("mk k", "m"), ("km k", "m"), ("m n", "mn"),
                           ("mk kn", "mn"), ("k k", "")])
    return ins.split(), out, dict.fromkeys("mkn", (1, 10 ** 6))


def batched(rng):
    axes = [("bmk", "bkn", "bmn"), ("bm", "bkn", "bkmn"), ("bmk", "bk", "bm"), ("abmk", "abkn",
                                                                              "abmn")]
    left, right, out = (shuffled(rng, x) for x in rng.choice(axes))
    return [left, right], out, {"a": (2, 64), "b": (2, 20000), "m": (1, 300), "n": (1, 300),
                                "k": (1, 300)}


def chemistry(rng):
    """Two amplitudes or integrals over occupied (i..l) and virtual (a..f) orbitals."""
    summed = rng.choice(["ef", "me", "mn", "mef"])
    free = rng.choice([("ij", "ab"), ("ia", "jb"), ("ija", "b"), ("i", "jab"), ("a", "ijb")])
    ins = [shuffled(rng, summed + free[0]), shuffled(rng, summed + free[1])]
    span = {x: (5, 40) for x in "ijmn"}
    span.update({x: (20, 120) for x in "abef"})
    return ins, shuffled(rng, "".join(free)), span


def elements(rng):
    """Small matrices on many elements, whole or one axis at a time."""
    ins, out = rng.choice([("ij ej", "ei"), ("ij je", "ie"), ("ai eijk", "eajk"),
                           ("aj eijk", "eiak"), ("ak eijk", "eija"), ("eq qi qj", "eij"),
                           ("eij ej", "ei"), ("xre rij ej", "xei"), ("edq qi", "eid"),
                           ("ij xej", "xei"), ("ij exj", "ixe")])
    span = dict.fromkeys("ijkq", (2, 16))
    span.update({"a": (2, 20), "e": (50, 200000), "x": (2, 4), "r": (2, 3), "d": (2, 4)})
    return ins.split(), out, span


def network(rng):
    ins, out = rng.choice([("lsr rtm", "lstm"), ("lsr lsm", "rm"), ("lm lsr", "msr"),
                           ("lsr wsxv", "lwrxv"), ("lwm lsr", "wmsr"), ("uldrs uabcs", "ldrabc"),
                           ("lsr sx rxm", "lm"), ("lwm lsr wsxv", "mrxv")])
    ins = [shuffled(rng, x) if rng.random() < 0.3 else x for x in ins.split()]
    span = dict.fromkeys("lrmuabc", (2, 200))
    span.update(dict.fromkeys("sxtwvd", (2, 8)))
    return ins, out, span


def attention(rng):
    ins, out = rng.choice([("bshd bthd", "bhst"), ("bhsd bhtd", "bhst"), ("bhst bthd", "bshd"),
                           ("bsm mhd", "bshd"), ("bshd hdm", "bsm"), ("bhd bthd", "bht"),
                           ("bht bthd", "bhd"), ("bsm mn", "bsn"), ("bsm nm", "bsn")])
    return ins.split(), out, {"b": (1, 16), "s": (1, 1500), "t": (1, 1500), "h": (1, 16),
                              "d": (16, 128), "m": (64, 2048), "n": (64, 2048)}


def gram(rng):
    ins, out = rng.choice([("ni n nj", "ij"), ("bni bn bnj", "bij"), ("ni nj", "ij"),
                           ("in n jn", "ij"), ("ni nj nk", "ijk")])
    return ins.split(), out, {"n": (10, 10 ** 6), "i": (1, 200), "j": (1, 200), "k": (1, 40),
                              "b": (2, 100)}


def permutation(rng):
    labels = LETTERS[:rng.randint(2, 6)]
    out = labels
    while out == labels:
        out = shuffled(rng, labels)
    return [labels], out, dict.fromkeys(labels, (2, 10 ** 5 if len(labels) == 2 else 2000))


def reduction(rng):
    labels = LETTERS[:rng.randint(2, 5)]
    return [labels], "".join(sorted(rng.sample(labels, rng.randint(0, len(labels) - 1)))), \
        dict.fromkeys(labels, (2, 20000))


def broadcast(rng):
    ins, out = rng.choice([("ij j", "ij"), ("ij i", "ij"), ("ijk ik", "ijk"), ("ijk j", "ijk"),
                           ("ij ji", "ij"), ("ij ij", "ij"), ("i j k", "ijk"), ("ij k", "ikj"),
                           ("ijk ijk", "ij"), ("ij j", "ji")])
    return ins.split(), out, dict.fromkeys("ijk", (2, 20000))


def several(rng):
    """Three to five operands."""
    ins, out = rng.choice([("ijk ja ka", "ia"), ("ijk ia ka", "ja"), ("ijk ia ja", "ka"),
                           ("ijkl ja ka la", "ia"), ("ijk jb kc", "ibc"), ("ijk ia jb kc", "abc"),
                           ("ij jk kl", "il"), ("ij jk kl lm", "im"), ("ijkl jb kc ld", "ibcd"),
                           ("ij jk kl lm mn", "in"), ("i ij j", ""), ("ia ij jb", "ab")])
    span = dict.fromkeys("ijklmn", (2, 600))
    span.update(dict.fromkeys("abcd", (2, 64)))
    return ins.split(), out, span


FAMILIES = [matrix, batched, chemistry, elements, network, attention, gram, permutation, reduction,
            broadcast, several]


def draw(rng, family, most):
    want = math.log(LEAST) + rng.random() * math.log(most / LEAST)
    best = None
    for _ in range(TRIES):
        ins, out, span = family(rng)
        used = [x for x in span if x in "".join(ins)]
        some = prime if family in (permutation, reduction) else extent
        ext = {x: some(rng, *span[x]) for x in used}
        size = 8 * sum(math.prod(ext[x] for x in s) for s in ins + [out])
        if flops(ins, out, ext) > FLOPS:
            continue
        far = abs(math.log(size) - want)
        if best is None or far < best[0]:
            best = far, ins, out, ext
    return best[1:]


def cases(seed, count=100):
    rng, most = random.Random(seed), 4 * cache_bytes()
    found = []
    for n in range(count):
        family = FAMILIES[n % len(FAMILIES)]
        ins, out, ext = draw(rng, family, most)
        found.append(Case("%s_%d | %s | %s->%s | %s | flops=%d" % (
            family.__name__, n, family.__name__, ",".join(ins), out,
            ",".join("%s=%d" % e for e in ext.items()), flops(ins, out, ext))))
    return found
