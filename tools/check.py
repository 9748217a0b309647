#!/usr/bin/env python3
"""The house rules, enforced: prints `file:line: rule: message` for every break and exits 1 if there is one.

    tools/check.py [--root DIR] [--build DIR]

--root is the tree to look at (default: this one), --build a build folder (default: build/release in it) whose
compile_commands.json says what is built and whose objects are searched for weak symbols. Each rule is a function
that yields breaks; tests/rules/check_test.py breaks every one of them on purpose.
"""

import argparse
import ast
import glob
import json
import os
import re
import subprocess
import sys
from typing import NamedTuple


class Break(NamedTuple):
    path: str
    line: int
    rule: str
    message: str
    warning: bool = False

    def __str__(self):
        kind = "warning: " if self.warning else ""
        return f"{self.path}:{self.line}: {self.rule}: {kind}{self.message}"


# A folder includes only folders on a lower step, and itself.
STEPS = {"base": 0, "include": 0, "kernels": 1, "formats": 1, "text": 2, "cache": 2, "model": 3, "engine": 4}
APPS_SEE = {"base", "include"}  # apps and python
APPS_SHARE = ("apps/story/", "apps/server/serve.h", "apps/server/options.h")  # the command line starts the server
EVERYBODY_SEES = {"include/couplet/error.h"}  # docs/adr/0005
ISA_FOLDERS = ("avx2", "avx2_vnni", "avx512", "amx")

CPP = (".cpp", ".h", ".hpp", ".inl")
SIZED = CPP + (".S", ".py", ".rs", ".sh", ".js", ".ts", ".cmake")
FILE_LINES, TEST_LINES, FAMILY_LINES, FUZZ_LINES, FUNCTION_LINES = 500, 800, 200, 60, 70
LIMITS = "tools/check_limits.json"  # [{"path", "function" (or none), "limit", "adr"}]: limits raised, with the reason

INTRINSICS = re.compile(r"\b\w*intrin\.h\b|\b_mm\d*_\w+|\b__m(128|256|512)\w*\b|\b__builtin_ia32_\w+|\b_tile_\w+")
PRINTING = re.compile(r"\b(v?f?printf|v?dprintf|puts|fputs|putchar|putc|fputc|perror)\s*\(|\bstd::(cout|cerr|clog)\b"
                      r"|\b(stdout|stderr)\b|\bfmt::print\b|\be?print(ln)?!")
ABORTING = re.compile(r"(?<![\w.>])(std::|::)?(abort|exit|_exit|_Exit|quick_exit|terminate)\s*\("
                      r"|\b__builtin_trap\b|\bprocess::(exit|abort)\b")
# In pieces, so that this file does not break its own rule.
FORBIDDEN = re.compile("|".join([
    r"(?<![\w.])(\.\./)?sha" r"red/", r"/wo" r"rk/", r"\b(this|last|next|previous|earlier|my) ses" r"sions?\b", r"\bsub" r"-?agents?\b",
    r"\bhelper" r" agents?\b", r"\bpypi" r"\.org", r"\bpythonhosted" r"\.org", r"\bcrates" r"\.io\b",
    r"\bregistry\.npmjs" r"\.org", r"\bdebian" r"\.org", r"\bproxy\.golang" r"\.org", r"\bmaven" r"\.org"]), re.IGNORECASE)


class Tree:
    """The files of a tree: those git knows or would add, else all; and their text, read once."""

    def __init__(self, root, build):
        self.root, self.build = os.path.abspath(root), os.path.abspath(build)
        self.files = self._list()
        self._texts = {}

    def _list(self):
        command = ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True)
        if listed.returncode == 0 and os.path.exists(os.path.join(self.root, ".git")):
            names = [name for name in listed.stdout.split("\0") if name]
        else:
            names = [os.path.relpath(os.path.join(where, file), self.root)
                     for where, _, files in os.walk(self.root) for file in files]
        return sorted(name for name in names if os.path.isfile(os.path.join(self.root, name)))

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), "rb") as file:
                data = file.read()
            self._texts[path] = "" if b"\0" in data else data.decode("utf-8", "replace")
        return self._texts[path]

    def code(self, path):
        return strip(self.text(path))

    def under(self, *folders, ext=CPP):
        return [f for f in self.files if f.startswith(tuple(d + "/" for d in folders)) and f.endswith(ext)]


TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\'\n]+|[^\'\\\n])\'', re.DOTALL)


def strip(text):
    """C++ or Rust without comments and the insides of strings; line numbers stay."""
    def blank(match):
        token = match.group()
        mark = "" if token.startswith("/") else token[-1]
        return mark + "".join(c if c == "\n" else " " for c in token[2 * len(mark):]) + mark
    return TOKENS.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def is_test(path):
    return path.endswith("_test.cpp") or path.startswith("tests/") or path.endswith("_testing.h")


def room(path):
    """The folder of the ladder that a path belongs to: a step's name, "apps", "python", or None."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in ("include", "apps", "python") else None


# ---- rules -----------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def resolve(tree, path, name):
    """The file of this tree that an include means, or None for a library's."""
    for base in (os.path.dirname(path), "src", "include", "apps", "", "rust/front"):
        found = os.path.normpath(os.path.join(base, name))
        if found in tree.files:
            return found
    return None


def why_not(here, there):
    """Why files of folder `here` may not include files of folder `there`; None: they may."""
    if here == there or there is None:
        return None
    if here in ("apps", "python"):
        return None if there in APPS_SEE else f"{here} see only include/couplet and base, not {there}"
    if there not in STEPS:
        return f"{here} may not see {there}"
    if STEPS[here] <= STEPS[there]:
        return f"{here} (step {STEPS[here]}) may not see {there} (step {STEPS[there]})"
    return None


def rule_includes(tree):
    for path in tree.under("src", "include", "apps", "python"):
        here = room(path)
        if here is None or is_test(path):
            continue
        if here not in STEPS and here not in ("apps", "python"):
            yield Break(path, 1, "include", f"src/{here} has no step in tools/check.py")
            continue
        text = tree.text(path)
        for match in INCLUDE.finditer(text):
            line, quote, name = line_of(text, match.start()), match.group(1), match.group(2)
            target = resolve(tree, path, name)
            reason = why_not(here, room(target)) if target and target not in EVERYBODY_SEES else None
            if target is None and quote == '"':
                reason = f"no file {name}"
            elif target is None and here == "include" and not re.fullmatch(r"[a-z_0-9]+", name):
                reason = f"the public headers see only std, not <{name}>"
            if reason:
                yield Break(path, line, "include", reason)
        for line, reason in app_neighbours(tree, path, text):
            yield Break(path, line, "include", reason)


def app_neighbours(tree, path, text):
    """apps/cli and apps/server do not know each other, but for how one starts the other; both know apps/story."""
    for match in INCLUDE.finditer(text):
        target = resolve(tree, path, match.group(2))
        mine = path.split("/")[:2]
        if target and mine[0] == "apps" and target.startswith("apps/") and target.split("/")[:2] != mine \
                and not target.startswith(APPS_SHARE):
            yield line_of(text, match.start()), f"{'/'.join(mine)} may not see {target}"


def rule_intrinsics(tree):
    for path in tree.under("src", "include", "apps", "python"):
        if re.match(rf"src/kernels/({'|'.join(ISA_FOLDERS)})/|src/kernels/(\w+/)?f32x16\.h$", path):
            continue
        text = strip_comments_only(tree.text(path))
        for match in INTRINSICS.finditer(text):
            yield Break(path, line_of(text, match.start()), "intrinsics",
                        f"{match.group()} outside src/kernels/<isa>/")


def strip_comments_only(text):
    return re.sub(r"//[^\n]*", "", text)


def rule_printing_and_aborting(tree):
    for path in tree.under("src", "include", "python") + tree.under("rust", ext=(".rs",)):
        if is_test(path):
            continue
        code = tree.code(path)
        for rule, pattern in (("printing", PRINTING), ("aborting", ABORTING)):
            for match in pattern.finditer(code):
                yield Break(path, line_of(code, match.start()), rule, f"{match.group().strip(' (')} outside apps/")


def raised_limits(tree):
    """{(path, function or None): limit} from LIMITS, and the breaks in that file itself."""
    if LIMITS not in tree.files:
        return {}, []
    limits, breaks = {}, []
    for entry in json.loads(tree.text(LIMITS)):
        if not re.fullmatch(r"docs/adr/\d{4}-.+\.md", entry.get("adr", "")) or entry["adr"] not in tree.files:
            breaks.append(Break(LIMITS, 1, "limits", f"{entry['path']}: a raised limit names its ADR"))
        if entry["path"] not in tree.files:
            breaks.append(Break(LIMITS, 1, "limits", f"{entry['path']}: no such file"))
        limits[entry["path"], entry.get("function")] = entry["limit"]
    return limits, breaks


def file_limit(path):
    if is_test(path):
        return TEST_LINES
    if re.match(r"src/model/families/\w+_layer\.cpp", path):
        return FAMILY_LINES
    if re.match(r"fuzz/\w+\.cpp", path):
        return FUZZ_LINES
    return FILE_LINES


def rule_sizes(tree):
    limits, breaks = raised_limits(tree)
    yield from breaks
    for path in tree.files:
        if not path.endswith(SIZED) or path.endswith("_tables.cpp") or path.startswith("third_party/"):
            continue  # generated tables are read by nobody
        text = tree.text(path)
        lines, limit = text.count("\n"), limits.get((path, None), file_limit(path))
        if lines > limit:
            yield Break(path, lines, "file-lines", f"{lines} lines, at most {limit}")
        for name, line, length in functions(path, text):
            allowed = limits.get((path, name), FUNCTION_LINES)
            if length > allowed:
                yield Break(path, line, "function-lines", f"{name}: {length} lines, at most {allowed}",
                            warning=path.startswith("src/kernels/"))


def functions(path, text):
    """(name, line, length) of each function of a file."""
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.lineno, node.end_lineno - node.lineno + 1
    elif path.endswith(CPP + (".rs",)):
        yield from brace_functions(strip(text))


NOT_A_FUNCTION = re.compile(r"^(namespace|struct|class|enum|union|extern|mod|impl|trait|pub struct|pub enum)\b|^export")
FUNCTION_TAIL = re.compile(r"(\)|\bconst|\bnoexcept|\boverride|\bfinal|\bmutable|\btry|->\s*[^(){};]+|>\s+\w+|\})\s*$")


def brace_functions(code):
    """A brace matcher: a block outside any function whose head looks like `name(...) tail` is a function."""
    stack, head = [], 0  # head: where the present declaration began
    for match in re.finditer(r"[{};]|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", code, re.MULTILINE):
        char, at = match.group(), match.start()
        inside = any(kind == "function" for kind, *_ in stack)
        if char == "{":
            kind, name = ("block", "") if inside else kind_of(code[head:at])
            stack.append((kind, name, head, at))
            if kind != "initializer":
                head = match.end()
        elif char == "}":
            if not stack:
                return
            kind, name, start, _ = stack.pop()
            if kind == "function":
                begin = start + len(code[start:]) - len(code[start:].lstrip())
                yield name, line_of(code, begin), code.count("\n", begin, at) + 1
            if kind != "initializer":
                head = match.end()
        elif char == ";" and not any(kind == "initializer" for kind, *_ in stack) or char not in "{};":
            head = match.end()


def kind_of(head):
    head = " ".join(re.sub(r"\btemplate\s*<[^{]*?>(?=\s+[\w\[])", "", head).split())
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)|alignas\s*\([^)]*\)", "", head)
    head = re.sub(r"^\s*((public|private|protected)\s*:|\[\[[^\]]*\]\])\s*", "", head)
    if NOT_A_FUNCTION.match(head):
        return "scope", ""
    called = re.search(r"(operator\s*\(\)|operator\s*[^\s\w(]+|[\w:~]+)\s*\(", head)
    if not called or not FUNCTION_TAIL.search(head) or re.search(r"=\s*$", head):
        return "initializer" if head else "block", ""
    if re.match(r"^[^(]*=(?!=)", head.replace("operator=", "operator")) and "[" not in head:
        return "initializer", ""
    first_name = called.group(1)
    macro = re.match(r"(TEST\w*|RC_GTEST\w*|TYPED_TEST\w*)\s*\(([^)]*)\)", head)
    return "function", f"{macro.group(1)}({macro.group(2)})" if macro else first_name


# ---- rules about files that name each other --------------------------------------------------------------------------

TOP = re.compile(r"(?<![\w./$~-])((?:src|include|apps|tests|tools|docs|cmake|rust|fuzz|bench|python|third_party)"
                 r"/[\w./*{},-]*[\w/*}])")
BACKTICK = re.compile(r"`([\w.*{},/-]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
BARE = re.compile(r"[\w-]+\.(md|cpp|h|py|cmake|sh)|(?:Makefile|LICENSE)")


def expand(path):
    """`a/{b,c}.h` -> `a/b.h`, `a/c.h`."""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [p for option in match.group(1).split(",") for p in expand(path[:match.start()] + option + path[match.end():])]


def exists(tree, name, bases):
    return any(glob.glob(os.path.join(glob.escape(os.path.join(tree.root, base)), name)) for base in bases)


def rule_paths_in_docs(tree):
    for path in tree.files:
        if not path.endswith(".md"):
            continue
        text, here = tree.text(path), os.path.dirname(path)
        named = [(m.start(), m.group(1), ("", here)) for m in TOP.finditer(text)]
        named += [(m.start(), m.group(1), (here,)) for m in LINK.finditer(text) if "://" not in m.group(1)]
        for match in BACKTICK.finditer(text):
            name = match.group(1)
            first = name.split("/")[0]
            if "/" in name.strip("/") and first in STEPS and (name.endswith("/") or "." in name.split("/")[-1]):
                named.append((match.start(), name, ("src", "")))
            elif BARE.fullmatch(name) and not any(os.path.basename(f) == name for f in tree.files):
                yield Break(path, line_of(text, match.start()), "paths", f"no file is called {name}")
        for position, name, bases in named:
            for wanted in expand(name.rstrip(".,")):
                if not exists(tree, wanted, bases):
                    yield Break(path, line_of(text, position), "paths", f"{wanted} does not exist")


def built_files(folder):
    try:
        with open(os.path.join(folder, "compile_commands.json")) as file:
            return {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in json.load(file)}
    except FileNotFoundError:
        return None


def rule_everything_is_built(tree):
    built = built_files(tree.build)
    for path in tree.under("src", "apps", "tests", "fuzz", "bench", ext=(".cpp",)):
        test, fuzz = path.endswith("_test.cpp"), path.startswith("fuzz/")
        if not (test or fuzz):
            continue
        absolute = os.path.realpath(os.path.join(tree.root, path))
        if (built is None or (fuzz and absolute not in built)) and named_in_cmake(tree, path):
            continue
        if built is None or absolute not in built:
            yield Break(path, 1, "built", "no target builds this file")


def named_in_cmake(tree, path):
    """A CMakeLists.txt of this folder or above names the file or globs its kind."""
    folder = os.path.dirname(path)
    stem = os.path.basename(path)[:-len(".cpp")]
    while True:
        text = tree.text(os.path.join(folder, "CMakeLists.txt")) if os.path.join(folder, "CMakeLists.txt") in tree.files else ""
        collects = "*.cpp" in text or "*_fuzz.cpp" in text or re.search(r"couplet_(tests|library)\(", text)
        if collects or re.search(rf"\b{re.escape(stem)}\b", text):
            return True
        if not folder:
            return False
        folder = os.path.dirname(folder)


def rule_weak_symbols(tree):
    """Inline library code compiled for AVX-512 must not be what the linker keeps for every machine."""
    try:
        with open(os.path.join(tree.build, "CMakeCache.txt")) as cache:
            release = "CMAKE_BUILD_TYPE:STRING=Release" in cache.read()
    except FileNotFoundError:
        release = False
    if not release:
        return
    for level in ISA_FOLDERS:
        pattern = os.path.join(glob.escape(tree.build), f"**/couplet_kernels_{level}.dir/**/*.o")
        for path in sorted(glob.glob(pattern, recursive=True)):
            listing = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
            for line in listing.splitlines():
                match = re.match(r"[0-9a-f]+ ([WVu]) (.+)", line)
                start = re.match(r"[0-9a-f]+ \w (_GLOBAL__sub_I_\S+)", line)
                if match or start:
                    what = f"weak symbol {match.group(2)}" if match else "a static constructor"
                    yield Break(os.path.relpath(path, tree.root), 1, "weak-symbols", what)


def rule_words(tree):
    for path in tree.files:
        if path.endswith(("Cargo.lock", ".jinja")) or path == "LICENSE":  # others' texts
            continue
        for match in FORBIDDEN.finditer(tree.text(path)):
            yield Break(path, line_of(tree.text(path), match.start()), "words",
                        f"\"{match.group()}\" is not the project's business")


RULES = [rule_includes, rule_intrinsics, rule_printing_and_aborting, rule_sizes, rule_paths_in_docs,
         rule_everything_is_built, rule_weak_symbols, rule_words]


def main(arguments=None):
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=here)
    parser.add_argument("--build")
    options = parser.parse_args(arguments)
    tree = Tree(options.root, options.build or os.path.join(options.root, "build", "release"))
    breaks = [b for rule in RULES for b in rule(tree)]
    for b in breaks:
        print(b)
    errors = sum(not b.warning for b in breaks)
    print(f"check: {len(tree.files)} files, {errors} breaks, {len(breaks) - errors} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
