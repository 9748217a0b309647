//! Jinja2 as transformers sets it up for chat templates, on Python's values: what it renders is what Python renders, byte
//! for byte, and what it can't render so is an error.

mod access;
mod arguments;
mod ast;
mod calls;
mod filters;
mod format_filters;
mod formatting;
mod globals;
mod interpreter;
mod iterate;
mod json;
mod lexer;
mod loops;
mod methods;
mod operators;
mod parser;
mod percent;
mod scope;
mod sequence_filters;
mod spec;
mod statements;
mod strftime;
mod tests;
mod text;
mod text_methods;
mod value;

use std::cell::Cell;

pub use text::is_space;
use value::{fail, Result};
pub use value::{Error, Value};

pub struct Template {
    body: ast::Body,
}

thread_local! {
    /// Where the stack stood when the work began.
    static STACK: Cell<usize> = const { Cell::new(0) };
}

/// A worker has 8 MiB of stack unless someone lowered it.
const STACK_BYTES: usize = 4 << 20;

fn stack_here() -> usize {
    let marker = 0u8;
    std::ptr::addr_of!(marker) as usize
}

/// Fails where the recursion has gone too deep.
fn check_stack() -> Result<()> {
    if STACK.get().abs_diff(stack_here()) > STACK_BYTES {
        return fail("maximum recursion depth exceeded");
    }
    Ok(())
}

impl Template {
    pub fn parse(source: &str) -> Result<Template> {
        STACK.set(stack_here());
        statements::parse(source).map(|body| Template { body })
    }

    /// `variables` are what the template may name; `local_seconds` is what the clock on the wall shows.
    pub fn render(&self, variables: Vec<(String, Value)>, local_seconds: i64) -> Result<String> {
        STACK.set(stack_here());
        interpreter::run(&self.body, variables, local_seconds)
    }
}
