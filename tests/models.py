#!/usr/bin/env python3
"""The programs of examples/models against straightforward NumPy, through the command; and random
attention, of several heads and with masks, so large that it runs in blocks along its sums.

Usage: tests/models.py PATH-OF-EINSUM [further options of `einsum run`]
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "models")
rng = np.random.default_rng(7)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def chain(A, B, C, D, E):
    return {"Z": A @ B + C @ (D @ E)}


def attention(Q, K, V):
    return {"Y": softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ V}


def training(X, W, V, L):
    h = np.maximum(X @ W, 0)
    m = h @ V
    m -= m.max(-1, keepdims=True)
    p = m - np.log(np.exp(m).sum(-1, keepdims=True))
    g = (np.exp(p) * L.sum(-1, keepdims=True) - L) / len(X)
    dh = (g @ V.T) * (h > 0)
    return {"E": -(L * p).sum() / len(X), "W2": W - 0.1 * X.T @ dh, "V2": V - 0.1 * h.T @ g}


def heads(x, w):
    return (x @ w.reshape(w.shape[0], -1)).reshape(x.shape[0], *w.shape[1:])


def mha(X, WQ, WK, WV, WO):
    q, k, v = heads(X, WQ), heads(X, WK), heads(X, WV)
    y = np.zeros_like(X)
    for h in range(WQ.shape[1]):
        y += attention(q[:, h], k[:, h], v[:, h])["Y"] @ WO[:, h].T
    return {"Y": y}


def rmsnorm(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def rotate(x):
    d = x.shape[-1]
    angle = np.arange(len(x))[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None, :]
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def llama_layer(X, WQ, WK, WV, WO, G1, G2, W1, W2, W3):
    n = rmsnorm(X, G1)
    q, k, v = rotate(heads(n, WQ)), rotate(heads(n, WK)), heads(n, WV)
    r = X.copy()
    for h in range(WQ.shape[1]):
        t = q[:, h] @ k[:, h].T / np.sqrt(WQ.shape[2])
        t[np.triu_indices(len(X), 1)] = -np.inf
        r += softmax(t) @ v[:, h] @ WO[h]
    m = rmsnorm(r, G2)
    u = m @ W1
    return {"Z": r + (u / (1 + np.exp(-u)) * (m @ W3)) @ W2}


def draw(dtype, **shapes):
    return {k: (rng.standard_normal(s) / np.sqrt(max(s[0], 1))).astype(dtype)
            for k, s in shapes.items()}


def cases():
    for i, j, k, l, m in ((16, 16, 16, 16, 16), (40, 4, 40, 4, 400), (7, 1, 5, 3, 2)):
        yield "chain", chain, draw("f8", A=(i, j), B=(j, k), C=(i, l), D=(l, m), E=(m, k))
    for s, t, d, e in ((32, 48, 8, 5), (1, 1, 1, 1), (200, 300, 16, 16)):
        yield "attention", attention, draw("f8", Q=(s, d), K=(t, d), V=(t, e))
    yield "softmax", lambda X: {"P": softmax(X)}, draw("f8", X=(30, 70))
    for b, a, f, c in ((20, 30, 40, 10), (7, 1, 3, 2)):
        yield "training", training, draw("f8", X=(b, a), W=(a, f), V=(f, c), L=(b, c))
    for s, a, h, d in ((24, 16, 4, 4), (65, 33, 3, 5)):
        w = (a, h, d)
        yield "mha", mha, draw("f8", X=(s, a), WQ=w, WK=w, WV=w, WO=w)
    for s, a, h, d, f in ((20, 16, 2, 8, 40), (33, 48, 3, 6, 100), (1, 4, 1, 2, 3)):
        w = (a, h, d)
        yield "llama_layer", llama_layer, draw(
            "f4", X=(s, a), WQ=w, WK=w, WV=w, WO=(h, d, a), G1=(a,), G2=(a,), W1=(a, f),
            W2=(f, a), W3=(a, f))


def run(command, name, inputs, outputs, options, where):
    """The outputs, and what was said; name: of a program of examples/models, or a path."""
    args = [command, "run", os.path.join(MODELS, name + ".ein")]
    for key, value in inputs.items():
        np.save(os.path.join(where, key + ".npy"), value)
        args.append(f"{key}={where}/{key}.npy")
    for key in outputs:
        args += ["-o", f"{key}={where}/out_{key}.npy"]
    said = subprocess.run(args + options, check=True, stderr=subprocess.PIPE, text=True).stderr
    return {key: np.load(os.path.join(where, f"out_{key}.npy")) for key in outputs}, said


MASKS = [(None, None), ("t <= s", lambda s, t: t <= s), ("t < s + 5", lambda s, t: t < s + 5),
         ("s >= 2*t - 300", lambda s, t: s >= 2 * t - 300), ("t > s", lambda s, t: t > s),
         ("s + t > 900", lambda s, t: s + t > 900)]


def masked(Q, K, V, mask):
    x = Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[2])
    if mask is not None:
        i = np.arange(x.shape[1])[:, None]
        x = np.where(mask(i, np.arange(x.shape[2])), x, -np.inf)
    return softmax(x) @ V


def attend(command, options, where):
    """One random case. Returns whether it ran in a group whose folds go on."""
    h, s, t, d, e = (int(rng.integers(*b)) for b in ((1, 3), (200, 900), (400, 2000), (3, 90),
                                                     (1, 90)))
    text, mask = MASKS[rng.integers(len(MASKS))]
    dtype = ("f4", "f8")[rng.integers(2)]
    data = {k: rng.standard_normal(n).astype(dtype)
            for k, n in (("Q", (h, s, d)), ("K", (h, t, d)), ("V", (h, t, e)))}
    odd = rng.integers(5)  # what a mask leaves out is multiplied by it all the same
    if odd < 2:
        data["V"][0, t - 1 - odd * t // 2, 0] = (np.inf, np.nan)[odd]
    x = "sum[d](Q[h,s,d] * K[h,t,d]) / sqrt(size(d))"
    program = ("input Q[h,s,d], K[h,t,d], V[h,t,e]\n"
               f"T[h,s,t] = {x if text is None else f'where({text}, {x}, -inf)'}\n"
               "P[h,s,t] = softmax[t](T[h,s,t])\n"
               "Y[h,s,e] = sum[t](P[h,s,t] * V[h,t,e])\noutput Y\n")
    with open(os.path.join(where, "masked.ein"), "w", encoding="utf-8") as f:
        f.write(program)
    got, said = run(command, os.path.join(where, "masked"), data, ["Y"],
                    [*options, "--explain"], where)
    with np.errstate(all="ignore"):
        want = masked(*(v.astype("f8") for v in data.values()), mask)
        known = np.isfinite(want)
        same = all(np.array_equal(f(got["Y"]), f(want)) for f in (np.isnan, np.isposinf))
        error = np.abs(got["Y"] - want)[known].max() if known.any() else 0
    if not same or not error <= (1e-10 if dtype == "f8" else 1e-4):
        sys.exit(f"models: {(h, s, t, d, e)} {dtype} {odd}: error {error}, {same}\n{program}")
    return ".part[" in said


def main():
    count = 0
    with tempfile.TemporaryDirectory() as where:
        for name, reference, inputs in cases():
            want = reference(**{k: v.astype("f8") for k, v in inputs.items()})
            got, _ = run(sys.argv[1], name, inputs, want, sys.argv[2:], where)
            bound = 1e-12 if inputs[next(iter(inputs))].dtype == np.float64 else 2e-5
            for key, value in want.items():
                error = np.abs(got[key] - value).max() / max(1.0, np.abs(value).max())
                if got[key].shape != value.shape or not error <= bound:
                    sys.exit(f"models: {name}, {key}: error {error}, allowed {bound}")
                count += 1
        streamed = sum(attend(sys.argv[1], sys.argv[2:], where) for _ in range(16))
        count += 16
        if "--kernels" not in sys.argv and streamed == 0:
            sys.exit("models: no attention ran in blocks along its sums")
    print(f"models: {count} results agree with NumPy")


if __name__ == "__main__":
    main()
