//! Walks the template: statements write text, expressions give values.

use std::rc::Rc;

use super::access;
use super::arguments::Bound;
use super::ast::{Arguments, Body, Comparison, Expr, Operator, Stmt, Target};
use super::check_stack;
use super::filters;
use super::globals;
use super::operators::{binary, contains, equal, negative, order, positive};
use super::scope::Scope;
use super::tests;
use super::value::{fail, Callable, Dict, Key, Result, Value};

pub struct Interpreter {
    pub local_seconds: i64,
    pub(super) out: String,
    filter_inputs: Vec<Value>, // of the filter blocks around this place
}

/// How a body ended.
#[derive(Clone, Copy, PartialEq)]
pub enum Flow {
    Next,
    Break,
    Continue,
}

pub fn run(body: &Body, variables: Vec<(String, Value)>, local_seconds: i64) -> Result<String> {
    let passed = Rc::new(Scope::default());
    for (name, value) in variables {
        passed.set(&Rc::from(name), value);
    }
    let mut interpreter = Interpreter { local_seconds, out: String::new(), filter_inputs: Vec::new() };
    interpreter.body(body, &Scope::inside(&passed))?;
    Ok(interpreter.out)
}

impl Interpreter {
    pub(super) fn body(&mut self, body: &Body, scope: &Rc<Scope>) -> Result<Flow> {
        check_stack()?;
        for statement in body {
            let flow = self.statement(statement, scope)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// What a body writes, as text.
    pub(super) fn captured(&mut self, body: &Body, scope: &Rc<Scope>) -> Result<(Value, Flow)> {
        let before = std::mem::take(&mut self.out);
        let flow = self.body(body, scope);
        let text = std::mem::replace(&mut self.out, before);
        Ok((Value::str(text), flow?))
    }

    fn filtered(&mut self, filter: &Expr, text: Value, scope: &Rc<Scope>) -> Result<Value> {
        self.filter_inputs.push(text);
        let value = self.eval(filter, scope);
        self.filter_inputs.pop();
        value
    }

    fn statement(&mut self, statement: &Stmt, scope: &Rc<Scope>) -> Result<Flow> {
        match statement {
            Stmt::Text(text) => self.out.push_str(text),
            Stmt::Print(value) => {
                let text = self.eval(value, scope)?.to_text()?;
                self.out.push_str(&text);
            }
            Stmt::If(branches, otherwise) => {
                for (test, body) in branches {
                    if self.eval(test, scope)?.truth() {
                        return self.body(body, scope);
                    }
                }
                return self.body(otherwise, scope);
            }
            Stmt::For(node) => {
                let iterable = self.eval(&node.iterable, scope)?;
                return self.for_loop(node, iterable, scope, 0);
            }
            Stmt::Set(target, value) => {
                let value = self.eval(value, scope)?;
                self.assign(target, value, scope)?;
            }
            Stmt::SetBlock(target, filter, body) => {
                let inner = Scope::inside(scope);
                let (text, flow) = self.captured(body, &inner)?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
                let value = self.filtered(filter, text, &inner)?;
                self.assign(target, value, scope)?;
            }
            Stmt::FilterBlock(filter, body) => return self.filter_block(filter, body, scope),
            Stmt::With(values, body) => {
                let inner = Scope::inside(scope);
                for (target, value) in values {
                    let value = self.eval(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.body(body, &inner);
            }
            Stmt::Macro(node) => {
                let value = Value::Callable(Rc::new(Callable::Macro(node.clone(), scope.clone())));
                scope.set(&node.name, value);
            }
            Stmt::CallBlock(callee, arguments, caller) => {
                let callee = self.eval(callee, scope)?;
                let mut bound = self.bind(arguments, scope)?;
                let caller = Value::Callable(Rc::new(Callable::Macro(caller.clone(), scope.clone())));
                bound.named.push((Rc::from("caller"), caller));
                let text = self.call(&callee, bound)?.to_text()?;
                self.out.push_str(&text);
            }
            Stmt::Generation(body) => {
                self.body(body, &Scope::inside(scope))?;
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn filter_block(&mut self, filter: &Expr, body: &Body, scope: &Rc<Scope>) -> Result<Flow> {
        let inner = Scope::inside(scope);
        let (text, flow) = self.captured(body, &inner)?;
        if flow != Flow::Next {
            return Ok(flow);
        }
        match self.filtered(filter, text, &inner)? {
            Value::Str(text) | Value::Markup(text) => self.out.push_str(&text),
            other => return fail(format!("filter block: expected text, got {}", other.type_name())),
        }
        Ok(Flow::Next)
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Attribute(name, attribute) => match self.name(name, scope)? {
                Value::Namespace(items) => {
                    globals::check_namespace_name(attribute)?;
                    items.borrow_mut().insert(Key::str(attribute), value);
                }
                _ => return fail("cannot assign attribute on non-namespace object"),
            },
            Target::Tuple(targets) => {
                let values = match &value {
                    Value::Undefined(_) => Vec::new(),
                    other => other
                        .items()
                        .or_else(|_| fail(format!("cannot unpack non-iterable {} object", other.type_name())))?,
                };
                if values.len() != targets.len() {
                    let (wanted, got) = (targets.len(), values.len());
                    return fail(format!("expected {wanted} values to unpack, got {got}"));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value, scope)?;
                }
            }
        }
        Ok(())
    }

    fn name(&self, name: &str, scope: &Scope) -> Result<Value> {
        match scope.get(name).or_else(|| globals::get(name)) {
            Some(value) => Ok(value),
            None if name == "self" => fail("the name 'self' is not supported: it stands for a template's blocks"),
            None => Ok(Value::undefined(format!("'{name}' is undefined"))),
        }
    }

    pub(super) fn eval(&mut self, expression: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        check_stack()?;
        Ok(match expression {
            Expr::Const(value) => value.clone(),
            Expr::Name(name) => self.name(name, scope)?,
            Expr::Tuple(items) => Value::tuple(self.all(items, scope)?),
            Expr::List(items) => Value::list(self.all(items, scope)?),
            Expr::Dict(items) => self.dict(items, scope)?,
            Expr::If(test, then, otherwise) => match (self.eval(test, scope)?.truth(), otherwise) {
                (true, _) => self.eval(then, scope)?,
                (false, Some(otherwise)) => self.eval(otherwise, scope)?,
                (false, None) => {
                    Value::undefined("the inline if-expression evaluated to false and no else section was defined.")
                }
            },
            Expr::Or(left, right) => {
                let value = self.eval(left, scope)?;
                if value.truth() {
                    value
                } else {
                    self.eval(right, scope)?
                }
            }
            Expr::And(left, right) => {
                let value = self.eval(left, scope)?;
                if value.truth() {
                    self.eval(right, scope)?
                } else {
                    value
                }
            }
            Expr::Not(value) => Value::Bool(!self.eval(value, scope)?.truth()),
            Expr::Compare(first, others) => self.compare(first, others, scope)?,
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right, scope)?,
            Expr::Concat(parts) => self.concat(parts, scope)?,
            Expr::Negative(value) => negative(&self.eval(value, scope)?)?,
            Expr::Positive(value) => positive(&self.eval(value, scope)?)?,
            Expr::Attribute(value, name) => {
                let value = self.eval(value, scope)?;
                self.attribute(&value, name)?
            }
            Expr::Item(value, index) => {
                let value = self.eval(value, scope)?;
                let index = self.eval(index, scope)?;
                self.item(&value, &index)?
            }
            Expr::Slice(value, parts) => self.slice(value, parts, scope)?,
            Expr::Call(callee, arguments) => {
                let callee = self.eval(callee, scope)?;
                let bound = self.bind(arguments, scope)?;
                self.call(&callee, bound)?
            }
            Expr::Filter(value, name, arguments) => {
                let value = self.eval(value, scope)?;
                let bound = self.bind(arguments, scope)?;
                filters::apply(self, name, &value, &bound)?
            }
            Expr::Test(value, name, arguments) => {
                let value = self.eval(value, scope)?;
                let bound = self.bind(arguments, scope)?;
                Value::Bool(tests::holds(name, &value, &bound)?)
            }
            Expr::FilterInput => self.filter_inputs.last().cloned().unwrap_or(Value::None),
        })
    }

    fn all(&mut self, expressions: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.eval(expression, scope)).collect()
    }

    fn concat(&mut self, parts: &[Expr], scope: &Rc<Scope>) -> Result<Value> {
        let mut text = String::new();
        for value in self.all(parts, scope)? {
            text.push_str(&value.to_text()?);
        }
        Ok(Value::str(text))
    }

    fn dict(&mut self, items: &[(Expr, Expr)], scope: &Rc<Scope>) -> Result<Value> {
        let mut made = Dict::new();
        for (key, value) in items {
            let key = Key::new(self.eval(key, scope)?)?;
            made.insert(key, self.eval(value, scope)?);
        }
        Ok(Value::dict(made))
    }

    fn binary(&mut self, operator: Operator, left: &Expr, right: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        let left = self.eval(left, scope)?;
        let right = self.eval(right, scope)?;
        binary(operator, &left, &right)
    }

    fn slice(&mut self, value: &Expr, parts: &[Option<Box<Expr>>; 3], scope: &Rc<Scope>) -> Result<Value> {
        let value = self.eval(value, scope)?;
        let mut values = [None, None, None];
        for (slot, part) in values.iter_mut().zip(parts) {
            if let Some(part) = part {
                *slot = Some(self.eval(part, scope)?);
            }
        }
        access::slice(&value, values)
    }

    fn compare(&mut self, first: &Expr, others: &[(Comparison, Expr)], scope: &Rc<Scope>) -> Result<Value> {
        let mut left = self.eval(first, scope)?;
        for (comparison, right) in others {
            let right = self.eval(right, scope)?;
            if !compare(*comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn bind(&mut self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<Bound> {
        let mut bound = Bound::of(self.all(&arguments.positional, scope)?);
        for (name, value) in &arguments.named {
            bound.named.push((name.clone(), self.eval(value, scope)?));
        }
        if let Some(rest) = &arguments.rest {
            bound.positional.extend(self.eval(rest, scope)?.items()?);
        }
        if let Some(rest) = &arguments.named_rest {
            let rest = self.eval(rest, scope)?;
            let Value::Dict(items) = &rest else {
                return fail(format!("argument after ** must be a mapping, not {}", rest.type_name()));
            };
            for (name, value) in items.iter() {
                let Some(name) = name.value().as_str() else { return fail("keywords must be strings") };
                bound.named.push((Rc::from(name), value.clone()));
            }
        }
        let repeats =
            |(i, (name, _)): (usize, &(Rc<str>, Value))| bound.named[..i].iter().any(|(known, _)| known == name);
        if bound.named.iter().enumerate().any(repeats) {
            return fail("got multiple values for a keyword argument");
        }
        Ok(bound)
    }
}

pub fn compare(comparison: Comparison, left: &Value, right: &Value) -> Result<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    Ok(match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::NotEqual => !equal(left, right),
        Comparison::In => contains(right, left)?,
        Comparison::NotIn => !contains(right, left)?,
        Comparison::Less => order(left, right, "<")? == Some(Less),
        Comparison::LessEqual => matches!(order(left, right, "<=")?, Some(Less | Equal)),
        Comparison::Greater => order(left, right, ">")? == Some(Greater),
        Comparison::GreaterEqual => matches!(order(left, right, ">=")?, Some(Greater | Equal)),
    })
}
