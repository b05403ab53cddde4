//! Offers and answers of WebRTC (RFC 8829, RFC 9725). All media shares one transport (BUNDLE, RFC 9143), RTCP included.
//!
//! Peers call the server: [`PeerOffer::read`] takes what browsers and encoders send. [`format_for`] finds the payload format of a track
//! in a section of the offer. A [`PeerAnswer`] writes the reply, which has one section for each section of the offer. The server has a
//! public address and begins nothing: it is a lite agent of ICE, and the server of DTLS.
//!
//! The server calls a peer, to which it publishes or whose stream it plays: a [`SentOffer`] is written with the [`SentFormat`]s of its
//! tracks, or with those that it receives ([`receivable_formats`]). [`ReceivedAnswer::read`] takes the reply.

mod answer;
mod avc_profile;
mod candidate;
mod credentials;
mod fault;
mod format;
mod lines;
mod matching;
mod offer;
mod peer_address;
mod receivable_formats;
mod received_answer;
mod section;
mod sent_format;
mod sent_offer;
mod transport;

pub use answer::{AnsweredSection, PeerAnswer};
pub use candidate::{CandidateProtocol, IceCandidate};
pub use credentials::{Fingerprint, FingerprintError, IceCredentials};
pub use format::OfferedFormat;
pub use matching::{format_for, received_format};
pub use offer::{OfferError, PeerOffer};
pub use receivable_formats::{answered_formats, receivable_formats};
pub use received_answer::{AnswerError, ReceivedAnswer};
pub use section::{MediaDirection, Section, SectionKind};
pub use sent_format::{AcceptedFormat, SentFormat};
pub use sent_offer::{OfferedMedia, SentOffer, SentSection};

#[cfg(test)]
mod calling_tests;
#[cfg(test)]
mod tests;
