//! Reads offers.
//!
//! Browsers and encoders write what their version writes. Unknown lines are skipped, and only what a connection needs is required.

use super::{
    Fingerprint, FingerprintError, IceCredentials, Section,
    fault::{Fault, at_most, shown},
    lines::{self, Attribute, Lines},
    transport::{self, Transport},
};

/// Longest offer and answer in bytes.
pub(super) const MOST_BYTES: usize = 64 * 1024;
/// Most sections of an offer, and of an answer.
pub(super) const MOST_SECTIONS: usize = 64;

/// An offer of a peer that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerOffer {
    /// Credentials of its side in ICE.
    pub remote: IceCredentials,
    /// Fingerprint of its certificate.
    pub fingerprint: Fingerprint,
    /// Whether the peer begins DTLS. Otherwise the server does.
    pub begins_dtls: bool,
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
    /// No side would begin DTLS.
    #[error(
        "line {line} of the offer: a=setup is {found:?}, expected \"actpass\", \"active\" or \"passive\" (RFC 8842 5.2)"
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

impl From<Fault> for OfferError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TooLong { found, what, most } => Self::TooLong { found, what, most },
            Fault::Line { line, found, expected } => Self::Line { line, found, expected },
            Fault::Missing { name, line, media, expected } => Self::Missing { name, line, media, expected },
            Fault::Fingerprint { line, why } => Self::Fingerprint { line, why },
            Fault::NoGroup { sections } => Self::NoGroup { sections },
        }
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
        let group = transport::bundle(&session);
        let sections: Result<Vec<Section>, Fault> =
            media.iter().map(|lines| Section::read(lines, &session, &group)).collect();
        let mut sections = sections?;
        transport::share(&mut sections)?;
        transport::require_mux(&sections, &media)?;
        let tagged = transport::tagged(&sections, &group).ok_or(OfferError::NoMedia)?;
        let transport = Transport { tagged: &media[tagged], session: &session, media: &media };
        require_full_agent(&session)?;
        Ok(Self {
            remote: transport.credentials()?,
            fingerprint: transport.fingerprint()?,
            begins_dtls: begins_dtls(&transport)?,
            sections,
        })
    }
}

/// Checks that the peer sends checks of ICE.
fn require_full_agent(session: &Lines<'_>) -> Result<(), OfferError> {
    session.first("ice-lite").map_or(Ok(()), |lite| Err(OfferError::Lite { line: lite.number }))
}

/// Whether the peer begins DTLS. It does where it leaves the choice to the server.
fn begins_dtls(transport: &Transport<'_>) -> Result<bool, OfferError> {
    let is = |setup: &Attribute<'_>, role: &str| setup.value.eq_ignore_ascii_case(role);
    // Without the attribute an offerer is active (RFC 4145 4).
    match transport.setup() {
        Some(setup) if is(setup, "passive") => Ok(false),
        Some(setup) if !is(setup, "actpass") && !is(setup, "active") => {
            Err(OfferError::Setup { line: setup.number, found: shown(setup.value) })
        }
        _ => Ok(true),
    }
}
