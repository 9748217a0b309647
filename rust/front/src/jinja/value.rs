//! What a template computes with: Python's values as far as a template can meet them. Lists and dicts never change once
//! made (transformers' sandbox forbids it), so sharing one is as good as copying it.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::{Equivalent, IndexMap};

use super::ast::{For, Macro};
use super::iterate::Generator;
use super::scope::Scope;

#[derive(Debug, Clone)]
pub enum Error {
    Raised(String), // the template's own words: raise_exception
    Failed(String),
}

pub type Result<T> = std::result::Result<T, Error>;

pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Failed(message.into()))
}

#[derive(Clone)]
pub enum Value {
    Undefined(Rc<str>), // what its use says
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
    Markup(Rc<str>), // text that counts as escaped
    List(Rc<Vec<Value>>),
    Tuple(Rc<Vec<Value>>),
    Group(Rc<Vec<Value>>), // of groupby: a tuple (grouper, list)
    Dict(Rc<Dict>),
    View(Rc<View>),
    Range(Range),
    Generator(Rc<RefCell<Generator>>),
    Namespace(Rc<RefCell<Dict>>),
    Callable(Rc<Callable>),
    Loop(Rc<Loop>),
    Cycler(Rc<Cycler>),
    Joiner(Rc<Joiner>),
}

pub type Dict = IndexMap<Key, Value>;

/// dict.keys(), dict.values(), dict.items().
pub struct View {
    pub kind: &'static str,
    pub items: Vec<Value>,
}

#[derive(Clone, Copy)]
pub struct Range {
    pub start: i128,
    pub stop: i128,
    pub step: i128,
}

impl Range {
    pub fn len(&self) -> usize {
        let span = if self.step > 0 { self.stop - self.start } else { self.start - self.stop };
        let step = self.step.abs();
        (span.max(0) as usize).div_ceil(step as usize)
    }

    pub fn at(&self, index: usize) -> Value {
        Value::Int(self.start + self.step * index as i128)
    }
}

pub enum Callable {
    Global(&'static str),
    Method(Value, Rc<str>),
    Macro(Rc<Macro>, Rc<Scope>),
}

pub struct Cycler {
    pub items: Vec<Value>,
    pub position: Cell<usize>,
}

pub struct Joiner {
    pub separator: Value,
    pub used: Cell<bool>,
}

/// The variable `loop` of a running loop.
pub struct Loop {
    pub node: Rc<For>,
    pub outer: Rc<Scope>,
    pub depth0: usize,
    pub state: RefCell<LoopState>,
}

pub struct LoopState {
    pub source: super::iterate::Source,
    pub test_scope: Rc<Scope>,
    pub index0: i128,
    pub length: Option<i128>,
    pub before: Option<Value>,
    pub current: Option<Value>,
    pub after: Option<Option<Value>>, // what was looked up ahead: Some(None) is the end
    pub changed: Option<Vec<Value>>,
}

impl Value {
    pub fn str(text: impl AsRef<str>) -> Value {
        Value::Str(Rc::from(text.as_ref()))
    }
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(items))
    }
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(Rc::new(items))
    }
    pub fn dict(items: Dict) -> Value {
        Value::Dict(Rc::new(items))
    }
    pub fn undefined(message: impl AsRef<str>) -> Value {
        Value::Undefined(Rc::from(message.as_ref()))
    }
    pub fn method(self, name: &str) -> Value {
        Value::Callable(Rc::new(Callable::Method(self, Rc::from(name))))
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) | Value::Markup(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => Some(items),
            _ => None,
        }
    }

    /// An int, where a bool counts as one.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    pub fn truth(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) | Value::Markup(text) => !text.is_empty(),
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => !items.is_empty(),
            Value::Dict(items) => !items.is_empty(),
            Value::View(view) => !view.items.is_empty(),
            Value::Range(range) => range.len() > 0,
            _ => true,
        }
    }

    /// Python's name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Markup(_) => "Markup",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Group(_) => "_GroupTuple",
            Value::Dict(_) => "dict",
            Value::View(view) => view.kind,
            Value::Range(_) => "range",
            Value::Generator(_) => "generator",
            Value::Namespace(_) => "Namespace",
            Value::Callable(_) => "function",
            Value::Loop(_) => "LoopContext",
            Value::Cycler(_) => "Cycler",
            Value::Joiner(_) => "Joiner",
        }
    }

    /// Jinja's words for "no such thing in this value".
    pub fn lacks(&self, name: &Value) -> Value {
        let kind = if let Value::None = self { "None".to_string() } else { format!("{} object", self.type_name()) };
        match name.as_str() {
            Some(name) => Value::undefined(format!("'{kind}' has no attribute '{name}'")),
            None => Value::undefined(format!("{kind} has no such element")),
        }
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(i128::from(value)),
                (_, Some(value)) => Value::Int(i128::from(value)),
                _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::str(text),
            Json::Array(items) => Value::list(items.iter().map(Value::from).collect()),
            Json::Object(items) => Value::dict(items.iter().map(|(k, v)| (Key::str(k), Value::from(v))).collect()),
        }
    }
}

/// A value that can be a dict's key: equal keys hash alike, 1 and 1.0 and True too.
#[derive(Clone)]
pub struct Key(Value);

impl Key {
    pub fn new(value: Value) -> Result<Key> {
        match &value {
            Value::List(_) | Value::Dict(_) | Value::View(_) => {
                fail(format!("unhashable type: '{}'", value.type_name()))
            }
            Value::Tuple(items) | Value::Group(items) => {
                items.iter().try_for_each(|item| Key::new(item.clone()).map(|_| ()))?;
                Ok(Key(value))
            }
            _ => Ok(Key(value)),
        }
    }

    pub fn str(text: &str) -> Key {
        Key(Value::str(text))
    }

    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Value::Str(text) | Value::Markup(text) => text.hash(state),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                (self.0.as_number().unwrap_or(0.0) + 0.0).to_bits().hash(state)
            }
            Value::Tuple(items) | Value::Group(items) => items.iter().for_each(|item| Key(item.clone()).hash(state)),
            other => other.type_name().hash(state),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        super::operators::equal(&self.0, &other.0)
    }
}

impl Eq for Key {}

impl Equivalent<Key> for str {
    fn equivalent(&self, key: &Key) -> bool {
        key.0.as_str() == Some(self)
    }
}
