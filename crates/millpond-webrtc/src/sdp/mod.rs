//! Offers of WebRTC peers, and the server's answers (RFC 8829, RFC 9725).
//!
//! The server has a public address and never begins anything: it is a lite agent of ICE, and the server of DTLS. All media shares
//! one transport (BUNDLE, RFC 9143), RTCP included.
//!
//! [`PeerOffer::read`] takes what browsers and encoders send. [`format_for`] finds the payload format of a track in a section of the
//! offer. An [`PeerAnswer`] writes the reply, which has one section for each section of the offer.

mod answer;
mod avc_profile;
mod candidate;
mod credentials;
mod format;
mod lines;
mod matching;
mod offer;
mod section;

pub use answer::{AnsweredSection, PeerAnswer};
pub use candidate::{CandidateProtocol, IceCandidate};
pub use credentials::{Fingerprint, FingerprintError, IceCredentials};
pub use format::OfferedFormat;
pub use matching::format_for;
pub use offer::{OfferError, PeerOffer};
pub use section::{MediaDirection, Section, SectionKind};

#[cfg(test)]
mod tests;
