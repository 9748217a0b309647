//! Filters on what can be gone through.

use std::rc::Rc;

use super::access;
use super::arguments::{flag, int_or, Bound};
use super::ast::Operator;
use super::filters::{self, sort_by_key};
use super::interpreter::Interpreter;
use super::operators::{binary, equal, order};
use super::tests;
use super::value::{fail, Error, Key, Result, Value};

pub fn apply(interpreter: &mut Interpreter, name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    match name {
        "list" => bound.take::<0>(name, [], 0).and(value.items()).map(Value::list),
        "first" => {
            bound.take::<0>(name, [], 0)?;
            let first = value.iterate()?.next().transpose()?;
            Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")))
        }
        "last" => {
            bound.take::<0>(name, [], 0)?;
            let last = value.reversed()?.into_iter().next();
            Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
        }
        "reverse" => {
            bound.take::<0>(name, [], 0)?;
            Ok(match value {
                Value::Str(text) => Value::str(text.chars().rev().collect::<String>()),
                Value::Generator(_) => Value::list(value.items()?.into_iter().rev().collect()),
                _ => Value::generator(value.reversed()?, None),
            })
        }
        "items" => {
            bound.take::<0>(name, [], 0)?;
            match value {
                Value::Undefined(_) => Ok(Value::generator(Vec::new(), None)),
                Value::Dict(_) => Ok(Value::generator(super::methods::call(value, "items", bound)?.items()?, None)),
                _ => lazily(fail("Can only get item pairs from a mapping."), |item: Value| Ok(Some(item))),
            }
        }
        "join" => join(value, bound),
        "sort" => sort(value, bound),
        "dictsort" => dict_sort(value, bound),
        "unique" => unique(value, bound),
        "min" | "max" => least_or_greatest(name, value, bound),
        "sum" => sum(value, bound),
        "groupby" => group_by(value, bound),
        "batch" | "slice" => parts(name, value, bound),
        "map" => map(interpreter, value, bound),
        "select" | "reject" | "selectattr" | "rejectattr" => select(name, value, bound),
        _ => fail(format!("No filter named '{name}'.")),
    }
}

/// What a generator over `items` would give: all up to the first error, then that.
fn lazily(items: Result<Vec<Value>>, mut change: impl FnMut(Value) -> Result<Option<Value>>) -> Result<Value> {
    let mut made = Vec::new();
    let run = || -> Result<()> {
        for item in items? {
            made.extend(change(item)?);
        }
        Ok(())
    };
    let error: Option<Error> = run().err();
    Ok(Value::generator(made, error))
}

/// A path such as "function.name" or 0, to follow from an item.
pub struct Path {
    steps: Vec<Value>,
    default: Option<Value>,
}

impl Path {
    pub fn new(attribute: Option<Value>, default: Option<Value>) -> Path {
        let step = |part: &str| match part.parse::<i128>() {
            Ok(index) if part.bytes().all(|b| b.is_ascii_digit()) => Value::Int(index),
            _ => Value::str(part),
        };
        let steps = match attribute {
            None | Some(Value::None) => Vec::new(),
            Some(Value::Str(text)) => text.split('.').map(step).collect(),
            Some(other) => vec![other],
        };
        Path { steps, default: default.filter(|default| !matches!(default, Value::None)) }
    }

    pub fn follow(&self, item: &Value) -> Result<Value> {
        let mut item = item.clone();
        for step in &self.steps {
            item = access::item(&item, step)?;
            if let (Value::Undefined(_), Some(default)) = (&item, &self.default) {
                item = default.clone();
            }
        }
        Ok(item)
    }
}

/// What is compared: without regard to case unless that was asked for.
fn folded(value: Value, case_sensitive: bool) -> Value {
    match &value {
        Value::Str(text) if !case_sensitive => Value::str(text.to_lowercase()),
        _ => value,
    }
}

fn join(value: &Value, bound: &Bound) -> Result<Value> {
    let [between, attribute] = bound.take("join", ["d", "attribute"], 0)?;
    let between = between.map_or(Ok(Rc::from("")), |between| between.to_text())?;
    let path = Path::new(attribute, None);
    let mut out = String::new();
    for (i, item) in value.iterate()?.enumerate() {
        out.push_str(if i > 0 { &between } else { "" });
        out.push_str(&path.follow(&item?)?.to_text()?);
    }
    Ok(Value::str(out))
}

fn sort(value: &Value, bound: &Bound) -> Result<Value> {
    let [reverse, case_sensitive, attribute] = bound.take("sort", ["reverse", "case_sensitive", "attribute"], 0)?;
    let paths: Vec<Path> = match &attribute {
        Some(Value::Str(names)) => names.split(',').map(|name| Path::new(Some(Value::str(name)), None)).collect(),
        _ => vec![Path::new(attribute, None)],
    };
    let mut keyed = Vec::new();
    for item in value.items()? {
        let keys = paths.iter().map(|path| Ok(folded(path.follow(&item)?, flag(&case_sensitive))));
        keyed.push((Value::list(keys.collect::<Result<_>>()?), item));
    }
    sort_by_key(&mut keyed, flag(&reverse))?;
    Ok(Value::list(keyed.into_iter().map(|(_, item)| item).collect()))
}

fn dict_sort(value: &Value, bound: &Bound) -> Result<Value> {
    let [case_sensitive, by, reverse] = bound.take("dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let position = match by.as_ref().map_or(Some("key"), Value::as_str) {
        Some("key") => 0,
        Some("value") => 1,
        _ => return fail("You can only sort by either \"key\" or \"value\""),
    };
    let Value::Dict(_) = value else {
        return fail(format!("dictsort: expected a dict, got {}", value.type_name()));
    };
    let pairs = super::methods::call(value, "items", &Bound::default())?.items()?;
    let key = |pair: &Value| {
        pair.as_slice().map_or(Value::None, |pair| folded(pair[position].clone(), flag(&case_sensitive)))
    };
    let mut keyed: Vec<(Value, Value)> = pairs.into_iter().map(|pair| (key(&pair), pair)).collect();
    sort_by_key(&mut keyed, flag(&reverse))?;
    Ok(Value::list(keyed.into_iter().map(|(_, pair)| pair).collect()))
}

fn unique(value: &Value, bound: &Bound) -> Result<Value> {
    let [case_sensitive, attribute] = bound.take("unique", ["case_sensitive", "attribute"], 0)?;
    let path = Path::new(attribute, None);
    let mut seen = std::collections::HashSet::new();
    lazily(value.items(), |item| {
        let key = Key::new(folded(path.follow(&item)?, flag(&case_sensitive)))?;
        Ok(seen.insert(key).then_some(item))
    })
}

fn least_or_greatest(name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    let [case_sensitive, attribute] = bound.take(name, ["case_sensitive", "attribute"], 0)?;
    let path = Path::new(attribute, None);
    let sign = if name == "min" { "<" } else { ">" };
    let wanted = if name == "min" { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
    let mut best: Option<(Value, Value)> = None;
    for item in value.items()? {
        let key = folded(path.follow(&item)?, flag(&case_sensitive));
        let is_better = match &best {
            Some((known, _)) => order(&key, known, sign)? == Some(wanted),
            None => true,
        };
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(_, item)| item))
}

fn sum(value: &Value, bound: &Bound) -> Result<Value> {
    let [attribute, start] = bound.take("sum", ["attribute", "start"], 0)?;
    let path = Path::new(attribute, None);
    let mut total = start.unwrap_or(Value::Int(0));
    if total.as_str().is_some() {
        return fail("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for item in value.iterate()? {
        total = binary(Operator::Add, &total, &path.follow(&item?)?)?;
    }
    Ok(total)
}

fn group_by(value: &Value, bound: &Bound) -> Result<Value> {
    let [attribute, default, case_sensitive] = bound.take("groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let path = Path::new(attribute, default);
    let mut keyed = Vec::new();
    for item in value.items()? {
        keyed.push((folded(path.follow(&item)?, flag(&case_sensitive)), item));
    }
    sort_by_key(&mut keyed, false)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in keyed {
        match groups.last_mut() {
            Some((known, items)) if equal(known, &key) => items.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let grouped = groups
        .into_iter()
        .map(|(_, items)| Ok(Value::Group(Rc::new(vec![path.follow(&items[0])?, Value::list(items)]))));
    grouped.collect::<Result<_>>().map(Value::list)
}

fn parts(name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    let [count, fill] = bound.take(name, [if name == "batch" { "linecount" } else { "slices" }, "fill_with"], 1)?;
    let items = match value.items() {
        Ok(items) => items,
        Err(error) => return Ok(Value::generator(Vec::new(), Some(error))),
    };
    let count = int_or(&count, 0)?;
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let mut made: Vec<Value> = Vec::new();
    if name == "batch" {
        if count == 0 && !items.is_empty() {
            made.push(Value::list(Vec::new())); // as a first part that is full at once
        }
        let size = if count < 1 { items.len().max(1) } else { count as usize };
        for chunk in items.chunks(size) {
            let mut chunk = chunk.to_vec();
            if let (Some(fill), true) = (&fill, chunk.len() < size && count > 0) {
                chunk.resize(super::arguments::width(count)?, fill.clone());
            }
            made.push(Value::list(chunk));
        }
        return Ok(Value::generator(made, None));
    }
    let slices = super::arguments::width(count)?;
    if slices == 0 {
        return lazily(fail("integer division or modulo by zero"), |item| Ok(Some(item)));
    }
    let (each, extra) = (items.len() / slices, items.len() % slices);
    let mut rest = items.into_iter();
    for slice in 0..slices {
        let mut chunk: Vec<Value> = rest.by_ref().take(each + usize::from(slice < extra)).collect();
        if let (Some(fill), true) = (&fill, slice >= extra) {
            chunk.push(fill.clone());
        }
        made.push(Value::list(chunk));
    }
    Ok(Value::generator(made, None))
}

fn map(interpreter: &mut Interpreter, value: &Value, bound: &Bound) -> Result<Value> {
    if !value.truth() {
        return Ok(Value::generator(Vec::new(), None));
    }
    if bound.positional.is_empty() && bound.named.iter().any(|(name, _)| &**name == "attribute") {
        let taken = bound.take("map", ["attribute", "default"], 0);
        return lazily(value.items(), |item| {
            let [attribute, default] = taken.clone()?;
            Path::new(attribute, default).follow(&item).map(Some)
        });
    }
    let Some(name) = bound.positional.first() else {
        return lazily(fail("map requires a filter argument"), |item| Ok(Some(item)));
    };
    let rest = Bound { positional: bound.positional[1..].to_vec(), named: bound.named.clone() };
    let name = name.to_text()?;
    lazily(value.items(), |item| filters::apply(interpreter, &name, &item, &rest).map(Some))
}

fn select(name: &str, value: &Value, bound: &Bound) -> Result<Value> {
    if !value.truth() {
        return Ok(Value::generator(Vec::new(), None));
    }
    let by_attribute = name.ends_with("attr");
    let mut arguments = bound.positional.iter();
    let path = Path::new(if by_attribute { arguments.next().cloned() } else { None }, None);
    if by_attribute && bound.positional.is_empty() {
        return lazily(fail("Missing parameter for attribute name"), |item| Ok(Some(item)));
    }
    let test = arguments.next().map(|test| test.to_text()).transpose()?;
    let rest = Bound { positional: arguments.cloned().collect(), named: bound.named.clone() };
    let wanted = name.starts_with("select");
    lazily(value.items(), |item| {
        let tested = path.follow(&item)?;
        let holds = match &test {
            Some(test) => tests::holds(test, &tested, &rest)?,
            None => tested.truth(),
        };
        Ok((holds == wanted).then_some(item))
    })
}
