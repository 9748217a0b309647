#!/usr/bin/env python3
"""How far each model is from a float32 run of the same weights, held to bounds that a change may not loosen.

Use: accuracy_test.py COUPLET. llama.cpp on the same positions: SmolLM2
mean 0.00241, 99th percentile 0.0127; Gemma 3 0.00401 and 0.0221.
"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import accuracy  # noqa: E402

couplet = sys.argv[1]

# model, precision: greatest mean and 99th percentile of the divergence, least share of the same best token
BOUNDS = {
    ("smollm2", "fast"): (0.8 * 0.00241, 0.0127, 0.96),
    ("gemma3", "fast"): (0.5 * 0.00401, 0.0221, 0.97),
    ("smollm2", "fine"): (0.00002, 0.0002, 0.998),
    ("gemma3", "fine"): (0.00002, 0.0002, 0.998),
}


class Accuracy(unittest.TestCase):
    def test_distance_to_float32(self):
        for (model, precision), (mean, p99, top1) in BOUNDS.items():
            golden = accuracy.read_lines((ROOT / "tests" / "data" / f"logits.{model}.jsonl").read_text())
            command = [couplet, "score", model, "-", "--json", "--quiet", "--precision", precision]
            figures = accuracy.compare(golden, accuracy.ask(command, golden))
            with self.subTest(model=model, precision=precision, figures=figures):
                self.assertEqual(figures["positions"], sum(len(line["ids"]) for line in golden))
                self.assertLessEqual(figures["kl_mean"], mean)
                self.assertLessEqual(figures["kl_p99"], p99)
                self.assertGreaterEqual(figures["top1"], top1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
