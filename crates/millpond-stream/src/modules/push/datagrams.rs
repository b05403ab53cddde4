//! UDP and RTP: a transport stream in datagrams (RFC 2250, SMPTE ST 2022-2), at the pace of the frames.

use super::{destination::DatagramTarget, pace::Pace, pushing::WayError};
use crate::{
    Run,
    live::{Program, TransportPayloads},
    reception::Interface,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use rustix::net::sockopt;
use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Instant,
};
use tokio::net::UdpSocket;

/// Most bytes of the payload of a datagram.
const LONGEST: usize = 1400;
/// Most bytes that wait for their time. Further ones leave the first ones early.
const WAITING: usize = 32 << 20;
/// Static payload type of transport streams (RFC 3551 section 6).
const PAYLOAD_TYPE: u8 = 33;

/// Why datagrams can't be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum DatagramError {
    #[error("interface {0}: {1}")]
    Interface(String, io::Error),
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
}

/// A socket, and payloads that wait for their time.
pub(super) struct DatagramWay {
    socket: UdpSocket,
    payloads: TransportPayloads,
    /// Headers of RTP; `None` for plain UDP.
    rtp: Option<RtpHeaders>,
    pace: Pace,
    waiting: VecDeque<(Instant, Bytes)>,
    bytes: usize,
}

/// Numbers and times of RTP packets (RFC 3550 section 5.1).
struct RtpHeaders {
    number: u16,
    ssrc: u32,
    began: Instant,
    zero: u32,
}

impl RtpHeaders {
    fn new() -> Self {
        Self { number: fastrand::u16(..), ssrc: fastrand::u32(..), began: Instant::now(), zero: fastrand::u32(..) }
    }

    /// Puts a header before a payload that leaves at a moment.
    fn packet(&mut self, payload: &[u8], at: Instant) -> Bytes {
        let ticks = at.saturating_duration_since(self.began).as_micros() * 9 / 100;
        let mut packet = BytesMut::with_capacity(12 + payload.len());
        packet.put_u8(0x80);
        packet.put_u8(PAYLOAD_TYPE);
        packet.put_u16(self.number);
        // The clock wraps.
        packet.put_u32(self.zero.wrapping_add(ticks as u32));
        packet.put_u32(self.ssrc);
        packet.put_slice(payload);
        self.number = self.number.wrapping_add(1);
        packet.freeze()
    }
}

impl DatagramWay {
    /// Opens a socket.
    pub(super) async fn open(target: &DatagramTarget, program: &Program) -> Result<Self, WayError> {
        let payloads = TransportPayloads::new(program).ok_or(WayError::Unfit)?;
        let socket = socket(target).await?;
        let rtp = target.is_rtp.then(RtpHeaders::new);
        Ok(Self { socket, payloads, rtp, pace: Pace::default(), waiting: VecDeque::new(), bytes: 0 })
    }

    /// Makes the datagrams of frames. They leave when the frames are due.
    pub(super) fn send(&mut self, run: &Run, program: &Program) -> Result<(), WayError> {
        let Some(due) = run.first().map(|frame| frame.due) else { return Ok(()) };
        let at = self.pace.moment(due, Instant::now());
        for payload in self.payloads.of(run, program, LONGEST)? {
            let datagram = match &mut self.rtp {
                Some(headers) => headers.packet(&payload, at),
                None => payload,
            };
            self.bytes += datagram.len();
            self.waiting.push_back((at, datagram));
        }
        while self.bytes > WAITING {
            self.send_first()?;
        }
        Ok(())
    }

    /// Sends the first datagram that waits.
    fn send_first(&mut self) -> Result<(), DatagramError> {
        let Some((_, datagram)) = self.waiting.pop_front() else { return Ok(()) };
        self.bytes -= datagram.len();
        match self.socket.try_send(&datagram) {
            Ok(_) => Ok(()),
            // Nobody listens there now, or the buffer is full: datagrams get lost.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends datagrams at their times until that fails. Cancel safe.
    pub(super) async fn serve(&mut self) -> DatagramError {
        loop {
            match self.waiting.front() {
                Some((at, _)) => tokio::time::sleep_until((*at).into()).await,
                None => std::future::pending().await,
            }
            let now = Instant::now();
            while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
                if let Err(error) = self.send_first() {
                    return error;
                }
            }
        }
    }
}

/// Opens the socket of a target.
async fn socket(target: &DatagramTarget) -> Result<UdpSocket, DatagramError> {
    let DatagramTarget { at, interface, hops, .. } = target;
    let local: SocketAddr = match at {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(local).await?;
    if at.ip().is_multicast() {
        let of = |name: &String| Interface::of(name).map_err(|error| DatagramError::Interface(name.clone(), error));
        let interface = interface.as_ref().map(of).transpose()?;
        match (at.ip(), interface) {
            (IpAddr::V4(_), interface) => {
                if let Some(interface) = interface {
                    sockopt::set_ip_multicast_if(&socket, &interface.address).map_err(io::Error::from)?;
                }
                sockopt::set_ip_multicast_ttl(&socket, u32::from(*hops)).map_err(io::Error::from)?;
            }
            (IpAddr::V6(_), interface) => {
                if let Some(interface) = interface {
                    sockopt::set_ipv6_multicast_if(&socket, interface.index).map_err(io::Error::from)?;
                }
                sockopt::set_ipv6_multicast_hops(&socket, u32::from(*hops)).map_err(io::Error::from)?;
            }
        }
    }
    socket.connect(at).await?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rtp_headers_count_packets_and_ticks() {
        let mut headers = RtpHeaders { number: u16::MAX, ssrc: 7, began: Instant::now(), zero: u32::MAX };
        let at = headers.began + Duration::from_secs(1);
        assert_eq!(headers.packet(b"x", at)[..], [0x80, 33, 255, 255, 0, 1, 0x5f, 0x8f, 0, 0, 0, 7, b'x']);
        assert_eq!(headers.packet(b"", at)[2..4], [0, 0]);
    }
}
