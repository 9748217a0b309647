//! What a call passes, and how it meets a function's parameters.

use std::rc::Rc;

use super::value::{fail, Result, Value};

#[derive(Default, Clone)]
pub struct Bound {
    pub positional: Vec<Value>,
    pub named: Vec<(Rc<str>, Value)>,
}

impl Bound {
    pub fn of(positional: Vec<Value>) -> Bound {
        Bound { positional, named: Vec::new() }
    }

    /// The arguments in the order of the parameters; the first `least` have to be there.
    pub fn take<const N: usize>(&self, function: &str, names: [&str; N], least: usize) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return fail(format!("{function}() takes at most {N} arguments ({} given)", self.positional.len()));
        }
        let mut taken = [const { None }; N];
        for (slot, value) in taken.iter_mut().zip(&self.positional) {
            *slot = Some(value.clone());
        }
        for (name, value) in &self.named {
            match names.iter().position(|known| *known == &**name) {
                Some(at) if taken[at].is_none() => taken[at] = Some(value.clone()),
                Some(_) => return fail(format!("{function}() got multiple values for argument '{name}'")),
                None => return fail(format!("{function}() got an unexpected keyword argument '{name}'")),
            }
        }
        match taken.iter().take(least).position(Option::is_none) {
            Some(at) => fail(format!("{function}() missing required argument: '{}'", names[at])),
            None => Ok(taken),
        }
    }

    /// As take(), for a function without names for its parameters.
    pub fn take_positional<const N: usize>(&self, function: &str, least: usize) -> Result<[Option<Value>; N]> {
        match self.named.first() {
            Some(_) => fail(format!("{function}() takes no keyword arguments")),
            None if self.positional.len() < least => {
                fail(format!("{function}() takes at least {least} arguments ({} given)", self.positional.len()))
            }
            None => self.take(function, [""; N], 0),
        }
    }
}

/// An argument that is an int; where it is missing, `default`.
pub fn int_or(value: &Option<Value>, default: i128) -> Result<i128> {
    value.as_ref().map_or(Ok(default), int)
}

/// As int_or(), for an argument that may be None.
pub fn int_or_none(value: &Option<Value>, default: i128) -> Result<i128> {
    match value {
        Some(Value::None) => Ok(default),
        value => int_or(value, default),
    }
}

pub fn int(value: &Value) -> Result<i128> {
    match (value, value.as_int()) {
        (_, Some(number)) => Ok(number),
        (Value::Undefined(message), _) => fail(&**message),
        _ => fail(format!("'{}' object cannot be interpreted as an integer", value.type_name())),
    }
}

pub fn text(value: &Value) -> Result<&str> {
    value.as_str().map_or_else(|| fail(format!("expected str, got {}", value.type_name())), Ok)
}

pub fn flag(value: &Option<Value>) -> bool {
    value.as_ref().is_some_and(Value::truth)
}

/// A width that is laid out with spaces: a million are too many.
pub fn width(value: i128) -> Result<usize> {
    match usize::try_from(value.max(0)) {
        Ok(width) if width <= 1 << 20 => Ok(width),
        _ => fail(format!("expected a width of at most 1048576, got {value}")),
    }
}
