//! The source of a connection's requests.

use super::tunnel::Tunnel;
use crate::wire::Wire;
use bytes::BytesMut;
use millpond_rtp::setup::RtpProfile;
use std::{io, sync::Arc};

/// The byte stream that brings a connection's requests.
#[derive(Debug)]
pub(super) enum Inlet {
    /// The connection itself.
    Wire(Arc<Wire>),
    /// A connection to another server.
    #[cfg_attr(not(feature = "intercept"), expect(dead_code, reason = "interception uses them"))]
    Shared(Arc<Wire>),
    /// The connection of another node of the cluster, whose certificate was checked.
    Node(Arc<Wire>),
    /// POST connections of an HTTP tunnel.
    Tunnel(Tunnel),
}

impl Inlet {
    /// Waits for bytes and appends them. Returns their number, 0 at the end. Cancel safe.
    ///
    /// # Errors
    /// The connection failed, or the bytes are not valid.
    pub(super) async fn read(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Wire(wire) | Self::Shared(wire) | Self::Node(wire) => wire.read(input).await,
            Self::Tunnel(tunnel) => tunnel.read(input).await,
        }
    }

    /// Whether packets may be sent to the client by UDP. Its address must be the connection's own, and packets must be
    /// as secret as the connection.
    pub(super) fn takes_udp(&self, profile: RtpProfile) -> bool {
        matches!(self, Self::Wire(wire) if wire.is_secure() == (profile == RtpProfile::Savp))
    }

    /// Whether keys can be sent on it in secret.
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Wire(wire) | Self::Node(wire) if wire.is_secure())
    }

    /// Whether the client is another node of the cluster.
    pub(super) fn is_of_node(&self) -> bool {
        matches!(self, Self::Node(_))
    }
}
