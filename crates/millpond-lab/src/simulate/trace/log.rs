//! Access logs of web servers and of Millpond.
//!
//! A line in Common Log Format, or the combined one with more behind it, is
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /path HTTP/1.0" 200 2326`. A line that begins with `{` is one of
//! Millpond's in JSON.
//!
//! GETs that were answered with 200 or 206 count, and RTSP sessions (PLAY). Common Log Format does not tell the length of
//! an object: the most bytes that were ever sent of it are taken. Of a part (206) it does not tell which: the beginning
//! is taken. JSON tells both, and the time that an RTSP session took.

use super::{LARGEST, TraceError, beginning, length, name};
use crate::simulate::workload::{Visit, Workload};
use millpond_utc::Date;
use serde_json::Value;
use std::collections::HashMap;

const EXPECTED: &str =
    "host ident user [day/month/year:hour:minute:second zone] \"method path version\" status bytes, or JSON";

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
        let visit = if line.starts_with('{') { json_visit(line) } else { visit(line) };
        let Some(visit) = visit.ok_or_else(wrong)? else { continue };
        let longest = lengths.entry(visit.object).or_default();
        *longest = (*longest).max(visit.len);
        visits.push(visit);
    }
    visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    let begin = visits.first().map_or(0.0, |visit| visit.at);
    for visit in &mut visits {
        visit.at -= begin;
        visit.len = lengths[&visit.object];
        visit.to = visit.to.min(visit.len);
        visit.from = visit.from.min(visit.to);
    }
    Ok(Workload { name: "log".to_owned(), visits })
}

/// The visit of a line in Common Log Format; the inner `None` is a line that does not count.
fn visit(line: &str) -> Option<Option<Visit>> {
    let (_, rest) = line.split_once('[')?;
    let (date, rest) = rest.split_once(']')?;
    let at = seconds(date)?;
    let (_, rest) = rest.split_once('"')?;
    let (request, rest) = rest.split_at(end_of_quoted(rest)?);
    let mut fields = rest[1..].split_ascii_whitespace();
    let status: u16 = fields.next()?.parse().ok()?;
    let bytes = match fields.next()? {
        "-" => 0,
        bytes => length(bytes)?,
    };
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next(), words.next());
    let counts = matches!(method, Some("GET" | "PLAY")) && matches!(status, 200 | 206) && bytes > 0;
    let Some(path) = path.filter(|_| counts) else { return Some(None) };
    Some(Some(Visit { at, object: object(path), len: bytes, from: 0, to: bytes, rate: f64::INFINITY }))
}

/// The position of the quote that ends a text. Quotes behind backslashes, as Apache writes them, do not.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// The name of the object that a URL asks for. The query is no part of it.
fn object(path: &str) -> u64 {
    name(path.split('?').next().unwrap_or(path))
}

/// The visit of a line in JSON; the inner `None` is a line that does not count.
fn json_visit(line: &str) -> Option<Option<Visit>> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| line.get(key).and_then(Value::as_str);
    let number = |key: &str| line.get(key).and_then(Value::as_u64);
    let counts = matches!(text("method"), Some("GET" | "PLAY")) && matches!(number("status"), Some(200 | 206));
    let bytes = number("bytes").filter(|bytes| counts && (1..=LARGEST).contains(bytes));
    let Some(bytes) = bytes else { return Some(None) };
    let ended = millpond_utc::parse(text("timestamp")?)?.as_secs_f64();
    let took = number("us").map(|us| us as f64 / 1e6).or(number("ms").map(|ms| ms as f64 / 1e3)).unwrap_or(0.0);
    let path = text("uri").map(str::to_owned).or_else(|| text("asset").map(|asset| format!("/{asset}")))?;
    // RTSP sends at the pace of playback.
    let is_paced = text("method") == Some("PLAY") && took > 0.0;
    let rate = if is_paced { bytes as f64 / took } else { f64::INFINITY };
    let (from, len) = match text("range") {
        Some(range) => part(range)?,
        None => (0, bytes),
    };
    let to = from.checked_add(bytes).filter(|to| *to <= LARGEST)?;
    Some(Some(Visit { at: ended - took, object: object(&path), len: len.max(to), from, to, rate }))
}

/// First byte and length of the object of `bytes 0-99/1234`.
fn part(range: &str) -> Option<(u64, u64)> {
    let (part, len) = range.strip_prefix("bytes ")?.split_once('/')?;
    Some((length(part.split('-').next()?)?, length(len).unwrap_or(0)))
}

/// Seconds of `10/Oct/2000:13:55:36 -0700` since the Unix epoch.
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
    let days = Date { year, month: month.try_into().ok()?, day: day.try_into().ok()? }.days()?;
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
    fn lines_in_json_have_ranges_and_times() {
        let text = "{\"timestamp\":\"2026-11-24T03:00:10.500000Z\",\"message\":\"request\",\"method\":\"GET\",\"uri\":\"/a.mp4?x\",\
                     \"status\":206,\"bytes\":100,\"us\":500000,\"range\":\"bytes 50-249/1000\"}\n\
            {\"timestamp\":\"2026-11-24T03:00:20Z\",\"method\":\"PLAY\",\"asset\":\"a.mp4\",\"status\":200,\"bytes\":800,\"ms\":4000}\n\
            {\"timestamp\":\"2026-11-24T03:00:20Z\",\"message\":\"RTSP session plays\",\"asset\":\"a.mp4\"}\n\
            10.0.0.1 - - [24/Nov/2026:03:00:30 +0000] \"GET /a\\\"b HTTP/1.1\" 200 7 \"-\" \"x\"\n";
        let trace = read(text).unwrap();
        let [part, session, other] = trace.visits[..] else { panic!("{trace:?}") };
        assert_eq!((part.at, part.from, part.to, part.len, part.rate), (0.0, 50, 150, 1000, f64::INFINITY));
        assert_eq!((session.at, session.to, session.len, session.rate), (6.0, 800, 1000, 200.0));
        assert_eq!((session.object == part.object, other.object == part.object, other.at), (true, false, 20.0));
        for wrong in ["{", "{\"method\":\"GET\",\"status\":200,\"bytes\":1,\"uri\":\"/\",\"timestamp\":\"x\"}"] {
            assert_eq!(read(wrong).unwrap_err().number, 1, "{wrong}");
        }
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
