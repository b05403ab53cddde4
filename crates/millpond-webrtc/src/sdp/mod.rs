//! Offers of WebRTC peers, and the server's answers (RFC 8829, RFC 9725).
//!
//! The server has a public address and never begins anything: it is a lite agent of ICE, and the server of DTLS. All media shares
//! one transport (BUNDLE, RFC 9143), RTCP included.
//!
//! [`Offer::read`] takes what browsers and encoders send. [`format_for`] finds the payload format of a track in a section of the
//! offer. An [`Answer`] writes the reply, which has one section for each section of the offer.

mod answer;
mod avc_profile;
mod candidate;
mod credentials;
mod format;
mod lines;
mod matching;
mod offer;
mod section;

pub use answer::{Answer, AnsweredSection};
pub use candidate::{Candidate, CandidateProtocol};
pub use credentials::{Credentials, Fingerprint, FingerprintError};
pub use format::OfferedFormat;
pub use matching::format_for;
pub use offer::{Offer, OfferError};
pub use section::{Direction, Section, SectionKind};

#[cfg(test)]
mod tests;
