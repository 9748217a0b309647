#!/usr/bin/env python3
"""Writes tests/data/tokenizer_constructs.jsonl: a small tokenizer.json a construct, and what Hugging Face `tokenizers` makes
of texts with it: {"name", "file", "cases": [[text, ids, ids with special tokens read and BOS put first], ...]}. The first line
is the models that files name. And tests/data/sentencepiece.jsonl: small unigram models that SentencePiece trains, with the keys
that a GGUF file has of one, and its ids: {"keys", "cases": [[text, ids], ...]}.

Needs PyPI tokenizers (as tools/compare_tokenizers.py), sentencepiece 0.2.3 and protobuf.
"""
import base64
import io
import json
import random
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from compare_tokenizers import ROOT, Strings, tokenizers

SPACE = "\u2581"
CHARSMAP = {"\x01": "one", "e\u0301": "\u00e9", "\uff41": "a", "\uff41\u0301": "\u00e1", " \u3000": " ", "\u00ad": "", "\t": " ", "\r": " ",
            "\u0627\u0653": "\u0622", "\u00bd": "1/2"}
TEXTS = ["", " ", "a", " a  b ", "Hello, world!", "don't DON'T", "a\u0301e\u0301\u0323 \u00e9\u1e9b\u0323", "\u212b\ufb01\u2460\uac00\u1100\u1161",
         "12 345 \u0664\u00bd\u2167", "a-b--c---", "\u4f60\u597d\u3002\u4e16\u754c", "tab\tnew\nline\r\n", "<x>", "a <x> b<x>", "ab cab abc ab", "<y> <Y>",
         "\uff41\u0301\uff41e\u0301\u0323e \u3000\x01\u00ad\u00bd\u0627\u0653\u0654"]


def bytes_vocabulary():
    """Every byte has a token, so that ids show the text that reached the model."""
    return {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}, SPACE: 257, "a": 258, "b": 259, "ab": 260, SPACE + "a": 261}


def bpe():
    return {"type": "BPE", "vocab": bytes_vocabulary(), "merges": [["a", "b"], [SPACE, "a"]], "unk_token": "<unk>", "byte_fallback": True}


def unigram():
    pieces = [["<unk>", 0.0]] + [[f"<0x{byte:02X}>", -20.0] for byte in range(256)] + [
        [SPACE, -3.0], ["a", -2.0], ["b", -2.5], ["ab", -4.5], ["c", -9.0], ["bc", -2.25], [SPACE + "a", -3.5], ["aa", -4.0], ["\u00e9", -6.0]]
    return {"type": "Unigram", "vocab": pieces, "unk_id": 0, "byte_fallback": True}


def byte_level():
    letters = {letter: i for i, letter in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    return {"type": "BPE", "vocab": {**letters, "\u0120a": 256, "ab": 257}, "merges": ["\u0120 a", "a b"]}


MODELS = {"bpe": bpe(), "unigram": unigram(), "byte_level": byte_level()}


def file(model="bpe", **parts):
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None}
    return {**base, **parts, "model": model}


def marks_pieces(*steps):
    """Each piece that the steps cut begins with a mark."""
    marking = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": False}
    return {"type": "Sequence", "pretokenizers": [*steps, marking]}


def added(content, id=262, **flags):
    token = {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {**token, **flags}


def normalizers():
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield kind, {"type": kind}
    for left, right in ((True, False), (False, True), (True, True)):
        yield f"Strip {left} {right}", {"type": "Strip", "strip_left": left, "strip_right": right}
    yield "Prepend", {"type": "Prepend", "prepend": SPACE}
    yield "Replace String", {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"}
    yield "Replace Regex", {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE}
    yield "Replace Regex class", {"type": "Replace", "pattern": {"Regex": r"[\p{P}\s]+"}, "content": ""}
    yield "Sequence", {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}
    yield "Precompiled", {"type": "Precompiled", "precompiled_charsmap": charsmap()}


def pre_tokenizers():
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            for pattern in ({"String": " "}, {"Regex": r"\p{L}+|\d"}):
                yield f"Split {behavior} {invert} {pattern}", {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
        yield f"Punctuation {behavior}", {"type": "Punctuation", "behavior": behavior}
    for individual in (False, True):
        yield f"Digits {individual}", {"type": "Digits", "individual_digits": individual}
    yield "Whitespace", {"type": "Whitespace"}
    yield "WhitespaceSplit", {"type": "WhitespaceSplit"}
    yield "CharDelimiterSplit", {"type": "CharDelimiterSplit", "delimiter": "-"}
    for pattern in (r"\w+", r"\W", r"\s", r"\S+", r"\d", r"\p{M}+", r"[^\r\n\p{L}\p{N}]", r"(?i:[a-k]s)", r"\s+(?!\S)|\s+", r"\p{Lu}\p{Ll}*"):
        yield f"Split {pattern}", {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def metaspaces():
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            yield f"Metaspace {scheme} {split}", {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


def byte_levels():
    for prefix in (False, True):
        for regex in (False, True):
            step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
            yield f"ByteLevel {prefix} {regex}", file("byte_level", pre_tokenizer=step)


def added_tokens():
    for special in (False, True):
        for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True}):
            # In couplet no merge ends in a special token, so it is none that the model has.
            word = added("cab", 263, special=True, **flags) if special else added("ab", 260, **flags)
            tokens = [added("<x>", special=special, **flags), word]
            yield f"added {special} {flags}", file(added_tokens=tokens, pre_tokenizer=marks_pieces())
            yield f"added {special} {flags} first", file(added_tokens=tokens, pre_tokenizer=dict(metaspaces())["Metaspace first True"])
    yield "added with other ids", file(added_tokens=[added("<x>", 300), added("ab", 301), added("<y>", 280), added("", 281)])
    for normalized in (False, True):
        tokens = [added("<Y>", normalized=normalized), added("\u00c5", 263, normalized=normalized), added("b c", 264, normalized=normalized)]
        steps = [{"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]
        yield f"added normalized {normalized}", file(added_tokens=tokens, normalizer={"type": "Sequence", "normalizers": steps})


def models():
    few = {"<unk>": 0, SPACE: 1, "a": 2, "b": 3, "ab": 4, "bb": 5, "aabb": 6, "<0xC3>": 7, "<0xA9>": 8}
    merges = [["a", "b"], ["b", "b"]]
    for options in ({}, {"fuse_unk": True}, {"byte_fallback": True}, {"byte_fallback": True, "fuse_unk": True}, {"ignore_merges": True},
                    {"unk_token": None}):
        model = {"type": "BPE", "vocab": few, "merges": merges, "unk_token": "<unk>", **options}
        yield f"BPE {options}", file(model, pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False})
    yield "Unigram", file("unigram", pre_tokenizer=dict(metaspaces())["Metaspace always True"])
    few = [["<unk>", 0.0], [SPACE, -3.0], ["a", -2.0], ["b", -2.5], ["ab", -4.5], ["aab", -5.0], ["bb", -9.0]]
    yield "Unigram few", file({"type": "Unigram", "vocab": few, "unk_id": 0, "byte_fallback": False}, pre_tokenizer=dict(metaspaces())["Metaspace always False"])


def post_processors():
    def template(*before, after=()):
        names = {"<s>": [0], "two": [5, 6]}
        single = [{"SpecialToken": {"id": name, "type_id": 0}} for name in before] + [{"Sequence": {"id": "A", "type_id": 0}}] + [
            {"SpecialToken": {"id": name, "type_id": 0}} for name in after]
        specials = {name: {"id": name, "ids": ids, "tokens": [str(id) for id in ids]} for name, ids in names.items()}
        return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": specials}

    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": False}
    yield "TemplateProcessing", 0, template("<s>")
    yield "TemplateProcessing two", 1, template("two", "<s>", after=["<s>"])
    yield "TemplateProcessing none", 1, template(after=["<s>"])
    yield "ByteLevel", 0, byte_level
    yield "BertProcessing", 1, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 4]}
    yield "RobertaProcessing", 1, roberta
    yield "Sequence", 0, {"type": "Sequence", "processors": [byte_level, template("two")]}
    yield "Sequence of two", 0, {"type": "Sequence", "processors": [template("<s>"), template("two")]}


def train(**options):
    """A small unigram model with CHARSMAP, as SentencePiece's trainer writes it."""
    def points(text):
        return " ".join(f"{ord(letter):X}" for letter in text)

    letters = random.Random(1)
    words = ["".join(letters.choice("abcdehlnorstw") for _ in range(letters.randrange(1, 5))) for _ in range(300)]
    sentences = [" ".join(letters.choice(words) for _ in range(6)) for _ in range(500)]
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w") as rules:
        rules.write("".join(f"{points(text)}\t{points(becomes)}\n" for text, becomes in CHARSMAP.items()))
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, minloglevel=2, num_threads=1,
                                                 normalization_rule_tsv=rules.name, hard_vocab_limit=False, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto


def charsmap():
    return base64.b64encode(train(vocab_size=40).normalizer_spec.precompiled_charsmap).decode()


def sentencepiece_lines():
    for number, options in enumerate(({"vocab_size": 120}, {"vocab_size": 90, "add_dummy_prefix": False, "remove_extra_whitespaces": False},
                                      {"vocab_size": 400, "byte_fallback": True, "user_defined_symbols": "<y>,ab"})):
        proto = train(**options)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        keys = {"tokens": [piece.piece for piece in proto.pieces], "scores": [piece.score for piece in proto.pieces],
                "token_type": [piece.type for piece in proto.pieces], "precompiled_charsmap": list(proto.normalizer_spec.precompiled_charsmap),
                "add_space_prefix": proto.normalizer_spec.add_dummy_prefix,
                "remove_extra_whitespaces": proto.normalizer_spec.remove_extra_whitespaces}
        strings = Strings(number, ["hello", "the ", " world", "or", "st", "ab"], ["<y>"])
        texts = TEXTS + ["hello  world ", "the rest   was son", "aababab"] + [strings.string()[:80] for _ in range(30)]
        yield {"keys": keys, "cases": [[text, theirs.encode(text)] for text in texts]}


def constructs():
    """Name, file, and how many ids the post-processor puts after a text: couplet leaves them out."""
    for name, step in normalizers():
        yield "normalizer " + name, file(normalizer=step), 0
    for name, step in pre_tokenizers():
        yield "pre-tokenizer " + name, file(pre_tokenizer=marks_pieces(step)), 0
    for name, step in metaspaces():
        yield "pre-tokenizer " + name, file(pre_tokenizer=step), 0
    for name, described in (*byte_levels(), *added_tokens(), *models()):
        yield name, described, 0
    for name, num_after, step in post_processors():
        yield "post-processor " + name, file(post_processor=step), num_after


def construct_lines():
    yield MODELS
    for number, (name, described, num_after) in enumerate(constructs()):
        model = MODELS.get(str(described["model"]), described["model"])
        theirs = tokenizers.Tokenizer.from_str(json.dumps({**described, "model": model}))
        strings = Strings(number, ["a", "b", "ab", "\u00e9", "c"], [token["content"] or "<x>" for token in described["added_tokens"]] or ["<x>"])
        cases = []
        for text in TEXTS + [strings.string()[:60] for _ in range(4)]:
            theirs.encode_special_tokens = True
            plain = theirs.encode(text, add_special_tokens=False).ids
            theirs.encode_special_tokens = False
            whole = theirs.encode(text).ids
            cases.append([text, plain, whole[:len(whole) - num_after]])
        yield {"name": name, "file": described, "cases": cases}


def main():
    for name, lines in (("tokenizer_constructs", construct_lines()), ("sentencepiece", sentencepiece_lines())):
        (ROOT / "tests" / "data" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
