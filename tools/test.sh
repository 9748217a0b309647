#!/usr/bin/env bash
# tools/test.sh: every test there is: release (all of them, on the real models), dev (ASan, UBSan, warnings are errors;
# unit tests), tsan (what runs threads), clang (the same bits as g++) and split_k (a broken contract is seen). Goes on
# after a failure, and ends with one line.
set -uo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
logs=build/test-logs
mkdir -p "$logs"
failed=()
passed_count=0 failed_count=0

step() { # step NAME COMMAND...: one part of the run; its failure is remembered, and returned
  local name=$1
  shift
  echo "== $name"
  "$@" && return 0
  failed+=("$name")
  return 1
}

count_tests() { # adds up ctest's closing line: "100% tests passed, 0 tests failed out of N"
  local line
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$1" | tail -1)
  local bad=${line#*, } all=${line##* }
  bad=${bad%% *}
  passed_count=$((passed_count + ${all:-0} - ${bad:-0}))
  failed_count=$((failed_count + ${bad:-0}))
}

run_ctest() { # run_ctest PRESET ARGUMENT...
  local preset=$1 status
  shift
  ${no_aslr[$preset]:-} ctest --preset "$preset" --no-tests=error -j "$(nproc)" "$@" 2>&1 | tee "$logs/$preset.log" |
    grep -vE '^( *[0-9]+/[0-9]+ Test +#.* Passed| *Start +[0-9]+:)'
  status=${PIPESTATUS[0]}
  count_tests "$logs/$preset.log"
  return "$status"
}

must_fail() { # a test program that passes here tests nothing; one that crashes is no answer either
  local log=$logs/split_k.log
  "$1" >"$log" 2>&1
  local status=$?
  if [ $status -ne 1 ]; then
    tail -20 "$log"
    echo "expected failed assertions (exit status 1), got exit status $status"
    return 1
  fi
  echo "$(grep -c '^\[  FAILED  \] .*ms)' "$log") tests failed, as they must"
}

declare -A no_aslr=()
if setarch -R true 2>/dev/null; then no_aslr[tsan]="setarch -R"; fi # tsan's fixed layout and a large random offset clash

if ! tools/build.sh --tests release; then
  echo "couplet: FAILED: the release build"
  exit 1
fi
step "models" build/release/couplet pull smollm2 gemma3
step "tokenizers" tools/fetch_tokenizers.py
step "Hugging Face tokenizers" tools/compare_tokenizers.py --install
step "release: all tests" run_ctest release
step "dev: build" tools/build.sh --tests dev && step "dev: unit tests under ASan and UBSan" run_ctest dev
step "tsan: build" tools/build.sh --tests tsan base_test cache_test engine_test &&
  step "tsan: what runs threads" run_ctest tsan
step "clang: build" tools/build.sh clang couplet &&
  step "clang: the same hashes" python3 tests/golden/score_hashes_test.py build/clang/couplet --quick
step "split_k: build" tools/build.sh --tests split_k property_test &&
  step "split_k: a broken numerics contract is seen" must_fail build/split_k/tests/property/property_test

seconds=$((SECONDS - start))
echo "tests: $passed_count passed, $failed_count failed"
if [ ${#failed[@]} -gt 0 ]; then
  printf -v list '%s; ' "${failed[@]}"
  echo "couplet: FAILED after $seconds s: ${list%; }"
  exit 1
fi
echo "couplet: all $passed_count tests passed in $seconds s"
