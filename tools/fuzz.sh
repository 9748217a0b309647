#!/usr/bin/env bash
# tools/fuzz.sh: builds the libFuzzer targets and runs each for FUZZ_SECONDS, from its committed corpus. What a target
# finds new stays in build/fuzz/corpus; an input that breaks one is kept as build/fuzz/found/TARGET-*.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh fuzz
mkdir -p build/fuzz/found
failed=""
for target in build/fuzz/fuzz/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=$(basename "$target")
  mkdir -p "build/fuzz/corpus/$name"
  echo "fuzz: $name for ${FUZZ_SECONDS:-60} s" >&2
  "$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" "fuzz/corpus/${name#fuzz_}" || failed+=" $name"
done
if [ -n "$failed" ]; then
  echo "fuzz: FAILED:$failed (inputs in build/fuzz/found)" >&2
  exit 1
fi
echo "fuzz: nothing found"
