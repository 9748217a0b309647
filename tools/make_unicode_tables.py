#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cpp: the general category of every code point, which of them Unicode 9 has, and the small
letters of the capital ones, as ranges.

Unicode 16 is what the tokenizers that models were trained with read (\\p{L}, \\p{N} of the crate `tokenizers`); their normal
forms are Unicode 9's, and their small letters those of the Rust that compiled them. Needs perl, PyPI `tokenizers` 0.23.3, and
Python 3.14 or PyPI `unicodedata2` 16.0.0 on an older one: tools/make_unicode_tables.py > src/text/unicode_tables.cpp
"""
import subprocess
import sys

from tokenizers import normalizers

VERSION = "16.0.0"
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn").split()
EDGES = r"""my $was = 1; for (0..0x10FFFF) { no warnings; my $is = chr($_) =~ /\p{Present_In: 9.0}/ ? 1 : 0;
print "$_\n" if $is != $was; $was = $is }"""


def category_ranges():
    last = None
    for code_point in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code_point))
        if category != last:
            yield code_point << 5 | CATEGORIES.index(category)
            last = category


def unicode_9_edges():
    return map(int, subprocess.run(["perl", "-e", EDGES], check=True, capture_output=True, text=True).stdout.split())


def lowercase_ranges():
    """[first, last, step, how far the small letter is]; steps are 1 or 2."""
    lowercase, ranges = normalizers.Lowercase(), []
    for code_point in range(sys.maxunicode + 1):
        small = "" if 0xD800 <= code_point < 0xE000 else lowercase.normalize_str(chr(code_point))
        if len(small) != 1 or ord(small) == code_point:
            continue
        distance = ord(small) - code_point
        if ranges and ranges[-1][3] == distance and code_point - ranges[-1][1] in ((1, 2) if ranges[-1][2] == 0 else (ranges[-1][2],)):
            ranges[-1][1:3] = code_point, code_point - ranges[-1][1]
        else:
            ranges.append([code_point, code_point, 0, distance])
    return [[first, last, max(step, 1), distance] for first, last, step, distance in ranges]


def print_lowercase():
    rows = [f"{{0x{first:x},0x{last:x},{step},{distance}}}," for first, last, step, distance in lowercase_ranges()]
    print(f"const LowercaseRange kLowercaseRanges[kNumLowercaseRanges] = {{  // Unicode 17.0.0")
    for begin in range(0, len(rows), 5):
        print("  " + " ".join(rows[begin:begin + 5]))
    print(f"}};\nstatic_assert(kNumLowercaseRanges == {len(rows)});\n")


def print_table(name, size, numbers, comment):
    words = [f"0x{value:x}," for value in numbers]
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 118:
            lines.append(line)
            line = ""
        line += word
    lines.append(line)
    print(f"const std::uint32_t {name}[{size}] = {{  // {comment}")
    print("\n".join("  " + line for line in lines))
    print(f"}};\nstatic_assert({size} == {len(words)});\n")


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"expected Unicode {VERSION}, got {unicodedata.unidata_version} (pip install unicodedata2=={VERSION})")
    print("// Written by tools/make_unicode_tables.py; don't edit.")
    print('#include "text/unicode_tables.h"\n\nnamespace couplet::text {\n\n// clang-format off')
    print_table("kCategoryRanges", "kNumCategoryRanges", category_ranges(), f"Unicode {VERSION}")
    print_table("kUnicode9Edges", "kNumUnicode9Edges", unicode_9_edges(), "Unicode 9.0.0")
    print_lowercase()
    print("// clang-format on\n\n}  // namespace couplet::text")


main()
