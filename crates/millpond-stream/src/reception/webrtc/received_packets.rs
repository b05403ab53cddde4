//! The packets of a peer: decrypted, and given to their tracks.

use super::ReceivedTrack;
use bytes::{Bytes, BytesMut};
use millpond_rtp::{
    packet, rtcp,
    srtp::{MasterKey, Protector, Unprotector},
    transport_cc::TransportArrivals,
};
use millpond_webrtc::{Datagram, SrtpKeys};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Sources of one peer: those of its tracks, and of packets that are sent again.
const SOURCES: usize = 16;
/// Silence after which a source is forgotten where there are others.
const SILENT: Duration = Duration::from_secs(5);
/// Name of the server in reports (RFC 3550 6.5.1).
const CNAME: &str = "millpond";

/// Decrypts the packets of a peer, and encrypts the reports to it.
pub struct ReceivedPackets {
    key: MasterKey,
    /// By SSRC, each with the time of its last packet.
    sources: HashMap<u32, (Unprotector, Instant)>,
    tracks: Vec<ReceivedTrack>,
    /// Payload type of the last packet that no track has.
    other: Option<u8>,
    /// The number of the header extension of arrivals, and the arrivals.
    arrivals: Option<(u8, TransportArrivals)>,
    /// Source of the last packet: reports of arrivals are about all, and name one.
    source: u32,
    reports: Protector,
    ssrc: u32,
    began: Instant,
}

impl ReceivedPackets {
    /// Begins to receive tracks. `arrivals` is the number of their header extension.
    #[must_use]
    pub fn new(keys: &SrtpKeys, tracks: Vec<ReceivedTrack>, arrivals: Option<u8>) -> Self {
        Self {
            key: keys.received.clone(),
            sources: HashMap::new(),
            tracks,
            other: None,
            arrivals: arrivals.map(|number| (number, TransportArrivals::default())),
            source: 0,
            reports: Protector::new(&keys.sent),
            ssrc: fastrand::u32(..),
            began: Instant::now(),
        }
    }

    /// Decrypts a packet of RTP or RTCP, and returns its bytes for each channel that takes it.
    pub fn take(&mut self, protected: &[u8]) -> Vec<(u8, Bytes)> {
        match Datagram::of(protected) {
            Some(Datagram::Rtp) => self.rtp(protected).into_iter().collect(),
            Some(Datagram::Rtcp) => {
                let source = protected.get(4..8);
                let opened = source.and_then(|source| self.open(source, protected, false));
                // Tracks pass over the reports of others.
                opened.map_or_else(Vec::new, |packet| {
                    self.tracks.iter().map(|track| (track.channel + 1, packet.clone())).collect()
                })
            }
            _ => Vec::new(),
        }
    }

    fn rtp(&mut self, protected: &[u8]) -> Option<(u8, Bytes)> {
        let packet = self.open(protected.get(8..12)?, protected, true)?;
        let (header, _) = packet::parse(&packet).ok()?;
        if let Some((number, arrivals)) = &mut self.arrivals
            && let Some(&[high, low]) = packet::extension(&packet, *number)
        {
            arrivals.arrived(u16::from_be_bytes([high, low]), self.began.elapsed());
            self.source = header.ssrc;
        }
        let Some(track) = self.tracks.iter().find(|track| track.has(header.payload_type)) else {
            self.other = Some(header.payload_type);
            return None;
        };
        Some((track.channel, packet))
    }

    /// Takes the payload type of the last packet that no track has, if there was one.
    pub fn take_other(&mut self) -> Option<u8> {
        self.other.take()
    }

    /// Receives other tracks from now on.
    pub fn turn_to(&mut self, tracks: Vec<ReceivedTrack>) {
        self.tracks = tracks;
    }

    /// Decrypts a packet of a source; `None` where it is not authentic. Strangers make no sources.
    fn open(&mut self, source: &[u8], protected: &[u8], is_rtp: bool) -> Option<Bytes> {
        let source = u32::from_be_bytes(source.try_into().ok()?);
        let mut packet = BytesMut::from(protected);
        let open = |unprotector: &mut Unprotector, packet: &mut BytesMut| {
            let opened = if is_rtp { unprotector.rtp(packet) } else { unprotector.rtcp(packet) };
            opened.map(|opened| opened.len()).ok()
        };
        let now = Instant::now();
        let length = match self.sources.get_mut(&source) {
            Some((unprotector, heard)) => {
                let length = open(unprotector, &mut packet)?;
                *heard = now;
                length
            }
            None => {
                let mut unprotector = Unprotector::new(&self.key, 0);
                let length = open(&mut unprotector, &mut packet)?;
                if self.sources.len() == SOURCES {
                    self.sources.retain(|_, (_, heard)| now.duration_since(*heard) < SILENT);
                }
                if self.sources.len() == SOURCES {
                    return None;
                }
                self.sources.insert(source, (unprotector, now));
                length
            }
        };
        packet.truncate(length);
        Some(packet.freeze())
    }

    /// Time of the next report of arrivals.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let (_, arrivals) = self.arrivals.as_ref()?;
        Some(self.began + arrivals.next()?)
    }

    /// Returns the report of arrivals that is due, encrypted.
    pub fn report(&mut self) -> Option<Vec<u8>> {
        let now: Duration = self.began.elapsed();
        let (_, arrivals) = self.arrivals.as_mut()?;
        let mut compound = rtcp::receiver_report(self.ssrc, &[], CNAME);
        let is_due = arrivals.report((self.ssrc, self.source), now, &mut compound);
        if is_due { self.seal(compound) } else { None }
    }

    /// Encrypts a report of the server.
    pub fn seal(&mut self, mut compound: Vec<u8>) -> Option<Vec<u8>> {
        self.reports.rtcp(&mut compound, 0).ok()?;
        Some(compound)
    }
}
