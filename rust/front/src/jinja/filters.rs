//! The filters by name.

use super::arguments::{flag, int_or, Bound};
use super::format_filters as text;
use super::interpreter::Interpreter;
use super::json::tojson;
use super::operators::{is_same, order};
use super::percent;
use super::sequence_filters as sequence;
use super::text_methods::{parse_float, parse_int, to_int};
use super::value::{fail, Result, Value};

pub const NAMES: [&str; 54] = [
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "random",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap",
    "xmlattr",
];

pub fn apply(interpreter: &mut Interpreter, name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    match name {
        "abs" | "float" | "int" | "round" => number(name, value, bound),
        "capitalize" | "center" | "e" | "escape" | "filesizeformat" | "forceescape" | "indent" | "lower"
        | "replace" | "safe" | "string" | "title" | "trim" | "truncate" | "upper" | "urlencode" | "wordcount"
        | "xmlattr" => text::apply(name, value, bound),
        "format" => {
            if !bound.positional.is_empty() && !bound.named.is_empty() {
                return fail("can't handle positional and keyword arguments at the same time");
            }
            let values = if bound.named.is_empty() {
                Value::tuple(bound.positional.clone())
            } else {
                Value::dict(super::methods::make_dict(bound)?)
            };
            percent::format(&value.to_text()?, &values).map(Value::str)
        }
        "tojson" => tojson(value, bound),
        "default" | "d" => {
            let [default, also_false] = bound.take(name, ["default_value", "boolean"], 0)?;
            let is_missing = value.is_undefined() || (flag(&also_false) && !value.truth());
            Ok(if is_missing { default.unwrap_or_else(|| Value::str("")) } else { value.clone() })
        }
        "attr" => {
            let [wanted] = bound.take(name, ["name"], 1)?;
            let wanted = wanted.unwrap_or(Value::None);
            attr(interpreter, value, super::arguments::text(&wanted)?)
        }
        "count" | "length" => {
            bound.take::<0>(name, [], 0)?;
            match value {
                Value::Loop(_) => interpreter.attribute(value, "length"),
                _ => value.length().map(|length| Value::Int(length as i128)),
            }
        }
        "pprint" | "random" | "striptags" | "urlize" | "wordwrap" => {
            fail(format!("the filter '{name}' is not supported"))
        }
        _ => sequence::apply(interpreter, name, value, bound),
    }
}

/// As the dot, without its way to a dict's keys.
fn attr(interpreter: &mut Interpreter, value: &Value, name: &str) -> Result<Value> {
    match value {
        Value::Dict(_) if !super::methods::has(value, name) && !super::methods::changes(value, name) => {
            Ok(value.lacks(&Value::str(name)))
        }
        _ => interpreter.attribute(value, name),
    }
}

fn number(name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    if value.as_str().is_some_and(|text| text.contains(|c: char| !c.is_ascii() && c.is_numeric())) {
        return fail(format!("{name} of digits beyond ASCII is not supported"));
    }
    match name {
        "abs" => {
            bound.take::<0>(name, [], 0)?;
            match value {
                Value::Float(number) => Ok(Value::Float(number.abs())),
                _ => match value.as_int() {
                    Some(number) => Ok(Value::Int(number.abs())),
                    None => fail(format!("bad operand type for abs(): '{}'", value.type_name())),
                },
            }
        }
        "float" => {
            let [default] = bound.take(name, ["default"], 0)?;
            let found = match value {
                Value::Undefined(message) => return fail(&**message),
                Value::Str(text) | Value::Markup(text) => parse_float(text),
                _ => value.as_number(),
            };
            Ok(found.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float))
        }
        "int" => {
            let [default, base] = bound.take(name, ["default", "base"], 0)?;
            let found = match value {
                Value::Str(text) | Value::Markup(text) => match parse_int(text, int_or(&base, 10)?) {
                    Some(number) => Some(number),
                    None => parse_float(text).filter(|number| number.is_finite()).map(|number| number.trunc() as i128),
                },
                _ => to_int(value)?,
            };
            Ok(found.map_or_else(|| default.unwrap_or(Value::Int(0)), Value::Int))
        }
        _ => round(value, bound),
    }
}

fn round(value: &Value, bound: &Bound) -> Result<Value> {
    let [precision, method] = bound.take("round", ["precision", "method"], 0)?;
    let method = method.unwrap_or_else(|| Value::str("common"));
    let precision = int_or(&precision, 0)?;
    let Some(number) = value.as_number() else {
        return fail(format!("type {} doesn't define __round__ method", value.type_name()));
    };
    let power = 10f64.powi(precision.clamp(-400, 400) as i32);
    match method.as_str() {
        Some("common") => {}
        Some("ceil") => return Ok(Value::Float((number * power).ceil() / power)),
        Some("floor") => return Ok(Value::Float((number * power).floor() / power)),
        _ => return fail("method must be common, ceil or floor"),
    }
    if let Some(whole) = value.as_int() {
        if precision >= 0 {
            return Ok(Value::Int(whole));
        }
        let unit = u32::try_from(-precision).ok().and_then(|n| 10i128.checked_pow(n)).unwrap_or(i128::MAX);
        let rest = whole.rem_euclid(unit);
        let is_odd = whole.div_euclid(unit) % 2 != 0;
        let up = rest > unit - rest || (rest == unit - rest && is_odd);
        return Ok(Value::Int(whole - rest + if up { unit } else { 0 }));
    }
    if !number.is_finite() {
        return Ok(Value::Float(number));
    }
    Ok(Value::Float(if precision >= 0 {
        let digits = precision.min(400) as usize;
        format!("{number:.digits$}").parse().unwrap_or(number)
    } else {
        (number * power).round_ties_even() / power
    }))
}

/// One after the other, as sorted() compares: a problem is the first that came up.
pub fn sort_by_key(items: &mut Vec<(Value, Value)>, reverse: bool) -> Result<()> {
    use std::cmp::Ordering::Equal;
    let mut problem = None;
    items.sort_by(|(a, _), (b, _)| {
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        match order(a, b, "<") {
            _ if is_same(a, b) && a.as_slice().is_none() && a.as_number().is_some() => Equal,
            Ok(order) => order.unwrap_or(Equal),
            Err(error) => {
                problem.get_or_insert(error);
                Equal
            }
        }
    });
    problem.map_or(Ok(()), Err)
}
