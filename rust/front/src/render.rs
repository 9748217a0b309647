//! A template's source and a conversation to a prompt.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};

use hf_chat_template::{ChatTemplate, Civil, Clock, Error};

use crate::conversation;

/// strftime_now shows local time, as Python's datetime.now() does; who calls us knows the time zone.
static LOCAL_SECONDS: AtomicI64 = AtomicI64::new(0);

struct CallersClock;

impl Clock for CallersClock {
    fn now(&self) -> Civil {
        Civil::from_unix_secs(LOCAL_SECONDS.load(Ordering::Relaxed))
    }
}

thread_local! {
    /// The last source and what it compiled to: a worker serves one checkpoint.
    static LAST: RefCell<Option<(String, Rc<ChatTemplate>)>> = const { RefCell::new(None) };
}

fn compiled(source: &str) -> Result<Rc<ChatTemplate>, Error> {
    LAST.with_borrow_mut(|last| {
        if let Some((known, template)) = last {
            if known == source {
                return Ok(template.clone());
            }
        }
        let lines = source.replace("\r\n", "\n").replace('\r', "\n"); // as Jinja2 reads any source
        let template = Rc::new(ChatTemplate::builder(&lines).clock(CallersClock).build()?);
        *last = Some((source.to_string(), template.clone()));
        Ok(template)
    })
}

pub fn render(source: &str, tokens: &[(&str, &str)], json: &str, local_seconds: i64) -> Result<String, String> {
    let conversation = conversation::prepare(json, tokens)?;
    LOCAL_SECONDS.store(local_seconds, Ordering::Relaxed);
    let template = compiled(source).map_err(explain)?;
    let rendered = template.render_context(&conversation.context).map_err(explain)?;
    conversation.cut(rendered)
}

/// A template that refuses a conversation speaks for itself.
fn explain(error: Error) -> String {
    match error {
        Error::TemplateRaised { message } => message,
        Error::Compile(error) => format!("failed to compile: {error}"),
        Error::Render(error) => format!("failed to render: {error}"),
        other => other.to_string(),
    }
}
