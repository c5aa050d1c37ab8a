#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Are the pictures of `einsum plan --svg` legible and complete? tests/pictures.py BINARY: bytes on
# edges add up to those of the plan, layers that repeat are one, found by what they do and not by
# their names, and nothing is higher than it may be. Of programs as written (--view teg): every text
# is within its shape, no shape on another, and there is one for every tensor and statement. No
# package.

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

TALL = 8000
BINARY = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
os.chdir(FOLDER.name)
failed = 0


def expect(ok, *what):
    global failed
    if not ok:
        print("pictures.py:", *what)
        failed = 1


class Picture:
    def __init__(self, text, *words):
        with open("picture.ein", "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([BINARY, "plan", "picture.ein", "--json", "--svg", "picture.svg",
                            *words], capture_output=True, text=True, check=True)
        self.plan = json.loads(r.stdout)
        svg = xml.dom.minidom.parse("picture.svg").documentElement
        self.words = words
        self.height = float(svg.getAttribute("height"))
        self.bytes = sum(float(p.getAttribute("data-bytes") or 0)
                         for p in svg.getElementsByTagName("path"))
        self.boxes, self.stubs, self.texts, rows = [], [], [], []
        for t in svg.getElementsByTagName("text"):
            s = t.firstChild.data if t.firstChild else ""
            self.texts.append(s)
            if re.fullmatch(r"place \d+", s):
                rows.append(float(t.getAttribute("y")))
            if t.getAttribute("font-weight") == "bold":
                self.boxes.append(s)
            if t.getAttribute("font-style") == "italic":
                self.stubs.append(s)
        expect(all(b >= a + 8 for a, b in zip(rows, rows[1:])), *words, "places lie on each other")
        self.named = sum(float(m.group(1)) for s in self.texts
                         for m in [re.match(r" *(\d+\.\d)% \S", s)] if m)
        moved = self.plan["simulated"]["bytes"]
        expect(abs(self.bytes - moved) <= 1e-9 * moved, *words, "edges have", self.bytes, "of",
               moved)
        expect(self.height <= TALL, *words, "height", self.height)
        expect(self.named >= 89.5, *words, "the legend names", self.named)

    def times(self):
        return [int(s.split()[0]) for s in self.texts if re.fullmatch(r"\d+ times", s)]


# A program as written: its shapes with their texts, as (kind, box, lines, pale).
class Written:
    def __init__(self, text):
        with open("written.ein", "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([BINARY, "plan", "written.ein", "--json", "--svg", "written.svg",
                            "--view", "teg"], capture_output=True, text=True, check=True)
        self.says = json.loads(r.stdout)
        self.shapes = []
        svg = xml.dom.minidom.parse("written.svg").documentElement
        self.height = float(svg.getAttribute("height"))
        expect(self.height <= TALL, "height", self.height)
        for column in svg.getElementsByTagName("g"):
            if column.hasAttribute("transform"):
                self.column(column)

    def column(self, g):
        shapes = []
        for x in g.getElementsByTagName("*"):
            if x.tagName in ("rect", "ellipse", "polygon"):
                shapes.append((x.tagName, outline(x), [],
                               x.parentNode.hasAttribute("opacity")))
            elif x.tagName == "text" and x.getAttribute("font-style") != "italic":
                left, base = float(x.getAttribute("x")), float(x.getAttribute("y"))
                s = x.firstChild.data
                kind, box, lines, _ = shapes[-1]
                lines.append(s)
                for px in (left, left + 7 * len(s)):
                    for py in (base - 9, base + 3):
                        expect(inside(kind, box, px, py), s, "leaves its", kind, box)
        for i, (_, a, lines, _) in enumerate(shapes):
            for _, b, other, _ in shapes[:i]:
                expect(a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], lines,
                       "lies on", other)
        self.shapes += shapes

    def count(self, kind):
        return sum(1 for shape in self.shapes if shape[0] == kind)

    def pruned(self):
        return [lines[0] for _, _, lines, _ in self.shapes if lines[-1].endswith("pruned")]


def outline(x):
    def number(key):
        return float(x.getAttribute(key))
    if x.tagName == "rect":
        return (number("x"), number("y"), number("x") + number("width"),
                number("y") + number("height"))
    if x.tagName == "ellipse":
        return (number("cx") - number("rx"), number("cy") - number("ry"),
                number("cx") + number("rx"), number("cy") + number("ry"))
    points = [[float(v) for v in p.split(",")] for p in x.getAttribute("points").split()]
    return (min(p[0] for p in points), min(p[1] for p in points), max(p[0] for p in points),
            max(p[1] for p in points))


def inside(kind, box, x, y):
    wide, high = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    dx, dy = abs(x - box[0] - wide) / wide, abs(y - box[1] - high) / high
    if kind == "ellipse":
        return dx * dx + dy * dy <= 1
    return dx <= (1 - 8 / wide * dy if kind == "polygon" else 1) and dy <= 1


# Statements of all kinds that read what is before them; some are observed.
def mixed(rng, count):
    lines, names = ["input A[i=6,j=6], B[i,j] : f64"], ["A", "B"]
    for n in range(count):
        a, b = rng.choice(names[-5:]), rng.choice(names)
        lines.append(rng.choice([
            "V%d[i,j] = sum[k](%s[i,k]*%s[k,j])", "V%d[i,j] = %s[i,j] + exp(%s[j,i])",
            "V%d[i,j] = concat[i](slice[i](%s[i,j], 0, 2), slice[i](%s[i,j], 2, 6))",
            "V%d[i,j] = roll[j](%s[i,j] * %s[i,j], 1)",
            "V%d[i=6,j=6] = i+2*j  # %s %s", "V%d[i=6,j] = %s[i-1,j | wrap] - %s[0,j]"])
            % (n, a, b))
        names.append("V%d" % n)
    return "\n".join(lines + ["output " + ", ".join(rng.sample(names[2:], 3))])


SELECTED = """input A[i=4,j=3], B[k=5,j], U[m=7] : f32
C[i,j] = concat[i](A[i,j], B[i,j])
D[i] = sum[j](C[i,j]*C[i,j]) + 1
R[i] = reverse[i](D[i])
Q[i=9] = D[0]
Z[i=6,j=2] = 0
X[i] = softmax[i](D[i])
output R, Q"""


def name(rng, used):
    while True:
        s = "".join(rng.choice("bcghqxyz") for _ in range(rng.randrange(3, 7)))
        if s not in used:
            used.add(s)
            return s


# Layers of `period` statements with random names; every statement reads the one before, and an
# input of its own or another one of the layer.
def layers(rng, period, count):
    used = {"i", "j", "k"}
    kinds = ["%s[i,k]*%s[k,j]", "sum[k](%s[k,i] - %s[k,j])", "exp(%s[i,j]) + %s[i,j]",
             "max(%s[i,j], %s[j,i])", "%s[i,j]^2/(2 + %s[i,j]^2)"]
    made = [(rng.randrange(len(kinds)), rng.randrange(-n - 1, n + 1)) for n in range(period)]
    inputs, lines = [name(rng, used)], []
    end = inputs[0]
    for _ in range(count):
        layer = []
        for kind, back in made:
            if back <= 0:
                inputs.append(name(rng, used))
            other = inputs[-1] if back <= 0 else layer[back - 1]
            lines.append("%s[i,j] = %s" % (name(rng, used), kinds[kind] % (end, other)))
            layer.append(lines[-1].split("[", 1)[0])
            end = layer[-1]
    return "\n".join(["input %s[i=8,j=8] : f64" % x for x in inputs] + lines + ["output " + end])


# `count` statements, of which no three in a row are alike, that read each other far and near.
def tangle(rng, count):
    lines, names = ["input A[i=8,j=8], B[i,j] : f64"], ["A", "B"]
    for n in range(count):
        a, b = rng.choice(names[-6:]), rng.choice(names)
        first, second, own = (rng.uniform(0, 9) for _ in range(3))
        lines.append("V%d[i,j] = %g*%s[i,%s] %s %g*%s[%s,j] + %g" % (
            n, first, a, rng.choice("jk") if n % 7 else "j", "*" if n % 7 else "+", second, b,
            "k" if n % 7 else "i", own))
        lines[-1] = lines[-1] if n % 7 == 0 else "V%d[i,j] = sum[k](%s[i,k]*%s[k,j]) + %g" % (
            n, a, b, own)
        names.append("V%d" % n)
    outputs = [x for x in names[2:] if not any(re.search(r"\b%s\[" % x, y.split("=", 1)[1])
                                               for y in lines[1:])]
    return "\n".join(lines + ["output " + ", ".join(outputs)])


# Statements that are alike, but read what is `back` before them.
def alike(back):
    lines = ["input A[i=8,j=8] : f64"]
    for n, d in enumerate(back):
        first, other = ("V%d" % (n - k) if n >= k else "A" for k in (1, d))
        lines.append("V%d[i,j] = %s[i,k]*%s[k,j]" % (n, first, other))
    return "\n".join(lines + ["output V%d" % (len(back) - 1)])


ATTENTION = """input Q[s=64,d=16], K[t=64,d], V[t,e=16] : f32
T[s,t] = sum[d](Q[s,d]*K[t,d]) / 4
P[s,t] = softmax[t](T[s,t])
Y[s,e] = sum[t](P[s,t]*V[t,e])
output Y"""


def written(rng):
    p = Written(SELECTED)
    expect(p.says["observed"] == ["R", "Q"], "observed", p.says)
    expect(set(p.says["pruned"]) >= {"U", "Z", "X"} and "D" not in p.says["pruned"], p.says)
    expect(p.count("polygon") == p.says["selectors"] == 4, "selectors", p.count("polygon"))
    texts = [s for _, _, lines, _ in p.shapes for s in lines]
    for s in ("C[9,3] : f32", "piece 2 of 2", "to C[4,0]", "from D[8]",
              "reads by stride -1 along i", "repeats along i", "sequence point"):
        expect(s in texts, "no text", s)
    for count in (1, 12, 40, 200):
        p = Written(mixed(rng, count) if count > 3 else SELECTED.replace("R, Q", "Z"))
        says, total = p.says, len(p.shapes)
        expect(total == sum(says[k] for k in ("inputs", "tensors", "operators", "selectors",
                                              "generators")) + 1, count, total, "shapes", says)
        expect(p.count("ellipse") == says["operators"] + says["generators"], count, says)
        expect(p.count("polygon") == says["selectors"], count, says)
        pale = [lines[0] for _, _, lines, pale in p.shapes if pale]
        expect(pale == p.pruned() and len(pale) > 0, count, "pale", pale, p.pruned())
        expect({s.split("[")[0] for s in pale if " : " in s} == set(says["pruned"]), count,
               "pruned", says["pruned"])


def main():
    for words in ([], ["-p", "8"], ["-p", "8", "--cost", "bytes"], ["-p", "6", "--decomp", "sqrt"],
                  ["-p", "8", "--pin", "K[t=8]", "--cost", "bytes"]):
        p = Picture(ATTENTION, *words)
        expect(not p.times() and not p.stubs, *words, "small, but folded:", p.times(), p.stubs)
        expect(len(p.boxes) == len(p.plan["statements"]) + 3, *words, "boxes", p.boxes)
    p = Picture(ATTENTION, "-p", "8", "--decomp", "given", "--parts", "T.1[d=2,s=4]", "--parts",
                "Y[t=8]")
    folds = [s for s in p.texts if s.startswith("partials ")]
    expect(len(folds) == 2, "partial results go home unseen:", folds)
    rng = random.Random(5)
    for period, count in ((1, 200), (2, 90), (7, 31), (22, 32), (40, 3)):
        text = layers(rng, period, count)
        for words in (["-p", "4", "--decomp", "sqrt"], []):
            p = Picture(text, *words)
            total = len(p.plan["statements"])
            drawn = sum(1 for s in p.boxes if "[" in s)
            expect(total >= period * count, period, count, "only", total, "statements")
            expect(drawn * count == total, period, count, *words, drawn, "boxes for", total,
                   "statements")
            expect(set(p.times()) == {count}, period, count, *words, "times", set(p.times()))
    p = Picture(alike([2] * 100))
    expect(len(p.boxes) == 2 and p.times() == [100], "each reads two before it:", p.times())
    p = Picture(alike([rng.randrange(2, 9) for _ in range(100)]))
    expect(len(p.boxes) > 100 and p.times() == [], "read at random, but folded:", p.times())
    p = Picture("input A[i=8,j=8] : f64\nV0[i,j] = exp(A[i,j])\n" + "".join(
        "V%d[i,j] = exp(V%d[i,j])\n" % (n, n - 1) for n in range(1, 12)) +
        "V12[i,j] = V11[i,k]*V0[k,j]\noutput V12", "-p", "4", "--decomp", "sqrt")
    ends = sorted(p.stubs)
    expect(len(ends) == 2 and re.fullmatch(r"V0 [\d.]+ k?B", ends[0]) and ends[1] == "to V12",
           "a long edge has stubs", p.stubs)
    written(rng)
    p = Picture(tangle(rng, 350), "-p", "4", "--decomp", "sqrt")
    expect(len(p.plan["statements"]) >= 350, "statements", len(p.plan["statements"]))
    ends = [s.split()[0] for s in p.stubs if not s.startswith("to ")]
    starts = [s for s in p.stubs if s.startswith("to ")]
    expect(len(ends) > 100 and len(starts) > 50, "stubs", len(ends), len(starts))
    boxes = {s.split("[")[0] for s in p.boxes}
    expect(set(ends) <= boxes, "stubs of no box", set(ends) - boxes)
    expect({x for s in starts for x in s[3:].replace(", ..", "").split(", ")} <= boxes,
           "stubs to no box")


main()
sys.exit(failed)
