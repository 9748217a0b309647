//! The tests by name: `value is ...`.

use super::arguments::Bound;
use super::ast::{Comparison, Operator};
use super::filters;
use super::interpreter::compare;
use super::operators::{binary, contains, equal, is_same};
use super::text_methods::is_lower;
use super::value::{fail, Result, Value};

const NAMES: [&str; 39] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

pub fn holds(name: &str, value: &Value, bound: &Bound) -> Result<bool> {
    let comparison = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Equal),
        "!=" | "ne" => Some(Comparison::NotEqual),
        "<" | "lt" | "lessthan" => Some(Comparison::Less),
        "<=" | "le" => Some(Comparison::LessEqual),
        ">" | "gt" | "greaterthan" => Some(Comparison::Greater),
        ">=" | "ge" => Some(Comparison::GreaterEqual),
        _ => None,
    };
    if let Some(comparison) = comparison {
        let [other] = one(name, bound, "")?;
        return compare(comparison, value, &other);
    }
    match name {
        "divisibleby" => {
            let [by] = one(name, bound, "num")?;
            remainder_is(value, &by, 0)
        }
        "in" => {
            let [container] = one(name, bound, "seq")?;
            contains(&container, value)
        }
        "sameas" => {
            let [other] = one(name, bound, "other")?;
            Ok(is_same(value, &other))
        }
        _ if !NAMES.contains(&name) => fail(format!("No test named '{name}'.")),
        _ => {
            bound.take::<0>(name, [], 0)?;
            plain(name, value)
        }
    }
}

fn one(name: &str, bound: &Bound, parameter: &str) -> Result<[Value; 1]> {
    let [value] = bound.take(name, [parameter], 1)?;
    Ok([value.unwrap_or(Value::None)])
}

fn remainder_is(value: &Value, by: &Value, wanted: i128) -> Result<bool> {
    Ok(equal(&binary(Operator::Modulo, value, by)?, &Value::Int(wanted)))
}

fn plain(name: &str, value: &Value) -> Result<bool> {
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_)),
        "string" => value.as_str().is_some(),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => match value {
            // A view has a length and no subscript; Undefined has both.
            Value::View(_) => false,
            _ => value.length().is_ok(),
        },
        "iterable" => matches!(value, Value::Loop(_)) || value.iterate().is_ok(),
        "callable" => matches!(value, Value::Callable(_) | Value::Loop(_) | Value::Joiner(_) | Value::Undefined(_)),
        "escaped" => matches!(value, Value::Markup(_)),
        "even" => remainder_is(value, &Value::Int(2), 0)?,
        "odd" => remainder_is(value, &Value::Int(2), 1)?,
        "lower" => is_lower(&value.to_text()?),
        "upper" => {
            let text = value.to_text()?;
            text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
        }
        "filter" => value.as_str().is_some_and(|name| filters::NAMES.contains(&name)),
        _ => value.as_str().is_some_and(|name| NAMES.contains(&name)),
    })
}
