//! Where a template's names live: a chain of frames, the outermost holding what the caller passes in.

use std::cell::RefCell;
use std::rc::Rc;

use super::value::Value;

#[derive(Default)]
pub struct Scope {
    names: RefCell<Vec<(Rc<str>, Value)>>,
    outer: Option<Rc<Scope>>,
}

impl Scope {
    pub fn inside(outer: &Rc<Scope>) -> Rc<Scope> {
        Rc::new(Scope { names: RefCell::default(), outer: Some(outer.clone()) })
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some((_, value)) = scope.names.borrow().iter().find(|(known, _)| &**known == name) {
                return Some(value.clone());
            }
            scope = scope.outer.as_deref()?;
        }
    }

    pub fn set(&self, name: &Rc<str>, value: Value) {
        let mut names = self.names.borrow_mut();
        match names.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value,
            None => names.push((name.clone(), value)),
        }
    }

    /// A loop's frame begins each turn empty. It is one frame for all of them: a macro made in one sees the next's names.
    pub fn clear(&self) {
        self.names.borrow_mut().clear();
    }
}
