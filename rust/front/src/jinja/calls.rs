//! Calls: macros, methods, the functions that every template knows.

use std::rc::Rc;

use super::arguments::Bound;
use super::ast::Macro;
use super::check_stack;
use super::globals;
use super::interpreter::Interpreter;
use super::methods;
use super::scope::Scope;
use super::value::{fail, Callable, Dict, Key, Result, Value};

impl Interpreter {
    pub(super) fn call(&mut self, callee: &Value, bound: Bound) -> Result<Value> {
        check_stack()?;
        match callee {
            Value::Undefined(message) => fail(&**message),
            Value::Loop(this) => self.recurse(this, &bound),
            Value::Joiner(joiner) => {
                bound.take_positional::<0>("joiner", 0)?;
                Ok(if joiner.used.replace(true) { joiner.separator.clone() } else { Value::str("") })
            }
            Value::Callable(callable) => match &**callable {
                Callable::Global(name) => globals::call(name, &bound, self.local_seconds),
                Callable::Macro(node, scope) => self.call_macro(node, scope, bound),
                Callable::Method(Value::Loop(this), name) => self.loop_method(this, name, &bound),
                Callable::Method(value, name) => methods::call(value, name, &bound),
            },
            _ => fail(format!("'{}' object is not callable", callee.type_name())),
        }
    }

    fn call_macro(&mut self, node: &Macro, outer: &Rc<Scope>, bound: Bound) -> Result<Value> {
        let scope = Scope::inside(outer);
        let Bound { mut positional, mut named } = bound;
        let extra = positional.split_off(positional.len().min(node.parameters.len()));
        let mut take_named = |name: &str| {
            let at = named.iter().position(|(known, _)| &**known == name)?;
            Some(named.remove(at).1)
        };
        let first_default = node.parameters.len() - node.defaults.len();
        let mut given = positional.into_iter();
        for (i, parameter) in node.parameters.iter().enumerate() {
            let value = match given.next().or_else(|| take_named(parameter)) {
                Some(value) => value,
                None if i >= first_default => self.eval(&node.defaults[i - first_default], &scope)?,
                None => Value::undefined(format!("parameter '{parameter}' was not provided")),
            };
            scope.set(parameter, value);
        }
        let has_parameter = |name: &str| node.parameters.iter().any(|parameter| &**parameter == name);
        if node.uses.caller && !has_parameter("caller") {
            let caller = take_named("caller").unwrap_or_else(|| Value::undefined("No caller defined"));
            scope.set(&Rc::from("caller"), caller);
        }
        if node.uses.kwargs && !has_parameter("kwargs") {
            let rest: Dict = named.drain(..).map(|(name, value)| (Key::str(&name), value)).collect();
            scope.set(&Rc::from("kwargs"), Value::dict(rest));
        }
        if let Some((name, _)) = named.first() {
            return fail(format!("macro '{}' takes no keyword argument '{name}'", node.name));
        }
        if node.uses.varargs && !has_parameter("varargs") {
            scope.set(&Rc::from("varargs"), Value::tuple(extra));
        } else if !extra.is_empty() {
            return fail(format!("macro '{}' takes not more than {} argument(s)", node.name, node.parameters.len()));
        }
        self.captured(&node.body, &scope).map(|(text, _)| text)
    }
}
