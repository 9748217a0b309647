//! Python's ways with text, where they are not Rust's: white space, repr, str, upper and lower case.

use super::value::{fail, Callable, Result, Value};

/// str.isspace
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// str.splitlines
pub fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_end = |c: char| matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let size = rest.find(is_end).unwrap_or(rest.len());
        let tail = &rest[size..];
        let end = if tail.starts_with("\r\n") { 2 } else { tail.chars().next().map_or(0, char::len_utf8) };
        lines.push(&rest[..if keep_ends { size + end } else { size }]);
        rest = &tail[end..];
    }
    lines
}

/// markupsafe.escape
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

pub fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

/// Letters that are upper and lower case at once: Dž and its like, and Greek capitals with a small iota.
pub fn is_title(c: char) -> bool {
    matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}' | '\u{1fa8}'..='\u{1faf}'
        | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

/// A letter at a word's beginning.
pub fn push_title(out: &mut String, c: char) {
    match c {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        '\u{10d0}'..='\u{10ff}' => out.push(c), // Georgian has no title case
        'ŉ' | 'ǰ' | '\u{390}' | '\u{3b0}' => out.extend(c.to_uppercase()),
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            out.extend(char::from_u32(c as u32 + 8))
        }
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => out.extend(char::from_u32(c as u32 + 9)),
        _ if is_title(c) => out.push(c),
        _ => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            upper.for_each(|more| out.extend(more.to_lowercase()));
        }
    }
}

/// str.title: a letter behind another one is small.
pub fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for (at, c) in text.char_indices() {
        if inside {
            push_lower(&mut out, text, at, c);
        } else {
            push_title(&mut out, c);
        }
        inside = is_cased(c);
    }
    out
}

/// str.capitalize
pub fn capitalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if at == 0 {
            push_title(&mut out, c);
        } else {
            push_lower(&mut out, text, at, c);
        }
    }
    out
}

/// A small letter; sigma has two, by what stands around it.
pub fn push_lower(out: &mut String, text: &str, at: usize, c: char) {
    if c == 'Σ' {
        let before = text[..at].chars().rev().find(|c| !is_ignorable(*c)).is_some_and(is_cased);
        let after = text[at + c.len_utf8()..].chars().find(|c| !is_ignorable(*c)).is_some_and(is_cased);
        out.push(if before && !after { 'ς' } else { 'σ' });
    } else {
        out.extend(c.to_lowercase());
    }
}

fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\'' | '.' | ':' | '^' | '`' | '\u{a8}' | '\u{ad}' | '\u{af}' | '\u{b4}' | '\u{b7}' | '\u{b8}' | '\u{300}'
            ..='\u{36f}' | '\u{2018}' | '\u{2019}'
    )
}

/// str.isprintable of one character: Rust's own Debug knows it by the same rule.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let pair: String = ['a', c].iter().collect();
    !pair.escape_debug().skip(1).eq(c.escape_unicode())
}

pub fn repr_str(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => out.extend(['\\', c]),
            _ if is_printable(c) => out.push(c),
            _ => out.push_str(&match c as u32 {
                code @ ..=0xff => format!("\\x{code:02x}"),
                code @ ..=0xffff => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push(quote);
    out
}

/// The fewest digits that give this float again, as Python writes them.
pub fn repr_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

impl Value {
    /// str(value). What Python would print with its address in memory is refused.
    pub fn to_text(&self) -> Result<std::rc::Rc<str>> {
        match self {
            Value::Str(text) | Value::Markup(text) => Ok(text.clone()),
            Value::Undefined(_) => Ok("".into()),
            _ => self.repr().map(Into::into),
        }
    }

    pub fn repr(&self) -> Result<String> {
        let mut out = String::new();
        self.write_repr(&mut out)?;
        Ok(out)
    }

    fn write_repr(&self, out: &mut String) -> Result<()> {
        super::check_stack()?;
        match self {
            Value::Undefined(_) => out.push_str("Undefined"),
            Value::None => out.push_str("None"),
            Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
            Value::Int(value) => out.push_str(&value.to_string()),
            Value::Float(value) => out.push_str(&repr_float(*value)),
            Value::Str(text) => out.push_str(&repr_str(text)),
            Value::Markup(text) => out.push_str(&format!("Markup({})", repr_str(text))),
            Value::List(items) => write_items(out, items, ("[", "]"))?,
            Value::Tuple(items) | Value::Group(items) => {
                write_items(out, items, ("(", if items.len() == 1 { ",)" } else { ")" }))?;
            }
            Value::View(view) => {
                out.push_str(view.kind);
                write_items(out, &view.items, ("([", "])"))?;
            }
            Value::Dict(items) => {
                out.push('{');
                for (i, (key, value)) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    key.value().write_repr(out)?;
                    out.push_str(": ");
                    value.write_repr(out)?;
                }
                out.push('}');
            }
            Value::Range(range) => {
                out.push_str(&format!("range({}, {}", range.start, range.stop));
                out.push_str(&if range.step == 1 { ")".to_string() } else { format!(", {})", range.step) });
            }
            Value::Namespace(items) => {
                out.push_str("<Namespace ");
                Value::dict(items.borrow().clone()).write_repr(out)?;
                out.push('>');
            }
            Value::Callable(callable) if matches!(&**callable, Callable::Macro(..)) => {
                if let Callable::Macro(node, _) = &**callable {
                    out.push_str(&format!("<Macro {}>", repr_str(&node.name)));
                }
            }
            Value::Loop(_) | Value::Generator(_) | Value::Callable(_) | Value::Cycler(_) | Value::Joiner(_) => {
                return fail(format!(
                    "expected a value with a text, got a {}, which has none but its address",
                    self.type_name()
                ));
            }
        }
        Ok(())
    }
}

fn write_items(out: &mut String, items: &[Value], around: (&str, &str)) -> Result<()> {
    out.push_str(around.0);
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        item.write_repr(out)?;
    }
    out.push_str(around.1);
    Ok(())
}
