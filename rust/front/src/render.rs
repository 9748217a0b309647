//! A template's source and a conversation to a prompt.

use std::cell::RefCell;
use std::rc::Rc;

use crate::conversation::{self, Sources};
use crate::jinja::{Error, Template, Value};

thread_local! {
    /// The last source and what it was parsed to: a worker serves one checkpoint.
    static LAST: RefCell<Option<(String, Rc<Template>)>> = const { RefCell::new(None) };
}

fn parsed(source: &str) -> Result<Rc<Template>, Error> {
    LAST.with_borrow_mut(|last| {
        if let Some((known, template)) = last {
            if known == source {
                return Ok(template.clone());
            }
        }
        let template = Rc::new(Template::parse(source)?);
        *last = Some((source.to_string(), template.clone()));
        Ok(template)
    })
}

/// `local_seconds` is what strftime_now shows: local time, as Python's datetime.now().
pub fn render(sources: Sources, tokens: &[(&str, &str)], json: &str, local_seconds: i64) -> Result<String, String> {
    let conversation = conversation::prepare(json, tokens, sources)?;
    let template = parsed(&conversation.source).map_err(|error| explain("compile", error))?;
    let variables = conversation.context.iter().map(|(name, value)| (name.clone(), Value::from(value))).collect();
    let rendered = template.render(variables, local_seconds).map_err(|error| explain("render", error))?;
    conversation.cut(rendered)
}

/// A template that refuses a conversation speaks for itself.
fn explain(what: &str, error: Error) -> String {
    match error {
        Error::Raised(message) => message,
        Error::Failed(message) => format!("failed to {what}: {message}"),
    }
}
