#!/usr/bin/env python3
"""Writes tests/data/template_constructs.jsonl: one small template a construct, as transformers itself renders it.

Needs `transformers` (5.24.0 made the committed file) and `jinja2` 3.1.6; no torch, no model. Usage:
  python3 tools/make_template_golden.py > tests/data/template_constructs.jsonl
A line: {"case", "template", "special", "conversation"} and "text", or "error" with what the template refuses in its
own words, or "fails": true where rendering is an error of another kind ("why": in Python's words, for the reader).
"""

import json
import sys

from jinja2.exceptions import TemplateError
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
USER = [{"role": "user", "content": "Hi there"}]
TURNS = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]
CALL = {"type": "function", "id": "c1", "function": {"name": "f", "arguments": {"b": 1, "a": [True, None, 1.5, "é<&'"]}}}
CALLS = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "name": "f", "content": "{}"},
]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}
ALTERNATE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate, got ' + m.role) }}{% endif %}{{ m.content }}|{% endfor %}"
)


def each(expression):
    return "{% for m in messages %}{{ " + expression + " }}|{% endfor %}"


def over(expression, **variables):
    """A template of one expression, with extra template variables."""
    return ("{{ " + expression + " }}", USER, variables)


CASES = {
    # bos and the other special tokens
    "bos": ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", USER),
    "token not defined": ("[{{ pad_token }}{{ unk_token is defined }}]", USER),
    "token overridden": ("{{ bos_token }}", USER, {"bos_token": "other"}),
    # refusals
    "roles alternate": (ALTERNATE, TURNS),
    "roles do not alternate": (ALTERNATE, USER + USER),
    "raise in a macro": ("{% macro f(x) %}{{ raise_exception('no ' ~ x) }}{% endmacro %}{{ f('tools') }}", USER),
    "attribute of undefined": ("{{ nothing.at.all }}", USER),
    "text plus null": ("{{ 'a' + none }}", USER),
    "text plus undefined": ("{{ 'a' + nothing }}", USER),
    "unknown filter": ("{{ 'a' | no_such_filter }}", USER),
    "unknown method": ("{{ 'a'.no_such_method() }}", USER),
    "syntax error": ("{% for m in messages %}{{ m.content }}", USER),
    "unknown tag": ("{% frobnicate %}", USER),
    # null content, tool calls
    "null content is dropped": (each("m.content is defined"), CALLS),
    "null content printed": (each("m.content"), CALLS),
    "null content in a condition": (each("'text' if m.content else 'calls'"), CALLS),
    "null content is none": (each("m.content is none"), CALLS),
    "null content is string": (each("m.content is string"), CALLS),
    "null content concatenated": (each("m.role + m.content"), CALLS),
    "tool calls": ("{% for m in messages if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}"
                   "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", CALLS),
    "tool calls defined": (each("m.tool_calls is defined and m.tool_calls | length"), CALLS),
    "tools": ("{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}", USER, {"tools": [TOOL, TOOL]}),
    "tools indented": ("{{ tools | tojson(indent=4) }}", USER, {"tools": [TOOL]}),
    "tools items": ("{% for k, v in tools[0].function.items() %}{{ k }}={{ v }};{% endfor %}", USER, {"tools": [TOOL]}),
    "no tools": ("{{ tools is defined }} {{ tools is none }} {{ not tools }} {{ documents is none }}", USER),
    "empty tools": ("{{ tools is none }} {{ tools | length }}", USER, {"tools": []}),
    "documents": ("{% for d in documents %}{{ d.title }}:{{ d['text'] }};{% endfor %}", USER,
                  {"documents": [{"title": "t", "text": "x"}]}),
    "reasoning": (each("m.reasoning_content ~ m.thinking"), [{"role": "user", "content": "a", "reasoning": "why"}]),
    "reasoning's place": (each("m | tojson"), [{"role": "user", "content": "a", "reasoning_content": "why"}]),
    # slices, subscripts, lookups
    "content slice": (each("m.content[:3]"), TURNS),
    "content slice behind": (each("m.content[-2:]"), TURNS),
    "content slice of letters": ("{{ messages[0].content[:3] }}", [{"role": "user", "content": "日本語é😀"}]),
    "content index": (each("m.content[0]"), TURNS),
    "messages reversed": ("{% for m in messages[::-1] %}{{ m.content }}{% endfor %}", TURNS),
    "messages reversed by filter": ("{% for m in messages | reverse %}{{ m.content }}{% endfor %}", TURNS),
    "messages tail": ("{% for m in messages[1:] %}{{ m.content }}{% endfor %}{{ messages[-1]['role'] }}", TURNS),
    "messages step": ("{% for m in messages[::2] %}{{ m.content }}{% endfor %}", TURNS),
    "split last": (each("m.content.split('e') | last"), TURNS),
    "split index": (each("m.content.split('e')[-1]"), TURNS),
    "split on spaces": ("{{ '  a  b '.split() | join(',') }} {{ 'a b c'.split(' ', 1) | join(',') }}", USER),
    "first and last": ("{{ messages | first | tojson }}{{ (messages | last).content }}", TURNS),
    "get": (each("m.get('role') ~ m.get('none', 'x')"), TURNS),
    "key in message": (each("'content' in m"), TURNS),
    "text in text": (each("'o' in m.content"), TURNS),
    "not in": (each("m.role not in ['user', 'tool']"), TURNS),
    # loops and names
    "namespace": ("{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                  "{% set ns.last = m.content %}{% endfor %}{{ ns.n }}{{ ns.last }}", TURNS),
    "set stays in its loop": ("{% set x = 1 %}{% for m in messages %}{% set x = 2 %}{% endfor %}{{ x }}", TURNS),
    "set in if": ("{% if true %}{% set x = 2 %}{% endif %}{{ x }}", USER),
    "set block": ("{% set x %}a{{ messages[0].content }}b{% endset %}[{{ x }}]", USER),
    "loop variables": ("{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                       "{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}", TURNS),
    "loop neighbours": ("{% for m in messages %}{{ loop.previtem.content if loop.previtem is defined else '-' }}"
                        "{{ loop.nextitem.content if not loop.last else '-' }} {% endfor %}", TURNS),
    "loop else": ("{% for m in [] %}x{% else %}none{% endfor %}", USER),
    "loop filter": ("{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }}{% endfor %}", TURNS),
    "break and continue": ("{% for m in messages %}{% if loop.index == 2 %}{% continue %}{% endif %}{{ m.content }}"
                           "{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}", TURNS + TURNS),
    "loop over text": ("{% for c in 'añ😀' %}{{ c }},{% endfor %}", USER),
    "loop over a dict": ("{% for k in messages[0] %}{{ k }},{% endfor %}", USER),
    "loop cycle": ("{% for m in messages %}{{ loop.cycle('a', 'b') }}{% endfor %}", TURNS),
    "recursive loop": ("{% for x in t recursive %}{{ x.n }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}", USER,
                       {"t": [{"n": 1, "c": [{"n": 2}, {"n": 3}]}, {"n": 4}]}),
    "range": ("{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}", USER),
    "macro": ("{% macro show(m, sep=': ') %}{{ m.role }}{{ sep }}{{ m.content }}{% endmacro %}"
              "{{ show(messages[0]) }}{{ show(messages[0], sep='=') }}", USER),
    "macro recursive": ("{% macro down(n) %}{{ n }}{% if n > 0 %}{{ down(n - 1) }}{% endif %}{% endmacro %}{{ down(5) }}", USER),
    "macro call block": ("{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}in{% endcall %}", USER),
    "unpack": ("{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% set x, y = 5, 6 %}{{ x }}{{ y }}", USER),
    "with": ("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", USER),
    "filter block": ("{% filter upper %}abc{% endfilter %}", USER),
    "raw": ("{% raw %}{{ not }}{% endraw %}", USER),
    "comment": ("a{# nothing #}b\n{# line #}\nc", USER),
    "generation block": ("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", TURNS),
    # white space
    "trim blocks": ("{% if true %}\n  a\n  {% endif %}\nb\n", USER),
    "minus": ("a \n {%- if true -%} \n b \n {%- endif -%} \n c", USER),
    "plus": ("  {%+ if true +%}\n b {% endif %}", USER),
    "last newline": ("a\n\n", USER),
    "carriage returns": ("a\r\nb{% if true %}\r\nc{% endif %}\r\n", USER),
    "newline in text": ("{{ 'a\nb' }}{{ 'a\\nb' }}{{ \"\\t\" }}", USER),
    # text
    "strip": over("'[' ~ '  a '.strip() ~ '|' ~ '  a '.lstrip() ~ '|' ~ '  a '.rstrip() ~ '|' ~ 'xax'.strip('x') ~ ']'"),
    "trim": over("'[' ~ ('  a \n' | trim) ~ ('xax' | trim('x')) ~ ']'"),
    "case": over("'aB c'.upper() ~ 'aB c'.lower() ~ 'aB c'.title() ~ 'aB c'.capitalize() ~ ('aB c' | upper)"),
    "replace": over("'aXbXc'.replace('X', '-') ~ 'aXbXc'.replace('X', '-', 1) ~ ('aXb' | replace('X', '_'))"),
    "starts and ends": over("'abc'.startswith('a') ~ 'abc'.endswith('x') ~ 'abc'.startswith(('x', 'a'))"),
    "find": over("'abc'.find('c') ~ 'abc'.rfind('z') ~ 'abca'.count('a')"),
    "join": over("['a', 'b'] | join(', ') ~ ', '.join(['c', 'd'])"),
    "format": over("'%s-%d' | format('a', 3)"),
    "string filter": over("(5 | string) ~ ('7' | int + 1) ~ (3.7 | int)"),
    "length": over("messages[0].content | length ~ '😀é' | length"),
    "indent": over("'a\nb' | indent(2)"),
    "splitlines": over("'a\nb'.splitlines() | join('|')"),
    "partition": over("'k=v'.partition('=') | join('|')"),
    "isdigit": over("'12'.isdigit() ~ 'a1'.isalnum() ~ 'ab'.isalpha() ~ 'AB'.isupper() ~ ' '.isspace()"),
    "repeat": over("'ab' * 3"),
    "escape is off": over("'<b>&\"' ~ x", x="<i>"),
    "safe and escape": over("'<b>' | safe"),
    "string percent": over("'%s is %d' % ('a', 2)"),
    "format method": over("'{} {}'.format('a', 2)"),
    # Python's way of writing values
    "none printed": over("none"),
    "true printed": over("true ~ ' ' ~ false ~ ' ' ~ True"),
    "list printed": over("['a', 1, none, true, 1.5]"),
    "dict printed": over("{'a': 1, 'b': ['x']}"),
    "floats printed": over("[1.0, 0.1, 1e20] | join(' ')"),
    "division": over("(7 / 2) ~ ' ' ~ (7 // 2) ~ ' ' ~ (-7 // 2) ~ ' ' ~ (7 % 3) ~ ' ' ~ (2 ** 8) ~ ' ' ~ (6 / 2)"),
    "content printed": ("{{ messages[0].content }}", PARTS),
    # JSON
    "tojson": over("x | tojson", x={"z": 1, "a": [1.0, True, None, "é\n\"\\/<>&'"], "e": {}, "l": []}),
    "tojson indent": over("x | tojson(indent=2)", x={"z": [1, {"y": 2}], "e": {}, "l": []}),
    "tojson ascii": over("x | tojson(ensure_ascii=False)", x="é"),
    "tojson to ascii": over("x | tojson(ensure_ascii=True)", x="é😀"),
    "tojson sorted": over("x | tojson(sort_keys=True)", x={"b": 1, "a": 2}),
    "tojson separators": over("x | tojson(separators=(',', ':'))", x={"b": 1, "a": [1, 2]}),
    "tojson numbers": over("x | tojson", x=[0, -1, 2**53, 0.1, 1e16, 1e-7, 123456789012345680.0]),
    "tojson of text": over("'a' | tojson"),
    # tests, filters, operators
    "tests": over("(1 is number) ~ ('a' is string) ~ ([] is iterable) ~ ({} is mapping) ~ ('a' is iterable) ~ ([] is sequence)"),
    "more tests": over("(3 is odd) ~ (2 is even) ~ (4 is divisibleby 2) ~ (none is none) ~ (true is boolean) ~ (1 is integer) ~ (1.0 is float)"),
    "test in": over("('a' is in ['a']) ~ (1 is eq 1) ~ (x is undefined) ~ (true is true) ~ (false is false)"),
    "default": over("(x | default('d')) ~ ('' | default('e', true)) ~ (none | default('n')) ~ (none | default('n', true))"),
    "inline if": over("'a' if false"),
    "and or": over("('' or 'x') ~ ('a' and 'b') ~ (not '')"),
    "comparison": over("(1 < 2 <= 2) ~ ('a' < 'b') ~ (1 == 1.0) ~ ('1' == 1) ~ (true == 1)"),
    "selectattr": ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',') }}", TURNS),
    "rejectattr": ("{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}", TURNS),
    "selectattr in": ("{{ messages | selectattr('role', 'in', ['user']) | list | length }}", TURNS),
    "map filter": over("['a', 'b'] | map('upper') | list | join"),
    "select": over("[0, 1, 2] | select | list | length"),
    "unique and sort": over("['b', 'a', 'b'] | unique | sort | join"),
    "sum and max": over("([1, 2, 3] | sum) ~ ([1, 3] | max) ~ ([1, 3] | min)"),
    "dict functions": over("dict(a=1).a ~ (dict(a=1) | length) ~ ({'b': 1, 'a': 2} | dictsort | first | first)"),
    "items filter": ("{% for k, v in x | items %}{{ k }}{{ v }}{% endfor %}", USER, {"x": {"b": 1, "a": 2}}),
    "keys and values": over("(x.keys() | list | join) ~ (x.values() | list | join)", x={"b": 1, "a": 2}),
    "list concatenation": ("{% for m in [{'role': 'x', 'content': 'y'}] + messages %}{{ m.role }}{% endfor %}", TURNS),
    "batch": over("([1, 2, 3] | batch(2) | list | length)"),
    "round and abs": over("(2.567 | round(1)) ~ ' ' ~ (-2 | abs)"),
    "groupby": ("{% for g in messages | groupby('role') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}", TURNS),
    "tuple": over("('a', 'b')[1] ~ (('a', 'b') | length)"),
    "content parts": ("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
                      "{% if p.type == 'text' %}{{ p.text }}{% elif p['type'] == 'image' %}<img>{% endif %}"
                      "{% endfor %}{% endif %}{% endfor %}", PARTS + TURNS),
    "extra variables": ("{{ enable_thinking is defined and not enable_thinking }}{{ date_string }}", USER,
                        {"enable_thinking": False, "date_string": "26 Jul 2024"}),
    "generation prompt": ("{{ messages[0].content }}{% if add_generation_prompt %}>>{% endif %}", USER,
                          {"add_generation_prompt": True}),
    "no generation prompt": ("{{ add_generation_prompt }}", USER),
    # the last message goes on
    "continue": ("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}", TURNS[:2] + [
        {"role": "assistant", "content": "Sure: "}], {"continue_final_message": True}),
    "continue trimmed": ("{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}<end>{% endfor %}", TURNS[:2] + [
        {"role": "assistant", "content": "Sure: "}], {"continue_final_message": True}),
    "continue parts": ("{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}<end>{% endfor %}", PARTS,
                       {"continue_final_message": True}),
    "continue and generate": ("{{ messages }}", USER, {"continue_final_message": True, "add_generation_prompt": True}),
    "continue left out": ("{{ messages[0].content }}", TURNS, {"continue_final_message": True}),
    "no messages": ("{{ messages | length }}", []),
}


def expected(tokenizer, template, messages, extra):
    try:
        return {"text": tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, **extra)}
    except TemplateError as error:
        if type(error) is TemplateError:  # what raise_exception throws; its kin are the engine's own
            return {"error": error.message}
        return {"fails": True, "why": f"{type(error).__name__}: {error}"}
    except (TypeError, ValueError) as error:
        return {"fails": True, "why": f"{type(error).__name__}: {error}".split("\n")[0][:200]}


def main():
    vocabulary = Tokenizer(WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, **SPECIAL)
    for name, (template, messages, *extra) in CASES.items():
        variables = extra[0] if extra else {}
        line = {"case": name, "template": template, "special": SPECIAL,
                "conversation": {"messages": messages, **variables}}
        line.update(expected(tokenizer, template, messages, variables))
        json.dump(line, sys.stdout, ensure_ascii=False)
        print()


if __name__ == "__main__":
    main()
