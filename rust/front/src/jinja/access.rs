//! value.name, value[key] and value[a:b:c], as the sandboxed environment looks them up: methods come before keys for the
//! dot, keys before methods for the brackets.

use std::rc::Rc;

use super::arguments;
use super::methods;
use super::value::{fail, Callable, Key, Range, Result, Value};

const NUMBER_ATTRIBUTES: [&str; 11] = [
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "conjugate",
    "denominator",
    "from_bytes",
    "hex",
    "imag",
    "numerator",
    "real",
    "to_bytes",
];

fn method(value: &Value, name: &str) -> Option<Value> {
    if methods::changes(value, name) {
        let why = format!("access to attribute '{name}' of '{}' object is unsafe.", value.type_name());
        return Some(Value::undefined(why));
    }
    methods::has(value, name).then(|| value.clone().method(name))
}

fn key(value: &Value, key: &Value) -> Option<Value> {
    match value {
        Value::Dict(items) => match key {
            Value::Str(name) => items.get(&**name).cloned(),
            _ => items.get(&Key::new(key.clone()).ok()?).cloned(),
        },
        Value::List(_) | Value::Tuple(_) | Value::Group(_) | Value::Str(_) | Value::Markup(_) | Value::Range(_) => {
            let length = value.length().ok()? as i128;
            let index = key.as_int()?;
            let index = usize::try_from(if index < 0 { index + length } else { index }).ok()?;
            match value {
                Value::Range(range) => (index < range.len()).then(|| range.at(index)),
                Value::Markup(text) => text.chars().nth(index).map(|c| Value::Markup(Rc::from(c.to_string()))),
                Value::Str(text) => text.chars().nth(index).map(|c| Value::str(c.to_string())),
                _ => value.as_slice()?.get(index).cloned(),
            }
        }
        _ => None,
    }
}

pub fn attribute(value: &Value, name: &str) -> Result<Value> {
    let own = match value {
        Value::Undefined(message) => return fail(&**message),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) if NUMBER_ATTRIBUTES.contains(&name) => {
            return fail(format!("the attribute '{name}' of numbers is not supported"));
        }
        Value::Group(items) if name == "grouper" => Some(items[0].clone()),
        Value::Group(items) if name == "list" => Some(items[1].clone()),
        Value::Namespace(items) => items.borrow().get(name).cloned(),
        Value::Cycler(cycler) if name == "current" => Some(cycler.items[cycler.position.get()].clone()),
        Value::Callable(callable) => match (&**callable, name) {
            (Callable::Global("dict"), "fromkeys") => Some(Value::Callable(Rc::new(Callable::Global("fromkeys")))),
            (Callable::Macro(macro_, _), "name") => Some(Value::Str(macro_.name.clone())),
            (Callable::Macro(macro_, _), "arguments") => {
                Some(Value::tuple(macro_.parameters.iter().cloned().map(Value::Str).collect()))
            }
            _ => None,
        },
        _ => None,
    };
    let name_value = Value::str(name);
    let found = own.or_else(|| method(value, name)).or_else(|| key(value, &name_value));
    Ok(found.unwrap_or_else(|| value.lacks(&name_value)))
}

/// value[index]; what isn't there is undefined.
pub fn item(value: &Value, index: &Value) -> Result<Value> {
    if let Value::Undefined(message) = value {
        return fail(&**message);
    }
    if let Some(found) = key(value, index) {
        return Ok(found);
    }
    match index.as_str() {
        Some(name) => attribute(value, name),
        None => Ok(value.lacks(index)),
    }
}

pub fn slice(value: &Value, parts: [Option<Value>; 3]) -> Result<Value> {
    let length = match value {
        Value::Undefined(message) => return fail(&**message),
        Value::Str(_) | Value::Markup(_) | Value::List(_) | Value::Tuple(_) | Value::Group(_) | Value::Range(_) => {
            value.length()? as i128
        }
        Value::Dict(_) => return fail("unhashable type: 'slice'"),
        _ => return fail(format!("'{}' object is not subscriptable", value.type_name())),
    };
    let [first, last, step] = parts;
    let step = arguments::int_or_none(&step, 1)?;
    if step == 0 {
        return fail("slice step cannot be zero");
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let place = |part: &Option<Value>, default: i128| -> Result<i128> {
        match part {
            None | Some(Value::None) => Ok(default),
            Some(part) => {
                let at = arguments::int(part).or_else(|_| fail("slice indices must be integers or None"))?;
                Ok((if at < 0 { at.saturating_add(length) } else { at }).clamp(lowest, highest))
            }
        }
    };
    let start = place(&first, if step > 0 { 0 } else { length - 1 })?;
    let stop = place(&last, if step > 0 { length } else { -1 })?;
    let chosen = Range { start, stop, step: step.clamp(-length.max(1), length.max(1)) };
    let indexes = (0..chosen.len()).map(|i| (chosen.start + chosen.step * i as i128) as usize);
    Ok(match value {
        Value::Str(text) | Value::Markup(text) => {
            let letters: Vec<char> = text.chars().collect();
            let cut: String = indexes.map(|i| letters[i]).collect();
            if let Value::Markup(_) = value {
                Value::Markup(Rc::from(cut))
            } else {
                Value::str(cut)
            }
        }
        Value::Range(range) => Value::Range(Range {
            start: range.start + range.step * start,
            stop: range.start + range.step * stop,
            step: range.step * chosen.step,
        }),
        _ => {
            let items = value.as_slice().unwrap_or_default();
            let cut = indexes.map(|i| items[i].clone()).collect();
            if let Value::List(_) = value {
                Value::list(cut)
            } else {
                Value::tuple(cut)
            }
        }
    })
}
