//! Filters on text.

use super::arguments::{flag, int_or, int_or_none, Bound};
use super::spec::Spec;
use super::text::{capitalize, escape, is_space, lines};
use super::text_methods::{pad, parse_float, strip};
use super::value::{fail, Result, Value};

pub fn apply(name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    match name {
        "capitalize" | "lower" | "title" | "upper" | "wordcount" => {
            bound.take::<0>(name, [], 0)?;
            let text = value.to_text()?;
            Ok(match name {
                "capitalize" => Value::str(capitalize(&text)),
                "lower" => Value::str(text.to_lowercase()),
                "upper" => Value::str(text.to_uppercase()),
                "title" => Value::str(title(&text)),
                _ => Value::Int(
                    text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty()).count()
                        as i128,
                ),
            })
        }
        "string" | "safe" | "e" | "escape" | "forceescape" => {
            bound.take::<0>(name, [], 0)?;
            Ok(match (name, value) {
                ("string", Value::Str(_) | Value::Markup(_)) => value.clone(),
                ("string", _) => Value::Str(value.to_text()?),
                ("safe", _) => Value::Markup(value.to_text()?),
                ("e" | "escape", Value::Markup(_)) => value.clone(),
                _ => Value::Markup(escape(&value.to_text()?).into()),
            })
        }
        "center" => {
            let [size] = bound.take(name, ["width"], 0)?;
            pad(&value.to_text()?, name, int_or(&size, 80)?, &Value::str(" ")).map(Value::str)
        }
        "trim" => {
            let [letters] = bound.take(name, ["chars"], 0)?;
            strip(&value.to_text()?, name, &letters.unwrap_or(Value::None)).map(Value::str)
        }
        "replace" => {
            let [old, new, count] = bound.take(name, ["old", "new", "count"], 2)?;
            let (old, new) = (old.unwrap_or(Value::None).to_text()?, new.unwrap_or(Value::None).to_text()?);
            let text = value.to_text()?;
            Ok(Value::str(match usize::try_from(int_or_none(&count, -1)?) {
                Ok(count) => text.replacen(&*old, &new, count),
                Err(_) => text.replace(&*old, &new),
            }))
        }
        "filesizeformat" => {
            let [binary] = bound.take(name, ["binary"], 0)?;
            let bytes = value.as_str().map_or_else(|| value.as_number(), parse_float);
            bytes.map_or_else(
                || fail("filesizeformat: expected a number"),
                |bytes| file_size(bytes, flag(&binary)).map(Value::str),
            )
        }
        "indent" => indent(value, bound),
        "truncate" => truncate(value, bound),
        "urlencode" => {
            bound.take::<0>(name, [], 0)?;
            url_encode(value).map(Value::str)
        }
        _ => xml_attributes(value, bound),
    }
}

/// A capital behind white space, a dash or an opening bracket.
fn title(text: &str) -> String {
    let is_break = |c: char| is_space(c) || "-({[<".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let breaks = rest.len() - rest.trim_start_matches(is_break).len();
        let size = if breaks > 0 { breaks } else { rest.find(is_break).unwrap_or(rest.len()) };
        let mut letters = rest[..size].chars();
        out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        out.push_str(&letters.as_str().to_lowercase());
        rest = &rest[size..];
    }
    out
}

fn indent(value: &Value, bound: &Bound) -> Result<Value> {
    let [width, first, blank] = bound.take("indent", ["width", "first", "blank"], 0)?;
    let Value::Str(text) = value else {
        return fail(format!("indent: expected text, got {}", value.type_name()));
    };
    let indention = match &width {
        Some(Value::Str(indention)) => indention.to_string(),
        width => " ".repeat(super::arguments::width(int_or(width, 4)?)?),
    };
    let text = format!("{text}\n");
    let mut out = if flag(&first) { indention.clone() } else { String::new() };
    for (i, line) in lines(&text, false).into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
            if flag(&blank) || !line.is_empty() {
                out.push_str(&indention);
            }
        }
        out.push_str(line);
    }
    Ok(Value::str(out))
}

fn truncate(value: &Value, bound: &Bound) -> Result<Value> {
    let [length, kill_words, end, leeway] = bound.take("truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let length = int_or(&length, 255)?;
    let end = end.unwrap_or_else(|| Value::str("..."));
    let end_size = end.length()? as i128;
    let leeway = int_or_none(&leeway, 5)?;
    if length < end_size || leeway < 0 {
        return fail(format!("expected length >= {end_size}, got {length}"));
    }
    if value.length()? as i128 <= length + leeway {
        return Ok(value.clone());
    }
    let text: String = super::arguments::text(value)?.chars().take((length - end_size) as usize).collect();
    let cut = if flag(&kill_words) { text.as_str() } else { text.rsplit_once(' ').map_or(&*text, |(head, _)| head) };
    Ok(Value::str(format!("{cut}{}", super::arguments::text(&end)?)))
}

fn file_size(bytes: f64, binary: bool) -> Result<String> {
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok("1 Byte".to_string());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes.trunc() as i128));
    }
    let mut unit = base;
    let mut prefixes = "kMGTPEZY".chars().peekable();
    while let Some(prefix) = prefixes.next() {
        unit *= base;
        if bytes < unit || prefixes.peek().is_none() {
            let prefix = if binary { format!("{}i", prefix.to_ascii_uppercase()) } else { prefix.to_string() };
            let size = Spec { precision: Some(1), kind: Some('f'), ..Spec::default() }.float(base * bytes / unit)?;
            return Ok(format!("{size} {prefix}B"));
        }
    }
    Ok(String::new())
}

fn quote(value: &Value, in_query: bool) -> Result<String> {
    let mut out = String::new();
    for byte in value.to_text()?.bytes() {
        match byte {
            b' ' if in_query => out.push('+'),
            b'/' if !in_query => out.push('/'),
            b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

fn url_encode(value: &Value) -> Result<String> {
    let pairs = match value {
        Value::Str(_) | Value::Markup(_) => return quote(value, false),
        _ if value.iterate().is_err() => return quote(value, false),
        Value::Dict(_) => super::methods::call(value, "items", &Bound::default())?,
        _ => value.clone(),
    };
    let mut parts = Vec::new();
    for pair in pairs.iterate()? {
        match pair?.items()?.as_slice() {
            [key, value] => parts.push(format!("{}={}", quote(key, true)?, quote(value, true)?)),
            other => return fail(format!("expected 2 values to unpack, got {}", other.len())),
        }
    }
    Ok(parts.join("&"))
}

fn xml_attributes(value: &Value, bound: &Bound) -> Result<Value> {
    let [space] = bound.take("xmlattr", ["autospace"], 0)?;
    let Value::Dict(items) = value else {
        return fail(format!("xmlattr: expected a dict, got {}", value.type_name()));
    };
    let escaped = |value: &Value| match value {
        Value::Markup(text) => Ok(text.to_string()),
        other => other.to_text().map(|text| escape(&text)),
    };
    let mut parts = Vec::new();
    for (key, value) in items.iter().filter(|(_, value)| !matches!(value, Value::None | Value::Undefined(_))) {
        let name = super::arguments::text(key.value())?;
        if name.contains(|c: char| is_space(c) || matches!(c, '/' | '>' | '=')) {
            return fail("Invalid character in attribute name");
        }
        parts.push(format!("{}=\"{}\"", escaped(key.value())?, escaped(value)?));
    }
    let space = if !parts.is_empty() && space.is_none_or(|space| space.truth()) { " " } else { "" };
    Ok(Value::str(format!("{space}{}", parts.join(" "))))
}
