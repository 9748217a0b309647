//! for, and the variable `loop`. Items are drawn one at a time: the loop's own condition may ask for what the body has set.

use std::cell::RefCell;
use std::rc::Rc;

use super::access;
use super::arguments::Bound;
use super::ast::For;
use super::interpreter::{Flow, Interpreter};
use super::operators::equal;
use super::scope::Scope;
use super::value::{fail, Loop, LoopState, Result, Value};

impl Interpreter {
    pub(super) fn for_loop(
        &mut self,
        node: &Rc<For>,
        iterable: Value,
        outer: &Rc<Scope>,
        depth0: usize,
    ) -> Result<Flow> {
        let length = if node.test.is_none() { iterable.length().ok().map(|length| length as i128) } else { None };
        let state = LoopState {
            source: iterable.iterate()?,
            test_scope: Scope::inside(outer),
            index0: -1,
            length,
            before: None,
            current: None,
            after: None,
            changed: None,
        };
        let this = Rc::new(Loop { node: node.clone(), outer: outer.clone(), depth0, state: RefCell::new(state) });
        let scope = Scope::inside(outer);
        let name: Rc<str> = Rc::from("loop");
        let mut finished = false; // as Jinja2 has it: `else` comes where no turn reached the body's end
        while let Some(item) = self.advance(&this)? {
            scope.clear();
            scope.set(&name, Value::Loop(this.clone()));
            self.assign(&node.target, item, &scope)?;
            match self.body(&node.body, &scope)? {
                Flow::Break => break,
                Flow::Next => finished = true,
                Flow::Continue => {}
            }
        }
        if !finished {
            return self.body(&node.otherwise, &Scope::inside(outer));
        }
        Ok(Flow::Next)
    }

    /// The next item for which the loop's condition holds.
    fn draw(&mut self, this: &Loop) -> Result<Option<Value>> {
        loop {
            let item = this.state.borrow_mut().source.next().transpose()?;
            let (Some(item), Some(test)) = (&item, &this.node.test) else { return Ok(item) };
            let scope = this.state.borrow().test_scope.clone();
            scope.clear();
            let no_loop = Value::undefined("The 'loop' variable is undefined in the loop's own condition");
            scope.set(&Rc::from("loop"), no_loop);
            self.assign(&this.node.target, item.clone(), &scope)?;
            if self.eval(test, &scope)?.truth() {
                return Ok(Some(item.clone()));
            }
        }
    }

    fn advance(&mut self, this: &Loop) -> Result<Option<Value>> {
        let ahead = this.state.borrow_mut().after.take();
        let item = match ahead {
            Some(item) => item,
            None => self.draw(this)?,
        };
        if let Some(item) = &item {
            let mut state = this.state.borrow_mut();
            state.index0 += 1;
            state.before = state.current.replace(item.clone());
        }
        Ok(item)
    }

    fn peek(&mut self, this: &Loop) -> Result<Option<Value>> {
        if let Some(ahead) = &this.state.borrow().after {
            return Ok(ahead.clone());
        }
        let item = self.draw(this)?;
        this.state.borrow_mut().after = Some(item.clone());
        Ok(item)
    }

    /// Draws all that is left where the length isn't known otherwise.
    fn loop_length(&mut self, this: &Loop) -> Result<i128> {
        if let Some(length) = this.state.borrow().length {
            return Ok(length);
        }
        let mut left = Vec::new();
        while let Some(item) = self.draw(this)? {
            left.push(item);
        }
        let mut state = this.state.borrow_mut();
        let length = left.len() as i128 + state.index0 + 1 + i128::from(matches!(state.after, Some(Some(_))));
        state.source = Value::list(left).iterate()?;
        state.length = Some(length);
        Ok(length)
    }

    pub(super) fn attribute(&mut self, value: &Value, name: &str) -> Result<Value> {
        let Value::Loop(this) = value else { return access::attribute(value, name) };
        let index0 = this.state.borrow().index0;
        Ok(match name {
            "index0" => Value::Int(index0),
            "index" => Value::Int(index0 + 1),
            "first" => Value::Bool(index0 == 0),
            "last" => Value::Bool(self.peek(this)?.is_none()),
            "length" => Value::Int(self.loop_length(this)?),
            "revindex" => Value::Int(self.loop_length(this)? - index0),
            "revindex0" => Value::Int(self.loop_length(this)? - index0 - 1),
            "depth" => Value::Int(this.depth0 as i128 + 1),
            "depth0" => Value::Int(this.depth0 as i128),
            "previtem" if index0 == 0 => Value::undefined("there is no previous item"),
            "previtem" => this.state.borrow().before.clone().unwrap_or(Value::None),
            "nextitem" => self.peek(this)?.unwrap_or_else(|| Value::undefined("there is no next item")),
            _ => access::attribute(value, name)?,
        })
    }

    pub(super) fn item(&mut self, value: &Value, index: &Value) -> Result<Value> {
        match (value, index.as_str()) {
            (Value::Loop(_), Some(name)) => self.attribute(value, name),
            _ => access::item(value, index),
        }
    }

    pub(super) fn loop_method(&mut self, this: &Loop, name: &str, bound: &Bound) -> Result<Value> {
        if !bound.named.is_empty() {
            return fail(format!("loop.{name}() takes no keyword arguments"));
        }
        let values = &bound.positional;
        let mut state = this.state.borrow_mut();
        if name == "cycle" {
            return match values.len() {
                0 => fail("no items for cycling given"),
                count => Ok(values[state.index0 as usize % count].clone()),
            };
        }
        let is_same =
            |last: &Vec<Value>| last.len() == values.len() && last.iter().zip(values).all(|(a, b)| equal(a, b));
        let changed = !state.changed.as_ref().is_some_and(is_same);
        state.changed = Some(values.clone());
        Ok(Value::Bool(changed))
    }

    /// loop(items): the body once more, one level deeper.
    pub(super) fn recurse(&mut self, this: &Loop, bound: &Bound) -> Result<Value> {
        let [items] = bound.take("loop", ["iterable"], 1)?;
        if !this.node.recursive {
            return fail("The loop must have the 'recursive' marker to be called recursively.");
        }
        let before = std::mem::take(&mut self.out);
        let flow = self.for_loop(&this.node, items.unwrap_or(Value::None), &this.outer, this.depth0 + 1);
        let text = std::mem::replace(&mut self.out, before);
        flow.map(|_| Value::str(text))
    }
}
