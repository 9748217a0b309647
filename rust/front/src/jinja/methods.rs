//! The methods of Python's values. What would change a list or a dict is there, but the sandbox keeps it from templates.

use std::rc::Rc;

use super::arguments::{int_or, Bound};
use super::operators::equal;
use super::text_methods;
use super::value::{fail, Dict, Key, Result, Value, View};

pub fn has(value: &Value, name: &str) -> bool {
    match value {
        Value::Str(_) | Value::Markup(_) => text_methods::NAMES.contains(&name),
        Value::List(_) => matches!(name, "count" | "index" | "copy"),
        Value::Tuple(_) | Value::Group(_) | Value::Range(_) => matches!(name, "count" | "index"),
        Value::Dict(_) => matches!(name, "get" | "keys" | "values" | "items" | "copy" | "fromkeys"),
        Value::Float(_) => matches!(name, "is_integer"),
        Value::Cycler(_) => matches!(name, "next" | "reset"),
        Value::Loop(_) => matches!(name, "cycle" | "changed"),
        _ => false,
    }
}

/// Methods that the immutable sandbox hides.
pub fn changes(value: &Value, name: &str) -> bool {
    match value {
        Value::Dict(_) => matches!(name, "clear" | "pop" | "popitem" | "setdefault" | "update"),
        Value::List(_) => {
            matches!(name, "append" | "clear" | "pop" | "reverse" | "insert" | "sort" | "extend" | "remove")
        }
        _ => false,
    }
}

pub fn call(value: &Value, name: &str, bound: &Bound) -> Result<Value> {
    match (value, name) {
        (Value::Str(text), _) => text_methods::call(text, name, bound),
        (Value::Markup(_), _) => fail(format!("{name}() of escaped text is not supported")),
        (Value::List(_), "copy") | (Value::Dict(_), "copy") => {
            bound.take_positional::<0>(name, 0)?;
            Ok(value.clone())
        }
        (Value::Dict(items), _) => of_dict(items, name, bound),
        (Value::Float(number), "is_integer") => {
            bound.take_positional::<0>(name, 0)?;
            Ok(Value::Bool(number.fract() == 0.0))
        }
        (Value::Cycler(cycler), "next") => {
            let at = cycler.position.get();
            cycler.position.set((at + 1) % cycler.items.len());
            Ok(cycler.items[at].clone())
        }
        (Value::Cycler(cycler), _) => {
            cycler.position.set(0);
            Ok(Value::None)
        }
        (_, "count") => {
            let [wanted] = bound.take_positional(name, 1)?;
            let items = value.items()?;
            let count = items.iter().filter(|item| wanted.as_ref().is_some_and(|wanted| equal(item, wanted))).count();
            Ok(Value::Int(count as i128))
        }
        _ => index(value, bound),
    }
}

fn index(value: &Value, bound: &Bound) -> Result<Value> {
    let [wanted, start, stop] = bound.take_positional("index", 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let items = value.items()?;
    let length = items.len() as i128;
    let place = |at: i128| if at < 0 { (at + length).max(0) } else { at.min(length) } as usize;
    let (start, stop) = (place(int_or(&start, 0)?), place(int_or(&stop, length)?));
    match (start..stop).find(|&i| equal(&items[i], &wanted)) {
        Some(at) => Ok(Value::Int(at as i128)),
        None => fail(format!("{} is not in {}", wanted.repr()?, value.type_name())),
    }
}

fn view(kind: &'static str, items: Vec<Value>) -> Value {
    Value::View(Rc::new(View { kind, items }))
}

fn of_dict(items: &Dict, name: &str, bound: &Bound) -> Result<Value> {
    let keys = || items.keys().map(|key| key.value().clone());
    match name {
        "get" => {
            let [key, default] = bound.take_positional("get", 1)?;
            let found = items.get(&Key::new(key.unwrap_or(Value::None))?).cloned();
            Ok(found.or(default).unwrap_or(Value::None))
        }
        "fromkeys" => from_keys(bound),
        _ => {
            bound.take_positional::<0>(name, 0)?;
            Ok(match name {
                "keys" => view("dict_keys", keys().collect()),
                "values" => view("dict_values", items.values().cloned().collect()),
                _ => {
                    let pairs = keys().zip(items.values().cloned()).map(|(key, value)| Value::tuple(vec![key, value]));
                    view("dict_items", pairs.collect())
                }
            })
        }
    }
}

/// dict.fromkeys
pub fn from_keys(bound: &Bound) -> Result<Value> {
    let [keys, value] = bound.take_positional("fromkeys", 1)?;
    let value = value.unwrap_or(Value::None);
    let mut made = Dict::new();
    for key in keys.unwrap_or(Value::None).iterate()? {
        made.insert(Key::new(key?)?, value.clone());
    }
    Ok(Value::dict(made))
}

/// dict(...) and what namespace(...) begins with.
pub fn make_dict(bound: &Bound) -> Result<Dict> {
    let mut made = Dict::new();
    match bound.positional.as_slice() {
        [] => {}
        [Value::Dict(items)] => made = (**items).clone(),
        [pairs] => {
            for pair in pairs.iterate()? {
                match pair?.items()?.as_slice() {
                    [key, value] => made.insert(Key::new(key.clone())?, value.clone()),
                    other => {
                        return fail(format!(
                            "dictionary update sequence element has length {}; 2 is required",
                            other.len()
                        ))
                    }
                };
            }
        }
        more => return fail(format!("dict expected at most 1 argument, got {}", more.len())),
    }
    for (name, value) in &bound.named {
        made.insert(Key::str(name), value.clone());
    }
    Ok(made)
}
