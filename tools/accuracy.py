#!/usr/bin/env python3
"""How far couplet's distributions are from a float32 run of the same dequantized weights.

    tools/accuracy.py tests/data/logits.smollm2.jsonl -- build/release/couplet score smollm2 - --json

The golden file has a line a prompt: "ids", and at each position the 32 best ids ("top_ids") with their natural-log
probabilities ("top_logprobs") and the log probability of the token that follows ("next_logprob"). The command is asked
for the same ids at the same positions ("want") and answers a line each. Printed as one JSON object: the number of
positions, the KL divergence over the 32 ids and all others as one bucket (mean, 99th percentile, greatest), the share
of positions whose best id is the reference's, and the mean error of the next token's log probability.

llama.cpp on these files: SmolLM2 kl_mean 0.00241, kl_p99 0.0127, top1 0.966; Gemma 3 0.00401, 0.0221, 0.963.
"""

import argparse
import json
import math
import subprocess
import sys

SMALLEST_REST = 1e-9  # probability of all other ids together, where rounding leaves less or nothing


def read_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def ask(command, golden):
    """One answer a golden line, from one run of the command."""
    questions = "".join(json.dumps({"ids": line["ids"], "want": line["top_ids"]}) + "\n" for line in golden)
    done = subprocess.run(command, input=questions, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"accuracy: {command[0]} ended with status {done.returncode}: {done.stderr.strip()}")
    answers = read_lines(done.stdout)
    if len(answers) != len(golden):
        sys.exit(f"accuracy: expected {len(golden)} answers, got {len(answers)}")
    return answers


def divergence(reference, measured):
    """KL(reference || measured) of one position."""
    rest_reference = max(1 - sum(math.exp(p) for p in reference), SMALLEST_REST)
    rest_measured = max(1 - sum(math.exp(q) for q in measured), SMALLEST_REST)
    known = sum(math.exp(p) * (p - q) for p, q in zip(reference, measured, strict=True))
    return known + rest_reference * math.log(rest_reference / rest_measured)


def compare(golden, answers):
    divergences, agreements, errors = [], [], []
    for wanted, answer in zip(golden, answers, strict=True):
        for reference, measured in zip(wanted["top_logprobs"], answer["want_logprobs"], strict=True):
            divergences.append(divergence(reference, measured))
            agreements.append(measured[0] == max(measured))
        errors += [abs(a - b) for a, b in zip(wanted["next_logprob"], answer["next_logprob"], strict=True)]
    divergences.sort()
    count = len(divergences)
    return {
        "positions": count,
        "kl_mean": round(sum(divergences) / count, 8),
        "kl_p99": round(divergences[int(count * 0.99)], 7),
        "kl_max": round(divergences[-1], 6),
        "top1": round(sum(agreements) / count, 4),
        "next_error": round(sum(errors) / max(len(errors), 1), 6),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", help="a logits.NAME.jsonl file")
    parser.add_argument("command", nargs="+", help="after --: what reads questions and writes answers")
    arguments = parser.parse_args()
    with open(arguments.golden, encoding="utf-8") as file:
        golden = read_lines(file.read())
    print(json.dumps(compare(golden, ask(arguments.command, golden))))


if __name__ == "__main__":
    main()
