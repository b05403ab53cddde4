//! Reads offers.
//!
//! Browsers and encoders write what their version writes. Unknown lines are skipped, and only what a connection needs is required.

use super::{
    Fingerprint, FingerprintError, IceCredentials, Section,
    lines::{self, Attribute, Lines},
};

/// Longest offer in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// Most sections of an offer.
const MOST_SECTIONS: usize = 64;
/// Longest part of an offer in an error, in characters.
const MOST_SHOWN: usize = 100;
/// Longest user name fragment and password in bytes (RFC 8839 5.4).
const MOST_CREDENTIALS: usize = 256;

/// An offer of a peer that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerOffer {
    /// Credentials of its side in ICE.
    pub remote: IceCredentials,
    /// Fingerprint of its certificate.
    pub fingerprint: Fingerprint,
    /// All sections. The answer has as many, in this order.
    pub sections: Vec<Section>,
}

/// The reason why an offer can't be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The text has no line of RFC 8866.
    #[error("an offer that begins with {found:?}, expected a session description (RFC 8866) that begins with \"v=0\"")]
    Foreign {
        /// Beginning of the text.
        found: String,
    },
    /// The offer is too long.
    #[error("an offer with {found} {what}, expected at most {most}")]
    TooLong {
        /// Count in the offer.
        found: usize,
        /// Unit of the count.
        what: &'static str,
        /// Greatest count allowed.
        most: usize,
    },
    /// A line is unreadable.
    #[error("line {line} of the offer is {found:?}, expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Beginning of the line.
        found: String,
        /// Form of such lines.
        expected: &'static str,
    },
    /// No section can be accepted.
    #[error(
        "the offer has no section for media: expected m=video or m=audio with RTP, a port other than 0, and a direction \
         other than inactive"
    )]
    NoMedia,
    /// A section lacks an attribute.
    #[error("the offer has no a={name} in the section of line {line} (m={media}), expected {expected}")]
    Missing {
        /// Name of the attribute.
        name: &'static str,
        /// Number of the `m=` line of its section, from 1.
        line: usize,
        /// Kind of the section.
        media: String,
        /// Form and place of such lines.
        expected: &'static str,
    },
    /// The sections have a transport each.
    #[error(
        "the offer has {sections} sections and no a=group:BUNDLE of them, expected one transport for all (in browsers and \
         GStreamer: the bundle policy \"max-bundle\")"
    )]
    NoGroup {
        /// Sections that could be accepted.
        sections: usize,
    },
    /// The certificate is unknown.
    #[error("line {line} of the offer: a=fingerprint has {why}")]
    Fingerprint {
        /// Number of the line, from 1.
        line: usize,
        /// Fault of the first fingerprint.
        why: FingerprintError,
    },
    /// The server would have to begin DTLS.
    #[error(
        "line {line} of the offer: a=setup is {found:?}, expected \"actpass\" or \"active\": the peer begins DTLS, never this \
         server (in FFmpeg: -whip_flags dtls_active)"
    )]
    Setup {
        /// Number of the line, from 1.
        line: usize,
        /// Value of the attribute.
        found: String,
    },
    /// Both sides would wait for checks.
    #[error(
        "line {line} of the offer: a=ice-lite, expected a full agent of ICE: this server is a lite one, and sends no checks"
    )]
    Lite {
        /// Number of the line, from 1.
        line: usize,
    },
}

impl OfferError {
    pub(super) fn line(line: usize, found: &str, expected: &'static str) -> Self {
        Self::Line { line, found: shown(found), expected }
    }
}

impl PeerOffer {
    /// Reads an offer.
    ///
    /// # Errors
    /// The text is no offer, too long, lacks what a connection needs, or asks for what this server can't do.
    pub fn read(text: &[u8]) -> Result<Self, OfferError> {
        at_most(text.len(), "bytes", MOST_BYTES)?;
        // Titles may have any character set; the rest is ASCII.
        let text = String::from_utf8_lossy(text);
        let Some((session, media)) = lines::split(&text) else {
            return Err(OfferError::Foreign { found: shown(&text) });
        };
        at_most(media.len(), "sections", MOST_SECTIONS)?;
        let group = bundle(&session);
        let sections: Result<Vec<Section>, OfferError> =
            media.iter().map(|lines| Section::read(lines, &session, &group)).collect();
        let mut sections = sections?;
        share_transport(&mut sections)?;
        require_mux(&sections, &media)?;
        let tagged = tagged(&sections, &group).ok_or(OfferError::NoMedia)?;
        let transport = Transport { tagged: &media[tagged], session: &session, media: &media };
        transport.require_active_peer()?;
        Ok(Self { remote: transport.credentials()?, fingerprint: transport.fingerprint()?, sections })
    }
}

/// Returns the names of the sections with one transport.
fn bundle<'a>(session: &Lines<'a>) -> Vec<&'a str> {
    let words = session.all("group").map(|group| group.value.split_ascii_whitespace());
    let mut named = words.filter_map(|mut words| words.next()?.eq_ignore_ascii_case("BUNDLE").then_some(words));
    // Another group would have another transport.
    named.next().into_iter().flatten().collect()
}

/// Leaves those sections usable that share a transport.
fn share_transport(sections: &mut [Section]) -> Result<(), OfferError> {
    let usable = sections.iter().filter(|section| section.is_usable).count();
    if usable > 1 {
        sections.iter_mut().for_each(|section| section.is_usable &= section.is_bundled);
        if !sections.iter().any(|section| section.is_usable) {
            return Err(OfferError::NoGroup { sections: usable });
        }
    }
    Ok(())
}

fn require_mux(sections: &[Section], media: &[Lines<'_>]) -> Result<(), OfferError> {
    let mut usable = sections.iter().zip(media).filter(|(section, _)| section.is_usable);
    match usable.find(|(_, lines)| !lines.has("rtcp-mux") && !lines.has("rtcp-mux-only")) {
        Some((section, lines)) => Err(OfferError::Missing {
            name: "rtcp-mux",
            line: lines.number,
            media: section.kind.name().to_owned(),
            expected: "RTCP on the port of RTP (RFC 5761)",
        }),
        None => Ok(()),
    }
}

/// Returns the index of the section whose transport all others share (RFC 9143 7.2.1).
fn tagged(sections: &[Section], group: &[&str]) -> Option<usize> {
    let of = |mid: &&str| sections.iter().position(|section| section.is_usable && section.mid == **mid);
    group.iter().find_map(of).or_else(|| sections.iter().position(|section| section.is_usable))
}

/// Where the attributes of the transport are: in the tagged section, for the whole session, or in any other section.
struct Transport<'a> {
    tagged: &'a Lines<'a>,
    session: &'a Lines<'a>,
    media: &'a [Lines<'a>],
}

impl<'a> Transport<'a> {
    /// The lines that have an attribute.
    fn lines_with(&self, name: &'static str) -> Option<&'a Lines<'a>> {
        [self.tagged, self.session].into_iter().chain(self.media).find(|lines| lines.has(name))
    }

    fn missing(&self, name: &'static str, expected: &'static str) -> OfferError {
        let media = self.tagged.media.split_ascii_whitespace().next().unwrap_or_default();
        OfferError::Missing { name, line: self.tagged.number, media: shown(media), expected }
    }

    /// Checks that the peer begins both ICE and DTLS.
    fn require_active_peer(&self) -> Result<(), OfferError> {
        if let Some(lite) = self.session.first("ice-lite") {
            return Err(OfferError::Lite { line: lite.number });
        }
        // Without the attribute an offerer is active (RFC 4145 4).
        let setup = self.lines_with("setup").and_then(|lines| lines.first("setup"));
        let is_wrong =
            |setup: &&Attribute<'_>| !["actpass", "active"].iter().any(|role| setup.value.eq_ignore_ascii_case(role));
        match setup.filter(is_wrong) {
            Some(setup) => Err(OfferError::Setup { line: setup.number, found: shown(setup.value) }),
            None => Ok(()),
        }
    }

    fn credentials(&self) -> Result<IceCredentials, OfferError> {
        const EXPECTED: &str = "credentials of ICE (RFC 8839 5.4) there, or before the first m= line";
        let lines = self.lines_with("ice-ufrag").ok_or_else(|| self.missing("ice-ufrag", EXPECTED))?;
        // The two belong together.
        let (ufrag, password) = (lines.first("ice-ufrag"), lines.first("ice-pwd"));
        let ufrag = ufrag.ok_or_else(|| self.missing("ice-ufrag", EXPECTED))?;
        let password = password.ok_or_else(|| self.missing("ice-pwd", EXPECTED))?;
        // A colon divides the names of both sides in checks.
        if !is_credential(ufrag.value) || ufrag.value.contains(':') {
            let found = format!("a=ice-ufrag:{}", ufrag.value);
            return Err(OfferError::line(ufrag.number, &found, "4 to 256 letters, digits, + or /"));
        }
        if !is_credential(password.value) {
            let found = format!("a=ice-pwd with {} bytes", password.value.len());
            return Err(OfferError::line(password.number, &found, "22 to 256 letters, digits, + or /"));
        }
        Ok(IceCredentials { ufrag: ufrag.value.to_owned(), password: password.value.to_owned() })
    }

    fn fingerprint(&self) -> Result<Fingerprint, OfferError> {
        let missing = || self.missing("fingerprint", "one of sha-256 (RFC 8122 5) there, or before the first m= line");
        let lines = self.lines_with("fingerprint").ok_or_else(missing)?;
        let mut read = lines.all("fingerprint").map(|attribute| {
            let line = attribute.number;
            attribute.value.parse::<Fingerprint>().map_err(|why| OfferError::Fingerprint { line, why })
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

/// The beginning of a text, for an error.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

pub(super) fn at_most(found: usize, what: &'static str, most: usize) -> Result<(), OfferError> {
    if found > most { Err(OfferError::TooLong { found, what, most }) } else { Ok(()) }
}
