"""A Hugging Face tokenizer (`tokenizers`) made from the vocabulary of a GGUF file, so that both tokenize with the same one."""

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type
SPACE = "\u2581"


def field(reader, key):
    found = reader.get_field("tokenizer.ggml." + key)
    return found.contents() if found else None


def byte_level(reader, tokens):
    """SmolLM2's: digits one by one, then GPT-2's words, whose bytes are spelled as letters."""
    pre = field(reader, "pre")
    if pre != "smollm":
        raise ValueError(f'pre-tokenizer: expected "smollm", got "{pre}"')
    merges = [tuple(merge.split(" ")) for merge in field(reader, "merges")]
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


def sentence_piece(reader, tokens, kinds):
    """Gemma's: spaces are a letter, a text is one word, what has no piece is spelled in bytes."""
    scores = field(reader, "scores")
    plain = {i for i, kind in enumerate(kinds) if kind not in (CONTROL,)}
    merges = merges_from_scores([text if i in plain else "" for i, text in enumerate(tokens)], scores)
    unknown = tokens[field(reader, "unknown_token_id")]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges, unk_token=unknown, fuse_unk=True,
                                     byte_fallback=True, ignore_merges=False))
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" "), "merged_with_previous")
    return tokenizer


def load(path):
    reader = gguf.GGUFReader(path)
    tokens, kinds = field(reader, "tokens"), field(reader, "token_type")
    model = field(reader, "model")
    if model == "gpt2":
        tokenizer = byte_level(reader, tokens)
    elif model == "llama":
        tokenizer = sentence_piece(reader, tokens, kinds)
    else:
        raise ValueError(f'tokenizer: expected "gpt2" or "llama", got "{model}"')
    tokenizer.add_tokens([AddedToken(text, normalized=SPACE in text)
                          for text, kind in zip(tokens, kinds) if kind == USER_DEFINED])
    return tokenizer
