#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Does JSON have the keys and types that the tables of README.md promise? tests/schema.py BINARY, in
# the directory of test_command.sh, which has the programs. Needs no package.

import json
import os
import re
import subprocess
import sys

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
failed = 0


def fail(*what):
    global failed
    print("schema.py:", *what)
    failed = 1


def tables():
    found, table = {}, None
    with open(README, encoding="utf-8") as f:
        for line in f:
            head = re.match(r"\| key of a (\w+) \| type \|", line)
            row = re.match(r"\| `(\w+)` \| ([^|]+) \|", line)
            if head:
                table = found[head.group(1)] = {}
            elif row and table is not None:
                kind, _, only = row.group(2).strip().partition(", ")
                table[row.group(1)] = kind, only
            elif not line.startswith("|"):
                table = None
    return found


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


IS = {"number": number, "string": lambda x: isinstance(x, str),
      "bool": lambda x: isinstance(x, bool), "list": lambda x: isinstance(x, list),
      "object": lambda x: isinstance(x, dict), "null": lambda x: x is None,
      "list of strings": lambda x: isinstance(x, list) and all(isinstance(y, str) for y in x),
      "list of numbers": lambda x: isinstance(x, list) and all(map(number, x))}


def check(words, table, got, forms, seen):
    for key, value in got.items():
        if key not in table:
            fail(words, "has a key of no table:", key)
        elif not any(IS[t](value) for t in table[key][0].split(" or ")):
            fail(words, key, "is", value, "not", table[key][0])
        elif value is not None:
            seen.add(key)
    for key, (_, only) in table.items():
        if (key in got) != (only == "" or only in forms):
            fail(words, "has" if key in got else "lacks", key)


def run(*words):
    r = subprocess.run([sys.argv[1], *words, "--json"], capture_output=True, text=True,
                       check=False)
    if r.returncode != 0:
        fail(words, "status", r.returncode, r.stderr)
        return None
    return json.loads(r.stdout)


def main():
    table, seen = tables(), {"plan": set(), "statement": set(), "run": set()}
    if set(table) != set(seen):
        fail("tables", sorted(table))
        return
    what = [["ij,jk,kl->il", "--sizes", "i=80,j=70,k=60,l=50"],
            ["ij->ji", "--shapes", "3x4"],
            ["ij,jk", "--shapes", "0x3,3x0"],
            ["ij,jk,kl,lm,mn,no,op->ip", "--path", "greedy", "--sizes",
             "i=2,j=3,k=4,l=5,m=6,n=7,o=8,p=9"], ["D.ein"],
            ["F.ein", "--shapes", "900x40"], ["F.ein", "--shapes", "1500x40"], ["Empty.ein"],
            ["kinds.ein", "--sizes", "n=40"]]
    how = [([], []), (["--kernels", "portable"], []), (["--deterministic"], []),
           (["--memory", "1M"], ["budget"]), (["--memory", "1M", "--deterministic"], ["budget"]),
           (["-p", "1"], []), (["-p", "4"], ["places"]),
           (["-p", "4", "--cost", "paper"], ["places"]),
           (["-p", "4", "--decomp", "none", "--cost", "bytes"], ["places"]),
           (["-p", "3", "--deterministic"], ["places"]), (["--fabric", "sim"], ["places"]),
           (["-p", "2", "--memory", "10M"], ["places"])]
    count = bounded = 0
    for a in what:
        for b, forms in how:
            got = run("plan", *a, *b)
            if got is None:
                continue
            count += 1
            check(a + b, table["plan"], got, forms, seen["plan"])
            for s in got["statements"]:
                check(a + b + [s["out"]], table["statement"], s, forms, seen["statement"])
                if s["io_bound"] is not None and not s["io_bound"] >= 0:
                    fail(a + b, "io_bound", s["io_bound"])
            for x in got["groups"] + got["regions"]:
                if x["io_bound"] is None:
                    continue
                if not 0 < x["io_bound"] <= x["traffic"] * (1 + 1e-9):
                    fail(a + b, "traffic of", x)
                bounded += 1
            numbers = [i for r in got["regions"] for i in r["statements"]]
            if numbers not in ([], list(range(len(got["statements"])))):
                fail(a + b, "regions have statements", numbers)
    for b in ([], ["-p", "2"], ["-p", "3", "--fabric", "copying"], ["--fabric", "threads"],
              ["--memory", "1M"], ["--deterministic"], ["--kernels", "portable"]):
        got = run("run", "R.ein", "A=RA.npy", "B=RB.npy", *b)
        if got is not None:
            check(["run"] + b, table["run"], got, [], seen["run"])
            if not (got["seconds"] > 0 and got["kernels"] and got["workspace_bytes"] > 0):
                fail("run", b, "took", got)
            if got["p"] != (int(b[1]) if "-p" in b else got["p"]):
                fail("run", b, "p", got["p"])
            if (got["places"] is None) != (got["fabric"] is None):
                fail("run", b, "places", got["places"])
            for key, whole in (("tasks", "tasks"), ("received_bytes", "bytes"),
                               ("sent_bytes", "bytes")):
                each = [q[key] for q in got["places"] or []]
                if each and (len(each) != got["p"] or min(each) < (key == "tasks") or
                             sum(each) != got[whole]):
                    fail("run", b, key, each, "of", got[whole])
    how = ["R.ein", "-p", "4", "--cost", "bytes", "--decomp", "sqrt"]
    got, plan = run("run", *how, "--fabric", "sim"), run("plan", *how)
    if got is not None and plan is not None:
        check(["sim"], table["run"], got, [], seen["run"])
        same = plan["simulated"]
        if got["seconds"] is not None or got["planned_seconds"] != plan["seconds"] or \
                got["p"] != 4 or any(got[k] != same[k] for k in ("bytes", "messages")):
            fail("sim", got)
    for name, keys in seen.items():
        if set(table[name]) - keys:
            fail("never seen of a", name, sorted(set(table[name]) - keys))
    if count < 80 or bounded < 4:
        fail("only", count, "plans, bounds of", bounded, "groups and regions")


main()
sys.exit(failed)
