//! A template's source to tokens, as Jinja2's lexer cuts it with trim_blocks and lstrip_blocks: which white space around
//! a tag belongs to the text is decided here.

use std::rc::Rc;

use super::text::{is_space, trim_end};
use super::value::{fail, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Text(Rc<str>),
    PrintBegin,
    PrintEnd,
    TagBegin,
    TagEnd,
    Name(Rc<str>),
    Str(String),
    Int(i128),
    Float(f64),
    Op(&'static str),
    End,
}

/// Longest first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

/// Tokens with the line that each begins on; the last is End.
pub fn tokenize(source: &str) -> Result<Vec<(Token, usize)>> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer { source: &source, position: 0, line: 1, counted: 0, line_starts: true, tokens: Vec::new() };
    while lexer.position < source.len() {
        lexer.text_and_tag()?;
    }
    lexer.push(Token::End);
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    position: usize,
    line: usize,
    counted: usize,    // the line is right for this position
    line_starts: bool, // what was read last ends in a newline
    tokens: Vec<(Token, usize)>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.position..]
    }

    fn push(&mut self, token: Token) {
        self.line += self.source[self.counted..self.position].matches('\n').count();
        self.counted = self.position;
        self.tokens.push((token, self.line));
    }

    fn error<T>(&self, message: &str) -> Result<T> {
        fail(format!("{message} (line {})", 1 + self.source[..self.position].matches('\n').count()))
    }

    fn advance(&mut self, bytes: usize) {
        if bytes > 0 {
            self.line_starts = self.source[..self.position + bytes].ends_with('\n');
        }
        self.position += bytes;
    }

    /// Text up to a tag, without the white space that the tag takes away in front of it.
    fn push_text(&mut self, text: &'a str, sign: Option<char>, is_print: bool) {
        let mut text = text;
        if sign == Some('-') {
            text = trim_end(text);
        } else if sign != Some('+') && !is_print {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            if (line > 0 || self.line_starts) && text[line..].chars().all(is_space) {
                text = &text[..line];
            }
        }
        if !text.is_empty() {
            self.push(Token::Text(Rc::from(text)));
        }
    }

    fn text_and_tag(&mut self) -> Result<()> {
        let rest = self.rest();
        let opens = rest.match_indices('{').find(|(at, _)| rest[at + 1..].starts_with(['%', '{', '#']));
        let Some((at, _)) = opens else {
            self.push(Token::Text(Rc::from(rest)));
            self.position = self.source.len();
            return Ok(());
        };
        let kind = rest.as_bytes()[at + 1];
        let sign = rest[at + 2..].chars().next().filter(|c| matches!(c, '-' | '+'));
        self.push_text(&rest[..at], sign, kind == b'{');
        if kind == b'%' {
            if let Some(size) = raw_begin(&rest[at..]) {
                self.advance(at + size);
                return self.raw();
            }
        }
        self.advance(at + 2 + usize::from(sign.is_some()));
        match kind {
            b'#' => self.comment(),
            b'{' => self.tag(Token::PrintBegin, Token::PrintEnd),
            _ => self.tag(Token::TagBegin, Token::TagEnd),
        }
    }

    fn comment(&mut self) -> Result<()> {
        let rest = self.rest();
        let Some(end) = rest.find("#}") else {
            return self.error("Missing end of comment tag");
        };
        self.advance(end + 2 + after_close(&rest[..end], &rest[end + 2..]));
        Ok(())
    }

    /// What stands between {% raw %} and {% endraw %} is text.
    fn raw(&mut self) -> Result<()> {
        let rest = self.rest();
        for (at, _) in rest.match_indices("{%") {
            let mut tag = &rest[at + 2..];
            let sign = tag.chars().next().filter(|c| matches!(c, '-' | '+'));
            tag = tag.strip_prefix(['-', '+']).unwrap_or(tag).trim_start_matches(is_space);
            let Some(tail) = tag.strip_prefix("endraw") else { continue };
            let tail = tail.trim_start_matches(is_space);
            let Some(close) = tail.find("%}").filter(|&close| close == 0 || matches!(&tail[..close], "-" | "+")) else {
                continue;
            };
            self.push_text(&rest[..at], sign, false);
            let behind = &tail[close + 2..];
            self.advance(rest.len() - behind.len() + after_close(&tail[..close], behind));
            return Ok(());
        }
        self.error("Missing end of raw directive")
    }

    fn tag(&mut self, begin: Token, end: Token) -> Result<()> {
        self.push(begin);
        let mut open = Vec::new();
        while self.position < self.source.len() {
            if open.is_empty() {
                if let Some(size) = self.tag_end(&end) {
                    self.push(end);
                    self.advance(size);
                    return Ok(());
                }
            }
            let rest = self.rest();
            let space = rest.len() - rest.trim_start_matches(is_space).len();
            if space > 0 {
                self.advance(space);
            } else {
                let (token, size) = self.token(rest)?;
                self.balance(&token, &mut open)?;
                self.push(token);
                self.advance(size);
            }
        }
        Ok(())
    }

    /// The size of the tag's end, where it stands here.
    fn tag_end(&self, end: &Token) -> Option<usize> {
        let rest = self.rest();
        let close = if *end == Token::PrintEnd { "}}" } else { "%}" };
        if let Some(behind) = rest.strip_prefix('-').and_then(|rest| rest.strip_prefix(close)) {
            return Some(3 + after_close("-", behind));
        }
        if *end == Token::PrintEnd {
            return rest.starts_with(close).then_some(2);
        }
        if rest.strip_prefix('+').is_some_and(|rest| rest.starts_with(close)) {
            return Some(3);
        }
        rest.strip_prefix(close).map(|behind| 2 + after_close("", behind))
    }

    fn balance(&self, token: &Token, open: &mut Vec<&'static str>) -> Result<()> {
        match token {
            Token::Op("(") => open.push(")"),
            Token::Op("[") => open.push("]"),
            Token::Op("{") => open.push("}"),
            Token::Op(close @ (")" | "]" | "}")) => match open.pop() {
                Some(expected) if expected == *close => {}
                Some(expected) => return self.error(&format!("unexpected '{close}', expected '{expected}'")),
                None => return self.error(&format!("unexpected '{close}'")),
            },
            _ => {}
        }
        Ok(())
    }

    fn token(&self, rest: &str) -> Result<(Token, usize)> {
        let first = rest.chars().next().unwrap_or('\0');
        if first.is_ascii_digit() {
            return self.number(rest);
        }
        if first == '_' || first.is_alphabetic() {
            let size = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            return Ok((Token::Name(Rc::from(&rest[..size])), size));
        }
        if first == '"' || first == '\'' {
            return self.string(rest, first);
        }
        match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            Some(operator) => Ok((Token::Op(operator), operator.len())),
            None => self.error(&format!("unexpected char {first:?}")),
        }
    }

    fn number(&self, rest: &str) -> Result<(Token, usize)> {
        let follows_dot = self.source[..self.position].ends_with('.');
        let digits = |text: &str| digits_size(text, char::is_ascii_digit);
        let whole = digits(rest);
        let mut size = whole;
        if rest[size..].starts_with('.') && digits(&rest[size + 1..]) > 0 {
            size += 1 + digits(&rest[size + 1..]);
        }
        if rest[size..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[size + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[size + 1 + sign..]);
            size += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        if size > whole && !follows_dot {
            let text = rest[..size].replace('_', "");
            return text.parse().map(|value| (Token::Float(value), size)).or_else(|_| self.error("no number"));
        }
        self.integer(rest, whole)
    }

    fn integer(&self, rest: &str, decimal: usize) -> Result<(Token, usize)> {
        for (prefix, radix) in [("0b", 2), ("0o", 8), ("0x", 16)] {
            let Some(head) = rest.get(..2).filter(|head| head.eq_ignore_ascii_case(prefix)) else { continue };
            let tail = &rest[head.len()..];
            let tail_size =
                digits_size(tail.trim_start_matches('_'), |c| c.is_digit(radix)) + usize::from(tail.starts_with('_'));
            if let Ok(value) = i128::from_str_radix(&tail[..tail_size].replace('_', ""), radix) {
                return Ok((Token::Int(value), 2 + tail_size));
            }
        }
        // A number that begins with 0 is 0 alone: what follows is the next token.
        let size = if rest.starts_with('0') { digits_size(rest, |c| *c == '0') } else { decimal };
        match rest[..size].replace('_', "").parse() {
            Ok(value) => Ok((Token::Int(value), size)),
            Err(_) => self.error("an integer of more than 127 bits"),
        }
    }

    fn string(&self, rest: &str, quote: char) -> Result<(Token, usize)> {
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == quote => {
                    return match unescape(&rest[1..at]) {
                        Some(text) => Ok((Token::Str(text), at + 1)),
                        None => self.error("a string with an escape that is none"),
                    }
                }
                _ => {}
            }
        }
        self.error(&format!("unexpected char {quote:?}"))
    }
}

/// White space that goes with a tag's close, by the sign in front of it: "-" takes all, "+" none, else one newline.
fn after_close(before: &str, behind: &str) -> usize {
    match before.chars().last() {
        Some('-') => behind.len() - behind.trim_start_matches(is_space).len(),
        Some('+') => 0,
        _ => usize::from(behind.starts_with('\n')),
    }
}

/// The size of "{% raw %}", where it stands here. No newline behind it goes.
fn raw_begin(text: &str) -> Option<usize> {
    let tag = &text[2..];
    let tag = tag.strip_prefix(['-', '+']).unwrap_or(tag).trim_start_matches(is_space);
    let tail = tag.strip_prefix("raw")?.trim_start_matches(is_space);
    let behind = match tail.strip_prefix("-%}") {
        Some(behind) => behind.trim_start_matches(is_space),
        None => tail.strip_prefix("%}")?,
    };
    Some(text.len() - behind.len())
}

/// Digits, single underscores between them.
fn digits_size(text: &str, is_digit: impl Fn(&char) -> bool) -> usize {
    let mut size = 0;
    let mut underscore = false;
    for c in text.chars() {
        if is_digit(&c) {
            size += 1 + usize::from(underscore);
            underscore = false;
        } else if c == '_' && !underscore && size > 0 {
            underscore = true;
        } else {
            break;
        }
    }
    size
}

/// Python's escapes in a string; None where one breaks off.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(c),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            'x' | 'u' | 'U' => {
                let size = if c == 'x' {
                    2
                } else if c == 'u' {
                    4
                } else {
                    8
                };
                let digits = rest.get(..size).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
                out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                rest = &rest[size..];
            }
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let code = rest[..more].bytes().fold(c as u32 - 48, |code, b| code * 8 + u32::from(b - b'0'));
                out.push(char::from_u32(code)?);
                rest = &rest[more..];
            }
            'N' => return None, // a character by its Unicode name
            _ if c.is_ascii() => out.extend(['\\', c]),
            _ => out.push_str(&spelled_after_backslash(c)),
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Jinja2 spells characters beyond ASCII as escapes before it reads the escapes, so that a backslash in front of one
/// quotes the spelling's own backslash.
fn spelled_after_backslash(c: char) -> String {
    match c as u32 {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}
