//! HLS playlists (RFC 8216), as much of them as a player needs to know what to fetch.
//!
//! Encryption keys, subtitles and I-frame playlists are passed over: they ask for little and late.

use crate::resource::ByteSpan;

/// How many maps before an `EXT-X-MAP` are compared with it.
const MAPS_LOOKED_BACK: usize = 16;

/// Either kind of playlist (RFC 8216 section 4).
#[derive(Clone, Debug, PartialEq)]
pub enum Playlist {
    /// A list of variants.
    Multivariant(Multivariant),
    /// A list of segments.
    Media(MediaPlaylist),
}

/// A multivariant playlist (RFC 8216 4.3.4).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multivariant {
    /// `EXT-X-STREAM-INF`, in the order of the playlist.
    pub variants: Vec<Variant>,
    /// `EXT-X-MEDIA` of TYPE=AUDIO, in the order of the playlist.
    pub audio: Vec<AudioRendition>,
}

/// One `EXT-X-STREAM-INF` with its URI (RFC 8216 4.3.4.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// As written, relative to the playlist.
    pub uri: String,
    /// Peak bits per second.
    pub bandwidth: u64,
    /// GROUP-ID of its audio renditions.
    pub audio: Option<String>,
    /// PATHWAY-ID, the name of its server among those that content steering knows (draft-pantos-hls-rfc8216bis 4.4.6.2).
    pub pathway: Option<String>,
    /// Whether RESOLUTION is there, which says that it has video.
    pub has_resolution: bool,
}

/// One `EXT-X-MEDIA:TYPE=AUDIO` (RFC 8216 4.3.4.1).
#[derive(Clone, Debug, PartialEq)]
pub struct AudioRendition {
    /// GROUP-ID.
    pub group: String,
    /// Missing when the audio is in the variant's own segments.
    pub uri: Option<String>,
    /// DEFAULT=YES.
    pub default: bool,
}

/// A media playlist (RFC 8216 4.3.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaPlaylist {
    /// The `EXT-X-MAP`s, in order of appearance; one named again is listed once where that is seen.
    pub maps: Vec<Part>,
    /// The segments, in order.
    pub segments: Vec<MediaSegment>,
    /// Whether `EXT-X-ENDLIST` is there.
    pub ended: bool,
}

/// A resource or a range of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As written, relative to the playlist.
    pub uri: String,
    /// The whole resource when missing.
    pub range: Option<ByteSpan>,
}

/// One media segment.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaSegment {
    /// Where it is.
    pub part: Part,
    /// `EXTINF` in seconds.
    pub duration: f64,
    /// Index in `maps` of the init segment that applies.
    pub map: Option<usize>,
}

/// A fault of a playlist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("playlist line {line}: {what}")]
pub struct M3u8Error {
    /// Counted from 1.
    pub line: usize,
    /// Found and expected values.
    pub what: String,
}

/// Reads a playlist of either kind.
///
/// # Errors
/// The first line that breaks a rule a player depends on.
pub fn parse(text: &str) -> Result<Playlist, M3u8Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.lines().next().is_none_or(|line| line.trim_end() != "#EXTM3U") {
        return Err(error(1, "expected #EXTM3U (RFC 8216 4.3.1.1)"));
    }
    let mut parser = Parser::default();
    for (index, line) in text.lines().enumerate().skip(1) {
        parser.line(index + 1, line.trim())?;
    }
    parser.finish(text.lines().count())
}

fn error(line: usize, what: impl Into<String>) -> M3u8Error {
    M3u8Error { line, what: what.into() }
}

/// Attributes of the next URI line, from the tags before it.
#[derive(Default)]
struct Parser {
    multivariant: Multivariant,
    media: MediaPlaylist,
    saw_variant: bool,
    saw_segment: bool,
    variant: Option<(usize, Variant)>,
    duration: Option<(usize, f64)>,
    range: Option<(u64, Option<u64>)>,
    map: Option<usize>,
    /// End of the sub-range of the segment before, and its resource.
    last: Option<(String, u64)>,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), M3u8Error> {
        if line.is_empty() {
            return Ok(());
        }
        if !line.starts_with('#') {
            return self.uri(number, line);
        }
        let (tag, value) = line.split_once(':').unwrap_or((line, ""));
        match tag {
            "#EXT-X-STREAM-INF" => self.stream_inf(number, value)?,
            "#EXT-X-MEDIA" => self.rendition(number, value)?,
            "#EXTINF" => {
                self.saw_segment = true;
                self.duration = Some((number, seconds(number, value)?));
            }
            "#EXT-X-BYTERANGE" => self.range = Some(byte_range(number, value)?),
            "#EXT-X-MAP" => self.set_map(number, value)?,
            "#EXT-X-TARGETDURATION" => self.saw_segment = true,
            "#EXT-X-ENDLIST" => {
                self.saw_segment = true;
                self.media.ended = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn uri(&mut self, number: usize, uri: &str) -> Result<(), M3u8Error> {
        if let Some((_, mut variant)) = self.variant.take() {
            variant.uri = uri.to_owned();
            self.multivariant.variants.push(variant);
            return Ok(());
        }
        let Some((_, duration)) = self.duration.take() else {
            return Err(error(number, format!("URI {uri:?} follows neither #EXTINF nor #EXT-X-STREAM-INF")));
        };
        let range = match self.range.take() {
            None => {
                self.last = None;
                None
            }
            Some((length, offset)) => Some(self.sub_range(number, uri, length, offset)?),
        };
        let part = Part { uri: uri.to_owned(), range };
        self.media.segments.push(MediaSegment { part, duration, map: self.map });
        Ok(())
    }

    /// A range without an offset begins after the one before it, which must be of the same resource
    /// (RFC 8216 4.3.2.2).
    fn sub_range(&mut self, number: usize, uri: &str, length: u64, offset: Option<u64>) -> Result<ByteSpan, M3u8Error> {
        let before = self.last.as_ref().filter(|(last, _)| last == uri).map(|&(_, end)| end);
        let Some(start) = offset.or(before) else {
            return Err(error(
                number,
                "#EXT-X-BYTERANGE without an offset needs a sub-range of the same URI before it",
            ));
        };
        let span = ByteSpan::new(start, length)
            .ok_or_else(|| error(number, format!("#EXT-X-BYTERANGE {length}@{start} is empty or too far")))?;
        self.last = Some((uri.to_owned(), start.saturating_add(length)));
        Ok(span)
    }

    fn stream_inf(&mut self, number: usize, value: &str) -> Result<(), M3u8Error> {
        self.saw_variant = true;
        let mut variant =
            Variant { uri: String::new(), bandwidth: 0, audio: None, pathway: None, has_resolution: false };
        let mut bandwidth = None;
        for (name, value) in attributes(number, value)? {
            match name {
                "BANDWIDTH" => bandwidth = value.parse().ok(),
                "AUDIO" => variant.audio = Some(value.to_owned()),
                "PATHWAY-ID" => variant.pathway = Some(value.to_owned()),
                "RESOLUTION" => variant.has_resolution = true,
                _ => {}
            }
        }
        variant.bandwidth =
            bandwidth.ok_or_else(|| error(number, "#EXT-X-STREAM-INF needs BANDWIDTH, a decimal integer"))?;
        self.variant = Some((number, variant));
        Ok(())
    }

    fn rendition(&mut self, number: usize, value: &str) -> Result<(), M3u8Error> {
        self.saw_variant = true;
        let mut rendition = AudioRendition { group: String::new(), uri: None, default: false };
        let mut audio = false;
        for (name, value) in attributes(number, value)? {
            match name {
                "TYPE" => audio = value == "AUDIO",
                "GROUP-ID" => rendition.group = value.to_owned(),
                "URI" => rendition.uri = Some(value.to_owned()),
                "DEFAULT" => rendition.default = value == "YES",
                _ => {}
            }
        }
        if audio {
            self.multivariant.audio.push(rendition);
        }
        Ok(())
    }

    fn set_map(&mut self, number: usize, value: &str) -> Result<(), M3u8Error> {
        self.saw_segment = true;
        let (mut uri, mut range) = (None, None);
        for (name, value) in attributes(number, value)? {
            match name {
                "URI" => uri = Some(value.to_owned()),
                "BYTERANGE" => {
                    let (length, offset) = byte_range(number, value)?;
                    let start = offset.unwrap_or(0);
                    let span = ByteSpan::new(start, length).ok_or_else(|| {
                        error(number, format!("#EXT-X-MAP BYTERANGE {length}@{start} is empty or too far"))
                    })?;
                    range = Some(span);
                }
                _ => {}
            }
        }
        let uri = uri.ok_or_else(|| error(number, "#EXT-X-MAP needs URI (RFC 8216 4.3.2.5)"))?;
        let part = Part { uri, range };
        // A discontinuity may go back to an earlier map. Looking back only so far keeps a playlist of nothing but
        // different maps linear; a map not found again is merely listed twice.
        let count = self.media.maps.len();
        let known =
            (count.saturating_sub(MAPS_LOOKED_BACK)..count).rev().find(|&at| self.media.maps.get(at) == Some(&part));
        self.map = Some(known.unwrap_or(count));
        if known.is_none() {
            self.media.maps.push(part);
        }
        Ok(())
    }

    fn finish(self, lines: usize) -> Result<Playlist, M3u8Error> {
        if let Some((number, _)) = self.variant {
            return Err(error(number, "#EXT-X-STREAM-INF without a URI line after it"));
        }
        if let Some((number, _)) = self.duration {
            return Err(error(number, "#EXTINF without a URI line after it"));
        }
        match (self.saw_variant, self.saw_segment) {
            (true, true) => Err(error(lines, "tags of multivariant and of media playlists together (RFC 8216 4.1)")),
            (true, false) => Ok(Playlist::Multivariant(self.multivariant)),
            (false, true) => Ok(Playlist::Media(self.media)),
            (false, false) => Err(error(lines, "neither variants nor segments")),
        }
    }
}

/// `EXTINF`: seconds, then a comma and a title (RFC 8216 4.3.2.1).
fn seconds(number: usize, value: &str) -> Result<f64, M3u8Error> {
    let text = value.split(',').next().unwrap_or_default().trim();
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(error(number, format!("#EXTINF {text:?}, expected seconds from 0 to 86400"))),
    }
}

/// `n[@o]` (RFC 8216 4.3.2.2).
fn byte_range(number: usize, value: &str) -> Result<(u64, Option<u64>), M3u8Error> {
    let (length, offset) = match value.split_once('@') {
        Some((length, offset)) => (length, Some(offset)),
        None => (value, None),
    };
    let integer = |text: &str| {
        text.trim().parse::<u64>().map_err(|_| error(number, format!("byte range {value:?}, expected length[@offset]")))
    };
    Ok((integer(length)?, offset.map(integer).transpose()?))
}

/// An attribute list (RFC 8216 4.2); quoted values lose their quotes.
pub(crate) fn attributes(number: usize, mut rest: &str) -> Result<Vec<(&str, &str)>, M3u8Error> {
    let mut found = Vec::new();
    while !rest.trim_start().is_empty() {
        let Some((name, after)) = rest.split_once('=') else {
            return Err(error(number, format!("attribute list: expected NAME=value at {:?}", head(rest))));
        };
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                let Some((value, next)) = quoted.split_once('"') else {
                    return Err(error(number, format!("attribute {}: the quote is not closed", head(name))));
                };
                (value, next.trim_start().strip_prefix(',').unwrap_or(next))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name.trim(), value.trim()));
        rest = next;
    }
    Ok(found)
}

/// The first characters of a text, for an error message.
fn head(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
