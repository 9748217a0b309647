#!/usr/bin/env python3
"""Breaks each house rule on purpose, in a small tree of its own, and sees tools/check.py name the break."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import check  # noqa: E402

CLEAN = {
    "include/couplet/engine.h": "#pragma once\n#include <string>\n#include \"couplet/error.h\"\n",
    "include/couplet/error.h": "#pragma once\n#include <stdexcept>\n",
    "src/base/view.h": "#pragma once\n#include \"couplet/error.h\"\n",
    "src/kernels/kernels.h": "#pragma once\n",
    "src/kernels/avx512/dot.cpp": "#include <immintrin.h>\n#include \"kernels/kernels.h\"\n__m512i zero() { return _mm512_setzero_si512(); }\n",
    "src/formats/gguf.h": "#pragma once\n#include \"base/view.h\"\n",
    "src/text/bpe.h": "#pragma once\n#include \"formats/gguf.h\"\n",
    "src/cache/page.h": "#pragma once\n#include \"base/view.h\"\n",
    "src/model/forward.cpp": "#include \"cache/page.h\"\n#include \"kernels/kernels.h\"\n// never printf() here\nint f() { return 0; }\n",
    "src/engine/step.cpp": "#include \"couplet/engine.h\"\n#include \"text/bpe.h\"\nconst char* kText = \"std::cout << exit(1)\";\n",
    "src/engine/step_test.cpp": "#include \"model/../kernels/kernels.h\"\nint main() {}\n",
    "src/engine/CMakeLists.txt": "couplet_library(engine model text)\n",
    "apps/cli/main.cpp": "#include <cstdio>\n#include \"base/view.h\"\n#include \"couplet/engine.h\"\n#include \"run.h\"\nint main() { std::printf(\"x\"); }\n",
    "apps/cli/run.h": "#pragma once\n",
    "apps/server/http.h": "#pragma once\n#include \"apps/story/ledger.h\"\n",
    "apps/story/ledger.h": "#pragma once\n",
    "fuzz/gguf_fuzz.cpp": "int fuzz() { return 0; }\n",
    "fuzz/CMakeLists.txt": "couplet_fuzz(gguf_fuzz)\n",
    "docs/adr/0001-why.md": "# Why\n",
    "README.md": "See `docs/adr/0001-why.md`, [why](docs/adr/0001-why.md), `model/forward.cpp` and src/{text,cache}/*.h in build/x.\n",
}


def lines(count, text="// line\n"):
    return text * count


def function(length):
    return "int long_one(int x) {\n" + lines(length - 2, "  x += 1;\n") + "}\n"


class House(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(text)

    def check(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = check.main(["--root", self.root, "--build", os.path.join(self.root, "build")])
        return status, out.getvalue()

    def breaks(self, path, text, expected):
        """With `text` in `path` the check fails, and says `expected`."""
        self.write(path, text)
        status, out = self.check()
        self.assertEqual(status, 1, out)
        self.assertIn(expected, out)
        self.assertIn(" 1 breaks", out)
        self.write(path, CLEAN[path]) if path in CLEAN else os.remove(os.path.join(self.root, path))

    def passes(self, path, text):
        self.write(path, text)
        status, out = self.check()
        self.assertEqual(status, 0, out)

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.check(), (0, f"check: {len(CLEAN)} files, 0 breaks, 0 warnings\n"))


class Includes(House):
    def test_upwards(self):
        self.breaks("src/model/up.h", '#include "engine/step.cpp"\n', "up.h:1: include: model (step 3) may not see engine")

    def test_sideways(self):
        self.breaks("src/cache/side.h", '\n#include "text/bpe.h"\n', "side.h:2: include: cache (step 2) may not see text")
        self.breaks("src/kernels/side.h", '#include "formats/gguf.h"\n', "include: kernels (step 1) may not see formats")

    def test_base_sees_only_error_h(self):
        self.breaks("src/base/a.h", '#include <couplet/engine.h>\n', "include: base (step 0) may not see include")

    def test_apps_see_the_public_headers(self):
        self.breaks("apps/cli/deep.cpp", '#include "formats/gguf.h"\n', "include: apps see only include/couplet and base")
        self.breaks("apps/cli/next.cpp", '#include "apps/server/http.h"\n', "include: apps/cli may not see apps/server/http.h")
        self.breaks("apps/story/next.cpp", '#include "apps/cli/run.h"\n', "include: apps/story may not see apps/cli/run.h")

    def test_public_headers_see_std(self):
        self.breaks("include/couplet/a.h", "#include <fmt/core.h>\n", "include: the public headers see only std")

    def test_unknown_rooms_and_files(self):
        self.breaks("src/misc/a.h", "#pragma once\n", "include: src/misc has no step")
        self.breaks("src/text/a.h", '#include "text/none.h"\n', "include: no file text/none.h")


class Words(House):
    def test_intrinsics(self):
        self.breaks("src/model/a.cpp", "#include <immintrin.h>\n", "a.cpp:1: intrinsics: immintrin.h")
        self.breaks("src/kernels/a.cpp", "void f() { _mm_pause(); }\n", "intrinsics: _mm_pause")
        self.breaks("src/base/a.cpp", "void f() { __builtin_ia32_pause(); }\n", "intrinsics: __builtin_ia32_pause")

    def test_printing(self):
        for text in ("void f() { printf(1); }", "auto& o = std::cerr;", "void f() { fmt::print(1); }", "void f() { g(stderr); }"):
            self.breaks("src/engine/a.cpp", text + "\n", "a.cpp:1: printing: ")
        self.breaks("rust/front/src/lib.rs", "fn f() { println!(\"x\"); }\n", "printing: println!")

    def test_aborting(self):
        for text in ("std::abort()", "exit(1)", "_exit(1)", "::std::terminate()", "__builtin_trap()"):
            self.breaks("src/text/a.cpp", "void f() { " + text + "; }\n", "a.cpp:1: aborting: ")
        self.passes("src/text/a.cpp", "void f() { loop.exit(1); on_exit(2); my_terminate(); }\n")

    def test_words_of_other_people(self):
        for word in ("../sha" "red/DESIGN.md", "/wo" "rk/main", "my last ses" "sion", "https://pypi" ".org", "a sub" "agent"):
            self.breaks("docs/a.md", f"text\n{word}\n", "a.md:2: words: ")
        self.passes("docs/a.md", "std::shared_ptr in working order, a possession\n")


class Sizes(House):
    def test_files(self):
        self.breaks("src/text/a.h", lines(501), "a.h:501: file-lines: 501 lines, at most 500")
        self.breaks("src/engine/step_test.cpp", lines(801), "file-lines: 801 lines, at most 800")
        self.breaks("src/model/families/x_layer.cpp", lines(201), "file-lines: 201 lines, at most 200")
        self.breaks("fuzz/gguf_fuzz.cpp", lines(61), "file-lines: 61 lines, at most 60")
        self.passes("src/engine/step_test.cpp", lines(800))

    def test_functions(self):
        self.breaks("src/text/a.cpp", function(71), "a.cpp:1: function-lines: long_one: 71 lines, at most 70")
        self.breaks("tools/a.py", "def f():\n" + lines(70, "    pass\n"), "a.py:1: function-lines: f: 71 lines")
        self.passes("src/text/a.cpp", function(70) + function(70))

    def test_functions_of_kernels_are_a_warning(self):
        self.write("src/kernels/a.cpp", function(71))
        status, out = self.check()
        self.assertEqual(status, 0)
        self.assertIn("a.cpp:1: function-lines: warning: long_one: 71 lines", out)

    def test_what_a_function_is(self):
        code = """
namespace a { struct S : B {
  S(int x) : B{x}, y_{x} {
    if (x) { y_ = 1; }
  }
  int y_{}; int z = f(1);
  bool operator()(int) const noexcept override { return true; }
};
constexpr int kTable[] = {f(1),
  f(2)};
template <typename T, int N = 3> auto g(T t) -> decltype(t) {
  auto inner = [&](int x) { return x; };
  return t;
}
TEST(Suite, Name) {
}
}  // } in a comment, "{" in a string
"""
        found = [(name, line, length) for name, line, length in check.functions("a.cpp", code)]
        self.assertEqual(found, [("S", 3, 3), ("operator()", 7, 1), ("g", 11, 4), ("TEST(Suite, Name)", 15, 2)])

    def test_a_raised_limit_names_its_reason(self):
        self.write("src/text/a.cpp", function(80))
        entry = {"path": "src/text/a.cpp", "function": "long_one", "limit": 80, "adr": "docs/adr/0001-why.md"}
        self.passes(check.LIMITS, json.dumps([entry]))
        self.breaks(check.LIMITS, json.dumps([dict(entry, adr="docs/adr/0009-none.md")]), "limits: src/text/a.cpp")
        self.breaks(check.LIMITS, json.dumps([entry, dict(entry, path="src/gone.cpp")]), "limits: src/gone.cpp: no such file")


class Documents(House):
    def test_paths(self):
        for text in ("see src/text/gone.h", "[x](gone.md)", "`engine/gone.cpp`", "`gone.cpp`", "`src/{text,gone}/*.h`"):
            self.breaks("docs/a.md", text + "\n", "a.md:1: paths: ")
        self.passes("docs/a.md", "`src/*/bpe.h`, [up](../README.md), `text/event-stream`, `tokenizer.json`, build/src/x\n")


class Built(House):
    def compiled(self, *paths):
        entries = [{"directory": self.root, "file": path, "command": ""} for path in paths]
        self.write("build/compile_commands.json", json.dumps(entries))
        self.write(".gitignore", "build\n")
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def test_by_cmake_lists(self):
        self.breaks("bench/a_test.cpp", "int x;\n", "a_test.cpp:1: built: no target builds this file")
        self.breaks("fuzz/other.cpp", "int x;\n", "other.cpp:1: built: no target builds this file")

    def test_by_compile_commands(self):
        self.compiled("src/engine/step_test.cpp")
        status, out = self.check()
        self.assertEqual(status, 0, out)
        self.breaks("src/engine/late_test.cpp", "int x;\n", "late_test.cpp:1: built: no target builds this file")

    def objects(self, code, build_type="Release"):
        folder = os.path.join(self.root, "build/src/kernels/CMakeFiles/couplet_kernels_avx512.dir/avx512")
        os.makedirs(folder, exist_ok=True)
        self.compiled("src/engine/step_test.cpp")
        self.write("build/CMakeCache.txt", f"CMAKE_BUILD_TYPE:STRING={build_type}\n")
        subprocess.run([os.environ.get("CXX", "c++"), "-xc++", "-O0", "-c", "-o", folder + "/dot.cpp.o", "-"],
                       input=code, text=True, check=True)
        return self.check()

    def test_weak_symbols(self):
        weak = "inline int leak(int x) { return x; }\nint (*entry)(int) = leak;\n"
        status, out = self.objects(weak)
        self.assertEqual(status, 1, out)
        self.assertIn("dot.cpp.o:1: weak-symbols: weak symbol leak(int)", out)
        self.assertEqual(self.objects(weak, "Debug")[0], 0)
        self.assertEqual(self.objects("static int keep(int x) { return x; }\nint (*entry)(int) = keep;\n")[0], 0)

    def test_static_constructors(self):
        status, out = self.objects("int f();\nint x = f();\n")
        self.assertEqual(status, 1, out)
        self.assertIn("weak-symbols: a static constructor", out)


if __name__ == "__main__":
    unittest.main()
