#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Updates of a store that are killed lose nothing: tests/store_kill.py BINARY [COUNT [SEED]]. A
# process adds a record, now and then beside another that does, and is killed (SIGKILL) after a
# random time, up to one that is drawn in and out so that about half of them end before; until COUNT
# were killed. After each the file must be whole: every record that was there or was said to be
# written is, and each line is a record that somebody wrote.

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
        old = {record(n) for n in range(10 ** 6, 10 ** 6 + 1000)}
        with open("all", "w", encoding="utf-8") as f:
            f.write(HEAD + "\n" + "".join(sorted(old)) + "foreign\n")
        sure, written = set(old), set(old)
        longest, i = 0.02, 0

        def begin(n):
            name = f"one{n % 2}"
            with open(name, "w", encoding="utf-8") as f:
                f.write(HEAD + "\n" + record(n))
            written.add(record(n))
            return subprocess.Popen([binary, "store", "merge", name, "-o", "all"])

        while killed < count:
            i += 1
            both = [begin(2 * i)] + ([begin(2 * i + 1)] if i % 4 == 0 else [])
            time.sleep(rng.uniform(0, longest))
            both[0].send_signal(signal.SIGKILL)
            for k, p in enumerate(both):
                status = p.wait()
                if status == 0:
                    sure.add(record(2 * i + k))
                    longest *= 0.9 if k == 0 else 1
                elif k == 0 and status == -signal.SIGKILL:
                    killed += 1
                    longest *= 1.1
                else:
                    sys.exit(f"store_kill: update {i}: status {status}")
            with open("all", encoding="utf-8") as f:
                lines = f.readlines()
            if not lines or not lines[0].startswith(HEAD) or lines[-1] != "foreign\n":
                sys.exit(f"store_kill: after update {i} the file is torn")
            have = lines[1:-1]
            if len(set(have)) != len(have) or not sure <= set(have) or not set(have) <= written:
                sys.exit(f"store_kill: after update {i}: {len(sure - set(have))} records are lost, "
                         f"{len(set(have) - written)} are nobody's")
            new += both[0].returncode != 0 and record(2 * i) in set(have)
            kept = len(have)
            sure = set(have)
        left = sorted(os.listdir("."))
        if not set(left) <= {"all", "all.lock", "all.new", "one0", "one1"}:
            sys.exit(f"store_kill: left behind: {left}")
    print(f"store_kill: seed {seed}: {i} updates, {killed} killed, of these {new} had written; "
          f"{kept} records, none lost")


if __name__ == "__main__":
    main()
