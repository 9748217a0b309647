#!/usr/bin/env bash
# tools/build.sh [--tests] PRESET [TARGET ...]: configures where needed, then builds; all its words go to standard error.
# Without --tests a new build folder has no tests, so that a user needs no test libraries.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=OFF
if [ "${1:-}" = --tests ]; then tests=ON; shift; fi
preset=$1; shift
folder=build/$preset

configured() {
  [ -e "$folder/build.ninja" ] || return 1
  [ ! .setup/changed -nt "$folder/build.ninja" ] || return 1
  [ $tests = OFF ] || grep -qx 'COUPLET_BUILD_TESTS:BOOL=ON' "$folder/CMakeCache.txt"
}

if ! configured; then
  # A folder that has tests keeps them.
  if grep -qsx 'COUPLET_BUILD_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; then tests=ON; fi
  cmake --preset "$preset" --log-level=WARNING -DCOUPLET_BUILD_TESTS=$tests >&2
  touch "$folder/build.ninja"
fi
if [ $# -gt 0 ]; then set -- --target "$@"; fi
cmake --build "$folder" "$@" >&2
