//! The filter tojson: json.dumps of Python's, as transformers registers it.

use super::arguments::{flag, Bound};
use super::operators::order;
use super::text::repr_float;
use super::value::{fail, Key, Result, Value};

struct Writer {
    out: String,
    ascii: bool,
    sorted: bool,
    indent: Option<String>,
    item: String,
    key: String,
}

pub fn tojson(value: &Value, bound: &Bound) -> Result<Value> {
    let [ascii, indent, separators, sorted] =
        bound.take("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"], 0)?;
    let indent = match &indent {
        None | Some(Value::None) => None,
        Some(Value::Str(text)) => Some(text.to_string()),
        Some(width) => match width.as_int() {
            Some(width) => Some(" ".repeat(super::arguments::width(width)?)),
            None => return fail(format!("can't multiply sequence by non-int of type '{}'", width.type_name())),
        },
    };
    let (item, key) = match &separators {
        None | Some(Value::None) => ((if indent.is_some() { "," } else { ", " }).to_string(), ": ".to_string()),
        Some(pair) => match pair.as_slice() {
            Some([item, key]) => (item.to_text()?.to_string(), key.to_text()?.to_string()),
            _ => return fail("tojson: expected two separators"),
        },
    };
    let mut writer = Writer { out: String::new(), ascii: flag(&ascii), sorted: flag(&sorted), indent, item, key };
    writer.value(value, 0)?;
    Ok(Value::str(writer.out))
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        super::check_stack()?;
        match value {
            Value::None => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Int(number) => self.out.push_str(&number.to_string()),
            Value::Float(number) => self.out.push_str(&float(*number)),
            Value::Str(text) | Value::Markup(text) => self.text(text),
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => {
                self.block(("[", "]"), items.iter().map(|item| (None, item)), depth)?;
            }
            Value::Dict(items) => {
                let mut items: Vec<(&Key, &Value)> = items.iter().collect();
                if self.sorted {
                    sort(&mut items)?;
                }
                let mut named = Vec::with_capacity(items.len());
                for (key, value) in items {
                    named.push((Some(key_text(key.value())?), value));
                }
                self.block(("{", "}"), named.into_iter(), depth)?;
            }
            _ => return fail(format!("Object of type {} is not JSON serializable", value.type_name())),
        }
        Ok(())
    }

    fn block<'a>(
        &mut self,
        around: (&str, &str),
        items: impl Iterator<Item = (Option<String>, &'a Value)>,
        depth: usize,
    ) -> Result<()> {
        self.out.push_str(around.0);
        let mut is_empty = true;
        for (key, value) in items {
            if !is_empty {
                self.out.push_str(&self.item);
            }
            is_empty = false;
            self.new_line(depth + 1);
            if let Some(key) = key {
                self.text(&key);
                self.out.push_str(&self.key);
            }
            self.value(value, depth + 1)?;
        }
        if !is_empty {
            self.new_line(depth);
        }
        self.out.push_str(around.1);
        Ok(())
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                _ if (c as u32) < 0x20 || (self.ascii && c as u32 > 0x7e) => {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units).iter().for_each(|unit| self.out.push_str(&format!("\\u{unit:04x}")));
                }
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn float(number: f64) -> String {
    match repr_float(number).as_str() {
        "nan" => "NaN".to_string(),
        "inf" => "Infinity".to_string(),
        "-inf" => "-Infinity".to_string(),
        text => text.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String> {
    Ok(match key {
        Value::Str(text) | Value::Markup(text) => text.to_string(),
        Value::None => "null".to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        _ => return fail(format!("keys must be str, int, float, bool or None, not {}", key.type_name())),
    })
}

fn sort(items: &mut [(&Key, &Value)]) -> Result<()> {
    let mut problem = None;
    items.sort_by(|(a, _), (b, _)| match order(a.value(), b.value(), "<") {
        Ok(order) => order.unwrap_or(std::cmp::Ordering::Equal),
        Err(error) => {
            problem = Some(error);
            std::cmp::Ordering::Equal
        }
    });
    problem.map_or(Ok(()), Err)
}
