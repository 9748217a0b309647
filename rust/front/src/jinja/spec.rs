//! Python's format specifications: how `%5.2f` and `{:>5.2f}` lay out a number or a text.

use super::text::repr_float;
use super::value::{fail, Result};

pub struct Spec {
    pub fill: char,
    pub align: Option<char>, // < > ^ =
    pub sign: char,          // '-', '+' or ' '
    pub alternate: bool,     // #
    pub width: usize,
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub kind: Option<char>,
}

/// Wider than any template has a use for, and too little to fill the memory.
const MAX_WIDTH: usize = 1 << 20;

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            fill: ' ',
            align: None,
            sign: '-',
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        }
    }
}

/// The number that `text` begins with, which is cut off.
pub fn take_number(text: &mut &str) -> Result<Option<usize>> {
    let size = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(size);
    *text = rest;
    match digits.parse::<usize>() {
        Ok(number) if number <= MAX_WIDTH => Ok(Some(number)),
        _ if digits.is_empty() => Ok(None),
        _ => fail(format!("expected a width of at most {MAX_WIDTH}, got {digits}")),
    }
}

fn take(text: &mut &str, wanted: &[char]) -> Option<char> {
    let found = text.chars().next().filter(|c| wanted.contains(c))?;
    *text = &text[found.len_utf8()..];
    Some(found)
}

impl Spec {
    /// What stands behind the colon in "{:>5.2f}".
    pub fn parse(text: &str) -> Result<Spec> {
        let mut spec = Spec::default();
        let mut rest = text;
        let mut letters = text.chars();
        let first = letters.next();
        match (first, letters.next()) {
            (Some(fill), Some(align @ ('<' | '>' | '^' | '='))) => {
                spec.fill = fill;
                spec.align = Some(align);
                rest = letters.as_str();
            }
            _ => spec.align = take(&mut rest, &['<', '>', '^', '=']),
        }
        spec.sign = take(&mut rest, &['-', '+', ' ']).unwrap_or('-');
        spec.alternate = take(&mut rest, &['#']).is_some();
        if take(&mut rest, &['0']).is_some() && spec.align.is_none() {
            spec.fill = '0';
            spec.align = Some('=');
        }
        spec.width = take_number(&mut rest)?.unwrap_or(0);
        spec.grouping = take(&mut rest, &[',', '_']);
        if take(&mut rest, &['.']).is_some() {
            spec.precision = take_number(&mut rest)?;
            if spec.precision.is_none() {
                return fail("Format specifier missing precision");
            }
        }
        let mut kind = rest.chars();
        spec.kind = kind.next();
        if kind.next().is_some() {
            return fail(format!("Invalid format specifier '{text}'"));
        }
        Ok(spec)
    }

    pub fn pad(&self, sign: &str, body: &str, align: char) -> String {
        let size = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(size);
        let fill = |count: usize| self.fill.to_string().repeat(count);
        match self.align.unwrap_or(align) {
            '<' => format!("{sign}{body}{}", fill(missing)),
            '^' => format!("{}{sign}{body}{}", fill(missing / 2), fill(missing - missing / 2)),
            '=' => format!("{sign}{}{body}", fill(missing)),
            _ => format!("{}{sign}{body}", fill(missing)),
        }
    }

    fn unknown<T>(&self, type_name: &str) -> Result<T> {
        fail(format!("Unknown format code '{}' for object of type '{type_name}'", self.kind.unwrap_or(' ')))
    }

    pub fn text(&self, text: &str) -> Result<String> {
        if !matches!(self.kind, None | Some('s')) {
            return self.unknown("str");
        }
        if self.align == Some('=') && self.fill != '0' || self.sign != '-' || self.alternate || self.grouping.is_some()
        {
            return fail("a format specifier for numbers, on text");
        }
        let cut: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
        let left = Spec { align: self.align.filter(|align| *align != '='), ..*self };
        Ok(left.pad("", &cut, '<'))
    }

    pub fn sign_of(&self, is_negative: bool) -> &'static str {
        match self.sign {
            _ if is_negative => "-",
            '+' => "+",
            ' ' => " ",
            _ => "",
        }
    }

    /// Digits before the point in groups, as many zeros in front as the width asks for.
    fn grouped(&self, digits: &str, size: usize, sign: &str, tail: &str) -> String {
        let Some(separator) = self.grouping else { return digits.to_string() };
        let mut digits = digits.to_string();
        let joined = |digits: &str| {
            let mut out = String::new();
            for (i, digit) in digits.chars().enumerate() {
                if i > 0 && (digits.len() - i) % size == 0 {
                    out.push(separator);
                }
                out.push(digit);
            }
            out
        };
        while self.align == Some('=')
            && self.fill == '0'
            && joined(&digits).len() + sign.len() + tail.len() < self.width
        {
            digits.insert(0, '0');
        }
        joined(&digits)
    }

    pub fn integer(&self, value: i128) -> Result<String> {
        let size = value.unsigned_abs();
        let (prefix, digits, group) = match self.kind {
            None | Some('d' | 'n') => ("", size.to_string(), 3),
            Some('b') => ("0b", format!("{size:b}"), 4),
            Some('o') => ("0o", format!("{size:o}"), 4),
            Some('x') => ("0x", format!("{size:x}"), 4),
            Some('X') => ("0X", format!("{size:X}"), 4),
            Some('c') => {
                let letter = u32::try_from(value).ok().and_then(char::from_u32);
                return letter
                    .map_or_else(|| fail("%c arg not in range(0x110000)"), |c| Ok(self.pad("", &c.to_string(), '<')));
            }
            Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => return self.float(value as f64),
            _ => return self.unknown("int"),
        };
        if self.precision.is_some() {
            return fail("Precision not allowed in integer format specifier");
        }
        if self.grouping == Some(',') && group == 4 {
            return fail("Cannot specify ',' with this format code.");
        }
        let sign = format!("{}{}", self.sign_of(value < 0), if self.alternate { prefix } else { "" });
        Ok(self.pad(&sign, &self.grouped(&digits, group, &sign, ""), '>'))
    }

    pub fn float(&self, value: f64) -> Result<String> {
        let sign = self.sign_of(value.is_sign_negative() && !value.is_nan());
        let size = value.abs();
        let kind = self.kind.unwrap_or('\0');
        let precision = self.precision.unwrap_or(6);
        let body = match kind {
            'f' | 'F' => format!("{size:.precision$}"),
            'e' | 'E' => exponential(size, precision),
            'g' | 'G' | 'n' => general(size, precision, self.alternate, false),
            '%' => format!("{:.precision$}", size * 100.0) + "%",
            '\0' if self.precision.is_none() => repr_float(size),
            '\0' => general(size, precision, self.alternate, true),
            _ => return self.unknown("float"),
        };
        let mut body = if size.is_finite() { body } else { repr_float(size) + if kind == '%' { "%" } else { "" } };
        if kind.is_ascii_uppercase() {
            body = body.to_uppercase();
        }
        let whole = body.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, tail) = body.split_at(whole);
        let digits = self.grouped(digits, 3, sign, tail);
        Ok(self.pad(sign, &format!("{digits}{tail}"), '>'))
    }
}

/// "1.50e+03"
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The shorter of both forms with so many digits, without zeros at the end; `as_float` keeps one digit behind the point.
fn general(value: f64, precision: usize, keep_zeros: bool, as_float: bool) -> String {
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let exponent: i64 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let limit = precision as i64 - i64::from(as_float);
    let (mut body, tail) = if (-4..limit).contains(&exponent) {
        (format!("{value:.*}", (precision as i64 - 1 - exponent).max(0) as usize), String::new())
    } else {
        let text = exponential(value, precision - 1);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, ""));
        (digits.to_string(), format!("e{exponent}"))
    };
    if body.contains('.') && !keep_zeros {
        body = body.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    if as_float && !body.contains('.') && tail.is_empty() {
        body.push_str(".0");
    }
    body + &tail
}
