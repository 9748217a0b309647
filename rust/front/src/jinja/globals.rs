//! The functions that every template knows.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::arguments::{int, Bound};
use super::methods::{from_keys, make_dict};
use super::strftime::strftime;
use super::value::{fail, Callable, Cycler, Error, Joiner, Range, Result, Value};

const NAMES: [&str; 8] =
    ["range", "dict", "namespace", "cycler", "joiner", "lipsum", "raise_exception", "strftime_now"];
const MAX_RANGE: usize = 100_000; // of Jinja2's sandbox

pub fn get(name: &str) -> Option<Value> {
    let name = NAMES.iter().find(|known| **known == name)?;
    Some(Value::Callable(Rc::new(Callable::Global(name))))
}

pub fn call(name: &str, bound: &Bound, local_seconds: i64) -> Result<Value> {
    match name {
        "range" => range(bound),
        "dict" => make_dict(bound).map(Value::dict),
        "fromkeys" => from_keys(bound),
        "namespace" => {
            let items = make_dict(bound)?;
            items.keys().filter_map(|key| key.value().as_str()).try_for_each(check_namespace_name)?;
            Ok(Value::Namespace(Rc::new(RefCell::new(items))))
        }
        "cycler" => match bound {
            Bound { positional, named } if named.is_empty() && !positional.is_empty() => {
                Ok(Value::Cycler(Rc::new(Cycler { items: positional.clone(), position: Cell::new(0) })))
            }
            _ => fail("at least one item has to be provided"),
        },
        "joiner" => {
            let [separator] = bound.take("joiner", ["sep"], 0)?;
            let separator = separator.unwrap_or_else(|| Value::str(", "));
            Ok(Value::Joiner(Rc::new(Joiner { separator, used: Cell::new(false) })))
        }
        "raise_exception" => {
            let [message] = bound.take("raise_exception", ["message"], 1)?;
            Err(Error::Raised(message.unwrap_or(Value::None).to_text()?.to_string()))
        }
        "strftime_now" => {
            let [format] = bound.take("strftime_now", ["format"], 1)?;
            match format {
                Some(Value::Str(format)) => strftime(&format, local_seconds).map(Value::str),
                _ => fail("strftime_now: expected a format"),
            }
        }
        _ => fail(format!("the function {name}() gives another answer each time and is not supported")),
    }
}

fn range(bound: &Bound) -> Result<Value> {
    let [first, second, step] = bound.take_positional("range", 1)?;
    let first = int(&first.unwrap_or(Value::None))?;
    let (start, stop) = match &second {
        Some(stop) => (first, int(stop)?),
        None => (0, first),
    };
    let step = step.map_or(Ok(1), |step| int(&step))?;
    if step == 0 {
        return fail("range() arg 3 must not be zero");
    }
    let small = |value: i128| value.unsigned_abs() < 1 << 64;
    if !(small(start) && small(stop) && small(step)) || (Range { start, stop, step }).len() > MAX_RANGE {
        return fail(format!("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."));
    }
    Ok(Value::Range(Range { start, stop, step }))
}

pub fn check_namespace_name(name: &str) -> Result<()> {
    if name.starts_with('_') {
        return fail(format!(
            "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{name}'."
        ));
    }
    Ok(())
}
