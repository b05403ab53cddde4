//! The transport that all accepted sections of a description share.

use super::{
    Fingerprint, IceCredentials, Section,
    fault::{Fault, shown},
    lines::{Attribute, Lines},
};

/// Longest user name fragment and password in bytes (RFC 8839 5.4).
const MOST_CREDENTIALS: usize = 256;

/// Returns the names of the sections with one transport.
pub(super) fn bundle<'a>(session: &Lines<'a>) -> Vec<&'a str> {
    let words = session.all("group").map(|group| group.value.split_ascii_whitespace());
    let mut named = words.filter_map(|mut words| words.next()?.eq_ignore_ascii_case("BUNDLE").then_some(words));
    // Another group would have another transport.
    named.next().into_iter().flatten().collect()
}

/// Leaves those sections usable that share a transport.
///
/// # Errors
/// Several could be used, and none of them is in the group.
pub(super) fn share(sections: &mut [Section]) -> Result<(), Fault> {
    let usable = sections.iter().filter(|section| section.is_usable).count();
    if usable > 1 {
        sections.iter_mut().for_each(|section| section.is_usable &= section.is_bundled);
        if !sections.iter().any(|section| section.is_usable) {
            return Err(Fault::NoGroup { sections: usable });
        }
    }
    Ok(())
}

/// Checks that RTCP has the port of RTP in all usable sections.
///
/// # Errors
/// The first section in which it has not.
pub(super) fn require_mux(sections: &[Section], media: &[Lines<'_>]) -> Result<(), Fault> {
    let mut usable = sections.iter().zip(media).filter(|(section, _)| section.is_usable);
    match usable.find(|(_, lines)| !lines.has("rtcp-mux") && !lines.has("rtcp-mux-only")) {
        Some((section, lines)) => Err(Fault::Missing {
            name: "rtcp-mux",
            line: lines.number,
            media: section.kind.name().to_owned(),
            expected: "RTCP on the port of RTP (RFC 5761)",
        }),
        None => Ok(()),
    }
}

/// Returns the index of the section whose transport all others share (RFC 9143 7.2.1).
pub(super) fn tagged(sections: &[Section], group: &[&str]) -> Option<usize> {
    let of = |mid: &&str| sections.iter().position(|section| section.is_usable && section.mid == **mid);
    group.iter().find_map(of).or_else(|| sections.iter().position(|section| section.is_usable))
}

/// Where the attributes of the transport are: in the tagged section, for the whole session, or in any other section.
pub(super) struct Transport<'a> {
    pub(super) tagged: &'a Lines<'a>,
    pub(super) session: &'a Lines<'a>,
    pub(super) media: &'a [Lines<'a>],
}

impl<'a> Transport<'a> {
    /// The lines that have an attribute.
    fn lines_with(&self, name: &'static str) -> Option<&'a Lines<'a>> {
        [self.tagged, self.session].into_iter().chain(self.media).find(|lines| lines.has(name))
    }

    fn missing(&self, name: &'static str, expected: &'static str) -> Fault {
        let media = self.tagged.media.split_ascii_whitespace().next().unwrap_or_default();
        Fault::Missing { name, line: self.tagged.number, media: shown(media), expected }
    }

    /// The attribute that tells which side begins DTLS.
    pub(super) fn setup(&self) -> Option<&'a Attribute<'a>> {
        self.lines_with("setup").and_then(|lines| lines.first("setup"))
    }

    pub(super) fn credentials(&self) -> Result<IceCredentials, Fault> {
        const EXPECTED: &str = "credentials of ICE (RFC 8839 5.4) there, or before the first m= line";
        let lines = self.lines_with("ice-ufrag").ok_or_else(|| self.missing("ice-ufrag", EXPECTED))?;
        // The two belong together.
        let (ufrag, password) = (lines.first("ice-ufrag"), lines.first("ice-pwd"));
        let ufrag = ufrag.ok_or_else(|| self.missing("ice-ufrag", EXPECTED))?;
        let password = password.ok_or_else(|| self.missing("ice-pwd", EXPECTED))?;
        // A colon divides the names of both sides in checks.
        if !is_credential(ufrag.value) || ufrag.value.contains(':') {
            let found = format!("a=ice-ufrag:{}", ufrag.value);
            return Err(Fault::line(ufrag.number, &found, "4 to 256 letters, digits, + or /"));
        }
        if !is_credential(password.value) {
            let found = format!("a=ice-pwd with {} bytes", password.value.len());
            return Err(Fault::line(password.number, &found, "22 to 256 letters, digits, + or /"));
        }
        Ok(IceCredentials { ufrag: ufrag.value.to_owned(), password: password.value.to_owned() })
    }

    pub(super) fn fingerprint(&self) -> Result<Fingerprint, Fault> {
        let missing = || self.missing("fingerprint", "one of sha-256 (RFC 8122 5) there, or before the first m= line");
        let lines = self.lines_with("fingerprint").ok_or_else(missing)?;
        let mut read = lines.all("fingerprint").map(|attribute| {
            let line = attribute.number;
            attribute.value.parse::<Fingerprint>().map_err(|why| Fault::Fingerprint { line, why })
        });
        // A peer may have others for other hash functions.
        let first = read.next().unwrap_or_else(|| Err(missing()));
        first.or_else(|fault| read.find_map(Result::ok).ok_or(fault))
    }
}

/// Whether a text can be a user name fragment or a password. Short ones are their owner's risk, and some have other characters than
/// RFC 8839 allows.
fn is_credential(text: &str) -> bool {
    (1..=MOST_CREDENTIALS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
