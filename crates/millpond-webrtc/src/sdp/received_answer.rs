//! Reads answers to the server's own offers.
//!
//! Servers write what their version writes. Unknown lines are skipped, and only what a connection needs is required.

use super::{
    Fingerprint, FingerprintError, IceCredentials, Section,
    fault::{Fault, at_most, shown},
    lines::{self, Attribute},
    offer::{MOST_BYTES, MOST_SECTIONS},
    peer_address,
    transport::{self, Transport},
};
use std::net::SocketAddr;

/// An answer to an offer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedAnswer {
    /// Credentials of the peer in ICE.
    pub remote: IceCredentials,
    /// Fingerprint of its certificate.
    pub fingerprint: Fingerprint,
    /// Whether the peer begins DTLS. Otherwise the server does.
    pub begins_dtls: bool,
    /// Addresses at which it may be reached: at least one, at most 16.
    pub addresses: Vec<SocketAddr>,
    /// All sections. An answer should have one for each of the offer, in its order.
    pub sections: Vec<Section>,
}

/// The reason why an answer begins no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The text has no line of RFC 8866.
    #[error(
        "an answer that begins with {found:?}, expected a session description (RFC 8866) that begins with \"v=0\": is the URL \
         that of a WHIP or WHEP endpoint?"
    )]
    Foreign {
        /// Beginning of the text.
        found: String,
    },
    /// The answer is too long.
    #[error("an answer with {found} {what}, expected at most {most}")]
    TooLong {
        /// Count in the answer.
        found: usize,
        /// Unit of the count.
        what: &'static str,
        /// Greatest count allowed.
        most: usize,
    },
    /// A line is unreadable.
    #[error("line {line} of the answer is {found:?}, expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Beginning of the line.
        found: String,
        /// Form of such lines.
        expected: &'static str,
    },
    /// No section is accepted.
    #[error(
        "the answer accepts no section: each has the port 0 or is inactive. Both sides need a codec in common; most servers \
         have H.264 and Opus"
    )]
    NoMedia,
    /// A section lacks an attribute.
    #[error("the answer has no a={name} in the section of line {line} (m={media}), expected {expected}")]
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
        "the answer accepts {sections} sections and has no a=group:BUNDLE of them, expected one transport for all, as the \
         offer says"
    )]
    NoGroup {
        /// Sections that are accepted.
        sections: usize,
    },
    /// The certificate is unknown.
    #[error("line {line} of the answer: a=fingerprint has {why}")]
    Fingerprint {
        /// Number of the line, from 1.
        line: usize,
        /// Fault of the first fingerprint.
        why: FingerprintError,
    },
    /// No side would begin DTLS.
    #[error("line {line} of the answer: a=setup is {found:?}, expected \"active\" or \"passive\" (RFC 8842 5.3)")]
    Setup {
        /// Number of the line, from 1.
        line: usize,
        /// Value of the attribute.
        found: String,
    },
    /// Nothing can be sent to the peer.
    #[error(
        "the answer has no a=candidate of UDP with an IP address ({others} others): let the server state its public address"
    )]
    NoAddress {
        /// Candidates that were left out.
        others: usize,
    },
}

impl From<Fault> for AnswerError {
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

impl ReceivedAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// The text is no answer, too long, accepts nothing, or lacks what a connection needs.
    pub fn read(text: &[u8]) -> Result<Self, AnswerError> {
        at_most(text.len(), "bytes", MOST_BYTES)?;
        // Titles may have any character set; the rest is ASCII.
        let text = String::from_utf8_lossy(text);
        let Some((session, media)) = lines::split(&text) else {
            return Err(AnswerError::Foreign { found: shown(&text) });
        };
        at_most(media.len(), "sections", MOST_SECTIONS)?;
        let group = transport::bundle(&session);
        let sections: Result<Vec<Section>, Fault> =
            media.iter().map(|lines| Section::read(lines, &session, &group)).collect();
        let mut sections = sections?;
        transport::share(&mut sections)?;
        transport::require_mux(&sections, &media)?;
        let tagged = transport::tagged(&sections, &group).ok_or(AnswerError::NoMedia)?;
        let transport = Transport { tagged: &media[tagged], session: &session, media: &media };
        let (remote, fingerprint) = (transport.credentials()?, transport.fingerprint()?);
        let begins_dtls = begins_dtls(&transport)?;
        let all = || [&session].into_iter().chain(&media);
        let addresses = peer_address::addresses(all());
        if addresses.is_empty() {
            let others = all().flat_map(|lines| lines.all("candidate")).count();
            return Err(AnswerError::NoAddress { others });
        }
        Ok(Self { remote, fingerprint, begins_dtls, addresses, sections })
    }

    /// Returns the section that answers one of the offer: that of its name, or of its index where it has none. `None` where there is no
    /// such section, or it is rejected.
    #[must_use]
    pub fn section(&self, at: usize) -> Option<&Section> {
        let named = self.sections.iter().find(|section| section.mid == at.to_string());
        let nameless = || self.sections.get(at).filter(|section| section.mid.is_empty());
        named.or_else(nameless).filter(|section| section.is_usable)
    }
}

/// Whether the peer begins DTLS.
fn begins_dtls(transport: &Transport<'_>) -> Result<bool, AnswerError> {
    let is = |setup: &Attribute<'_>, role: &str| setup.value.eq_ignore_ascii_case(role);
    match transport.setup() {
        Some(setup) if is(setup, "active") => Ok(true),
        // Without the attribute an answerer is passive (RFC 4145 4).
        None => Ok(false),
        Some(setup) if is(setup, "passive") => Ok(false),
        Some(setup) => Err(AnswerError::Setup { line: setup.number, found: shown(setup.value) }),
    }
}
