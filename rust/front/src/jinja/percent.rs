//! text % values

use super::spec::{take_number, Spec};
use super::value::{fail, Result, Value};

struct Values<'a> {
    mapping: Option<&'a Value>,
    positional: &'a [Value],
    used: usize,
}

impl<'a> Values<'a> {
    fn next(&mut self) -> Result<&'a Value> {
        self.used += 1;
        self.positional.get(self.used - 1).map_or_else(|| fail("not enough arguments for format string"), Ok)
    }
}

pub fn format(format: &str, values: &Value) -> Result<String> {
    let one = [values.clone()];
    let mut values = Values {
        mapping: matches!(values, Value::Dict(_)).then_some(values),
        positional: match values {
            Value::Tuple(items) | Value::Group(items) => items,
            _ => &one,
        },
        used: 0,
    };
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        let mut value = None;
        if let Some(tail) = rest.strip_prefix('(') {
            let Some(mapping) = values.mapping else { return fail("format requires a mapping") };
            let Some((name, tail)) = tail.split_once(')') else { return fail("incomplete format key") };
            let Value::Dict(items) = mapping else { return fail("format requires a mapping") };
            value =
                Some(items.get(name).map_or_else(|| fail(format!("KeyError: '{name}'")), |found| Ok(found.clone()))?);
            rest = tail;
        }
        out.push_str(&one_value(&mut rest, value, &mut values)?);
    }
    out.push_str(rest);
    let is_mapping = matches!(one, [Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_)]);
    if values.used < values.positional.len() && !is_mapping {
        return fail("not all arguments converted during string formatting");
    }
    Ok(out)
}

fn one_value(rest: &mut &str, value: Option<Value>, values: &mut Values) -> Result<String> {
    let mut spec = Spec { align: Some('>'), ..Spec::default() };
    let (mut left, mut zero) = (false, false);
    while let Some(flag) = rest.chars().next().filter(|c| "-+ #0".contains(*c)) {
        match flag {
            '-' => left = true,
            '+' => spec.sign = '+',
            ' ' if spec.sign == '-' => spec.sign = ' ',
            '#' => spec.alternate = true,
            '0' => zero = true,
            _ => {}
        }
        *rest = &rest[1..];
    }
    let mut measure = |rest: &mut &str| -> Result<Option<usize>> {
        match rest.strip_prefix('*') {
            None => take_number(rest),
            Some(tail) => {
                *rest = tail;
                match values.next()?.as_int() {
                    Some(number @ 0..=1_000_000) => Ok(Some(number as usize)),
                    _ => fail("* wants int"),
                }
            }
        }
    };
    spec.width = measure(rest)?.unwrap_or(0);
    if let Some(tail) = rest.strip_prefix('.') {
        *rest = tail;
        spec.precision = Some(measure(rest)?.unwrap_or(0));
    }
    *rest = rest.trim_start_matches(['h', 'l', 'L']);
    let Some(kind) = rest.chars().next() else { return fail("incomplete format") };
    *rest = &rest[kind.len_utf8()..];
    let value = match value {
        Some(value) => value,
        None => values.next()?.clone(),
    };
    if left {
        spec.align = Some('<');
    } else if zero && !matches!(kind, 's' | 'r' | 'a' | 'c') {
        spec.align = Some('=');
        spec.fill = '0';
    }
    laid_out(spec, kind, &value)
}

fn laid_out(mut spec: Spec, kind: char, value: &Value) -> Result<String> {
    if matches!(kind, 's' | 'r') {
        let text = if kind == 's' { value.to_text()?.to_string() } else { value.repr()? };
        return Spec { sign: '-', alternate: false, ..spec }.text(&text);
    }
    if let Value::Undefined(message) = value {
        return fail(&**message);
    }
    spec.kind = Some(match kind {
        'i' | 'u' => 'd',
        other => other,
    });
    match kind {
        'c' => match (value.as_str(), value.as_int()) {
            (Some(text), _) if text.chars().count() == 1 => Spec { kind: None, sign: '-', ..spec }.text(text),
            (None, Some(number)) => spec.integer(number),
            _ => fail("%c requires int or char"),
        },
        'd' | 'i' | 'u' => {
            let truncated = match value {
                Value::Float(number) if number.is_finite() => Some(number.trunc() as i128),
                _ => value.as_int(),
            };
            match truncated {
                Some(number) => with_least_digits(spec, number),
                None => fail(format!("%{kind} format: a real number is required, not {}", value.type_name())),
            }
        }
        'o' | 'x' | 'X' => match value.as_int() {
            Some(number) => with_least_digits(spec, number),
            None => fail(format!("%{kind} format: an integer is required, not {}", value.type_name())),
        },
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match value.as_number() {
            Some(number) => spec.float(number),
            None => fail(format!("must be real number, not {}", value.type_name())),
        },
        _ => fail(format!("unsupported format character '{kind}'")),
    }
}

/// "%.3d": at least so many digits.
fn with_least_digits(spec: Spec, value: i128) -> Result<String> {
    let Some(precision) = spec.precision else { return spec.integer(value) };
    let digits = Spec { kind: spec.kind, ..Spec::default() }.integer(value.saturating_abs())?;
    let zeros = "0".repeat(precision.saturating_sub(digits.len()));
    Ok(spec.pad(spec.sign_of(value < 0), &(zeros + &digits), '>'))
}
