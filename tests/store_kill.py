#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Updates of a store that are killed lose nothing: tests/store_kill.py BINARY [COUNT [SEED]]. Each
# of COUNT times two processes add a record of their own, and one of them is killed (SIGKILL) after
# a random time of up to twice what an update takes. After each the file must be whole: every
# record that was there or was said to be written is, and each line is a record that somebody wrote.

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HEAD = "einsum store 1"


def record(n):
    return f"m\tform{n % 7}\tf64->f64\t{n},3\tauto\t-\t{n + 1}\t{n + 2}\n"


def main():
    binary = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    killed = kept = new = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # As many records as a store of some size has, so that writing takes a while.
        old = {record(n) for n in range(10 ** 6, 10 ** 6 + 3000)}
        with open("all", "w", encoding="utf-8") as f:
            f.write(HEAD + "\n" + "".join(sorted(old)) + "foreign\n")
        sure, written = set(old), set(old)
        took = 0.02

        def begin(n):
            name = f"one{n % 2}"
            with open(name, "w", encoding="utf-8") as f:
                f.write(HEAD + "\n" + record(n))
            written.add(record(n))
            return subprocess.Popen([binary, "store", "merge", name, "-o", "all"])

        for i in range(count):
            both = begin(2 * i), begin(2 * i + 1)
            start = time.monotonic()
            time.sleep(rng.uniform(0, 2 * took))
            both[0].send_signal(signal.SIGKILL)
            for k, p in enumerate(both):
                status = p.wait()
                if status == 0:
                    sure.add(record(2 * i + k))
                elif k == 0 and status == -signal.SIGKILL:
                    killed += 1
                else:
                    sys.exit(f"store_kill: update {i}: status {status}")
            took = 0.9 * took + 0.1 * (time.monotonic() - start)
            with open("all", encoding="utf-8") as f:
                lines = f.readlines()
            if not lines or not lines[0].startswith(HEAD) or lines[-1] != "foreign\n":
                sys.exit(f"store_kill: after update {i} the file is torn")
            have = lines[1:-1]
            if len(set(have)) != len(have) or not sure <= set(have) or not set(have) <= written:
                sys.exit(f"store_kill: after update {i}: {len(sure - set(have))} records are lost, "
                         f"{len(set(have) - written)} are nobody's")
            new += record(2 * i) in set(have)
            kept = len(have)
            sure = set(have)
        left = sorted(os.listdir("."))
        if not set(left) <= {"all", "all.lock", "all.new", "one0", "one1"}:
            sys.exit(f"store_kill: left behind: {left}")
    print(f"store_kill: seed {seed}: {count} updates, {killed} killed, of which "
          f"{new - (count - killed)} had written; {kept} records, none lost")


if __name__ == "__main__":
    main()
