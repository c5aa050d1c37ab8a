#!/usr/bin/env python3
"""Programs of examples/models on all cores beside NumPy and PyTorch, f32, in one run.

Usage: bench/programs.py BUILD/programs_bench [THREADS [ROUNDS [NAMES]]]

NAMES: of programs, comma-separated: others are left out. Ours as one plan and decomposed over
THREADS places. Rounds take everybody in turn; the table has the medians in milliseconds and the
ratio of the best peer to the better of ours.
"""
import os
import subprocess
import sys
import time

THREADS = sys.argv[2] if len(sys.argv) > 2 else "2"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = THREADS
os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import numpy as np  # noqa: E402  (threads first)

try:
    import torch
    torch.set_num_threads(int(THREADS))
except ImportError:
    torch = None

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = (os.path.join(HERE, "..", "examples", "models"), os.path.join(HERE, "cases"))
rng = np.random.default_rng(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_chain(A, B, C, D, E):
    return A @ B + C @ (D @ E)


def np_softmax(X):
    return softmax(X)


def torch_softmax(X):
    return torch.softmax(X, -1)


def np_attention(Q, K, V):
    return softmax(Q @ K.T / np.float32(np.sqrt(Q.shape[1]))) @ V


def torch_attention(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None])[0]


def np_heads(Q, K, V):
    return softmax(Q @ K.transpose(0, 2, 1) / np.float32(np.sqrt(Q.shape[2]))) @ V


def torch_heads(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None])[0]


def np_causal(Q, K, V):
    s = np.arange(Q.shape[1])
    x = Q @ K.transpose(0, 2, 1) / np.float32(np.sqrt(Q.shape[2]))
    return softmax(np.where(s[None, :] <= s[:, None], x, np.float32(-np.inf))) @ V


def torch_causal(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None],
                                                            is_causal=True)[0]


def in_window(n):
    s = np.arange(n)
    return (s[None, :] <= s[:, None]) & (s[:, None] - s[None, :] < 256)


def np_window(Q, K, V):
    x = Q @ K.transpose(0, 2, 1) / np.float32(np.sqrt(Q.shape[2]))
    return softmax(np.where(in_window(Q.shape[1]), x, np.float32(-np.inf))) @ V


def torch_window(Q, K, V):
    mask = torch.from_numpy(in_window(Q.shape[1]))
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None],
                                                            attn_mask=mask)[0]


def np_mlp(X, G, B, W, C, V, D):
    x = X - X.mean(-1, keepdims=True)
    h = (x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5)) * G + B) @ W + C
    t = np.tanh(np.float32(0.7978845608) * (h + np.float32(0.044715) * h * h * h))
    return (np.float32(0.5) * h * (1 + t)) @ V + D  # near enough to be timed


def torch_mlp(X, G, B, W, C, V, D):
    n = torch.nn.functional.layer_norm(X, X.shape[-1:], G, B, 1e-5)
    return torch.addmm(D, torch.nn.functional.gelu(torch.addmm(C, n, W)), V)


def np_mha(X, WQ, WK, WV, WO):
    a, h, d = WQ.shape
    q, k, v = ((X @ w.reshape(a, h * d)).reshape(-1, h, d).transpose(1, 0, 2)
               for w in (WQ, WK, WV))
    o = softmax(q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(d))) @ v
    return o.transpose(1, 0, 2).reshape(-1, h * d) @ WO.reshape(a, h * d).T


def torch_mha(X, WQ, WK, WV, WO):
    a, h, d = WQ.shape
    q, k, v = ((X @ w.reshape(a, h * d)).reshape(-1, h, d).transpose(0, 1) for w in (WQ, WK, WV))
    o = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    return o.transpose(0, 1).reshape(-1, h * d) @ WO.reshape(a, h * d).T


def np_training(X, W, V, L, rate=np.float32(0.1)):
    h = np.maximum(X @ W, 0)
    y = h @ V
    m = y - y.max(-1, keepdims=True)
    p = m - np.log(np.exp(m).sum(-1, keepdims=True))
    b = np.float32(len(X))
    g = (np.exp(p) * L.sum(-1, keepdims=True) - L) / b
    dh = (g @ V.T) * (h > 0)
    return -(L * p).sum() / b, W - rate * (X.T @ dh), V - rate * (h.T @ g)


def torch_training(X, W, V, L, rate=0.1):
    W, V = W.detach().requires_grad_(), V.detach().requires_grad_()
    e = -(L * torch.log_softmax(torch.relu(X @ W) @ V, -1)).sum() / len(X)
    e.backward()
    with torch.no_grad():
        return e, W - rate * W.grad, V - rate * V.grad


CASES = [
    ("softmax", dict(s=4096, t=4096), dict(X="st"), np_softmax, torch_softmax),
    ("attention", dict(s=2048, t=2048, d=64, e=64), dict(Q="sd", K="td", V="te"), np_attention,
     torch_attention),
    *[(name, dict(h=h, s=s, t=s, d=d, e=d), dict(Q="hsd", K="htd", V="hte"), n, t)
      for name, n, t in (("heads", np_heads, torch_heads), ("causal", np_causal, torch_causal),
                         ("window", np_window, torch_window))
      for h, s, d in ((1, 512, 64), (1, 2048, 64), (1, 2048, 128), (1, 8192, 64), (16, 512, 64),
                      (16, 1000, 128), (8, 2048, 64))],
    ("mlp", dict(s=512, a=768, f=3072),
     dict(X="sa", G="a", B="a", W="af", C="f", V="fa", D="a"), np_mlp, torch_mlp),
    ("mha", dict(s=512, a=512, h=8, d=64), dict(X="sa", WQ="ahd", WK="ahd", WV="ahd", WO="ahd"),
     np_mha, torch_mha),
    ("training", dict(b=256, a=1024, f=1024, c=1000), dict(X="ba", W="af", V="fc", L="bc"),
     np_training, torch_training),
    ("chain", dict(i=1024, j=1024, k=1024, l=1024, m=1024),
     dict(A="ij", B="jk", C="il", D="lm", E="mk"), np_chain, np_chain),
    ("chain", dict(i=2000, j=200, k=2000, l=200, m=20000),
     dict(A="ij", B="jk", C="il", D="lm", E="mk"), np_chain, np_chain),
]


def timed(f, args, seconds=0.5):
    f(*args)
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        t = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - t)
    return 1e3 * sorted(times)[len(times) // 2]


def ours(command, name, size, mode, threads):
    path = [os.path.join(d, name + ".ein") for d in MODELS]
    text = subprocess.run([command, path[0] if os.path.exists(path[0]) else path[1],
                           ",".join(f"{k}={v}" for k, v in size.items()), threads, mode, "0.5"],
                          check=True, capture_output=True, text=True).stdout
    return float(text.split()[0]), text.split(" ", 2)[2].strip() if mode == "places" else ""


def main():
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"NumPy {np.__version__}, PyTorch {torch.__version__ if torch else 'not here'}, "
          f"{THREADS} threads, {rounds} rounds\n")
    print("| program | sizes | plan, 1 thread | plan | places | NumPy | PyTorch | ratio | how |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|---|")
    wanted = sys.argv[4].split(",") if len(sys.argv) > 4 else None
    for name, size, shapes, with_numpy, with_torch in CASES:
        if wanted is not None and name not in wanted:
            continue
        data = [rng.random([size[i] for i in s], dtype="f4") - np.float32(0.5)
                for s in shapes.values()]
        tensors = [torch.from_numpy(x) for x in data] if torch else None
        times = {k: [] for k in ("one", "plan", "places", "numpy", "torch")}
        for _ in range(rounds):
            times["one"].append(ours(sys.argv[1], name, size, "plan", "1")[0])
            times["plan"].append(ours(sys.argv[1], name, size, "plan", THREADS)[0])
            t, note = ours(sys.argv[1], name, size, "places", THREADS)
            times["places"].append(t)
            times["numpy"].append(timed(with_numpy, data))
            if torch:
                times["torch"].append(timed(with_torch, tensors))
            time.sleep(0.1)  # idle workers stop spinning
        m = {k: sorted(v)[len(v) // 2] if v else float("nan") for k, v in times.items()}
        ratio = min(m["numpy"], m["torch"] if torch else m["numpy"]) / min(m["plan"], m["places"])
        print(f"| {name} | {' '.join(f'{k}={v}' for k, v in size.items())} | {m['one']:.3g} | "
              f"{m['plan']:.3g} | {m['places']:.3g} | {m['numpy']:.3g} | {m['torch']:.3g} | "
              f"{ratio:.2f} | {note} |", flush=True)


if __name__ == "__main__":
    main()
