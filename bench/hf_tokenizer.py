"""A Hugging Face tokenizer (`tokenizers`) made from the vocabulary of a GGUF file, so that both tokenize with the same one."""

import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type
SPACE = "\u2581"
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # GGUF's types
STRING, ARRAY = 8, 9


def read_keys(path):
    """The tokenizer's keys of a GGUF file, without "tokenizer.ggml."."""
    with open(path, "rb") as file:
        def numbers(letter, count=1):
            return struct.unpack(f"<{count}{letter}", file.read(struct.calcsize(f"<{count}{letter}")))

        def value(kind):
            if kind == STRING:
                return file.read(numbers("Q")[0]).decode(errors="replace")
            if kind != ARRAY:
                return numbers(NUMBERS[kind])[0]
            kind, count = numbers("I")[0], numbers("Q")[0]
            return list(numbers(NUMBERS[kind], count)) if kind in NUMBERS else [value(kind) for _ in range(count)]

        _, _, _, num_keys = struct.unpack("<4sIQQ", file.read(24))
        keys = {value(STRING): value(numbers("I")[0]) for _ in range(num_keys)}
    return {key.removeprefix("tokenizer.ggml."): found for key, found in keys.items() if key.startswith("tokenizer.ggml.")}


def byte_level(keys, tokens):
    """SmolLM2's: digits one by one, then GPT-2's words, whose bytes are spelled as letters."""
    if keys.get("pre") != "smollm":
        raise ValueError(f'pre-tokenizer: expected "smollm", got "{keys.get("pre")}"')
    merges = [tuple(merge.split(" ")) for merge in keys["merges"]]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def merges_from_scores(tokens, scores):
    """A SentencePiece vocabulary merges any two pieces that make a third, the third of the best score first."""
    ids = {text: i for i, text in enumerate(tokens)}
    merges = []
    for text, score in zip(tokens, scores):
        parts = [(text[:i], text[i:]) for i in range(1, len(text))]
        merges += [(score, left, right) for left, right in parts if left in ids and right in ids]
    merges.sort(key=lambda merge: (-merge[0], ids[merge[1]], ids[merge[2]]))
    return [(left, right) for _, left, right in merges]


def sentence_piece(keys, tokens, kinds):
    """Gemma's: spaces are a letter, a text is one word, what has no piece is spelled in bytes."""
    plain = {i for i, kind in enumerate(kinds) if kind not in (CONTROL,)}
    merges = merges_from_scores([text if i in plain else "" for i, text in enumerate(tokens)], keys["scores"])
    unknown = tokens[keys["unknown_token_id"]]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges, unk_token=unknown, fuse_unk=True,
                                     byte_fallback=True, ignore_merges=False))
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" "), "merged_with_previous")
    return tokenizer


def load(path):
    """Control tokens are read out of a text where its `encode_special_tokens` is set to False."""
    keys = read_keys(path)
    tokens, kinds = keys["tokens"], keys["token_type"]
    if keys["model"] == "gpt2":
        tokenizer = byte_level(keys, tokens)
    elif keys["model"] == "llama":
        tokenizer = sentence_piece(keys, tokens, kinds)
    else:
        raise ValueError(f'tokenizer: expected "gpt2" or "llama", got "{keys["model"]}"')
    tokenizer.add_tokens([AddedToken(text, normalized=SPACE in text)
                          for text, kind in zip(tokens, kinds) if kind == USER_DEFINED])
    tokenizer.add_special_tokens([AddedToken(text, normalized=False)
                                  for text, kind in zip(tokens, kinds) if kind == CONTROL])
    tokenizer.encode_special_tokens = True
    return tokenizer


def lacking_bytes(tokenizer):
    """Those that byte-level BPE can't spell, because the vocabulary has no letter for them."""
    if not isinstance(tokenizer.decoder, decoders.ByteLevel):
        return set()
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # the others' letters are from U+0100 on
    hidden = [byte for byte in range(0x100) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown} | {byte: chr(0x100 + i) for i, byte in enumerate(hidden)}
    return {byte for byte, letter in letters.items() if tokenizer.token_to_id(letter) is None}
