//! Where a connection's requests come from.

use super::{tunnel::Tunnel, wire::Wire};
use bytes::BytesMut;
use millpond_rtp::setup::RtpProfile;
use std::{io, sync::Arc};

/// The way in of a connection.
#[derive(Debug)]
pub(super) enum Inlet {
    /// The connection itself.
    Wire(Arc<Wire>),
    /// Other connections, through HTTP.
    Tunnel(Tunnel),
}

impl Inlet {
    /// Waits for bytes and adds them; says how many, 0 at the end. Nothing is lost when it is not waited for any more.
    ///
    /// # Errors
    /// The connection failed, or what came makes no sense.
    pub(super) async fn read(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Wire(wire) => wire.read(input).await,
            Self::Tunnel(tunnel) => tunnel.read(input).await,
        }
    }

    /// Whether its client can be sent packets by UDP: it must be at the other end itself, and nobody may listen who couldn't
    /// listen to the connection.
    pub(super) fn takes_udp(&self, profile: RtpProfile) -> bool {
        matches!(self, Self::Wire(wire) if wire.is_secure() == (profile == RtpProfile::Savp))
    }

    /// Whether keys can be told on it.
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Wire(wire) if wire.is_secure())
    }
}
