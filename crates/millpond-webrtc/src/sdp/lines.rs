//! Lines of an offer: those of the session, and those of each section.

/// The attributes of the session or of one section.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// Number of the `m=` line, from 1; 0 for the session.
    pub(super) number: usize,
    /// Value of the `m=` line; empty for the session.
    pub(super) media: &'a str,
    /// Attributes in order.
    pub(super) attributes: Vec<Attribute<'a>>,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    /// Number of its line, from 1.
    pub(super) number: usize,
    /// Name.
    pub(super) name: &'a str,
    /// Value; empty for a flag.
    pub(super) value: &'a str,
}

/// Splits an offer. `None` where no line is one of RFC 8866, which have a letter and `=`. Other lines are ignored.
pub(super) fn split(text: &str) -> Option<(Lines<'_>, Vec<Lines<'_>>)> {
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let lines = text.split([end, '\0']).map(|line| line.trim_start_matches('\u{feff}').trim());
    let (mut session, mut media) = (None, Vec::<Lines<'_>>::new());
    for (number, (kind, value)) in (1..).zip(lines).filter_map(|(number, text)| Some((number, line(text)?))) {
        let session = session.get_or_insert_with(Lines::default);
        match kind {
            "m" => media.push(Lines { number, media: value, attributes: Vec::new() }),
            "a" => media.last_mut().unwrap_or(session).attributes.push(Attribute::of(number, value)),
            _ => {}
        }
    }
    Some((session?, media))
}

/// Splits a line into its type, which is one letter, and its value (RFC 8866 5). `None` for other lines.
fn line(line: &str) -> Option<(&str, &str)> {
    let (kind, value) = line.split_once('=')?;
    (kind.len() == 1 && kind.as_bytes()[0].is_ascii_alphabetic()).then(|| (kind, value.trim()))
}

impl<'a> Attribute<'a> {
    fn of(number: usize, text: &'a str) -> Self {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        Self { number, name: name.trim(), value: value.trim() }
    }

    /// Whether the attribute has a name, which is written in any case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl<'a> Lines<'a> {
    /// The attributes of a name, in order.
    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &Attribute<'a>> {
        self.attributes.iter().filter(move |attribute| attribute.is(name))
    }

    /// The first attribute of a name.
    pub(super) fn first(&self, name: &'static str) -> Option<&Attribute<'a>> {
        self.all(name).next()
    }

    /// Whether there is an attribute of a name.
    pub(super) fn has(&self, name: &'static str) -> bool {
        self.first(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_whatever_ends_them() {
        for end in ["\r\n", "\n", "\r"] {
            let text =
                ["\u{feff}v=0", "a=ICE-lite", "", "m=video 9 X 96", "  a=mid: 0 ", "no line", "a=rtcp-mux"].join(end);
            let (session, media) = split(&text).unwrap();
            assert_eq!((session.number, session.media, session.has("ice-lite")), (0, "", true), "{end:?}");
            let [video] = &media[..] else { panic!("{media:?}") };
            assert_eq!((video.number, video.media), (4, "video 9 X 96"));
            let mid = video.first("mid").unwrap();
            assert_eq!((mid.number, mid.value), (5, "0"));
            assert_eq!(video.first("rtcp-mux").map(|mux| (mux.number, mux.value)), Some((7, "")));
        }
        assert!(split("").is_none() && split("{\"sdp\":\"v=0\"}").is_none());
    }
}
