//! WebRTC of a media server: session descriptions, ICE, and DTLS.
//!
//! No socket and no clock: datagrams and times are arguments; answers, keys and decisions are results. Only the DTLS library draws
//! random bytes by itself.
//!
//! - [`sdp`] reads the offer of a browser, finds the formats that it can play, and writes the answer (RFC 8829).
//! - A [`RtcPeer`] is the state of one connection: the server's half of ICE ([`ice`], RFC 8445 2.5, "lite"), and the DTLS handshake
//!   whose keys protect the packets of RTP (RFC 5764).
//! - [`Datagram`] tells the protocols of one port apart (RFC 7983).
//!
//! Packets of RTP and RTCP themselves are those of `millpond-rtp`.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods))]

mod datagram;
pub mod ice;
mod identity;
mod peer;
pub mod sdp;

pub use datagram::Datagram;
pub use identity::{Identity, IdentityError};
pub use peer::{Ended, PeerEvent, RtcPeer, SrtpKeys};
