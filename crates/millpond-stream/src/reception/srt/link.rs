//! The socket of an SRT source, and its connection.

use super::SrtSource;
use crate::{reception::rtsp::link::Stopwatch, source_health::SourceErrorKind};
use bytes::Bytes;
use millpond_srt::{CallFailed, Caller, CallerOptions, SrtConnection, SrtEnded, SrtReceived};
use std::{io, net::Ipv4Addr, net::Ipv6Addr, net::SocketAddr};
use tokio::net::{UdpSocket, lookup_host};

/// Longest datagram that is read.
const DATAGRAM: usize = 2048;
/// Datagrams that are read before others get a turn.
const TURN: usize = 64;

/// Why a source can't be reached, or is lost.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("its name has no address: {0}")]
    Name(io::Error),
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Call(#[from] CallFailed),
    #[error("{0}")]
    SrtEnded(#[from] SrtEnded),
}

impl LinkError {
    pub(super) fn kind(&self) -> SourceErrorKind {
        match self {
            Self::Name(_) | Self::Socket(_) => SourceErrorKind::Unreachable,
            Self::Call(CallFailed::Silent(_)) | Self::SrtEnded(SrtEnded::Silent(_)) => SourceErrorKind::TimedOut,
            Self::Call(CallFailed::Secret) => SourceErrorKind::Unauthorized,
            Self::Call(CallFailed::Refused(why)) => match why.code() {
                1401 | 1403 => SourceErrorKind::Unauthorized,
                1404 => SourceErrorKind::NotFound,
                code => SourceErrorKind::Refused(u16::try_from(code).unwrap_or(u16::MAX)),
            },
            Self::Call(CallFailed::Protocol | CallFailed::StreamId) => SourceErrorKind::Protocol,
            Self::SrtEnded(SrtEnded::Closed | SrtEnded::KeyUsedUp) => SourceErrorKind::Unreachable,
        }
    }
}

/// A connection with its socket.
pub(crate) struct Link {
    socket: UdpSocket,
    connection: SrtConnection,
    watch: Stopwatch,
}

impl Link {
    /// Calls a source.
    pub(crate) async fn call(source: &SrtSource, watch: Stopwatch) -> Result<Self, LinkError> {
        let found = lookup_host(&source.address).await.map_err(LinkError::Name)?.next();
        let listener = found.ok_or_else(|| LinkError::Name(io::Error::other("no address")))?;
        let local: SocketAddr = match listener {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local).await?;
        socket.connect(listener).await?;
        let mut random = [0; 56];
        getrandom::fill(&mut random).map_err(io::Error::from)?;
        let options = CallerOptions {
            listener: listener.ip(),
            stream_id: source.stream_id.clone(),
            encryption: source.encryption.clone(),
            latency: source.latency,
            timeout: source.timeout,
        };
        let mut caller = Caller::new(options, &random, watch.now())?;
        let mut buffer = [0; DATAGRAM];
        loop {
            if let Some(datagram) = caller.poll(watch.now())? {
                // Nobody may listen yet: the step is repeated.
                let _ = socket.send(&datagram).await;
            }
            tokio::select! {
                received = socket.recv(&mut buffer) => {
                    let Some(datagram) = received.ok().and_then(|length| buffer.get(..length)) else { continue };
                    if let Some(connection) = caller.receive(datagram, watch.now())? {
                        return Ok(Self { socket, connection, watch });
                    }
                }
                () = watch.sleep_until(Some(caller.next())) => {}
            }
        }
    }

    /// Longest payload that can be sent, in bytes.
    pub(crate) fn longest_payload(&self) -> usize {
        self.connection.longest_payload()
    }

    /// Gives payloads to be sent.
    pub(crate) fn send(&mut self, payloads: impl Iterator<Item = Bytes>) {
        let now = self.watch.now();
        payloads.for_each(|payload| self.connection.send(payload, now));
    }

    /// Does what is due, and sends what is to be sent.
    pub(crate) fn advance(&mut self) -> Result<(), LinkError> {
        let now = self.watch.now();
        self.connection.tick(now)?;
        while let Some(datagram) = self.connection.poll(now) {
            // A datagram that the socket refuses counts as lost.
            let _ = self.socket.try_send(&datagram);
        }
        Ok(())
    }

    /// Waits until datagrams have arrived, or something is due. Cancel safe.
    pub(crate) async fn wait(&mut self) -> Result<(), LinkError> {
        let mut buffer = [0; DATAGRAM];
        tokio::select! {
            ready = self.socket.readable() => ready?,
            () = self.watch.sleep_until(Some(self.connection.next())) => return Ok(()),
        }
        for _ in 0..TURN {
            match self.socket.try_recv(&mut buffer) {
                Ok(length) => self.connection.receive(buffer.get(..length).unwrap_or_default(), self.watch.now())?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The listener is gone (ICMP): silence tells it too, unless it comes back.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns a payload that is due.
    pub(crate) fn deliver(&mut self) -> Option<SrtReceived> {
        self.connection.deliver(self.watch.now())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let last = self.connection.close(self.watch.now());
        let _ = self.socket.try_send(&last);
    }
}
