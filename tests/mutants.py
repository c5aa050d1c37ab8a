#!/usr/bin/env python3
"""Mutants: one small fault at a time is put into the library, and some test has to notice it.

  make mutants [MUTANTS=150] [SEED=1] [JOBS=2] [MUTANT_FILES="einsum*.h ..."] [MUTANT_LIST=FILE]
               [MUTANT_SECONDS=60]

A first run compiles all with gcov and keeps which lines each test executes, and in which object,
so that a mutant meets only the tests that reach its line, the cheapest first, until one fails,
crashes or takes many times as long as it should. Tests share objects of the library (see "shared
objects" in the Makefile), so of a mutant mostly one object is compiled, once; what tests call of
the library's private functions lies in their own objects, which are compiled for those only that
no test noticed before. All that is found is kept in build/mutants: a run that was broken off goes
on where it was, and more mutants of one seed begin with those that were tried before.
With MUTANT_SECONDS a mutant meets only as many tests as take so long; a survivor says which it met.
A mutant whose objects come out bit for bit as without it is no mutant and is not counted.

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
    "command": ("tools/einsum.c", ["-DEINSUM_LINKED"], []),
}
# As in the Makefile: tests that hold the whole library, those that cut work finely, and how the
# others are compiled.
WHOLE = ("math", "contract", "cpu_safe")
FINE = ("tests/test_kernels.c", "tests/test_order.c")
CUT = ["-DEINI_LEAF_WORK=24", "-DEINI_SUM_WORK=8"]
THIN = ["-fno-inline", "-DEIN_API=extern __inline __attribute__((gnu_inline))"]
# Shared objects: flags of tests/library.c, and the files they are made of.
SHARED = {
    "library": ([], ("einsum.h", "backends/einsum_dist.h")),
    "library_cut": (CUT, ("einsum.h", "backends/einsum_dist.h")),
    "library_cpu": (["-DLIBRARY_CPU"], ("einsum.h", "backends/einsum_cpu.h",
                                        "backends/einsum_cpu_kernels.h")),
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
    """Programs are linked from objects: shared ones, and one of their own."""

    def __init__(self, names, cc, work):
        self.cc, self.work = cc.split() + ["-std=c99", "-w"], work
        self.all = {n: SPECIAL.get(n, ("tests/test_%s.c" % n, [], [])) for n in names}
        self.base = os.path.join(work, "base")
        self.sums = {}

    def shared(self, name):
        if name in WHOLE:
            return []
        return ["library_cut" if self.all[name][0] in FINE else "library", "library_cpu"]

    def compile(self, what, root, out, extra=("-O0",)):
        """The shared object or the own one of a test, as OUT/WHAT.o; False if it does not."""
        if what in SHARED:
            source, flags = "tests/library.c", SHARED[what][0]
        else:
            source, flags, _ = self.all[what]
            flags = flags + ([] if what in WHOLE or what == "command" else THIN)
            flags = flags + (CUT if source in FINE else [])
        command = self.cc + list(extra) + flags + ["-c", "-o", os.path.join(out, what + ".o")]
        return subprocess.run(command + [source], cwd=root, capture_output=True).returncode == 0

    def link(self, name, objects, out, extra=()):
        command = self.cc + list(extra) + ["-o", out] + objects + ["-lm", "-pthread"]
        if subprocess.run(command, capture_output=True).returncode != 0:
            sys.exit("mutants: %s cannot be linked" % name)

    def run(self, name, root, binary, cpu, wall, env=None):
        """(0 passed, 77 not for this machine, else noticed; seconds of the processor, which other
        work on the machine does not change)"""
        _, _, args = self.all[name]
        command = [binary] + args
        if name == "command":
            script = "sh tests/test_command.sh $0 && python3 tests/pictures.py $0"
            command = ["sh", "-c", script, binary]

        def limits():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        env = dict(os.environ, TMPDIR=os.path.join(os.path.dirname(binary), "tmp"), **(env or {}))
        os.makedirs(env["TMPDIR"], exist_ok=True)
        p = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, env=env,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                             preexec_fn=limits)
        end, ended = time.time() + wall, 0
        while not ended and time.time() < end:
            time.sleep(0.01)
            ended, status, usage = os.wait4(p.pid, os.WNOHANG)
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not ended:
            _, status, usage = os.wait4(p.pid, 0)
        shutil.rmtree(env["TMPDIR"], ignore_errors=True)  # what ended so leaves its files, up to GB
        p.returncode = os.waitstatus_to_exitcode(status)
        return p.returncode, usage.ru_utime + usage.ru_stime

    def build_base(self, root, jobs):
        """All objects without a mutant."""
        os.makedirs(self.base, exist_ok=True)
        whats = list(SHARED) + list(self.all)

        def one(what):
            if not self.compile(what, root, self.base):
                sys.exit("mutants: %s does not compile" % what)
            with open(os.path.join(self.base, what + ".o"), "rb") as f:
                self.sums[what] = digest(f.read())
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, whats))


def new_room(root):
    """A copy of what the tests read."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    for path in glob.glob("*.h") + ["README.md"]:
        shutil.copy(path, root)
    for tree in TREES:
        shutil.copytree(tree, os.path.join(root, tree))
    return os.path.abspath(root)


class Cover:
    """Which lines each test executes, by object."""

    def __init__(self, tests, files, work, jobs):
        self.tests = tests
        self.folder = os.path.join(os.path.abspath(work), "cover")
        self.store = os.path.join(work, "cover.json")
        self.data = json.loads(read(self.store)) if os.path.exists(self.store) else {}
        shared = [read(p) for p in files]
        state = {n: digest(str(tests.cc), read(tests.all[n][0]), *shared) for n in tests.all}
        todo = [n for n in tests.all if self.data.get(n, {}).get("state") != state[n]]
        if todo:
            self.measure_all(todo, state, jobs)
        self.data = {n: self.data[n] for n in tests.all if self.data[n]["run"] >= 0}
        self.known = {p: set() for p in files}
        self.lines = {p: {} for p in files}  # path -> (test, object) -> lines
        for name, d in self.data.items():
            for what, by_path in d["known"].items():
                for path in set(by_path) & set(files):
                    self.known[path].update(by_path[path])
                    self.lines[path][name, what] = set(d["lines"][what].get(path, []))
        self.uses = {p: self.macro_uses(p) for p in files}

    def measure_all(self, names, state, jobs):
        root = new_room(self.folder)
        flags = ["-O0", "--coverage"]
        whats = [w for w in SHARED if any(w in self.tests.shared(n) for n in names)] + names
        print("compiling with gcov ..", flush=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            if not all(pool.map(lambda w: self.tests.compile(w, root, root, flags), whats)):
                sys.exit("mutants: not all tests compile")
            found = pool.map(lambda n: self.measure(n, root), names)
            for name, got in zip(names, found):
                got["state"] = state[name]
                self.data[name] = got
                with open(self.store + ".new", "w", encoding="utf-8") as f:
                    json.dump(self.data, f)
                os.replace(self.store + ".new", self.store)
        shutil.rmtree(root)

    def measure(self, name, root):
        whats = self.tests.shared(name) + [name]
        at = os.path.join(root, "at_" + name)
        os.makedirs(at)
        out = os.path.join(at, "test")
        self.tests.link(name, [os.path.join(root, w + ".o") for w in whats], out, ["--coverage"])
        self.tests.run(name, root, out, 3600, 7200, {"GCOV_PREFIX": at})
        self.tests.link(name, [os.path.join(self.tests.base, w + ".o") for w in whats], out)
        status, seconds = self.tests.run(name, root, out, 3600, 7200)
        print("%s: %.1f s%s" % (name, seconds, "" if status in (0, SKIPPED) else
                                ", it fails by itself: left out"), flush=True)
        known, lines = {}, {}
        for what in whats:
            data = at + os.path.join(root, what + ".gcda")
            if not os.path.exists(data):
                continue
            shutil.copy(os.path.join(root, what + ".gcno"), data[:-4] + "gcno")
            said = subprocess.run(["gcov", "--json-format", "--stdout", data], text=True, cwd=root,
                                  capture_output=True).stdout
            known[what], lines[what] = {}, {}
            for text in said.split("\n"):
                for f in json.loads(text)["files"] if text.strip() else []:
                    path = os.path.normpath(f["file"])
                    known[what].setdefault(path, []).extend(x["line_number"] for x in f["lines"])
                    lines[what].setdefault(path, []).extend(
                        x["line_number"] for x in f["lines"] if x["count"])
        shutil.rmtree(at)
        return {"run": seconds if status == 0 else -1, "known": known, "lines": lines}

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

    def reached_by(self, m, seconds):
        """{test: objects of it that execute the mutant's line}, the cheapest first."""
        place = self.place(m) or set()
        met = {}
        for (name, what), lines in self.lines[m.path].items():
            if lines & place:
                met.setdefault(name, []).append(what)
        left = seconds if seconds > 0 else float("inf")
        names = sorted(met, key=lambda n: self.data[n]["run"])
        for k, name in enumerate(names):
            left -= self.data[name]["run"]
            if left < 0:
                names = names[:max(k, 1)]
                break
        return {n: met[n] for n in names}


class Trial:
    def __init__(self, tests, cover, work, seconds):
        self.tests, self.cover, self.work, self.seconds = tests, cover, work, seconds
        self.free = []
        self.lock = threading.Lock()

    def room(self):
        with self.lock:
            if self.free:
                return self.free.pop()
        return new_room(os.path.join(self.work, "room%d" % threading.get_ident()))

    def verdict(self, m):
        met = self.cover.reached_by(m, self.seconds)
        if not met:
            return "survived", "no test executes the line"
        root = self.room()
        path = os.path.join(root, m.path)
        whole = read(path)
        lines = whole.split("\n")
        lines[m.line] = m.new
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
            return self.decide(met, root)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(whole)
            with self.lock:
                self.free.append(root)

    def decide(self, met, root):
        """First with the mutant in shared objects of the library alone, then wherever it is met."""
        made = {}  # object -> whether it differs from the one without the mutant

        def make(what):
            if what not in made:
                if not self.tests.compile(what, root, root):
                    return False
                with open(os.path.join(root, what + ".o"), "rb") as f:
                    made[what] = digest(f.read()) != self.tests.sums[what]
            return True
        few = {n: [w for w in met[n] if w in ("library", "library_cut")] for n in met}
        if not any(few.values()):
            few = {n: [w for w in met[n] if w in SHARED] for n in met}
        for stage in (few, met):
            for name, whats in stage.items():
                if not whats or (stage is met and whats == few[name]):
                    continue
                if not all(make(w) for w in whats):
                    return "did not compile", name
                if any(made[w] for w in whats) and self.noticed(name, whats, root):
                    return "killed", name
        if not any(made.values()):
            return "same code", ""
        return "survived", ", ".join(met)

    def noticed(self, name, whats, root):
        out = os.path.join(root, "test_" + name)
        self.tests.link(name, [os.path.join(root if w in whats else self.tests.base, w + ".o")
                               for w in self.tests.shared(name) + [name]], out)
        took = self.cover.data[name]["run"]
        status, _ = self.tests.run(name, root, out, 5 * took + 10, 30 * took + 120)
        os.remove(out)
        return status not in (0, SKIPPED)


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
    room = new_room(os.path.join(o.work, "room"))
    tests.build_base(room, o.jobs)
    cover = Cover(tests, files, o.work, o.jobs)
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
    left = [m for m in mutants if found.get(m.key, [0, 0, 0])[2] not in (everything, sources)]
    trial.free.append(room)

    def one(m):
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
        for done in [pool.submit(one, m) for m in left]:
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
