//! WebRTC of a media server: session descriptions, ICE, and DTLS.
//!
//! No socket and no clock: datagrams and times are arguments; answers, keys and decisions are results. Only the DTLS library draws
//! random bytes by itself.
//!
//! - [`sdp`] reads the offer of a browser, finds the formats that it can play, and writes the answer (RFC 8829). It also writes offers, and
//!   reads the answers to them.
//! - A [`RtcPeer`] is the state of one connection: the server's half of ICE ([`ice`], RFC 8445), and the DTLS handshake whose keys protect
//!   the packets of RTP (RFC 5764). Where a peer has called, that half is "lite" (2.5). Where the server has called, it is the controlling
//!   agent.
//! - [`Datagram`] tells the protocols of one port apart (RFC 7983).
//!
//! Packets of RTP and RTCP themselves are those of `millpond-rtp`.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods))]

mod agent;
mod controlling_agent;
mod datagram;
mod handshake;
pub mod ice;
mod identity;
mod known_addresses;
mod lite_agent;
mod peer;
pub mod sdp;

pub use datagram::Datagram;
pub use identity::{Identity, IdentityError};
pub use peer::{Ended, PeerEvent, RtcPeer, SrtpKeys};
