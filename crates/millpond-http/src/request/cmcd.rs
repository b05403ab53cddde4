//! Common Media Client Data (CTA-5004): what a player says of its buffer, its link and the object that it requests.
//!
//! A player sends keys in four header fields, or as one query argument `CMCD`. Keys that this version does not know,
//! custom ones among them, are checked and left out. Input is bounded: 4 KiB, 64 keys.
//!
//! Version 2 has values in lists, `bl=(8000;v 3000;a)`. The first member counts. Values of its keys that are none of version 1 are left out.

use super::Request;
use http::HeaderName;
use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

/// Most bytes of the data of one request.
const MOST_BYTES: usize = 4 << 10;
/// Version from which values may be others than those that are known here.
const OPEN_VERSION: u64 = 2;
/// Most keys of one request, unknown ones included.
const MOST_KEYS: usize = 64;
/// Most characters of a content id or session id (CTA-5004 section 3).
const ID_LENGTH: usize = 64;
/// Most characters of a URL of the next object and of a range.
const URL_LENGTH: usize = 1024;
/// Largest integer: that of structured fields (RFC 8941 section 3.3.1).
const LARGEST: u64 = 999_999_999_999_999;

const FIELDS: [HeaderName; 4] = [
    HeaderName::from_static("cmcd-object"),
    HeaderName::from_static("cmcd-request"),
    HeaderName::from_static("cmcd-session"),
    HeaderName::from_static("cmcd-status"),
];

/// Kind of the requested object, key `ot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectType {
    /// A manifest or playlist.
    Manifest,
    /// Sound.
    Audio,
    /// Pictures.
    Video,
    /// Sound and pictures together.
    Muxed,
    /// An init segment.
    Init,
    /// Captions or subtitles.
    Caption,
    /// A timed text track in ISO base media format.
    TimedText,
    /// A key, licence or certificate.
    Key,
    /// Another kind.
    Other,
}

impl ObjectType {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Manifest,
        Self::Audio,
        Self::Video,
        Self::Muxed,
        Self::Init,
        Self::Caption,
        Self::TimedText,
        Self::Key,
        Self::Other,
    ];

    /// The token of the standard.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Manifest => "m",
            Self::Audio => "a",
            Self::Video => "v",
            Self::Muxed => "av",
            Self::Init => "i",
            Self::Caption => "c",
            Self::TimedText => "tt",
            Self::Key => "k",
            Self::Other => "o",
        }
    }

    /// The value of the label `object` in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Muxed => "muxed",
            Self::Init => "init",
            Self::Caption => "caption",
            Self::TimedText => "timed_text",
            Self::Key => "key",
            Self::Other => "other",
        }
    }
}

/// The data of one request. Units are those of the standard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cmcd {
    /// `br`: encoded bitrate of the object, in kbit/s.
    pub bitrate: Option<u64>,
    /// `bl`: buffer length, in milliseconds.
    pub buffer: Option<u64>,
    /// `bs`: whether the buffer was empty at some time since the last request.
    pub starved: bool,
    /// `cid`: content id.
    pub content: Option<String>,
    /// `d`: playback duration of the object, in milliseconds.
    pub duration: Option<u64>,
    /// `dl`: time until the buffer is empty, in milliseconds.
    pub deadline: Option<u64>,
    /// `mtp`: throughput that the player measured, in kbit/s.
    pub measured: Option<u64>,
    /// `nor`: relative URL of the next object.
    pub next: Option<String>,
    /// `nrr`: byte range of the next object.
    pub next_range: Option<String>,
    /// `ot`: kind of the object.
    pub object: Option<ObjectType>,
    /// `pr`: playback rate.
    pub rate: Option<f64>,
    /// `rtp`: throughput that suffices, in kbit/s.
    pub requested: Option<u64>,
    /// `sf`: streaming format: `d`, `h`, `s` or `o`.
    pub format: Option<char>,
    /// `sid`: session id.
    pub session: Option<String>,
    /// `st`: `v` for stored, `l` for live.
    pub stream: Option<char>,
    /// `su`: whether the object is needed at once: at a start, after a seek or after an empty buffer.
    pub startup: bool,
    /// `tb`: highest bitrate of the asset that the player may choose, in kbit/s.
    pub top_bitrate: Option<u64>,
}

/// Why the data of a request is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmcdError {
    /// It is longer than 4 KiB or has more than 64 keys.
    #[error("more than 4 KiB or 64 keys")]
    TooLong,
    /// It is no list of keys with values.
    #[error("no list of keys with values")]
    Syntax,
    /// A key has a value of another type, or one that the standard excludes.
    #[error("a value of another type or length")]
    Value,
    /// A key is there twice.
    #[error("a key is there twice")]
    Repeated,
}

/// A value by its syntax.
enum Value<'a> {
    Flag(bool),
    Number(&'a str),
    Token(&'a str),
    Text(String),
    /// A list without members.
    Nothing,
}

impl Cmcd {
    /// Reads the data of a request: the argument of its query, or else its header fields. `None` if it has neither.
    ///
    /// # Errors
    /// Invalid data. The request is answered nevertheless.
    pub fn of(request: &Request) -> Option<Result<Self, CmcdError>> {
        if let Some(value) = request.split().1.split('&').find_map(|pair| pair.strip_prefix("CMCD=")) {
            return Some(Self::of_query(value));
        }
        let mut text = String::new();
        for value in FIELDS.iter().flat_map(|name| request.headers.get_all(name)) {
            let Ok(value) = value.to_str() else { return Some(Err(CmcdError::Syntax)) };
            if text.len() + value.len() > MOST_BYTES {
                return Some(Err(CmcdError::TooLong));
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(value);
        }
        (!text.is_empty()).then(|| Self::parse(&text))
    }

    /// Parses the value of the query argument, percent-encoded.
    ///
    /// # Errors
    /// Invalid data.
    pub fn of_query(value: &str) -> Result<Self, CmcdError> {
        if value.len() > 3 * MOST_BYTES {
            return Err(CmcdError::TooLong);
        }
        let text = percent_encoding::percent_decode_str(value).decode_utf8().map_err(|_| CmcdError::Syntax)?;
        Self::parse(&text)
    }

    /// Parses a list of keys with values, `bl=21300,bs,cid="a"`.
    ///
    /// # Errors
    /// Invalid data.
    pub fn parse(text: &str) -> Result<Self, CmcdError> {
        if text.len() > MOST_BYTES {
            return Err(CmcdError::TooLong);
        }
        let members = members(text)?;
        let version = members.iter().find_map(|(key, value)| (*key == "v").then(|| integer(value).ok())?);
        let is_open = version.is_some_and(|version| version >= OPEN_VERSION);
        let mut data = Self::default();
        for (key, value) in members {
            let set = data.set(key, value);
            if !is_open {
                set?;
            }
        }
        Ok(data)
    }

    /// Leaves out the URL of the next object where it may contain a token: in its query, or behind `~` in its path.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        self.next.take_if(|url| percent_encoding::percent_decode_str(url).any(|byte| matches!(byte, b'?' | b'~')));
        self
    }

    fn set(&mut self, key: &str, value: Value<'_>) -> Result<(), CmcdError> {
        match key {
            "br" => self.bitrate = Some(integer(&value)?),
            "bl" => self.buffer = Some(integer(&value)?),
            "bs" => self.starved = flag(&value)?,
            "cid" => self.content = Some(text(value, ID_LENGTH)?),
            "d" => self.duration = Some(integer(&value)?),
            "dl" => self.deadline = Some(integer(&value)?),
            "mtp" => self.measured = Some(integer(&value)?),
            "nor" => self.next = Some(text(value, URL_LENGTH)?),
            "nrr" => self.next_range = Some(text(value, URL_LENGTH)?),
            "ot" => {
                let token = token(&value)?;
                let found = ObjectType::ALL.into_iter().find(|object| object.token() == token);
                self.object = Some(found.ok_or(CmcdError::Value)?);
            }
            "pr" => self.rate = Some(decimal(&value)?),
            "rtp" => self.requested = Some(integer(&value)?),
            "sf" => self.format = Some(letter(&value, "dhso")?),
            "sid" => self.session = Some(text(value, ID_LENGTH)?),
            "st" => self.stream = Some(letter(&value, "vl")?),
            "su" => self.startup = flag(&value)?,
            "tb" => self.top_bitrate = Some(integer(&value)?),
            // `v` is 1, or the list has keys of a later version.
            "v" => drop(integer(&value)?),
            _ => {}
        }
        Ok(())
    }
}

impl fmt::Display for Cmcd {
    /// Writes the known keys in the form of the standard, in the order of the alphabet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |key, value: Option<u64>| value.map(|value| format!("{key}={value}"));
        let set = |key: &str, value: bool| value.then(|| key.to_owned());
        let text = |key, value: &Option<String>| {
            let value = value.as_ref()?.replace('\\', "\\\\").replace('"', "\\\"");
            Some(format!("{key}=\"{value}\""))
        };
        let token = |key, value: Option<Cow<'static, str>>| value.map(|value| format!("{key}={value}"));
        let letter = |value: Option<char>| value.map(|value| Cow::Owned(value.to_string()));
        let members = [
            number("bl", self.buffer),
            number("br", self.bitrate),
            set("bs", self.starved),
            text("cid", &self.content),
            number("d", self.duration),
            number("dl", self.deadline),
            number("mtp", self.measured),
            text("nor", &self.next),
            text("nrr", &self.next_range),
            token("ot", self.object.map(|object| object.token().into())),
            token("pr", self.rate.map(|rate| rate.to_string().into())),
            number("rtp", self.requested),
            token("sf", letter(self.format)),
            text("sid", &self.session),
            token("st", letter(self.stream)),
            set("su", self.startup),
            number("tb", self.top_bitrate),
        ];
        for (index, member) in members.into_iter().flatten().enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            f.write_str(&member)?;
        }
        Ok(())
    }
}

/// Splits a list into its keys and their values.
fn members(text: &str) -> Result<Vec<(&str, Value<'_>)>, CmcdError> {
    let mut members: Vec<(&str, Value<'_>)> = Vec::new();
    let mut rest = text.trim_matches(' ');
    loop {
        let end = rest.find(['=', ',', ' ', ';']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        if !is_key(key) {
            return Err(CmcdError::Syntax);
        }
        if members.iter().any(|(seen, _)| *seen == key) {
            return Err(CmcdError::Repeated);
        }
        if members.len() == MOST_KEYS {
            return Err(CmcdError::TooLong);
        }
        let (value, after) = match after.strip_prefix('=') {
            Some(after) => value(after)?,
            None => (Value::Flag(true), parameters(after)?),
        };
        members.push((key, value));
        let after = after.trim_start_matches(' ');
        if after.is_empty() {
            return Ok(members);
        }
        rest = after.strip_prefix(',').ok_or(CmcdError::Syntax)?.trim_start_matches(' ');
    }
}

/// Whether a text is a key: of the standard, or a custom one with a prefix such as `com.example-`.
fn is_key(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'*');
    text.len() <= ID_LENGTH
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(is_allowed)
}

/// Splits a value, with its parameters, from the text behind it.
fn value(text: &str) -> Result<(Value<'_>, &str), CmcdError> {
    let (value, rest) = match text.strip_prefix('(') {
        Some(rest) => first_of_list(rest)?,
        None => item(text)?,
    };
    Ok((value, parameters(rest)?))
}

/// Splits the first member of a list from the text behind the list (RFC 8941 section 3.1.1).
fn first_of_list(mut rest: &str) -> Result<(Value<'_>, &str), CmcdError> {
    let mut first = None;
    loop {
        rest = rest.trim_start_matches(' ');
        if let Some(behind) = rest.strip_prefix(')') {
            return Ok((first.unwrap_or(Value::Nothing), behind));
        }
        let (value, after) = item(rest)?;
        rest = parameters(after)?;
        if !rest.starts_with([' ', ')']) {
            return Err(CmcdError::Syntax);
        }
        first.get_or_insert(value);
    }
}

/// Returns the text behind the parameters of a value, `;v;r="0-99"` (RFC 8941 section 3.1.2).
fn parameters(mut text: &str) -> Result<&str, CmcdError> {
    while let Some(rest) = text.strip_prefix(';') {
        let rest = rest.trim_start_matches(' ');
        let (key, after) = rest.split_at(rest.find(['=', ',', ' ', ';', ')']).unwrap_or(rest.len()));
        if !is_key(key) {
            return Err(CmcdError::Syntax);
        }
        text = match after.strip_prefix('=') {
            Some(after) => item(after)?.1,
            None => after,
        };
    }
    Ok(text)
}

/// Splits a value without parameters from the text behind it.
fn item(text: &str) -> Result<(Value<'_>, &str), CmcdError> {
    if let Some(rest) = text.strip_prefix('"') {
        return quoted(rest);
    }
    let (word, rest) = text.split_at(text.find([',', ' ', ';', ')']).unwrap_or(text.len()));
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/?".contains(&b);
    let value = match word {
        "" => return Err(CmcdError::Syntax),
        "?0" => Value::Flag(false),
        "?1" => Value::Flag(true),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Value::Number(word),
        _ if word.bytes().all(is_token) => Value::Token(word),
        _ => return Err(CmcdError::Syntax),
    };
    Ok((value, rest))
}

/// Splits a string behind its first quote (RFC 8941 section 3.3.3).
fn quoted(text: &str) -> Result<(Value<'_>, &str), CmcdError> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Value::Text(value), &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                _ => return Err(CmcdError::Syntax),
            },
            ' '..='~' => value.push(c),
            _ => return Err(CmcdError::Syntax),
        }
    }
    Err(CmcdError::Syntax)
}

fn integer(value: &Value<'_>) -> Result<u64, CmcdError> {
    let Value::Number(text) = value else { return Err(CmcdError::Value) };
    text.parse().ok().filter(|number| *number <= LARGEST).ok_or(CmcdError::Value)
}

fn decimal(value: &Value<'_>) -> Result<f64, CmcdError> {
    let Value::Number(text) = value else { return Err(CmcdError::Value) };
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-')) && text.len() <= 16;
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite()).ok_or(CmcdError::Value)
}

fn flag(value: &Value<'_>) -> Result<bool, CmcdError> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        Value::Token("true") => Ok(true),
        Value::Token("false") => Ok(false),
        _ => Err(CmcdError::Value),
    }
}

fn token<'a>(value: &Value<'a>) -> Result<&'a str, CmcdError> {
    match value {
        Value::Token(token) => Ok(token),
        _ => Err(CmcdError::Value),
    }
}

fn letter(value: &Value<'_>, allowed: &str) -> Result<char, CmcdError> {
    let mut letters = token(value)?.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if allowed.contains(letter) => Ok(letter),
        _ => Err(CmcdError::Value),
    }
}

fn text(value: Value<'_>, most: usize) -> Result<String, CmcdError> {
    match value {
        Value::Text(text) if text.len() <= most => Ok(text),
        _ => Err(CmcdError::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, Method};

    /// The example of CTA-5004 with most keys, as a query argument.
    const QUERY: &str = "bl%3D21300%2Cbr%3D3200%2Cbs%2Ccid%3D%22faec5fc2-ac30-11ea-bb37-0242ac130002%22%2Cd%3D4004%2C\
        dl%3D18500%2Cmtp%3D48100%2Cnor%3D%22..%252F300kbps%252Ftrack.m4v%22%2Cnrr%3D%2212323-48763%22%2Cot%3Dv%2C\
        pr%3D1.08%2Crtp%3D12000%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000";
    const LIST: &str = "bl=21300,br=3200,bs,cid=\"faec5fc2-ac30-11ea-bb37-0242ac130002\",d=4004,dl=18500,mtp=48100,\
        nor=\"..%2F300kbps%2Ftrack.m4v\",nrr=\"12323-48763\",ot=v,pr=1.08,rtp=12000,sf=d,\
        sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,su,tb=6000";

    fn request(target: &str, fields: &[(&'static str, &str)]) -> Request {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        Request::new(Method::GET, target.to_owned(), headers)
    }

    #[test]
    fn the_examples_of_the_standard() {
        let of_query = Cmcd::of(&request(&format!("/a.mp4?x=1&CMCD={QUERY}"), &[])).unwrap().unwrap();
        assert_eq!(of_query, Cmcd::parse(LIST).unwrap());
        assert_eq!(of_query.to_string(), LIST);
        assert_eq!(
            (of_query.buffer, of_query.measured, of_query.requested),
            (Some(21_300), Some(48_100), Some(12_000))
        );
        assert!(of_query.starved && of_query.startup && of_query.object == Some(ObjectType::Video));
        let fields = [
            ("cmcd-request", "bl=21300,dl=18500,mtp=48100,nor=\"..%2F300kbps%2Ftrack.m4v\",nrr=\"12323-48763\",su"),
            ("cmcd-object", "br=3200,d=4004,ot=v,tb=6000"),
            ("cmcd-status", "bs, rtp=12000"),
            ("cmcd-session", "cid=\"faec5fc2-ac30-11ea-bb37-0242ac130002\",pr=1.08,sf=d"),
            ("cmcd-session", "sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v"),
        ];
        assert_eq!(Cmcd::of(&request("/a.mp4", &fields)).unwrap().unwrap(), of_query);
        for (list, startup) in [
            ("sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\"", false),
            ("su,com.example-myNumericKey=500,com.example-myStringKey=\"myStringValue\"", true),
            ("nor=\"..%2F300kbps%2Fsegment35.m4v\",sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\"", false),
        ] {
            assert_eq!(Cmcd::parse(list).unwrap().startup, startup, "{list}");
        }
        assert!(Cmcd::of(&request("/a.mp4?cmcd=1", &[])).is_none());
    }

    #[test]
    fn invalid_data_is_refused() {
        let long = format!("sid=\"{}\"", "x".repeat(65));
        let keys = (0..65).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",");
        for (list, error) in [
            ("", CmcdError::Syntax),
            (",", CmcdError::Syntax),
            ("br=1,", CmcdError::Syntax),
            ("br=", CmcdError::Syntax),
            ("br=1 su", CmcdError::Syntax),
            ("=1", CmcdError::Syntax),
            ("sid=\"a", CmcdError::Syntax),
            ("sid=\"a\\n\"", CmcdError::Syntax),
            ("sid=\"a\u{e9}\"", CmcdError::Syntax),
            ("sid=\"a\nb\"", CmcdError::Syntax),
            ("br=-1", CmcdError::Value),
            ("br=1.5", CmcdError::Value),
            ("br=9999999999999999", CmcdError::Value),
            ("br=\"1\"", CmcdError::Value),
            ("br", CmcdError::Value),
            ("bs=2", CmcdError::Value),
            ("ot=z", CmcdError::Value),
            ("ot=\"v\"", CmcdError::Value),
            ("sf=dh", CmcdError::Value),
            ("st=h", CmcdError::Value),
            ("pr=1e3", CmcdError::Value),
            ("sid=abc", CmcdError::Value),
            (&long, CmcdError::Value),
            ("su,su", CmcdError::Repeated),
            (&keys, CmcdError::TooLong),
            (&"a".repeat(MOST_BYTES + 1), CmcdError::TooLong),
        ] {
            assert_eq!(Cmcd::parse(list), Err(error), "{list:.40}");
        }
        assert_eq!(Cmcd::of_query("%ff"), Err(CmcdError::Syntax));
        assert_eq!(Cmcd::of_query(&"a".repeat(3 * MOST_BYTES + 1)), Err(CmcdError::TooLong));
        let fields = vec![("cmcd-status", "com.example-a=\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\""); 100];
        assert_eq!(Cmcd::of(&request("/", &fields)), Some(Err(CmcdError::TooLong)));
    }

    #[test]
    fn lists_of_version_2_count_with_their_first_member() {
        let text = "bl=(8000;v 3000;a),br=(5000;v 128;a),bs,ec=(),mtp=(25000),nor=(\"../12.m4s\" \"../13.m4s\";r=\"0-99\"),\
            ot=v,sf=h,sid=\"s\",sta=r,ts=1795996800123,v=2";
        let data = Cmcd::parse(text).unwrap();
        let numbers = (data.buffer, data.bitrate, data.measured);
        assert_eq!(numbers, (Some(8000), Some(5000), Some(25_000)));
        assert_eq!((data.starved, data.next.as_deref(), data.session.as_deref()), (true, Some("../12.m4s"), Some("s")));
        // Values of a later version are left out, and all others count.
        let later = Cmcd::parse("bs,bl=(),br=fast;x=1,ot=hologram,v=3").unwrap();
        assert_eq!(later, Cmcd { starved: true, ..Cmcd::default() });
        for bad in
            ["bl=(1", "bl=(1;)", "bl=(\"a\"1)", "bl=((1)),v=2", "bl=1;,v=2", "bl=(1 ,2),v=2", "bl=1);v=2", "bs;;v=2"]
        {
            assert_eq!(Cmcd::parse(bad), Err(CmcdError::Syntax), "{bad}");
        }
        for bad in ["bl=(),v=1", "ot=z,v=1", "ot=z,v=two"] {
            assert_eq!(Cmcd::parse(bad), Err(CmcdError::Value), "{bad}");
        }
    }

    #[test]
    fn urls_with_tokens_are_left_out() {
        for (next, is_kept) in
            [("..%2Fa.m4s", true), ("a.m4s%3Ftoken=eyJ", false), ("a?token=eyJ", false), ("/%7EeyJ/a", false)]
        {
            let data = Cmcd { next: Some(next.to_owned()), ..Cmcd::default() };
            assert_eq!(data.without_secrets().next.is_some(), is_kept, "{next}");
        }
    }

    #[test]
    fn strings_read_back_with_quotes() {
        let data = Cmcd { content: Some("a\"b\\c".to_owned()), rate: Some(0.5), ..Cmcd::default() };
        assert_eq!(Cmcd::parse(&data.to_string()).unwrap(), data);
    }
}
