//! Sections of a description: the lines of the session, and the lines of each stream.

/// The lines of the session or of one stream that are read.
#[derive(Debug, Default)]
pub(super) struct Section<'a> {
    /// `video`, `audio`, ...; empty for the session.
    pub(super) media: &'a str,
    /// Transport of the stream, such as `RTP/AVP`; empty where it is not stated.
    pub(super) protocol: &'a str,
    /// Payload types of the `m=` line, as they are written.
    pub(super) formats: Vec<&'a str>,
    /// The `m=` line.
    pub(super) line: &'a str,
    /// Names and values of its attributes; the value of a flag is empty.
    attributes: Vec<(&'a str, &'a str)>,
    /// Values of its `b=` lines.
    bandwidths: Vec<&'a str>,
}

/// Splits a description. `None` where no line is one of RFC 8866, which have a letter and `=`. Other lines are ignored.
pub(super) fn split(text: &str) -> Option<(Section<'_>, Vec<Section<'_>>)> {
    // Some devices send the end of a string in C too, or a mark of the byte order.
    let lines = text.split(['\r', '\n', '\0']).map(|line| line.trim_start_matches('\u{feff}').trim());
    let (mut session, mut media) = (None, Vec::<Section<'_>>::new());
    for (kind, value) in lines.filter_map(line) {
        let session = session.get_or_insert_with(Section::default);
        match kind {
            "m" => media.push(Section::of_media(value)),
            "a" => media.last_mut().unwrap_or(session).attributes.push(attribute(value)),
            "b" => media.last_mut().unwrap_or(session).bandwidths.push(value),
            _ => {}
        }
    }
    Some((session?, media))
}

/// Splits a line into its type, which is one letter, and its value (RFC 8866 5). `None` for other lines.
fn line(line: &str) -> Option<(&str, &str)> {
    let (kind, value) = line.split_once('=')?;
    let kind = kind.trim_end();
    (kind.len() == 1 && kind.as_bytes()[0].is_ascii_alphabetic()).then(|| (kind, value.trim()))
}

/// Splits an attribute at its colon, for which some devices write a space.
fn attribute(text: &str) -> (&str, &str) {
    let (name, value) = text.split_once([':', ' ', '\t']).unwrap_or((text, ""));
    (name.trim(), value.trim_start_matches(':').trim())
}

impl<'a> Section<'a> {
    /// Reads an `m=` line: media, port, protocol and payload types. The port is not needed.
    fn of_media(line: &'a str) -> Self {
        let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
        let media = words.next().unwrap_or_default();
        let protocol = words.by_ref().find(|word| is_rtp(word)).unwrap_or_default();
        // Some devices omit the space before the payload type.
        let (protocol, glued) =
            protocol.split_at(protocol.find(|c: char| c.is_ascii_digit()).unwrap_or(protocol.len()));
        let formats = [glued].into_iter().filter(|glued| !glued.is_empty()).chain(words).collect();
        Self { media, protocol, formats, line, ..Self::default() }
    }

    /// Whether the section has an attribute.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
    }

    /// The values of an attribute, in order.
    pub(super) fn values(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// The first value of an attribute.
    pub(super) fn value(&self, name: &'static str) -> Option<&'a str> {
        self.values(name).next()
    }

    /// The first value of an attribute for a payload type, without the latter.
    pub(super) fn of_format(&self, name: &'static str, payload_type: u8) -> Option<&'a str> {
        self.by_format(name).find(|(number, _)| *number == payload_type).map(|(_, rest)| rest)
    }

    /// The values of an attribute that begin with a payload type.
    pub(super) fn by_format(&self, name: &'static str) -> impl Iterator<Item = (u8, &'a str)> {
        let split = |value: &'a str| value.split_once([' ', '\t']);
        self.values(name).filter_map(split).filter_map(|(format, rest)| Some((format.parse().ok()?, rest.trim())))
    }

    /// The bits per second: `TIAS` (RFC 3890), which counts no headers, or else `AS` in kilobits (RFC 8866 5.8).
    pub(super) fn bandwidth(&self) -> Option<u64> {
        let of = |kind: &str| {
            let lines = self.bandwidths.iter().filter_map(|line| line.split_once(':'));
            lines
                .filter(|(found, _)| found.trim().eq_ignore_ascii_case(kind))
                .find_map(|(_, bits)| bits.trim().parse().ok())
        };
        of("TIAS").or_else(|| of("AS").map(|kilobits: u64| kilobits.saturating_mul(1000)))
    }
}

/// Whether a word of an `m=` line names RTP: `RTP/AVP`, `RTP/SAVPF`, `TCP/RTP/AVP`.
fn is_rtp(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    word.contains("RTP/") || word.starts_with("AVP")
}
