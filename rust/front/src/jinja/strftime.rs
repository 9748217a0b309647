//! datetime.now().strftime(...) in the C locale, for a time without a zone.

use super::value::{fail, Result};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

struct Time {
    year: i64,
    month: i64, // from 1
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    week_day: i64, // from Sunday, 0
    year_day: i64, // from 0
}

impl Time {
    fn new(seconds: i64) -> Time {
        let days = seconds.div_euclid(86_400);
        let rest = seconds.rem_euclid(86_400);
        let (year, month, day) = date(days);
        Time {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            week_day: (days + 4).rem_euclid(7),
            year_day: days - days_before(year),
        }
    }

    /// The week of the year that ISO 8601 counts, and its year.
    fn iso_week(&self) -> (i64, i64) {
        let monday = (self.week_day + 6) % 7;
        let week = (self.year_day - monday + 10) / 7;
        if week < 1 {
            let last = Time::new((days_before(self.year) - 1) * 86_400);
            return (self.year - 1, last.iso_week().1);
        }
        let next_monday = (days_before(self.year + 1) + 3).rem_euclid(7);
        if week == 53 && next_monday <= 3 {
            return (self.year + 1, 1);
        }
        (self.year, week)
    }
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

/// Days from 1970-01-01 to the first of `year`.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    (year - 1970) * 365 + (past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)) - 477
}

fn date(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_before(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_before(year);
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in lengths.iter().enumerate() {
        if day < *length {
            return (year, month as i64 + 1, day + 1);
        }
        day -= length;
    }
    (year, 12, 31)
}

pub fn strftime(format: &str, seconds: i64) -> Result<String> {
    if !(-62_135_596_800..253_402_300_800).contains(&seconds) {
        return fail("strftime_now: a clock outside the years 1 to 9999");
    }
    let time = Time::new(seconds);
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let flag = rest.chars().next().filter(|c| "-_0^".contains(*c));
        rest = &rest[usize::from(flag.is_some())..];
        let Some(letter) = rest.chars().next() else { return fail("strftime_now: a format that ends in %") };
        rest = &rest[letter.len_utf8()..];
        out.push_str(&field(&time, letter, flag)?);
    }
    out.push_str(rest);
    Ok(out)
}

fn field(time: &Time, letter: char, flag: Option<char>) -> Result<String> {
    let number = |value: i64, width: usize, pad: char| match flag.unwrap_or(pad) {
        '-' => value.to_string(),
        '_' => format!("{value:>width$}"),
        _ => format!("{value:0>width$}"),
    };
    let twelve = (time.hour + 11) % 12 + 1;
    let monday = (time.week_day + 6) % 7;
    let text = match letter {
        'a' => DAYS[time.week_day as usize][..3].to_string(),
        'A' => DAYS[time.week_day as usize].to_string(),
        'b' | 'h' => MONTHS[time.month as usize - 1][..3].to_string(),
        'B' => MONTHS[time.month as usize - 1].to_string(),
        'C' => number(time.year / 100, 2, '0'),
        'd' => number(time.day, 2, '0'),
        'e' => number(time.day, 2, '_'),
        'f' => "000000".to_string(),
        'g' => number(time.iso_week().0 % 100, 2, '0'),
        'G' => number(time.iso_week().0, 4, '0'),
        'H' => number(time.hour, 2, '0'),
        'I' => number(twelve, 2, '0'),
        'j' => number(time.year_day + 1, 3, '0'),
        'k' => number(time.hour, 2, '_'),
        'l' => number(twelve, 2, '_'),
        'm' => number(time.month, 2, '0'),
        'M' => number(time.minute, 2, '0'),
        'p' => if time.hour < 12 { "AM" } else { "PM" }.to_string(),
        'P' => if time.hour < 12 { "am" } else { "pm" }.to_string(),
        'S' => number(time.second, 2, '0'),
        'u' => number(monday + 1, 1, '0'),
        'U' => number((time.year_day + 7 - time.week_day) / 7, 2, '0'),
        'V' => number(time.iso_week().1, 2, '0'),
        'w' => number(time.week_day, 1, '0'),
        'W' => number((time.year_day + 7 - monday) / 7, 2, '0'),
        'y' => number(time.year % 100, 2, '0'),
        'Y' => number(time.year, if flag.is_some() { 4 } else { 1 }, '0'),
        'n' => "\n".to_string(),
        't' => "\t".to_string(),
        '%' => "%".to_string(),
        'z' | 'Z' => String::new(),
        _ => return combined(time, letter),
    };
    Ok(if flag == Some('^') { text.to_uppercase() } else { text })
}

fn combined(time: &Time, letter: char) -> Result<String> {
    let format = match letter {
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        'r' => "%I:%M:%S %p",
        'R' => "%H:%M",
        'T' | 'X' => "%H:%M:%S",
        _ => return fail(format!("strftime_now: the format %{letter} is not supported")),
    };
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(c) = letters.next() {
        match (c, c == '%') {
            (_, true) => out.push_str(&field(time, letters.next().unwrap_or('%'), None)?),
            (c, _) => out.push(c),
        }
    }
    Ok(out)
}
