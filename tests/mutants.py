#!/usr/bin/env python3
"""Mutants: one small fault at a time is put into the library, and some test has to notice it.

  make mutants [MUTANTS=150] [SEED=1] [JOBS=2] [MUTANT_FILES="einsum*.h ..."] [MUTANT_LIST=FILE]
               [MUTANT_SECONDS=60]

A first run compiles every test with gcov and keeps which lines each executes, so that a mutant
meets only the tests that reach its line, the cheapest first, until one fails, crashes or takes
many times as long as it should. All that is found is kept in build/mutants: a run that was broken
off goes on where it was, and more mutants of one seed begin with those that were tried before.
With MUTANT_SECONDS a mutant meets only as many tests as take so long; a survivor says which it met.
A mutant whose programs come out bit for bit as without it is no mutant and is not counted.

tests/mutants.txt names survivors that nothing can or need kill, each with the reason. With
MUTANT_LIST the mutants of such a file are tried, none are drawn.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

# Tests that are not tests/test_NAME.c alone: source, flags, arguments.
SPECIAL = {
    "kernels_cpu": ("tests/test_kernels.c", ["-DTEST_CPU"], ["1000", "21"]),
    "kernels_avx2": ("tests/test_kernels.c", ["-DTEST_CPU"], ["1000", "21", "-1", "avx2"]),
    "kernels_plain": ("tests/test_kernels.c", ["-DTEST_CPU"], ["1000", "21", "-1", "plain"]),
    "extreme_cpu": ("tests/test_extreme.c", ["-DTEST_CPU"], []),
    "memory_fit_cpu": ("tests/test_memory_fit.c", ["-DTEST_CPU"], []),
    "command": ("tools/einsum.c", [], []),
}
SKIPPED = 77  # exit status of a test that this machine cannot run
TREES = ("backends", "tools", "tests", "examples", "bench")


def digest(*texts):
    h = hashlib.sha1()
    for t in texts:
        h.update(t if isinstance(t, bytes) else t.encode())
        h.update(b"\0")
    return h.hexdigest()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# ---- what may be changed -------------------------------------------------------------------------

def blank(text):
    """The text with comments, strings and character constants as spaces, of the same length."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def bodies(lines):
    """Yields (line, macro): lines inside functions (macro None) and inside macros."""
    inside, macro = False, None
    for n, line in enumerate(lines):
        if macro is not None:
            yield n, macro
            if not line.rstrip().endswith("\\"):
                macro = None
            continue
        m = re.match(r"\s*#\s*define\s+(\w+)\(", line)
        if m:
            if line.rstrip().endswith("\\"):
                macro = m.group(1)
            else:
                yield n, m.group(1)
        elif line.lstrip().startswith("#"):
            continue
        elif inside:
            if line.startswith("}"):
                inside = False
            else:
                yield n, None
        elif re.match(r"[^\s}].*\{\s*$", line) or re.match(r" {2,}.*\)\s*\{\s*$", line):
            inside = not re.search(r"=\s*\{|^(typedef|enum|struct \w+ \{|union|extern)", line)


TYPES = r"(?:const|static|unsigned|int|char|double|float|void|size_t|u?int\d+_t|ein_\w+|eini_\w+)"
SWAPS = [("<=", "<"), (">=", ">"), ("<", "<="), (">", ">="), ("==", "!="), ("!=", "=="),
         ("&&", "||"), ("||", "&&"), ("+", "-"), ("-", "+"), ("*", "+"), ("/", "*"), ("%", "*"),
         ("&", "|"), ("|", "&"), ("<<", ">>"), (">>", "<<"), ("+=", "-="), ("-=", "+="),
         ("*=", "="), ("|=", "="), ("&=", "=")]
WORDS = [("eini_min64", "eini_max64"), ("eini_max64", "eini_min64"), ("fmax", "fmin"),
         ("fmin", "fmax"), ("EIN_OK", "EIN_ERR_INTERNAL")]


def changes(line):
    """(from, to, text) replacements of columns for one blanked line."""
    found = []
    for old, new in SWAPS:  # operators between spaces are never pointers or signs here
        for m in re.finditer(r"(?<=[\w)\]] )" + re.escape(old) + r"(?= )", line):
            found.append((m.start(), m.end(), new))
    for old, new in WORDS:
        for m in re.finditer(r"\b" + old + r"\b", line):
            found.append((m.start(), m.end(), new))
    for m in re.finditer(r"(?<![\w.\]])(?<!\[)(\d+)(?![\w.])", line):
        v = int(m.group(1))
        found.append((m.start(), m.end(), str(v + 1)))
        if v > 0:
            found.append((m.start(), m.end(), str(v - 1)))
    for m in re.finditer(r"!(?=[\w(])", line):
        found.append((m.start(), m.end(), ""))
    for m in re.finditer(r"\b(?:if|while) \(", line):
        depth, k = 1, m.end()
        while k < len(line) and depth > 0:
            depth += (line[k] == "(") - (line[k] == ")")
            k += 1
        if depth == 0:
            found.append((m.end(), k - 1, "!(%s)" % line[m.end():k - 1]))
    for m in re.finditer(r"\breturn (EIN_ERR_\w+);", line):
        found.append((m.start(1), m.end(1), "EIN_OK"))
    for m in re.finditer(r"\b\w+\((\w+), (\w+)\)", line):
        if m.group(1) != m.group(2):
            found.append((m.start(1), m.end(2), "%s, %s" % (m.group(2), m.group(1))))
    for m in re.finditer(r"(\+\+|--)", line):
        found.append((m.start(), m.end(), "--" if m.group() == "++" else "++"))
    code = line.rstrip().rstrip("\\").rstrip()
    statement = re.match(r"(\s*)(\S.*;)$", code)
    if statement and not re.match(TYPES + r"\b[\s*]*\w+( =|,|;|\[)|return\b|for\b|case\b|else\b|"
                                  r"if\b|while\b|do\b|typedef\b|goto\b|EINI_TRY\(eini_grow",
                                  statement.group(2)):
        if balanced(statement.group(2)):
            found.append((statement.start(2), statement.end(2), ";"))
    case = re.match(r"(\s*)(case \w+: .*\b(?:return .*|break);)$", code)
    if case and balanced(case.group(2)):
        found.append((case.start(2), case.end(2), ""))
    return found


def balanced(code):
    return all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))


class Mutant:
    def __init__(self, path, line, old, new, macro):
        self.path, self.line, self.old, self.new, self.macro = path, line, old, new, macro
        self.key = digest(path, str(line), old, new)

    def said(self):
        return "%s:%d\n- %s\n+ %s" % (self.path, self.line + 1, self.old.strip(), self.new.strip())


def candidates(path):
    text = read(path)
    lines, code = text.split("\n"), blank(text).split("\n")
    for n, macro in bodies(code):
        if "EINSUM_ASSERT" in code[n] or "EINI_UNUSED" in code[n]:
            continue
        for a, b, new in changes(code[n]):
            # what stands between a and b is code: take it from the line itself
            inner = lines[n][a:b]
            if new.startswith("!("):
                new = "!(%s)" % inner
            yield Mutant(path, n, lines[n], lines[n][:a] + new + lines[n][b:], macro)


def draw(files, count, seed, cover):
    """Lines first, so that a long line is not drawn more often; then one of its changes."""
    lines = {}
    for path in files:
        for m in candidates(path):
            if cover.place(m) is not None:
                lines.setdefault((path, m.line), []).append(m)
    keys = sorted(lines)
    rng = random.Random(seed)
    rng.shuffle(keys)
    return [rng.choice(lines[k]) for k in keys[:count]], len(keys)


def listed(path):
    """(file, old, new, reason) of a list; see the head of tests/mutants.txt."""
    entries, at = [], None
    for line in read(path).split("\n"):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("- "):
            at[1] = line[2:].strip()
        elif line.startswith("+"):
            at[2] = line[1:].strip()
        elif line.startswith("  "):
            at[3] = (at[3] + " " + line.strip()).strip()
        else:
            at = [line.strip(), "", "", ""]
            entries.append(at)
    return entries


def from_list(path):
    for name, old, new, _ in listed(path):
        lines = read(name).split("\n")
        macros = dict(bodies(blank("\n".join(lines)).split("\n")))
        hits = [n for n, s in enumerate(lines) if old in s]
        if len(hits) != 1:
            sys.exit("mutants: %s: '%s' is in %d lines" % (name, old, len(hits)))
        n = hits[0]
        yield Mutant(name, n, lines[n], lines[n].replace(old, new), macros.get(n))


# ---- compiling and running -----------------------------------------------------------------------

class Tests:
    def __init__(self, names, cc, work):
        self.cc, self.work = cc, work
        self.all = {n: SPECIAL.get(n, ("tests/test_%s.c" % n, [], [])) for n in names}
        self.lock = threading.Lock()
        self.base = {}

    def build(self, name, root, out, extra=()):
        source, flags, _ = self.all[name]
        command = self.cc.split() + ["-std=c99", "-O1"] + list(flags) + list(extra)
        command += ["-w", "-o", out, source, "-lm", "-pthread"]
        return subprocess.run(command, cwd=root, capture_output=True, text=True).returncode == 0

    def run(self, name, root, binary, cpu, wall):
        """0 passed, 77 not for this machine, else noticed."""
        _, _, args = self.all[name]
        command = [binary] + args
        if name == "command":
            command = ["sh", "tests/test_command.sh", binary]

        def limits():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        env = dict(os.environ, TMPDIR=os.path.join(os.path.dirname(binary), "tmp"))
        os.makedirs(env["TMPDIR"], exist_ok=True)
        p = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, env=env,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                             preexec_fn=limits)
        try:
            return p.wait(timeout=wall)
        except subprocess.TimeoutExpired:
            return -9
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()

    def base_digest(self, name, extra):
        """Of the program without a mutant."""
        with self.lock:
            if name not in self.base:
                out = os.path.join(self.work, "base_" + name)
                if not self.build(name, ".", out, extra):
                    sys.exit("mutants: %s does not compile" % name)
                with open(out, "rb") as f:
                    self.base[name] = digest(f.read())
                os.remove(out)
            return self.base[name]


class Cover:
    """Which lines each test executes."""

    def __init__(self, tests, files, work):
        self.tests = tests
        self.store = os.path.join(work, "cover.json")
        self.data = json.loads(read(self.store)) if os.path.exists(self.store) else {}
        shared = [read(p) for p in files]
        for name in tests.all:
            source = tests.all[name][0]
            state = digest(tests.cc, read(source), *shared)
            if self.data.get(name, {}).get("state") == state:
                continue
            print("lines that %s executes .." % name, flush=True)
            self.data[name] = self.measure(name, os.path.join(work, "cover"))
            self.data[name]["state"] = state
            with open(self.store + ".new", "w", encoding="utf-8") as f:
                json.dump(self.data, f)
            os.replace(self.store + ".new", self.store)
        self.data = {n: self.data[n] for n in tests.all if self.data[n]["run"] >= 0}
        self.known, self.lines = {}, {}
        for name, d in self.data.items():
            for path in files:
                self.known.setdefault(path, set()).update(d["known"].get(path, []))
                self.lines.setdefault(path, {}).setdefault(name, set()).update(
                    d["lines"].get(path, []))
        self.uses = {p: self.macro_uses(p) for p in files}

    def measure(self, name, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        out = os.path.join(os.path.abspath(folder), "test")
        begin = os.times()
        if not self.tests.build(name, ".", out, ["--coverage"]):
            sys.exit("mutants: %s does not compile" % name)
        middle = os.times()
        status = self.tests.run(name, os.path.abspath("."), out, 3600, 7200)
        end = os.times()
        if status not in (0, SKIPPED):
            print("  it fails by itself: left out", flush=True)
        used = [b.children_user + b.children_system - a.children_user - a.children_system
                for a, b in ((begin, middle), (middle, end))]
        known, lines = {}, {}
        for data in glob.glob(folder + "/*.gcda"):
            said = subprocess.run(["gcov", "--json-format", "--stdout", data], text=True,
                                  capture_output=True).stdout
            for text in said.split("\n"):
                for f in json.loads(text)["files"] if text.strip() else []:
                    path = os.path.normpath(f["file"])
                    known.setdefault(path, []).extend(x["line_number"] for x in f["lines"])
                    lines.setdefault(path, []).extend(
                        x["line_number"] for x in f["lines"] if x["count"])
        return {"compile": used[0], "run": used[1] if status == 0 else -1, "known": known,
                "lines": lines}

    @staticmethod
    def macro_uses(path):
        """For each macro the lines where it is used outside macros, also through others."""
        code = blank(read(path)).split("\n")
        owner = dict(bodies(code))
        direct = {}
        names = {m for m in owner.values() if m}
        for n, line in enumerate(code):
            for word in set(re.findall(r"\b[A-Za-z_]\w+", line)) & names:
                if owner.get(n) != word and not re.match(r"\s*#\s*(define|undef)", line):
                    direct.setdefault(word, []).append((n, owner.get(n)))
        uses = {}

        def find(word, seen):
            lines = set()
            for n, via in direct.get(word, []):
                if via is None:
                    lines.add(n + 1)
                elif via not in seen:
                    lines |= find(via, seen | {via})
            return lines
        for word in names:
            uses[word] = find(word, {word})
        return uses

    def place(self, m):
        """Lines of gcov that stand for the mutant's; None: it is not compiled here."""
        known = self.known[m.path]
        if m.macro is not None:
            return (self.uses[m.path].get(m.macro, set()) & known) or None
        for n in range(m.line + 1, max(0, m.line - 7), -1):
            if n in known:
                return {n}
        return None

    def flags(self, name):
        """What makes compiling and running take least: -O0 compiles in a third of the time of -O1,
        and runs in two and a half times."""
        d = self.data[name]
        return ["-O0"] if 1.5 * d["run"] < 0.6 * d["compile"] else ["-O1"]

    def reached_by(self, m, seconds):
        """Tests that execute the mutant's line, the cheapest first."""
        place = self.place(m) or set()
        cost = {}
        for n, d in self.data.items():
            quick = self.flags(n) == ["-O0"]
            cost[n] = d["compile"] * (0.4 if quick else 1) + d["run"] * (2.5 if quick else 1)
        names = sorted((n for n in cost if self.lines[m.path][n] & place), key=cost.get)
        left = seconds if seconds > 0 else float("inf")
        for k, name in enumerate(names):
            left -= cost[name]
            if left < 0:
                return names[:max(k, 1)]
        return names


class Trial:
    def __init__(self, tests, cover, work, seconds):
        self.tests, self.cover, self.work, self.seconds = tests, cover, work, seconds
        self.free = []
        self.lock = threading.Lock()

    def room(self):
        with self.lock:
            if self.free:
                return self.free.pop()
            root = os.path.abspath(os.path.join(self.work, "room%d" % threading.get_ident()))
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        for path in glob.glob("*.h"):
            shutil.copy(path, root)
        for tree in TREES:
            shutil.copytree(tree, os.path.join(root, tree))
        return root

    def verdict(self, m):
        names = self.cover.reached_by(m, self.seconds)
        if not names:
            return "survived", "no test executes the line"
        root = self.room()
        path = os.path.join(root, m.path)
        whole = read(path)
        lines = whole.split("\n")
        lines[m.line] = m.new
        made = {}
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
            for name in names:
                out = os.path.join(root, "test_" + name)
                flags = self.cover.flags(name)
                if not self.tests.build(name, root, out, flags):
                    return "did not compile", name
                with open(out, "rb") as f:
                    made[name] = digest(f.read())
                d = self.cover.data[name]
                status = self.tests.run(name, root, out, 5 * d["run"] + 10, 60 * d["run"] + 120)
                os.remove(out)
                if status not in (0, SKIPPED):
                    return "killed", name
            same = all(made[n] == self.tests.base_digest(n, self.cover.flags(n)) for n in names)
            return ("same code", "") if same else ("survived", ", ".join(names))
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(whole)
            with self.lock:
                self.free.append(root)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=150)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--cc", default="cc")
    p.add_argument("--seconds", type=float, default=0, help="of tests for a mutant; 0: all tests")
    p.add_argument("--files", default="*.h backends/*.h tools/*.h tools/*.c")
    p.add_argument("--list", help="a file of mutants to try, none are drawn")
    p.add_argument("--work", default="build/mutants")
    p.add_argument("tests", nargs="+")
    o = p.parse_args()
    if shutil.which("gcov") is None:
        sys.exit("mutants: needs gcov")
    os.makedirs(o.work, exist_ok=True)
    files = sorted(os.path.normpath(f) for g in o.files.split() for f in glob.glob(g))
    tests = Tests(o.tests, o.cc, os.path.abspath(o.work))
    cover = Cover(tests, files, o.work)
    if o.list:
        mutants, lines = list(from_list(o.list)), 0
    else:
        mutants, lines = draw(files, o.count, o.seed, cover)
        print("%d mutants of seed %d from %d lines that can be changed" % (
            len(mutants), o.seed, lines), flush=True)
    known = {(os.path.basename(f), a, b): why for f, a, b, why in listed("tests/mutants.txt")}

    # What was found holds while the sources do; a survivor also while the tests do.
    sources = digest(*[read(f) for f in files])
    everything = digest(sources, *[read(f) for f in sorted(glob.glob("tests/*"))
                                   if os.path.isfile(f) and not f.endswith("mutants.txt")])
    store = os.path.join(o.work, "found.json")
    found = json.loads(read(store)) if os.path.exists(store) else {}
    lock = threading.Lock()
    trial = Trial(tests, cover, o.work, o.seconds)

    def one(m):
        old = found.get(m.key)
        if old and old[2] in (everything, sources):
            return
        begin = time.time()
        state, by = trial.verdict(m)
        with lock:
            found[m.key] = [state, by, everything if state == "survived" else sources]
            with open(store + ".new", "w", encoding="utf-8") as f:
                json.dump(found, f)
            os.replace(store + ".new", store)
            print("%-15s %4.0f s  %s:%d  %s" % (state, time.time() - begin, m.path, m.line + 1,
                                                by), flush=True)

    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for done in [pool.submit(one, m) for m in mutants]:
            done.result()
    for room in trial.free:
        shutil.rmtree(room, ignore_errors=True)
    return report(mutants, found, known)


def report(mutants, found, known):
    count, per, alive = {}, {}, []
    for m in mutants:
        state, by, _ = found[m.key]
        why = known.get((os.path.basename(m.path), m.old.strip(), m.new.strip()))
        if state == "survived" and why is not None:
            state = "listed"
        elif state == "survived":
            alive.append((m, by))
        count[state] = count.get(state, 0) + 1
        row = per.setdefault(m.path, {})
        row[state] = row.get(state, 0) + 1
    states = ["killed", "survived", "listed", "same code", "did not compile"]
    for m, by in alive:
        print("\nsurvived %s\n  %s" % (m.said(), by))
    print("\n%-28s" % "" + "".join("%16s" % s for s in states))
    for path in sorted(per):
        print("%-28s" % path + "".join("%16d" % per[path].get(s, 0) for s in states))
    print("%-28s" % "all" + "".join("%16d" % count.get(s, 0) for s in states))
    killed, survived = count.get("killed", 0), count.get("survived", 0)
    rate = 100.0 * killed / max(1, killed + survived)
    if killed + survived == 0:
        return 0
    print("killed %.1f %% of those not listed" % rate)
    return 0 if rate >= 90 else 1


if __name__ == "__main__":
    sys.exit(main())
