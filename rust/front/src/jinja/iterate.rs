//! Python's iteration: what `for` and the filters go through.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::value::{fail, Error, Range, Result, Value, View};

/// What a lazy filter (map, select, ...) made: it can be gone through once. An error comes where it would have come.
pub struct Generator {
    items: VecDeque<Value>,
    error: Option<Error>,
}

impl Value {
    pub fn generator(items: Vec<Value>, error: Option<Error>) -> Value {
        Value::Generator(Rc::new(RefCell::new(Generator { items: items.into(), error })))
    }
}

pub enum Source {
    Items(Rc<Vec<Value>>, usize),
    View(Rc<View>, usize),
    Letters(Rc<str>, usize),
    Range(Range, usize),
    Generator(Rc<RefCell<Generator>>),
}

impl Iterator for Source {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        match self {
            Source::Items(items, position) => {
                *position += 1;
                items.get(*position - 1).cloned().map(Ok)
            }
            Source::View(view, position) => {
                *position += 1;
                view.items.get(*position - 1).cloned().map(Ok)
            }
            Source::Letters(text, position) => {
                let letter = text[*position..].chars().next()?;
                *position += letter.len_utf8();
                Some(Ok(Value::str(letter.encode_utf8(&mut [0; 4]))))
            }
            Source::Range(range, position) => {
                *position += 1;
                (*position <= range.len()).then(|| Ok(range.at(*position - 1)))
            }
            Source::Generator(generator) => {
                let mut generator = generator.borrow_mut();
                match generator.items.pop_front() {
                    Some(item) => Some(Ok(item)),
                    None => generator.error.take().map(Err),
                }
            }
        }
    }
}

impl Value {
    pub fn iterate(&self) -> Result<Source> {
        Ok(match self {
            Value::Undefined(_) => Source::Items(Rc::default(), 0),
            Value::Str(text) | Value::Markup(text) => Source::Letters(text.clone(), 0),
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => Source::Items(items.clone(), 0),
            Value::Dict(items) => Source::Items(Rc::new(items.keys().map(|key| key.value().clone()).collect()), 0),
            Value::View(view) => Source::View(view.clone(), 0),
            Value::Range(range) => Source::Range(*range, 0),
            Value::Generator(generator) => Source::Generator(generator.clone()),
            _ => return fail(format!("'{}' object is not iterable", self.type_name())),
        })
    }

    pub fn items(&self) -> Result<Vec<Value>> {
        match self.as_slice() {
            Some(items) => Ok(items.to_vec()),
            None => self.iterate()?.collect(),
        }
    }

    /// len(): a generator has none.
    pub fn length(&self) -> Result<usize> {
        Ok(match self {
            Value::Undefined(_) => 0,
            Value::Str(text) | Value::Markup(text) => text.chars().count(),
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => items.len(),
            Value::Dict(items) => items.len(),
            Value::View(view) => view.items.len(),
            Value::Range(range) => range.len(),
            _ => return fail(format!("object of type '{}' has no len()", self.type_name())),
        })
    }

    /// reversed()
    pub fn reversed(&self) -> Result<Vec<Value>> {
        if let Value::Generator(_) = self {
            return fail("'generator' object is not reversible");
        }
        let mut items = self.items()?;
        items.reverse();
        Ok(items)
    }
}
