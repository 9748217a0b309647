#!/usr/bin/env python3
"""Renders the chat template corpus of tests/data again, as transformers itself does, and writes it in place.

Needs `transformers` (5.24.0 made the committed files) and `jinja2` 3.1.6; no torch, no model. Usage:
  python3 tools/make_template_golden.py
- template_constructs.jsonl: a line a small template, {"template", "conversation"} and what came of it: "text", or
  "error" with what the template refuses in its own words, or "fails" where rendering is an error of another kind (in
  Python's words, for the reader). "refused" is written by hand: we say that this is not supported, whatever Python does.
  To add a case, add a line with the first two keys.
- template_chats.jsonl: every real template (templates/*.jinja) over every conversation of template_conversations.json.
A conversation is an object or the name of one in template_conversations.json.
"""

import datetime
import json
import pathlib
import re

from jinja2.exceptions import TemplateError
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


class FixedClock(datetime.datetime):
    """The time that tests/golden/chat_test.cpp sets too."""

    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2026, 7, 26, 13, 45, 30)


def rendered(tokenizer, template, conversation):
    extra = {name: value for name, value in conversation.items() if name != "messages"}
    try:
        text = tokenizer.apply_chat_template(
            conversation["messages"], chat_template=template, tokenize=False, **extra)
        text.encode()
        if re.search(r" at 0x[0-9a-f]+>", text, re.IGNORECASE):
            raise SystemExit(f"make_template_golden: {template}: an address in memory, another one each time")
        return {"text": text}
    except TemplateError as error:
        if type(error) is TemplateError:  # what raise_exception throws; its kin are the engine's own
            return {"error": error.message}
        return {"fails": f"{type(error).__name__}: {error}".split("\n")[0][:200]}
    except Exception as error:  # whatever Python throws in a template
        return {"fails": f"{type(error).__name__}: {error}".split("\n")[0][:200]}


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def main():
    chat_template_utils.datetime = FixedClock
    vocabulary = Tokenizer(WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, **SPECIAL)
    conversations = json.loads((DATA / "template_conversations.json").read_text())

    constructs = DATA / "template_constructs.jsonl"
    lines = []
    for line in map(json.loads, constructs.read_text().strip().split("\n")):
        kept = {key: line[key] for key in ("template", "conversation", "refused") if key in line}
        conversation = line["conversation"]
        if isinstance(conversation, str):
            conversation = conversations[conversation]
        lines.append(kept if "refused" in kept else kept | rendered(tokenizer, line["template"], conversation))
    write_lines(constructs, lines)

    lines = []
    for path in sorted((DATA / "templates").glob("*.jinja")):
        template = path.read_bytes().decode()
        for name, conversation in conversations.items():
            if name != "values":  # variables for the constructs
                lines.append({"model": path.stem, "conversation": name} | rendered(tokenizer, template, conversation))
    write_lines(DATA / "template_chats.jsonl", lines)


if __name__ == "__main__":
    main()
