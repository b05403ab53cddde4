//! The values of settings as text: addresses, sizes, durations and the like.
//!
//! Flags, environment and file share these, so a value is written the same way everywhere.

use super::nearest::nearest;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The form of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `0.0.0.0:8080`, `:8080` or `8080`.
    Address,
    /// A file or folder.
    Path,
    /// A whole number.
    Count,
    /// Bytes, `256MiB`.
    Size,
    /// Time, `4s`, `500ms`, `1m30s`; a bare number is seconds.
    Duration,
    /// `true` or `false`.
    Switch,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Several texts.
    List,
    /// Where lines are written: `off`, `stderr`, `-` or a file; `true` and `false` too.
    Output,
}

impl Form {
    /// The words of a choice, where the value is one.
    pub const fn choices(self) -> &'static [&'static str] {
        match self {
            Self::Choice(words) => words,
            _ => &[],
        }
    }

    /// Stands for the value in help: `--http <ADDRESS>`.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Address => "ADDRESS",
            Self::Path => "PATH",
            Self::Count => "NUMBER",
            Self::Size => "SIZE",
            Self::Duration => "DURATION",
            Self::Switch => "BOOL",
            Self::Choice(_) => "CHOICE",
            Self::Text => "TEXT",
            Self::List => "LIST",
            Self::Output => "OUTPUT",
        }
    }

    /// Says in words what is expected.
    pub fn expected(self) -> String {
        match self {
            Self::Address => "an address and port such as \"0.0.0.0:8080\"".into(),
            Self::Path => "a path such as \"/etc/millpond/cert.pem\"".into(),
            Self::Count => "a whole number such as 4".into(),
            Self::Size => "a size such as \"256MiB\"".into(),
            Self::Duration => "a duration such as \"4s\" or \"500ms\"".into(),
            Self::Switch => "true or false".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Text => "text such as \"info\"".into(),
            Self::List => "a list of texts such as [\"a\", \"b\"]".into(),
            Self::Output => "off, stderr, - or a file such as \"/var/log/millpond/access.log\"".into(),
        }
    }
}

/// A value that can't be taken: says what is expected instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    /// In words, with an example.
    pub expected: String,
    /// The known word that was probably meant.
    pub nearest: Option<String>,
}

impl BadValue {
    /// With words of its own.
    pub fn new(expected: impl Into<String>) -> Self {
        Self { expected: expected.into(), nearest: None }
    }

    /// Adds the word of a choice that looks most like a text.
    pub fn for_text(self, form: Form, text: &str) -> Self {
        let words = form.choices();
        let switched = switch(text).ok().map(|is_on| if is_on { "on" } else { "off" });
        let switched = switched.filter(|word| words.contains(word)).map(str::to_owned);
        let meant = || switched.or_else(|| nearest(text, words.iter().copied()));
        Self { nearest: self.nearest.or_else(meant), ..self }
    }
}

impl From<Form> for BadValue {
    fn from(form: Form) -> Self {
        Self::new(form.expected())
    }
}

/// `0.0.0.0:8080`, `[::]:8080`, `localhost:8080`; without a host all IPv4 addresses are meant.
pub fn address(text: &str) -> Result<SocketAddr, BadValue> {
    let bad = || BadValue::from(Form::Address);
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Some((_, rest)) = text.split_once("://") {
        let rest = rest.trim_end_matches('/');
        return Err(BadValue::new(format!("an address without a scheme and a path, such as \"{rest}\"")));
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let with_port = SocketAddr::new(ip, 8080);
        return Err(BadValue::new(format!("an address with a port, such as \"{with_port}\"")));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let ip = match host {
        "" | "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // Names of hosts are not looked up: they may have several addresses, or those of another machine.
        _ if host.trim_matches(['[', ']']).parse::<IpAddr>().is_err() => {
            return Err(BadValue::new("an IP address of this machine, or none for all, such as \":8080\""));
        }
        _ => return Err(BadValue::new("a port from 0 to 65535")),
    };
    match port.parse() {
        Ok(port) => Ok(SocketAddr::new(ip, port)),
        Err(_) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => {
            Err(BadValue::new("a port from 0 to 65535"))
        }
        Err(_) => Err(bad()),
    }
}

/// A whole number of at least `least`.
pub fn count(text: &str, least: usize) -> Result<usize, BadValue> {
    let bad = || BadValue::new(format!("a whole number of at least {least}"));
    let number = text.replace('_', "").parse().map_err(|_| bad())?;
    if number < least { Err(bad()) } else { Ok(number) }
}

/// A whole number within bounds.
pub fn count_in(text: &str, least: usize, most: usize) -> Result<usize, BadValue> {
    let found = count(text, least).ok().filter(|number| *number <= most);
    found.ok_or_else(|| BadValue::new(format!("a whole number from {least} to {most}")))
}

/// `true`, `false` and the usual words for them.
pub fn switch(text: &str) -> Result<bool, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(Form::Switch.into()),
    }
}

/// Units of size: the decimal ones are powers of 1000, as IEC 80000-13 has them.
const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

/// Bytes: `268435456`, `256MiB`, `1.5 GiB`, `2G`, `500 MB`.
pub fn size(text: &str) -> Result<u64, BadValue> {
    let bad = || BadValue::from(Form::Size);
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let scale = SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1;
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(bad);
    }
    let parts: f64 = number.parse().map_err(|_| bad())?;
    let bytes = parts * scale as f64;
    // Above 2^53 a fraction can't be told any more, and nobody has such a memory.
    if bytes.is_finite() && bytes < (1u64 << 53) as f64 { Ok(bytes as u64) } else { Err(bad()) }
}

/// A size for people: in the largest binary unit that divides it, or with one decimal.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (name, scale) in UNITS {
        if bytes >= scale {
            return if bytes.is_multiple_of(scale) {
                format!("{}{name}", bytes / scale)
            } else {
                format!("{:.1}{name}", bytes as f64 / scale as f64)
            };
        }
    }
    format!("{bytes}B")
}

/// Longest duration that is taken: more than a year is a mistake in the unit.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// `4s`, `500ms`, `1.5m`, `1m30s`, `2h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, BadValue> {
    let bad = || BadValue::from(Form::Duration);
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ms" => 0.001,
            "" | "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(bad()),
        };
        let number: f64 = number.parse().map_err(|_| bad())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        total = total.checked_add(part).ok_or_else(bad)?;
        rest = after.trim_start();
    }
    if total > LONGEST { Err(bad()) } else { Ok(total) }
}

/// A duration within bounds.
pub fn duration_in(text: &str, least: Duration, most: Duration) -> Result<Duration, BadValue> {
    let found = duration(text)?;
    if found < least || found > most {
        let (least, most) = (show_duration(least), show_duration(most));
        return Err(BadValue::new(format!("a duration from {least} to {most} such as \"4s\"")));
    }
    Ok(found)
}

/// Bounds of timeouts: none of them may be switched off, or a silent peer would hold a connection for ever.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 3600));

/// A timeout of connections.
pub fn timeout(text: &str) -> Result<Duration, BadValue> {
    duration_in(text, TIMEOUT.0, TIMEOUT.1)
}

/// A path of a file or a folder.
pub fn path(text: &str) -> Result<PathBuf, BadValue> {
    if text.is_empty() { Err(Form::Path.into()) } else { Ok(PathBuf::from(text)) }
}

/// A duration as configuration writes it.
pub fn show_duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else if duration.as_secs() == 0 {
        format!("{}ms", duration.as_millis())
    } else {
        format!("{:.3}s", duration.as_secs_f64())
    }
}

/// Texts between commas, without the space round them. A comma behind a backslash is one of the text.
pub fn list(text: &str) -> Vec<String> {
    let (mut items, mut item) = (Vec::new(), String::new());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => item.push(rest.next_if_eq(&',').unwrap_or('\\')),
            ',' => items.push(std::mem::take(&mut item)),
            _ => item.push(letter),
        }
    }
    items.push(item);
    items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// The text whose [`list`] has these items.
pub fn joined(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let written: Vec<_> = items.into_iter().map(|item| item.as_ref().replace(',', "\\,")).collect();
    written.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_items_are_behind_backslashes() {
        let items = ["a", "b,c", "C:\\d,", "e f"];
        assert_eq!(joined(items), "a,b\\,c,C:\\d\\,,e f");
        assert_eq!(list(&joined(items)), items);
        assert_eq!(list(" a ,, b\\,c "), ["a", "b,c"]);
        assert_eq!((list(""), list(",")), (vec![], vec![]));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("256MiB", 256 << 20),
            ("256 mib", 256 << 20),
            ("1.5GiB", 3 << 29),
            ("2G", 2 << 30),
            ("500 MB", 500_000_000),
            ("1_000", 1000),
            ("16TiB", 16 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "lots", "1 XB", "-1", "1e3", "99999999TiB", "1.2.3M", "1 Mi B"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_shown_read_back() {
        for bytes in [0, 1, 1023, 1024, 256 << 20, 1 << 30, 3 << 40] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        assert_eq!(show_size(1_500_000_000), "1.4GiB");
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("4", 4_000),
            ("4s", 4_000),
            ("0.5", 500),
            ("500ms", 500),
            ("1m30s", 90_000),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
            ("1h 30min", 5_400_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "4 parsecs", "-1", "1..5s", "99999h", "1e400", "4s!"] {
            assert!(duration(text).is_err(), "{text}");
        }
        let bounds = (Duration::from_millis(500), Duration::from_secs(60));
        assert!(duration_in("0.4", bounds.0, bounds.1).is_err());
        let error = duration_in("61s", bounds.0, bounds.1).unwrap_err();
        assert_eq!(error.expected, "a duration from 500ms to 60s such as \"4s\"");
    }

    #[test]
    fn durations_shown_read_back() {
        for millis in [0, 1, 500, 1_000, 1_500, 75_000] {
            let span = Duration::from_millis(millis);
            assert_eq!(duration(&show_duration(span)), Ok(span));
        }
    }

    #[test]
    fn addresses() {
        for (text, shown) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            (":8080", "0.0.0.0:8080"),
            ("8080", "0.0.0.0:8080"),
            ("*:8080", "0.0.0.0:8080"),
            ("localhost:0", "127.0.0.1:0"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), shown);
        }
        for text in ["", ":", "localhost", "8080x"] {
            assert_eq!(address(text), Err(Form::Address.into()), "{text}");
        }
        for (text, expected) in [
            ("1.2.3.4", "\"1.2.3.4:8080\""),
            ("::1", "\"[::1]:8080\""),
            ("[::1]", "\"[::1]:8080\""),
            ("host.example:80", "an IP address of this machine"),
            ("0.0.0.0:99999", "a port from 0 to 65535"),
            (":70000", "a port from 0 to 65535"),
            ("http://0.0.0.0:8080/", "without a scheme and a path, such as \"0.0.0.0:8080\""),
        ] {
            let error = address(text).unwrap_err();
            assert!(error.expected.contains(expected), "{text}: {error:?}");
        }
    }

    #[test]
    fn counts_switches_and_lists() {
        assert_eq!(count("20_000", 1), Ok(20_000));
        assert!(count("0", 1).is_err());
        assert!(count("-3", 0).is_err());
        assert_eq!(switch("Yes"), Ok(true));
        assert_eq!(switch("off"), Ok(false));
        assert!(switch("maybe").is_err());
        assert_eq!(list(" a, b ,,c"), ["a", "b", "c"]);
    }
}
