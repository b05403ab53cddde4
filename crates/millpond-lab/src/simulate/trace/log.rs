//! Access logs in the common log format of web servers, and the combined one, which has more behind it:
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /path HTTP/1.0" 200 2326`.
//!
//! GETs that were answered with 200 or 206 count. How long an object is isn't said: the most bytes that were ever sent
//! of it are taken; and of a part (206) it isn't said which: its beginning is.

use super::{TraceError, beginning, length, name};
use crate::simulate::workload::{Visit, Workload};
use std::collections::HashMap;

const EXPECTED: &str = "host ident user [day/month/year:hour:minute:second zone] \"method path version\" status bytes";

/// Reads a log.
///
/// # Errors
///
/// The first line that is not of the form.
pub fn read(text: &str) -> Result<Workload, TraceError> {
    let mut visits = Vec::new();
    let mut lengths: HashMap<u64, u64> = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong =
            || TraceError { unit: "line", number: number as u64 + 1, expected: EXPECTED, found: beginning(line) };
        let Some(visit) = visit(line).ok_or_else(wrong)? else { continue };
        let longest = lengths.entry(visit.object).or_default();
        *longest = (*longest).max(visit.len);
        visits.push(visit);
    }
    visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    let begin = visits.first().map_or(0.0, |visit| visit.at);
    for visit in &mut visits {
        visit.at -= begin;
        visit.len = lengths[&visit.object];
    }
    Ok(Workload { name: "log".to_owned(), visits })
}

/// The visit of a line, where the line is of one that counts.
fn visit(line: &str) -> Option<Option<Visit>> {
    let (_, rest) = line.split_once('[')?;
    let (date, rest) = rest.split_once(']')?;
    let at = seconds(date)?;
    let (_, rest) = rest.split_once('"')?;
    let (request, rest) = rest.split_once('"')?;
    let mut fields = rest.split_ascii_whitespace();
    let status: u16 = fields.next()?.parse().ok()?;
    let bytes = match fields.next()? {
        "-" => 0,
        bytes => length(bytes)?,
    };
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next(), words.next());
    let counts = method == Some("GET") && matches!(status, 200 | 206) && bytes > 0;
    let Some(path) = path.filter(|_| counts) else { return Some(None) };
    let object = name(path.split('?').next().unwrap_or(path));
    Some(Some(Visit { at, object, len: bytes, from: 0, to: bytes, rate: f64::INFINITY }))
}

/// Seconds of `10/Oct/2000:13:55:36 -0700` since any fixed moment.
fn seconds(date: &str) -> Option<f64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, zone) = date.split_once(' ').unwrap_or((date, "+0000"));
    let mut parts = date.split(['/', ':']);
    let mut number = |most: i64| parts.next()?.parse::<i64>().ok().filter(|n| (0..=most).contains(n));
    let day = number(31)?;
    let month = {
        let name = date.split('/').nth(1)?;
        MONTHS.iter().position(|month| *month == name)? as i64 + 1
    };
    let mut rest = date.split('/').nth(2)?.split(':');
    let mut number = |most: i64| rest.next()?.parse::<i64>().ok().filter(|n| (0..=most).contains(n));
    let (year, hour, minute, second) = (number(9999)?, number(23)?, number(59)?, number(60)?);
    // Days since 1 March of year 0 (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = if month > 2 { year } else { year - 1 };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100) + shifted.div_euclid(400) + of_year;
    let zone: i64 = zone.parse().ok().filter(|zone| (-2400..=2400).contains(zone))?;
    let offset = (zone / 100 * 60 + zone % 100) * 60;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - offset) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_forms_are_read() {
        let text = "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a.mp4 HTTP/1.0\" 200 2326\n\
            ::1 - - [10/Oct/2000:20:55:46 +0000] \"GET /a.mp4?x=1 HTTP/1.1\" 206 100 \"-\" \"curl/7\"\n\
            ::1 - - [11/Oct/2000:20:55:46 +0000] \"POST /a.mp4 HTTP/1.1\" 200 100\n\
            ::1 - - [11/Oct/2000:20:55:46 +0000] \"GET /b HTTP/1.1\" 404 -\n";
        let trace = read(text).unwrap();
        assert_eq!(trace.visits.len(), 2);
        assert_eq!((trace.visits[0].at, trace.visits[0].to), (0.0, 2326));
        assert_eq!((trace.visits[1].at, trace.visits[1].len, trace.visits[1].to), (10.0, 2326, 100));
        let day = |date: &str| seconds(date).unwrap() / 86_400.0;
        assert_eq!(day("01/Mar/2000:00:00:00 +0000") - day("28/Feb/2000:00:00:00 +0000"), 2.0);
        assert_eq!(day("01/Jan/2001:00:00:00 +0000") - day("01/Jan/2000:00:00:00 +0000"), 366.0);
    }

    #[test]
    fn what_is_no_line_is_named() {
        for wrong in [
            "x",
            "h - - [x] \"GET / HTTP/1.0\" 200 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET /\" abc 1",
            "h - - [10/Xxx/2000:13:55:36] \"G\" 1 1",
        ] {
            assert_eq!(read(wrong).unwrap_err().number, 1, "{wrong}");
        }
    }
}
