//! The C border (see front.h): bytes in, bytes out, and no panic passes it.

mod conversation;
mod jinja;
mod render;

use conversation::Sources;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[repr(C)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

#[repr(C)]
pub struct Request {
    source: Bytes,
    tool_use_source: Bytes,
    bos: Bytes,
    eos: Bytes,
    unknown: Bytes,
    separator: Bytes,
    padding: Bytes,
    classifier: Bytes,
    mask: Bytes,
    conversation: Bytes,
    local_seconds: i64,
}

impl Bytes {
    /// # Safety
    /// `data` points to `size` bytes that outlive the result, or `size` is 0.
    unsafe fn text(&self, what: &str) -> Result<&str, String> {
        let bytes = if self.size == 0 { &[] } else { std::slice::from_raw_parts(self.data, self.size) };
        std::str::from_utf8(bytes)
            .map_err(|e| format!("the {what}: expected UTF-8, got another byte at offset {}", e.valid_up_to()))
    }
}

unsafe fn render(request: &Request) -> Result<String, String> {
    let tokens = [
        ("bos_token", request.bos.text("text of the BOS token")?),
        ("eos_token", request.eos.text("text of the EOS token")?),
        ("unk_token", request.unknown.text("text of the unknown token")?),
        ("sep_token", request.separator.text("text of the separator token")?),
        ("pad_token", request.padding.text("text of the padding token")?),
        ("cls_token", request.classifier.text("text of the classifier token")?),
        ("mask_token", request.mask.text("text of the mask token")?),
    ];
    let sources = Sources {
        standard: request.source.text("template's source")?.to_string(),
        tool_use: request.tool_use_source.text("source of the template for tools")?.to_string(),
    };
    let conversation = request.conversation.text("conversation")?;
    render::render(sources, &tokens, conversation, request.local_seconds)
}

/// A message on one line, at most 500 characters long: a template chooses its words.
fn one_line(message: &str) -> String {
    message.chars().take(500).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// # Safety
/// As front.h says: every `Bytes` of the request is readable, `text` is writable.
#[no_mangle]
pub unsafe extern "C" fn couplet_front_render(request: *const Request, text: *mut Bytes) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| render(&*request)))
        .unwrap_or_else(|_| Err("the template engine failed on this template".to_string()));
    let (status, answer) = match outcome {
        Ok(prompt) => (1, prompt),
        Err(message) => (0, one_line(&message)),
    };
    let answer = answer.into_bytes().into_boxed_slice();
    let size = answer.len();
    *text = Bytes { data: Box::into_raw(answer) as *const u8, size };
    status
}

/// # Safety
/// `text` comes from `couplet_front_render` and is freed once.
#[no_mangle]
pub unsafe extern "C" fn couplet_front_free(text: Bytes) {
    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(text.data as *mut u8, text.size)));
}
