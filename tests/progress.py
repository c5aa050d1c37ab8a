#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What is shown while work takes long: tests/progress.py BINARY. One line on a terminal, drawn again
# and again and gone at the end; nothing elsewhere. No package.

import os
import re
import subprocess
import sys
import tempfile
import time

try:
    import pty
    MASTER, SLAVE = pty.openpty()
except (ImportError, OSError) as e:
    print("progress.py: SKIPPED, no pseudo terminal:", e)
    sys.exit(0)
os.close(MASTER)
os.close(SLAVE)
BINARY = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
os.chdir(FOLDER.name)
CLEAR = "\r\x1b[K"
failed = 0


def expect(ok, *what):
    global failed
    if not ok:
        print("progress.py:", *what)
        failed = 1


# Status, seconds, and what arrives at a terminal that is the standard error.
def terminal(*words):
    master, slave = pty.openpty()
    begin = time.monotonic()
    with open("progress.out", "wb") as out, \
            subprocess.Popen([BINARY, *words], stdout=out, stderr=slave) as p:
        os.close(slave)
        text = b""
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # how the end looks on Linux
                more = b""
            if not more:
                break
            text += more
    os.close(master)
    return p.returncode, time.monotonic() - begin, text.decode()


# The lines that were drawn, if they were, and nothing else, and the last one is gone.
def lines(words, status, text):
    drawn = [x for x in text.split(CLEAR) if x]
    expect(status == 0, words, "status", status, repr(text))
    expect(drawn and text.startswith(CLEAR) and text.endswith(CLEAR), words, "shows", repr(text))
    expect("\n" not in text and all(x.startswith("einsum: ") and len(x) < 80 for x in drawn), words,
           "does not stay in a line:", repr(text))
    return drawn


CHAIN = "ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm,mn,no,op,pa->"
LONG = ["--shapes", ",".join(["2x2"] * 16), "--path", "random", "--budget", "3"]


def main():
    words = ["plan", CHAIN, *LONG]
    status, _, text = terminal(*words)
    drawn = lines(words, status, text)
    expect(len(drawn) >= 3 and all(re.fullmatch(r"einsum: planning, \d+ s", x) for x in drawn),
           words, "shows", drawn)
    status, _, text = terminal(*words, "-q")
    expect((status, text) == (0, ""), "-q shows", repr(text))
    piped = subprocess.run([BINARY, *words], capture_output=True, check=True)
    expect(piped.stderr == b"", "no terminal, but", piped.stderr)
    status, _, text = terminal("plan", "ij,jk", "--shapes", "2x3,3x4")
    expect((status, text) == (0, ""), "short work shows", repr(text))
    words = ["bench", CHAIN, *LONG]
    status, _, text = terminal(*words)
    drawn = lines(words, status, text)
    expect(any("timing, " in x for x in drawn), words, "shows", drawn)

    # A run that is long enough on this machine, in tasks that are done one after another.
    n, words = 1 << 14, ["run", "progress.ein", "-p", "64", "--parts", "S[i=64]", "-j", "1",
                         "--kernels", "portable"]
    seconds = 0
    while seconds < 4:
        with open("progress.ein", "w", encoding="utf-8") as f:
            f.write("S = sum[i=%d](sin(0.37*i))\n" % n)
        status, seconds, text = terminal(*words)
        n *= 2 if seconds < 1 else 6 / seconds
        n = int(n)
    drawn = lines(words, status, text)
    done = [re.fullmatch(r"einsum: running, (\d+) of (\d+) tasks, \d+ s", x) for x in drawn]
    expect(all(done), words, "shows", drawn)
    counts = [int(m.group(1)) for m in done if m]
    expect(len(counts) >= 3 and counts == sorted(counts) and counts[-1] > counts[0] and
           all(int(m.group(2)) >= 64 for m in done if m), words, "counts", counts)


main()
sys.exit(failed)
