//! Python's operators on values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::ast::Operator;
use super::percent;
use super::text::escape;
use super::value::{fail, Result, Value};

/// More bytes or items than a worker has memory for.
const MAX_REPEATED: usize = 1 << 29;

/// ==, which never fails.
pub fn equal(left: &Value, right: &Value) -> bool {
    use Value::*;
    match (left, right) {
        (Undefined(_), Undefined(_)) | (None, None) => true,
        (Int(a), Int(b)) => a == b,
        (Bool(_) | Int(_) | Float(_), Bool(_) | Int(_) | Float(_)) => match (left.as_int(), right.as_int()) {
            (Some(a), Some(b)) => a == b,
            _ => left.as_number() == right.as_number(),
        },
        (Str(a) | Markup(a), Str(b) | Markup(b)) => a == b,
        (List(a), List(b)) | (Tuple(a) | Group(a), Tuple(b) | Group(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Dict(a), Dict(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (View(a), View(b)) if a.kind == b.kind && a.kind != "dict_values" => {
            a.items.len() == b.items.len() && a.items.iter().all(|item| b.items.iter().any(|other| equal(item, other)))
        }
        (Range(a), Range(b)) => {
            a.len() == b.len() && (a.len() == 0 || a.start == b.start) && (a.len() < 2 || a.step == b.step)
        }
        _ => is_same(left, right),
    }
}

/// Whether both are one object, as far as a template can tell.
pub fn is_same(left: &Value, right: &Value) -> bool {
    use Value::*;
    match (left, right) {
        (None, None) => true,
        (Bool(a), Bool(b)) => a == b,
        (Int(a), Int(b)) => a == b && (-5..=256).contains(a),
        (List(a), List(b)) | (Tuple(a), Tuple(b)) => Rc::ptr_eq(a, b),
        (Str(a), Str(b)) => Rc::ptr_eq(a, b),
        (Dict(a), Dict(b)) => Rc::ptr_eq(a, b),
        (Namespace(a), Namespace(b)) => Rc::ptr_eq(a, b),
        (Generator(a), Generator(b)) => Rc::ptr_eq(a, b),
        (Callable(a), Callable(b)) => Rc::ptr_eq(a, b),
        (Cycler(a), Cycler(b)) => Rc::ptr_eq(a, b),
        (Joiner(a), Joiner(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

/// Which comes first; None: neither (NaN). Values of different kinds have no order.
pub fn order(left: &Value, right: &Value, sign: &str) -> Result<Option<Ordering>> {
    if let Value::Undefined(message) = left {
        return fail(&**message);
    }
    if let Value::Undefined(message) = right {
        return fail(&**message);
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return Ok(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (left.as_number(), right.as_number()) {
        return Ok(a.partial_cmp(&b));
    }
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return Ok(Some(a.cmp(b)));
    }
    let are_lists = matches!((left, right), (Value::List(_), Value::List(_)));
    let are_tuples = matches!((left, right), (Value::Tuple(_) | Value::Group(_), Value::Tuple(_) | Value::Group(_)));
    if let (true, Some(a), Some(b)) = (are_lists || are_tuples, left.as_slice(), right.as_slice()) {
        return match a.iter().zip(b).find(|(a, b)| !equal(a, b)) {
            Some((a, b)) => order(a, b, sign),
            None => Ok(Some(a.len().cmp(&b.len()))),
        };
    }
    let (left, right) = (left.type_name(), right.type_name());
    fail(format!("'{sign}' not supported between instances of '{left}' and '{right}'"))
}

/// `item in container`
pub fn contains(container: &Value, item: &Value) -> Result<bool> {
    match container {
        Value::Str(text) | Value::Markup(text) => match item.as_str() {
            Some(part) => Ok(text.contains(part)),
            None => fail(format!("'in <string>' requires string as left operand, not {}", item.type_name())),
        },
        Value::Dict(items) => Ok(items.contains_key(&super::value::Key::new(item.clone())?)),
        Value::Undefined(_) => Ok(false),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            fail(format!("argument of type '{}' is not iterable", container.type_name()))
        }
        _ => {
            for candidate in container.iterate()? {
                if equal(&candidate?, item) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

fn sign_of(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Modulo => "%",
        Operator::Power => "** or pow()",
    }
}

pub fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    if let (Operator::Modulo, Some(format)) = (operator, left.as_str()) {
        if let Value::Markup(_) = left {
            return fail("% on escaped text is not supported");
        }
        return Ok(Value::str(percent::format(format, right)?));
    }
    for side in [left, right] {
        if let Value::Undefined(message) = side {
            return fail(&**message);
        }
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return integers(operator, a, b);
    }
    if let (Some(a), Some(b)) = (left.as_number(), right.as_number()) {
        return floats(operator, a, b);
    }
    let sequence = match operator {
        Operator::Add => concatenated(left, right),
        Operator::Multiply => match (left.as_int(), right.as_int()) {
            (None, Some(times)) => repeated(left, times)?,
            (Some(times), None) => repeated(right, times)?,
            _ => None,
        },
        _ => None,
    };
    if let Some(value) = sequence {
        return Ok(value);
    }
    let (a, b) = (left.type_name(), right.type_name());
    if let (Operator::Add, Value::Str(_) | Value::List(_) | Value::Tuple(_)) = (operator, left) {
        return fail(format!("can only concatenate {a} (not \"{b}\") to {a}"));
    }
    fail(format!("unsupported operand type(s) for {}: '{a}' and '{b}'", sign_of(operator)))
}

fn concatenated(left: &Value, right: &Value) -> Option<Value> {
    use Value::*;
    let joined = |a: &[Value], b: &[Value]| a.iter().chain(b).cloned().collect::<Vec<_>>();
    Some(match (left, right) {
        (Str(a), Str(b)) => Value::str([&**a, b].concat()),
        (Markup(a), Markup(b)) => Markup(Rc::from([&**a, b].concat())),
        (Markup(a), Str(b)) => Markup(Rc::from([&**a, &escape(b)].concat())),
        (Str(a), Markup(b)) => Markup(Rc::from([&escape(a), &**b].concat())),
        (List(a), List(b)) => Value::list(joined(a, b)),
        (Tuple(a) | Group(a), Tuple(b) | Group(b)) => Value::tuple(joined(a, b)),
        _ => return Option::None,
    })
}

fn repeated(value: &Value, times: i128) -> Result<Option<Value>> {
    let times = usize::try_from(times.max(0)).or_else(|_| fail("cannot fit 'int' into an index-sized integer"))?;
    let size = value.as_str().map_or_else(|| value.as_slice().map_or(0, <[Value]>::len), str::len);
    if size.saturating_mul(times) > MAX_REPEATED {
        return fail(format!("a repetition of {size} items {times} times is too long"));
    }
    let many = |items: &[Value]| (0..times).flat_map(|_| items.iter().cloned()).collect();
    Ok(match value {
        Value::Str(text) => Some(Value::str(text.repeat(times))),
        Value::Markup(text) => Some(Value::Markup(Rc::from(text.repeat(times)))),
        Value::List(items) => Some(Value::list(many(items))),
        Value::Tuple(items) => Some(Value::tuple(many(items))),
        _ => None,
    })
}

fn integers(operator: Operator, a: i128, b: i128) -> Result<Value> {
    if b == 0 && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo) {
        return fail(if operator == Operator::Divide {
            "division by zero"
        } else {
            "integer division or modulo by zero"
        });
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDivide => a.checked_div_euclid(b).map(|q| if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q }),
        Operator::Modulo => a.checked_rem_euclid(b).map(|r| if b < 0 && r != 0 { r + b } else { r }),
        Operator::Power if b < 0 => return floats(operator, a as f64, b as f64),
        Operator::Power => match (a, u32::try_from(b)) {
            (0 | 1, _) if b > 0 => Some(a),
            (_, Ok(b)) => a.checked_pow(b),
            _ => None,
        },
    };
    result.map_or_else(|| fail("an integer of more than 127 bits"), |value| Ok(Value::Int(value)))
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Value> {
    if b == 0.0 && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo) {
        return fail("float division by zero");
    }
    let modulo = || {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
            rest + b
        } else if rest == 0.0 {
            0f64.copysign(b)
        } else {
            rest
        }
    };
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Modulo => modulo(),
        Operator::FloorDivide => {
            let quotient = (a - modulo()) / b;
            let floor = quotient.floor();
            if quotient == 0.0 {
                0f64.copysign(a / b)
            } else if quotient - floor > 0.5 {
                floor + 1.0
            } else {
                floor
            }
        }
        Operator::Power if a == 0.0 && b < 0.0 => return fail("0.0 cannot be raised to a negative power"),
        Operator::Power if a < 0.0 && b.fract() != 0.0 => return fail("a complex number"),
        Operator::Power => {
            let power = a.powf(b);
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return fail("Numerical result out of range");
            }
            power
        }
    }))
}

pub fn negative(value: &Value) -> Result<Value> {
    match value {
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Undefined(message) => fail(&**message),
        _ => match value.as_int() {
            Some(number) => {
                number.checked_neg().map_or_else(|| fail("an integer of more than 127 bits"), |n| Ok(Value::Int(n)))
            }
            None => fail(format!("bad operand type for unary -: '{}'", value.type_name())),
        },
    }
}

pub fn positive(value: &Value) -> Result<Value> {
    match value {
        Value::Float(number) => Ok(Value::Float(*number)),
        Value::Undefined(message) => fail(&**message),
        _ => match value.as_int() {
            Some(number) => Ok(Value::Int(number)),
            None => fail(format!("bad operand type for unary +: '{}'", value.type_name())),
        },
    }
}
