//! Media that a peer of WebRTC sends: a publisher that has called, or a server that was called.
//!
//! The connection gives [`ReceivedPackets`] what arrives. Decrypted packets go to the tracks of
//! [`AnnouncedMedia`](super::AnnouncedMedia), as those of RTSP do.

mod received_packets;
mod received_track;

pub use received_packets::ReceivedPackets;
pub use received_track::{ReceivedTrack, described_section};
