//! WebVTT files.

use super::{
    Cue, Subtitles,
    clock::{self, Timing},
    decode, markup,
    vtt_segments::TimestampMap,
};
use crate::PackageError;

/// Names of the cue settings (WebVTT 4.4) that are kept; `region` is not, because regions are dropped.
const SETTINGS: [&str; 5] = ["vertical", "line", "position", "size", "align"];

/// Reads a WebVTT file as browsers do (WebVTT 6.1): anything but cues is skipped.
///
/// `STYLE` and `REGION` blocks and comments are dropped, as is `X-TIMESTAMP-MAP`. In a separate file, times count from
/// the start of the film, whatever the base of a transport stream was.
///
/// # Errors
/// The file doesn't begin with `WEBVTT`.
pub fn parse(bytes: &[u8]) -> Result<Subtitles, PackageError> {
    read(bytes).map(|(subtitles, _)| subtitles)
}

/// Reads a WebVTT file, and the `X-TIMESTAMP-MAP` of its header if there is one.
pub(super) fn read(bytes: &[u8]) -> Result<(Subtitles, Option<TimestampMap>), PackageError> {
    let text = decode::utf8(bytes);
    let mut lines = Lines::new(&text);
    let signature = lines.next().unwrap_or_default();
    if !signature.strip_prefix("WEBVTT").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return Err(PackageError::Text {
            format: "WebVTT",
            line: 1,
            found: format!("{:?}", signature.chars().take(40).collect::<String>()),
            expected: "WEBVTT",
        });
    }
    let mut subtitles = Subtitles::default();
    // Lines after the signature up to an empty line are header, except for lines with the arrow of a cue.
    let mut map = None;
    while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.contains("-->")) {
        map = map.or_else(|| TimestampMap::of(line));
    }
    while let Some(line) = lines.next() {
        if !line.is_empty() {
            block(line, &mut lines, &mut subtitles);
        }
    }
    Ok((subtitles.sorted(), map))
}

/// Reads one block: a cue, or another block, which ends at an empty line or where a cue begins.
fn block(first: &str, lines: &mut Lines<'_>, subtitles: &mut Subtitles) {
    let mut id = None;
    let mut timing = first;
    if !first.contains("-->") {
        match lines.next_if(|line| line.contains("-->")) {
            Some(line) => (id, timing) = (Some(first), line),
            None => return skip(lines),
        }
    }
    let line_number = lines.number;
    let mut text = String::new();
    while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.contains("-->")) {
        text.push_str(line);
        text.push('\n');
    }
    let Some(Timing { start, end, rest }) = clock::take_timing(timing) else {
        return subtitles.warn(line_number, "a cue whose times can't be read is skipped");
    };
    if end <= start {
        return subtitles.warn(line_number, "a cue that ends before it starts is skipped");
    }
    let text = markup::tidy(&text.replace('\0', "\u{fffd}"));
    if !text.is_empty() {
        subtitles.cues.push(Cue { start, end, settings: settings(rest), text, id: id.map(str::to_owned) });
    }
}

fn skip(lines: &mut Lines<'_>) {
    while lines.next_if(|line| !line.is_empty() && !line.contains("-->")).is_some() {}
}

/// Returns the known settings, in one line.
pub(super) fn settings(text: &str) -> String {
    let known = |setting: &&str| {
        setting.split_once(':').is_some_and(|(name, value)| SETTINGS.contains(&name) && !value.is_empty())
            && !setting.contains("-->")
    };
    text.split_ascii_whitespace().filter(known).collect::<Vec<_>>().join(" ")
}

/// Iterates over lines that end with CR LF, LF or CR, and counts them.
pub(super) struct Lines<'a> {
    rest: Option<&'a str>,
    /// Number of the last line returned, from 1.
    pub(super) number: u32,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: Some(text), number: 0 }
    }

    /// Returns the next line if it satisfies `wanted`.
    fn next_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        let (rest, number) = (self.rest, self.number);
        let line = self.next();
        if !line.is_some_and(wanted) {
            (self.rest, self.number) = (rest, number);
            return None;
        }
        line
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        self.number = self.number.saturating_add(1);
        let Some(end) = text.find(['\n', '\r']) else {
            self.rest = None;
            return Some(text);
        };
        let (line, rest) = text.split_at(end);
        self.rest = Some(rest.strip_prefix("\r\n").unwrap_or(&rest[1..]));
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cue(start: i64, end: i64, text: &str) -> Cue {
        Cue { start, end, text: text.into(), ..Cue::default() }
    }

    #[test]
    fn a_file_with_everything() {
        let file = "\u{feff}WEBVTT - title\r\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\r\n\r\nNOTE\r\na comment\r\n\r\n\
            STYLE\r\n::cue { color: red }\r\n\r\nREGION\r\nid:r1\r\n\r\nintro\r\n00:01.000 --> 00:02.500 line:0 region:r1 align:left x:y\r\n\
            <v Ann>Hi &amp; bye\r\nsecond\r\n\r\n01:00:00.000 --> 01:00:01.000\r\nlast";
        let found = parse(file.as_bytes()).unwrap();
        let first = Cue {
            settings: "line:0 align:left".into(),
            id: Some("intro".into()),
            ..cue(1000, 2500, "<v Ann>Hi &amp; bye\nsecond")
        };
        assert_eq!(found.cues, [first, cue(3_600_000, 3_601_000, "last")]);
        assert_eq!(found.warnings, [""; 0]);
    }

    #[test]
    fn cues_may_follow_the_header_and_each_other_at_once() {
        let found = parse(b"WEBVTT\n00:01.000 --> 00:02.000\na\n00:03.000 --> 00:04.000\nb\n").unwrap();
        assert_eq!(found.cues, [cue(1000, 2000, "a"), cue(3000, 4000, "b")]);
    }

    #[test]
    fn bad_cues_are_left_out_with_their_line() {
        let found =
            parse(b"WEBVTT\n\nbad --> 00:01.000\nx\n\n00:02.000 --> 00:01.000\ny\n\n\n00:05.000 --> 00:06.000\nz\n")
                .unwrap();
        assert_eq!(found.cues, [cue(5000, 6000, "z")]);
        assert_eq!(found.warnings.len(), 2);
        assert!(
            found.warnings[0].starts_with("line 3:") && found.warnings[1].starts_with("line 6:"),
            "{:?}",
            found.warnings
        );
    }

    #[test]
    fn cues_are_sorted() {
        let found = parse(b"WEBVTT\r\r00:03.000 --> 00:04.000\rb\r\r00:01.000 --> 00:02.000\ra\r").unwrap();
        assert_eq!(found.cues, [cue(1000, 2000, "a"), cue(3000, 4000, "b")]);
    }

    #[test]
    fn the_signature_is_needed() {
        for file in ["", "WEBVTTX", "1\n00:00:01,000 --> 00:00:02,000\nx", "webvtt"] {
            let error = parse(file.as_bytes()).unwrap_err();
            assert!(matches!(error, PackageError::Text { line: 1, format: "WebVTT", .. }), "{error}");
        }
    }
}
