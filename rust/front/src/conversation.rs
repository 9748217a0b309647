//! From a conversation's JSON to what the template sees, as `apply_chat_template` of transformers 5 prepares it.

use serde_json::{Map, Value};

pub type Object = Map<String, Value>;

/// The names under which a message's reasoning comes; the first is the one that templates read.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
/// Written behind the message to continue, so that its end can be found in the rendered text.
const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

pub struct Conversation {
    pub context: Object,
    continued: Option<String>, // the final message's text, where the model is to continue it
}

/// Every key of `json` becomes a variable of the template, over the special tokens.
pub fn prepare(json: &str, tokens: &[(&str, &str)]) -> Result<Conversation, String> {
    let parsed = serde_json::from_str(json).map_err(|e| format!("the conversation is no readable JSON: {e}"))?;
    let Value::Object(mut given) = parsed else {
        return Err("the conversation: expected a JSON object".to_string());
    };
    let mut messages = messages(given.remove("messages"))?;
    let generate = given.remove("add_generation_prompt").unwrap_or(Value::Bool(false));
    let continued = match given.remove("continue_final_message") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) if generate == Value::Bool(true) => {
            return Err("continue_final_message and add_generation_prompt exclude each other".to_string())
        }
        Some(Value::Bool(true)) => Some(mark_final_message(&mut messages)?),
        Some(_) => return Err("continue_final_message: expected true or false".to_string()),
    };

    let defined = tokens.iter().filter(|(_, text)| !text.is_empty());
    let mut context: Object = defined.map(|(name, text)| (name.to_string(), Value::from(*text))).collect();
    context.insert("messages".to_string(), Value::Array(messages));
    context.insert("tools".to_string(), given.remove("tools").unwrap_or(Value::Null));
    context.insert("documents".to_string(), given.remove("documents").unwrap_or(Value::Null));
    context.insert("add_generation_prompt".to_string(), generate);
    context.extend(given);
    Ok(Conversation { context, continued })
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
        if !message.contains_key("thinking") {
            message.shift_insert(0, "thinking".to_string(), reasoning.clone());
        }
        message.insert("reasoning_content".to_string(), reasoning);
    }
    message
}

/// Puts TAG behind the text of the last message; its text before that.
fn mark_final_message(messages: &mut [Value]) -> Result<String, String> {
    let content = messages.last_mut().and_then(|message| message.get_mut("content"));
    let text = match content {
        Some(Value::Array(parts)) => parts.iter_mut().rev().find_map(|part| part.get_mut("text")),
        other => other,
    };
    let Some(Value::String(text)) = text else {
        return Err("continue_final_message: the final message has no text to continue".to_string());
    };
    let before = text.clone();
    text.push_str(TAG);
    Ok(before)
}

impl Conversation {
    /// The rendered text up to the end of the message to continue, or all of it where there is none.
    pub fn cut(&self, mut rendered: String) -> Result<String, String> {
        let Some(message) = &self.continued else {
            return Ok(rendered);
        };
        let end = rendered.rfind(TAG.trim()).filter(|_| rendered.contains(message.trim()));
        let Some(end) = end else {
            return Err("continue_final_message: the template leaves out the final message".to_string());
        };
        let kept_spaces = rendered[end..].starts_with(TAG);
        rendered.truncate(if kept_spaces { end } else { rendered[..end].trim_end().len() });
        Ok(rendered)
    }
}
