#!/usr/bin/env bash
# bench/figures.sh [PYTHON]: every measurement that docs/performance.md names, one after the other, each into
# build/figures/NAME.txt. Needs `make bench`, the two models, and a Python with the peers (default build/peers/bin/python;
# docs/performance.md says how to get them). Takes about 40 minutes on two cores; nothing else should run meanwhile.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${1:-build/peers/bin/python}
build=build/bench
out=build/figures
mkdir -p "$out"
failed=0

figure() { # figure NAME COMMAND...: a failure is said and the next goes on
  local name=$1
  shift
  echo "== $name: $*" | tee "$out/$name.txt"
  "$@" 2>&1 | tee -a "$out/$name.txt" || { echo "failed: $name"; failed=1; }
}

figure machine "$build/couplet" inspect --machine
figure products "$build/bench/matmul_bench"
figure attention "$build/bench/attention_bench"
for model in smollm2 gemma3; do
  figure "stages-$model" "$build/couplet" bench "$model" --repeat 5
  figure "batches-$model" "$build/couplet" bench "$model" --prefill 512 --depth 0 --batch 1,8,32 --repeat 5
done
figure stages-fine "$build/couplet" bench smollm2 --precision fine --batch 1 --repeat 5
figure peers "$python" bench/compare.py --patience 30
figure neighbours "$python" bench/neighbours.py
figure tokenizers "$python" bench/tokenize_bench.py
figure exactness "$build/bench/exactness_bench"
figure soak "$python" bench/soak.py
exit "$failed"
