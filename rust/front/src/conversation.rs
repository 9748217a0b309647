//! From a conversation's JSON to what the template sees, as `apply_chat_template` of transformers 5 prepares it.

use serde_json::{Map, Value};

use crate::jinja::is_space;

pub type Object = Map<String, Value>;

/// The names under which a message's reasoning comes; the first is the one that templates read.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
/// Written behind the text to continue, so that its end can be found in the rendered text.
const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A checkpoint's templates; the second is for conversations with tools and may be missing.
pub struct Sources {
    pub standard: String,
    pub tool_use: String,
}

pub struct Conversation {
    pub source: String, // of the template that this conversation takes
    pub context: Object,
    continued: Option<String>, // the final message's text, where the model is to continue it
}

/// Every key of `json` becomes a variable of the template, over the special tokens.
pub fn prepare(json: &str, tokens: &[(&str, &str)], sources: Sources) -> Result<Conversation, String> {
    let parsed = serde_json::from_str(json).map_err(|e| format!("the conversation is no readable JSON: {e}"))?;
    let Value::Object(mut given) = parsed else {
        return Err("the conversation: expected a JSON object".to_string());
    };
    let mut messages = messages(given.remove("messages"))?;
    let tools = objects(given.remove("tools"), "tools")?;
    let documents = objects(given.remove("documents"), "documents")?;
    let has_tool_use = !sources.tool_use.is_empty();
    if has_tool_use && tools.is_null() && sources.standard.is_empty() {
        return Err("the model has a template for conversations with tools alone, and this one has none".to_string());
    }
    let source = if has_tool_use && !tools.is_null() { sources.tool_use } else { sources.standard };
    let generate = given.remove("add_generation_prompt").unwrap_or(Value::Bool(false));
    let continued = match given.remove("continue_final_message") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(_) if generate == Value::Bool(true) => {
            return Err("continue_final_message and add_generation_prompt exclude each other".to_string())
        }
        Some(Value::Bool(true)) => Some(mark_final_message(&mut messages, "content", &source)?),
        Some(Value::String(field)) => Some(mark_final_message(&mut messages, &field, &source)?),
        Some(_) => return Err("continue_final_message: expected true, false or the name of a field".to_string()),
    };

    let defined = tokens.iter().filter(|(_, text)| !text.is_empty());
    let mut context: Object = defined.map(|(name, text)| (name.to_string(), Value::from(*text))).collect();
    context.insert("messages".to_string(), Value::Array(messages));
    context.insert("tools".to_string(), tools);
    context.insert("documents".to_string(), documents);
    context.insert("add_generation_prompt".to_string(), generate);
    context.extend(given);
    Ok(Conversation { source, context, continued })
}

/// A list of objects, or null.
fn objects(value: Option<Value>, what: &str) -> Result<Value, String> {
    match value.unwrap_or(Value::Null) {
        Value::Null => Ok(Value::Null),
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(Value::Array(items)),
        _ => Err(format!("{what}: expected an array of objects")),
    }
}

/// Drops keys that are null ("content": null means that there is none) and gives reasoning all its names.
fn messages(value: Option<Value>) -> Result<Vec<Value>, String> {
    let Some(Value::Array(list)) = value else {
        return Err("messages: expected an array".to_string());
    };
    if list.is_empty() {
        return Err("messages: expected at least one".to_string());
    }
    list.into_iter()
        .enumerate()
        .map(|(i, message)| match message {
            Value::Object(mut message) => {
                message.retain(|_, value| !value.is_null());
                Ok(Value::Object(alias_reasoning(message)))
            }
            _ => Err(format!("messages[{i}]: expected an object")),
        })
        .collect()
}

fn alias_reasoning(mut message: Object) -> Object {
    if let Some(reasoning) = REASONING.iter().find_map(|name| message.get(*name)).cloned() {
        let thinking = message.shift_remove("thinking").unwrap_or_else(|| reasoning.clone());
        message.shift_insert(0, "thinking".to_string(), thinking);
        message.insert("reasoning_content".to_string(), reasoning);
    }
    message
}

/// Puts TAG behind the last message's text in `field`; that text before.
fn mark_final_message(messages: &mut [Value], field: &str, source: &str) -> Result<String, String> {
    let refuse = |why: &str| Err(format!("continue_final_message: {why}"));
    let Some(Value::Object(message)) = messages.last_mut() else { return refuse("there is no message") };
    let Some(value) = message.get(field).cloned() else {
        return refuse(&format!("the final message has no \"{field}\" to continue"));
    };
    // Reasoning stands under several names: whichever the template reads is marked.
    let is_copy = |name: &&str| *name == field || (REASONING.contains(&field) && message.get(*name) == Some(&value));
    let fields: Vec<&str> = REASONING.into_iter().chain(std::iter::once(field)).filter(is_copy).collect();
    if !fields.iter().any(|name| source.contains(name)) {
        return refuse(&format!("the template reads no \"{field}\""));
    }
    match value {
        Value::Array(_) => {
            let parts = message.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
            match parts.rev().find_map(|part| part.get_mut("text")) {
                Some(Value::String(text)) => {
                    let before = text.clone();
                    text.push_str(TAG);
                    Ok(before)
                }
                _ => refuse("the final message has no text to continue"),
            }
        }
        Value::String(text) => {
            for name in fields {
                message.insert(name.to_string(), Value::String(text.clone() + TAG));
            }
            Ok(text)
        }
        _ => refuse("the final message has no text to continue"),
    }
}

impl Conversation {
    /// The rendered text up to the end of the message to continue, or all of it where there is none.
    pub fn cut(&self, mut rendered: String) -> Result<String, String> {
        let Some(message) = &self.continued else {
            return Ok(rendered);
        };
        let end = rendered.rfind(TAG.trim_end()).filter(|_| rendered.contains(message.trim_matches(is_space)));
        let Some(end) = end else {
            return Err("continue_final_message: the template leaves out the final message".to_string());
        };
        let kept_spaces = rendered[end..].starts_with(TAG);
        rendered.truncate(if kept_spaces { end } else { rendered[..end].trim_end_matches(is_space).len() });
        Ok(rendered)
    }
}
