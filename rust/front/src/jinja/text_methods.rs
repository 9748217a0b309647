//! The methods of Python's str.

use super::arguments::{flag, int, int_or, int_or_none, text as expect_text, width, Bound};
use super::formatting;
use super::text::{capitalize, is_cased, is_printable, is_space, is_title, lines, push_lower, title};
use super::value::{fail, Result, Value};

pub const NAMES: [&str; 46] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

pub fn call(text: &str, name: &str, bound: &Bound) -> Result<Value> {
    match name {
        "capitalize" | "casefold" | "lower" | "swapcase" | "title" | "upper" => {
            bound.take_positional::<0>(name, 0)?;
            if name == "casefold" && !text.is_ascii() {
                return fail("casefold() of letters beyond ASCII is not supported");
            }
            Ok(Value::str(changed_case(text, name)))
        }
        "strip" | "lstrip" | "rstrip" => {
            let [letters] = bound.take_positional(name, 0)?;
            strip(text, name, &letters.unwrap_or(Value::None)).map(Value::str)
        }
        "split" | "rsplit" => split(text, name, bound),
        "splitlines" => {
            let [keep_ends] = bound.take(name, ["keepends"], 0)?;
            Ok(Value::list(lines(text, flag(&keep_ends)).into_iter().map(Value::str).collect()))
        }
        "partition" | "rpartition" => partition(text, name, bound),
        "join" => join(text, bound),
        "replace" => replace(text, bound),
        "startswith" | "endswith" => starts_or_ends(text, name, bound),
        "removeprefix" | "removesuffix" => {
            let [part] = bound.take_positional(name, 1)?;
            let part = part.unwrap_or(Value::None);
            let part = expect_text(&part)?;
            let cut = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Ok(Value::str(cut.unwrap_or(text)))
        }
        "count" | "find" | "index" | "rfind" | "rindex" => search(text, name, bound),
        "center" | "ljust" | "rjust" | "zfill" => {
            let [size, fill] = bound.take_positional(name, 1)?;
            pad(text, name, int_or(&size, 0)?, &fill.unwrap_or(Value::str(" "))).map(Value::str)
        }
        "expandtabs" => {
            let [size] = bound.take(name, ["tabsize"], 0)?;
            expand_tabs(text, width(int_or(&size, 8)?)?).map(Value::str)
        }
        "format" => formatting::format(text, bound).map(Value::str),
        "format_map" => {
            let [mapping] = bound.take_positional(name, 1)?;
            let named = super::methods::make_dict(&Bound::of(mapping.into_iter().collect()))?;
            let named = named.iter().map(|(key, value)| Ok((key.value().to_text()?, value.clone())));
            let named = Bound { positional: Vec::new(), named: named.collect::<Result<_>>()? };
            formatting::format(text, &named).map(Value::str)
        }
        "encode" | "maketrans" => fail(format!("the method {name}() of text is not supported")),
        _ => {
            bound.take_positional::<0>(name, 0)?;
            is_all(text, name).map(Value::Bool)
        }
    }
}

fn changed_case(text: &str, name: &str) -> String {
    match name {
        "capitalize" => capitalize(text),
        "lower" | "casefold" => text.to_lowercase(),
        "title" => title(text),
        "upper" => text.to_uppercase(),
        _ => {
            let mut out = String::new();
            for (at, c) in text.char_indices() {
                if is_title(c) {
                    out.push(c);
                } else if c.is_uppercase() {
                    push_lower(&mut out, text, at, c);
                } else {
                    out.extend(c.to_uppercase());
                }
            }
            out
        }
    }
}

pub fn strip<'a>(text: &'a str, name: &str, letters: &Value) -> Result<&'a str> {
    let letters: Option<Vec<char>> = match letters {
        Value::None => None,
        other => Some(expect_text(other)?.chars().collect()),
    };
    let goes = |c: char| letters.as_ref().map_or_else(|| is_space(c), |letters| letters.contains(&c));
    Ok(match name {
        "lstrip" => text.trim_start_matches(goes),
        "rstrip" => text.trim_end_matches(goes),
        _ => text.trim_matches(goes),
    })
}

fn split(text: &str, name: &str, bound: &Bound) -> Result<Value> {
    let [separator, most] = bound.take(name, ["sep", "maxsplit"], 0)?;
    let most = usize::try_from(int_or(&most, -1)?).unwrap_or(usize::MAX - 1);
    let separator = separator.unwrap_or(Value::None);
    let from_right = name == "rsplit";
    let parts: Vec<&str> = match &separator {
        Value::None if from_right => words_from_right(text, most),
        Value::None => words(text, most),
        separator => match expect_text(separator)? {
            "" => return fail("empty separator"),
            separator if from_right => {
                let mut parts: Vec<&str> = text.rsplitn(most + 1, separator).collect();
                parts.reverse();
                parts
            }
            separator => text.splitn(most + 1, separator).collect(),
        },
    };
    Ok(Value::list(parts.into_iter().map(Value::str).collect()))
}

fn words(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() && parts.len() < most {
        let size = rest.find(is_space).unwrap_or(rest.len());
        parts.push(&rest[..size]);
        rest = rest[size..].trim_start_matches(is_space);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn words_from_right(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() && parts.len() < most {
        let word = rest.rfind(is_space).map_or(0, |at| at + rest[at..].chars().next().map_or(0, char::len_utf8));
        parts.push(&rest[word..]);
        rest = rest[..word].trim_end_matches(is_space);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts.reverse();
    parts
}

fn partition(text: &str, name: &str, bound: &Bound) -> Result<Value> {
    let [separator] = bound.take_positional(name, 1)?;
    let separator = separator.unwrap_or(Value::None);
    let separator = expect_text(&separator)?;
    if separator.is_empty() {
        return fail("empty separator");
    }
    let (before, middle, after) = if name == "partition" {
        text.split_once(separator).map_or((text, "", ""), |(a, b)| (a, separator, b))
    } else {
        text.rsplit_once(separator).map_or(("", "", text), |(a, b)| (a, separator, b))
    };
    Ok(Value::tuple([before, middle, after].map(Value::str).to_vec()))
}

fn join(text: &str, bound: &Bound) -> Result<Value> {
    let [parts] = bound.take_positional("join", 1)?;
    let mut out = String::new();
    for (i, part) in parts.unwrap_or(Value::None).items()?.iter().enumerate() {
        let Some(part) = part.as_str() else {
            return fail(format!("sequence item {i}: expected str instance, {} found", part.type_name()));
        };
        out.push_str(if i > 0 { text } else { "" });
        out.push_str(part);
    }
    Ok(Value::str(out))
}

fn replace(text: &str, bound: &Bound) -> Result<Value> {
    let [old, new, count] = bound.take_positional("replace", 2)?;
    let (old, new) = (old.unwrap_or(Value::None), new.unwrap_or(Value::None));
    let (old, new) = (expect_text(&old)?, expect_text(&new)?);
    Ok(Value::str(match usize::try_from(int_or(&count, -1)?) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    }))
}

/// text[start:stop] and how many characters stand before it; None where start lies behind the end.
fn window<'a>(text: &'a str, start: &Option<Value>, stop: &Option<Value>) -> Result<Option<(usize, &'a str)>> {
    let length = text.chars().count() as i128;
    let place = |at: i128| if at < 0 { (at + length).max(0) } else { at };
    let start = place(int_or_none(start, 0)?);
    let stop = place(int_or_none(stop, length)?).min(length);
    if start > length || start > stop {
        return Ok(None);
    }
    let byte = |at: i128| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    Ok(Some((start as usize, &text[byte(start)..byte(stop)])))
}

fn starts_or_ends(text: &str, name: &str, bound: &Bound) -> Result<Value> {
    let [part, start, stop] = bound.take_positional(name, 1)?;
    let part = part.unwrap_or(Value::None);
    let one = [part.clone()];
    let parts = match &part {
        Value::Tuple(items) => items.as_slice(),
        Value::Str(_) | Value::Markup(_) => &one,
        other => return fail(format!("{name} first arg must be str or a tuple of str, not {}", other.type_name())),
    };
    let Some((_, text)) = window(text, &start, &stop)? else { return Ok(Value::Bool(false)) };
    for part in parts {
        let part = expect_text(part)?;
        if if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) } {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn search(text: &str, name: &str, bound: &Bound) -> Result<Value> {
    let [part, start, stop] = bound.take_positional(name, 1)?;
    let part = part.unwrap_or(Value::None);
    let part = expect_text(&part)?;
    let window = window(text, &start, &stop)?;
    if name == "count" {
        return Ok(Value::Int(window.map_or(0, |(_, text)| text.matches(part).count()) as i128));
    }
    let found = window.and_then(|(before, text)| {
        let byte = if name.starts_with('r') { text.rfind(part) } else { text.find(part) };
        byte.map(|byte| before + text[..byte].chars().count())
    });
    match found {
        Some(at) => Ok(Value::Int(at as i128)),
        None if name.ends_with("index") => fail("substring not found"),
        None => Ok(Value::Int(-1)),
    }
}

pub fn pad(text: &str, name: &str, size: i128, fill: &Value) -> Result<String> {
    let size = width(size)?;
    let mut letters = expect_text(fill)?.chars();
    let (Some(fill), None) = (letters.next(), letters.next()) else {
        return fail("The fill character must be exactly one character long");
    };
    let missing = size.saturating_sub(text.chars().count());
    let filled = |count: usize| fill.to_string().repeat(count);
    Ok(match name {
        "ljust" => format!("{text}{}", filled(missing)),
        "rjust" => format!("{}{text}", filled(missing)),
        "center" => {
            let left = missing / 2 + (missing & size & 1);
            format!("{}{text}{}", filled(left), filled(missing - left))
        }
        _ => {
            let sign = usize::from(text.starts_with(['+', '-']));
            format!("{}{}{}", &text[..sign], "0".repeat(missing), &text[sign..])
        }
    })
}

fn expand_tabs(text: &str, size: usize) -> Result<String> {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let count = size - column % size;
                out.push_str(&" ".repeat(count));
                column += count;
            }
            '\t' => {}
            _ => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(out)
}

/// The methods whose name begins with "is".
fn is_all(text: &str, name: &str) -> Result<bool> {
    let some = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    Ok(match name {
        "isascii" => text.is_ascii(),
        "isspace" => some(is_space),
        "isprintable" => text.chars().all(is_printable),
        "isalpha" | "isalnum" => {
            for c in text.chars() {
                if !(is_letter(c, name)? || (name == "isalnum" && c.is_numeric())) {
                    return Ok(false);
                }
            }
            !text.is_empty()
        }
        "islower" => is_lower(text),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(|c| c.is_lowercase() || is_title(c)),
        "istitle" => is_titled(text),
        "isidentifier" if text.is_ascii() => {
            some(|c| c == '_' || c.is_ascii_alphanumeric()) && !text.starts_with(|c: char| c.is_ascii_digit())
        }
        "isidentifier" => return fail("isidentifier() of letters beyond ASCII is not supported"),
        _ => {
            let is_clear = |c: char| c.is_ascii() || (name != "isnumeric" && !c.is_numeric());
            if !text.chars().all(is_clear) {
                return fail(format!("{name}() of digits beyond ASCII is not supported"));
            }
            some(|c| c.is_ascii_digit())
        }
    })
}

/// Python counts fewer characters as letters than Rust does: where the two may differ there is no answer.
fn is_letter(c: char, name: &str) -> Result<bool> {
    let is_sure = matches!(c, '\0'..='\u{2ff}' | '\u{370}'..='\u{481}' | '\u{48a}'..='\u{587}' | '\u{1e00}'..='\u{1fff}'
        | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    match c.is_alphabetic() && !c.is_numeric() {
        true if !is_sure => fail(format!("{name}() of {c:?} is not supported")),
        answer => Ok(answer),
    }
}

pub fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(|c| c.is_uppercase() || is_title(c))
}

fn is_titled(text: &str) -> bool {
    let (mut inside, mut any) = (false, false);
    for c in text.chars() {
        let is_capital = c.is_uppercase() || is_title(c);
        if (is_capital && inside) || (c.is_lowercase() && !inside) {
            return false;
        }
        inside = is_cased(c);
        any |= inside;
    }
    any
}

/// int(text, base), with Python's white space, sign, underscores and prefixes.
pub fn parse_int(text: &str, base: i128) -> Option<i128> {
    let text = text.trim_matches(is_space);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0b") => 2,
        Some("0o") => 8,
        Some("0x") => 16,
        _ => 0,
    };
    let radix = u32::try_from(if base == 0 {
        if prefix == 0 {
            10
        } else {
            prefix
        }
    } else {
        base
    })
    .ok()?;
    let mut digits = digits;
    let has_prefix = prefix != 0 && i128::from(radix) == prefix && (base == 0 || base == prefix);
    if has_prefix {
        digits = digits[2..].strip_prefix('_').unwrap_or(&digits[2..]);
    }
    let has_zeros =
        base == 0 && !has_prefix && digits.starts_with('0') && digits.bytes().any(|b| !matches!(b, b'0' | b'_'));
    let is_bad =
        digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") || digits.starts_with(['+', '-']);
    if is_bad || has_zeros || !(2..=36).contains(&radix) {
        return None;
    }
    let size = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -size } else { size })
}

/// float(text)
pub fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    let between_digits = |at: usize| {
        let is_digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
        at > 0 && is_digit(text.as_bytes().get(at - 1)) && is_digit(text.as_bytes().get(at + 1))
    };
    if text.match_indices('_').any(|(at, _)| !between_digits(at)) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// int(value)
pub fn to_int(value: &Value) -> Result<Option<i128>> {
    match value {
        Value::Float(number) if number.is_infinite() => fail("cannot convert float infinity to integer"),
        Value::Float(number) if number.is_nan() => Ok(None),
        Value::Float(number) => Ok(Some(number.trunc() as i128)),
        Value::Undefined(_) => int(value).map(Some),
        _ => Ok(value.as_int()),
    }
}
