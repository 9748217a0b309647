#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cpp: the general category of every code point, as ranges.

Unicode 16 is what the tokenizers that models were trained with read (\\p{L}, \\p{N} of the crate `tokenizers`). Run with
Python 3.14, or with PyPI `unicodedata2` 16.0.0 on an older one: tools/make_unicode_tables.py > src/text/unicode_tables.cpp
"""
import sys

VERSION = "16.0.0"
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn").split()


def ranges():
    last = None
    for code_point in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code_point))
        if category != last:
            yield code_point << 5 | CATEGORIES.index(category)
            last = category


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"expected Unicode {VERSION}, got {unicodedata.unidata_version} (pip install unicodedata2=={VERSION})")
    words = [f"0x{value:x}," for value in ranges()]
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 118:
            lines.append(line)
            line = ""
        line += word
    lines.append(line)
    print("// Written by tools/make_unicode_tables.py; don't edit.")
    print('#include "text/unicode_tables.h"\n\nnamespace couplet::text {\n\n// clang-format off')
    print(f"const std::uint32_t kCategoryRanges[kNumCategoryRanges] = {{  // Unicode {VERSION}")
    print("\n".join("  " + line for line in lines))
    print("};\n// clang-format on\n")
    print(f'static_assert(kNumCategoryRanges == {len(words)});\n\n}}  // namespace couplet::text')


main()
