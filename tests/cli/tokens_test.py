#!/usr/bin/env python3
"""tokenize and inspect, on the real vocabularies."""

import json
import os

from program import DATA, FAILED, GEMMA, SMOL, WRONG_USE, Case, main


def batch(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


class Tokenize(Case):
    def ids(self, name, text, *options):
        return self.done("tokenize", name, "--batch", *options, stdin=batch([text])).json_lines()[0]["ids"]

    def test_golden_lines(self):
        for name in (SMOL, GEMMA):
            with open(os.path.join(DATA, f"tokens.{name}.jsonl"), encoding="utf-8") as file:
                golden = [json.loads(line) for line in file]
            answers = self.done("tokenize", name, "--batch", stdin=batch([g["text"] for g in golden])).json_lines()
            self.assertEqual([a["ids"] for a in answers], [g["ids"] for g in golden])
            back = self.done("tokenize", name, "--batch", "--detokenize",
                             stdin="".join(json.dumps({"ids": g["ids"]}) + "\n" for g in golden)).json_lines()
            if name == GEMMA:  # every byte has a token
                self.assertEqual([b["text"] for b in back], [g["text"] for g in golden])

    def test_special_tokens_are_text_unless_asked_for(self):
        self.assertEqual(self.ids(SMOL, "a<|im_end|>b"), [81, 44, 108, 306, 79, 486, 108, 46, 82])
        self.assertEqual(self.ids(SMOL, "a<|im_end|>b", "--special"), [81, 2, 82])
        self.assertEqual(self.ids(GEMMA, "<start_of_turn>user"), [236820, 3041, 236779, 1340, 236779, 887, 236813, 2364])
        self.assertEqual(self.ids(GEMMA, "<start_of_turn>user", "--special"), [105, 2364])
        for options in ([], ["--special"]):
            self.assertEqual(self.ids(GEMMA, "<table>", *options), [168])

    def test_bos_is_added_where_the_model_wants_it(self):
        self.assertEqual(self.ids(GEMMA, "hot", "--bos")[0], 2)
        self.assertNotEqual(self.ids(GEMMA, "hot")[0], 2)
        self.assertEqual(self.ids(SMOL, "hot", "--bos"), self.ids(SMOL, "hot"))

    def test_a_row_a_token(self):
        rows = self.done("tokenize", SMOL, "The sun\n").lines()
        self.assertEqual(rows[0].split(), ["id", "text", "bytes", "kind"])
        self.assertEqual(rows[1].split(), ["504", '"The"', "546865", "normal"])
        self.assertEqual([row.split()[0] for row in rows[1:]], ["504", "2388", "198"])
        self.assertIn('"\\n"', rows[3])
        answers = self.done("tokenize", SMOL, "The sun", "--json").json_lines()
        self.assertEqual(answers[0], {"id": 504, "text": "The", "bytes": [84, 104, 101], "kind": "normal"})
        self.assertEqual(len({len(row) - len(row.split()[-1]) for row in rows[1:]}), 1)

    def test_standard_input_is_taken_to_the_byte(self):
        for arguments in ([], ["-"]):
            answers = self.done("tokenize", SMOL, "--json", *arguments, stdin="The sun\n").json_lines()
            self.assertEqual([a["id"] for a in answers], [504, 2388, 198])
        rows = self.done("tokenize", GEMMA, stdin=b"a\x00b\r").lines()
        ids = [int(row.split()[0]) for row in rows[1:]]
        self.assertEqual((len(ids), ids[1], ids[3]), (4, 238, 251))

    def test_a_character_in_pieces_is_shown_in_bytes(self):
        rows = self.done("tokenize", SMOL, "😊").lines()
        self.assertEqual([row.split()[0] for row in rows[1:]], ["10813", "242", "228"])
        self.assertIn("f09f ", rows[1])
        self.assertNotIn("�", "".join(rows))

    def test_what_the_vocabulary_lacks_is_said(self):
        result = self.done("tokenize", SMOL, "a\x04b")
        self.assertIn("1 characters are not in the vocabulary", result.err)
        self.assertEqual(self.done("tokenize", GEMMA, "a\x04b").err, "")

    def test_back_to_text(self):
        self.assertEqual(self.done("tokenize", SMOL, "--detokenize", "504 2388 314").out, "The sun is\n")
        self.assertEqual(self.done("tokenize", SMOL, "--detokenize", "[504, 2388, 314]", "--json").json(), {"text": "The sun is"})
        self.assertEqual(self.done("tokenize", SMOL, "--detokenize", "81 2 82").out, "ab\n")
        self.assertEqual(self.done("tokenize", SMOL, "--detokenize", "--special", "81 2 82").out, "a<|im_end|>b\n")
        self.assertEqual(self.done("tokenize", SMOL, "--detokenize", "10813 242").out, "�\n")

    def test_bad_ids_are_named(self):
        for bad in ("-1", "49152", "1.5", "null", "2147483647", "99999999999999999999"):
            self.refused(WRONG_USE, "tokenize", SMOL, "--detokenize", f"504 {bad}", says=r"ids\[1\]")
            self.refused(FAILED, "tokenize", SMOL, "--detokenize", "--batch", stdin='{"ids": [1]}\n{"ids": [504, %s]}\n' % bad,
                         says=r"line 2: ids\[1\]: expected a token id from 0 to 49151")

    def test_bad_lines_are_numbered_and_those_before_answered(self):
        result = self.refused(FAILED, "tokenize", SMOL, "--batch", stdin='{"text": "a"}\n\n{"text": 1}\n', says="line 3: text")
        self.assertEqual(result.json_lines(), [{"ids": [81]}])
        for bad in (b'{"text": "\xff"}', b'{"text": "\xc0\x80"}', b'{"text": "\\ud800"}', b"[" * 1_000_000, b"{", b"7"):
            self.refused(FAILED, "tokenize", SMOL, "--batch", stdin=bad, says="line 1: ")
        self.refused(WRONG_USE, "tokenize", SMOL, "text", "--batch", says="--batch")


class Inspect(Case):
    def test_what_the_files_hold(self):
        smol = self.done("inspect", SMOL, "--json").json()
        self.assertEqual((smol["family"], smol["num_layers"], smol["hidden_size"], smol["num_heads"], smol["num_kv_heads"]),
                         ("llama", 30, 576, 9, 3))
        self.assertEqual((smol["vocab_size"], smol["context_length"], smol["sliding_window"]), (49152, 8192, 0))
        self.assertEqual(sum(t["count"] for t in smol["tensors"]), 272)
        self.assertEqual(smol["tokenizer"]["bos"], {"id": 1, "text": "<|im_start|>"})
        self.assertFalse(smol["tokenizer"]["adds_bos"])
        self.assertIn("im_start", smol["chat_template"])
        gemma = self.done("inspect", GEMMA, "--json").json()
        self.assertEqual((gemma["family"], gemma["head_dim"], gemma["sliding_window"], gemma["vocab_size"]),
                         ("gemma3", 256, 512, 262144))
        self.assertTrue(gemma["tokenizer"]["adds_bos"])
        self.assertIsNone(gemma["chat_template"])

    def test_memory_grows_with_the_context(self):
        memory = [self.done("inspect", SMOL, "--json", "--context", str(n)).json()["memory"] for n in (1000, 2000)]
        self.assertEqual(memory[1]["cache_bytes"], 2 * memory[0]["cache_bytes"])
        # of 30 layers and 3 heads: 64 keys of two bytes, 64 values of one, three scales
        self.assertEqual(memory[0]["cache_bytes"], 1000 * 30 * 3 * (64 * 2 + 64 + 3 * 4))

    def test_the_page_for_people(self):
        for name in (SMOL, GEMMA):
            rows = self.done("inspect", name).lines()
            for word in ("name", "file", "family", "layers", "attention", "context", "tensors", "tokenizer", "template", "sampling", "memory", "packed copy"):
                self.assertTrue(any(row.startswith(word) for row in rows), word)


class Machine(Case):
    def test_it_needs_no_model(self):
        facts = self.done("inspect", "--machine", "--json").json()
        self.assertTrue(facts["cpu"])
        levels = {level["name"]: level for level in facts["levels"]}
        self.assertEqual(facts["chosen"], next(level["name"] for level in facts["levels"] if level["runs"]))
        self.assertTrue(levels["reference"]["runs"])
        self.assertTrue(all(level["needs"] for name, level in levels.items() if name != "reference"))
        self.assertEqual(facts["cpus"]["affinity"], len(os.sched_getaffinity(0)))
        self.assertLessEqual(facts["cpus"]["threads"], facts["cpus"]["affinity"])
        self.assertLess(0, facts["memory"]["available_bytes"])
        self.assertLessEqual(facts["memory"]["available_bytes"], facts["memory"]["total_bytes"])
        self.assertGreater(facts["peaks"]["one"]["int8_operations_per_s"], 1e6)
        self.assertIsNone(facts["forced"])

    def test_threads_model_and_level_are_obeyed(self):
        facts = self.done("inspect", SMOL, "--machine", "--json", "--threads", "1", COUPLET_KERNELS="reference").json()
        self.assertEqual((facts["chosen"], facts["forced"], facts["cpus"]["threads"], facts["peaks"]["all"]["threads"]),
                         ("reference", "reference", 1, 1))
        more = self.done("inspect", "--machine", "--json", "--threads", "999", COUPLET_KERNELS="reference").json()
        self.assertLessEqual(more["cpus"]["threads"], more["cpus"]["affinity"])
        self.assertLess(facts["peaks"]["read_bytes"], 100e6)

    def test_the_page_for_people(self):
        text = self.done("inspect", "--machine", COUPLET_KERNELS="reference").out
        for word in ("cpu", "level", "cpus", "memory", "caches", "peaks"):
            self.assertRegex(text, rf"(?m)^{word} ")
        self.assertIn("reference, as COUPLET_KERNELS says", text)

    def test_neither_model_nor_machine(self):
        self.refused(WRONG_USE, "inspect", says="MODEL: expected one, or --machine")
        self.refused(WRONG_USE, "inspect", "--machine", COUPLET_KERNELS="sse9", says="sse9")


if __name__ == "__main__":
    main()
