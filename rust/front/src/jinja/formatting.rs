//! text.format(...), as the sandbox allows it.

use super::access;
use super::arguments::Bound;
use super::spec::Spec;
use super::value::{fail, Result, Value};

struct Formatter<'a> {
    bound: &'a Bound,
    next: Option<usize>, // the next automatic number; None once fields were numbered by hand
}

pub fn format(format: &str, bound: &Bound) -> Result<String> {
    Formatter { bound, next: Some(0) }.expand(format, 2)
}

impl Formatter<'_> {
    fn expand(&mut self, format: &str, depth: usize) -> Result<String> {
        if depth == 0 {
            return fail("Max string recursion exceeded");
        }
        let mut out = String::new();
        let mut rest = format;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(tail) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = tail;
                continue;
            }
            if brace == "}" {
                return fail("Single '}' encountered in format string");
            }
            let size = field_size(rest)?;
            out.push_str(&self.field(&rest[..size], depth)?);
            rest = &rest[size + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// "name!conversion:spec"
    fn field(&mut self, field: &str, depth: usize) -> Result<String> {
        let name_size = field.find(['!', ':', '[']).unwrap_or(field.len());
        let name_size = match field[name_size..].strip_prefix('[') {
            Some(tail) => {
                let behind = tail.rfind(']').map_or(field.len(), |end| name_size + end + 2);
                behind + field[behind..].find(['!', ':']).unwrap_or(field.len() - behind)
            }
            None => name_size,
        };
        let (name, tail) = field.split_at(name_size);
        let (conversion, spec) = match tail.strip_prefix('!') {
            Some(tail) => tail.split_once(':').unwrap_or((tail, "")),
            None => ("", tail.strip_prefix(':').unwrap_or("")),
        };
        let value = self.look_up(name)?;
        let value = match conversion {
            "" => value,
            "s" => Value::Str(value.to_text()?),
            "r" => Value::str(value.repr()?),
            _ => return fail(format!("Unknown conversion specifier {conversion}")),
        };
        let spec = self.expand(spec, depth - 1)?;
        laid_out(&value, &spec)
    }

    fn look_up(&mut self, name: &str) -> Result<Value> {
        let size = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(size);
        let mut value = match first.parse::<usize>() {
            Err(_) if !first.is_empty() => {
                let found = self.bound.named.iter().find(|(known, _)| &**known == first);
                found.map_or_else(|| fail(format!("KeyError: '{first}'")), |(_, value)| Ok(value.clone()))?
            }
            number => {
                let index = match (number, self.next) {
                    (Ok(index), None | Some(0)) => {
                        self.next = None;
                        index
                    }
                    (Err(_), Some(next)) => {
                        self.next = Some(next + 1);
                        next
                    }
                    _ => return fail("cannot switch between manual field specification and automatic field numbering"),
                };
                let missing = || fail("Replacement index out of range for positional args tuple");
                self.bound.positional.get(index).cloned().map_or_else(missing, Ok)?
            }
        };
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix('[') {
                let Some((key, tail)) = tail.split_once(']') else { return fail("Missing ']' in format string") };
                let key = key.parse::<i128>().map_or_else(|_| Value::str(key), Value::Int);
                value = access::item(&value, &key)?;
                rest = tail;
            } else {
                let tail = rest.strip_prefix('.').unwrap_or(rest);
                let size = tail.find(['.', '[']).unwrap_or(tail.len());
                value = access::attribute(&value, &tail[..size])?;
                rest = &tail[size..];
            }
        }
        Ok(value)
    }
}

/// The size of a field up to the brace that closes it.
fn field_size(text: &str) -> Result<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    fail("expected '}' before end of string")
}

fn laid_out(value: &Value, spec: &str) -> Result<String> {
    if spec.is_empty() {
        return Ok(value.to_text()?.to_string());
    }
    match value {
        Value::Str(text) => Spec::parse(spec)?.text(text),
        Value::Int(number) => Spec::parse(spec)?.integer(*number),
        Value::Float(number) => Spec::parse(spec)?.float(*number),
        Value::Bool(flag) => Spec::parse(spec)?.integer(i128::from(*flag)),
        _ => fail(format!("unsupported format string passed to {}.__format__", value.type_name())),
    }
}
