//! The media of one viewer: its tracks, its checks and its reports. Pure: datagrams and times in, datagrams and events out.
//!
//! All times are those since the run began.

use super::{checks, handshake::Keys, lateness::Lateness};
use crate::rtsp::{figures::MediaFigures, schedule::Timing};
use millpond_rtp::{
    reception::{Arrival, SourceStatistics},
    rtcp::{self, ReportBlock, RtcpItem},
    srtp::{Protector, Unprotector},
};
use millpond_webrtc::{Datagram, ice, sdp::IceCredentials};
use std::{net::SocketAddr, time::Duration};

/// Name of the receivers in their reports (CNAME).
const NAME: &str = "millpond-load";
/// Between two checks of ICE, which renew the server's consent to send (RFC 7675).
const CHECK_EVERY: Duration = Duration::from_millis(2500);

/// An event of a viewer's media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet of media arrived at this time.
    First(Duration),
    /// No packet arrived for long; whether there was one before.
    Silent(bool),
}

/// Both sides of a connection in ICE, and the address of the server.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) local: IceCredentials,
    pub(crate) remote: IceCredentials,
    pub(crate) tie_breaker: u64,
    pub(crate) server: SocketAddr,
}

/// Times of a viewer's media.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    /// How long the first packet may take, and any other one behind the last.
    pub(crate) patience: (Duration, Duration),
    /// Between two receiver reports.
    pub(crate) reports: Duration,
}

/// The media of a viewer that has connected.
#[derive(Debug)]
pub(crate) struct Media {
    connection: Connection,
    keys: Keys,
    protector: Protector,
    /// Source of the reports.
    ssrc: u32,
    intervals: Intervals,
    tracks: Vec<Track>,
    connected: Duration,
    last: Option<Duration>,
    is_over: bool,
    next_check: Duration,
    next_report: Duration,
    event: Option<Event>,
}

#[derive(Debug)]
struct Track {
    payload_type: u8,
    clock_rate: u32,
    source: Option<Source>,
}

/// The source of a track.
#[derive(Debug)]
struct Source {
    ssrc: u32,
    statistics: SourceStatistics,
    lateness: Lateness,
    most_behind: Duration,
    reports: Unprotector,
}

impl Media {
    /// Formats are payload types and clock rates. `ssrc` is the source of reports, and spreads them over time.
    pub(crate) fn new(
        connection: Connection,
        keys: Keys,
        formats: &[(u8, u32)],
        intervals: Intervals,
        ssrc: u32,
        now: Duration,
    ) -> Self {
        let tracks = formats.iter().map(|(payload_type, clock_rate)| Track::new(*payload_type, *clock_rate)).collect();
        let part = f64::from(ssrc) / f64::from(u32::MAX);
        Self {
            connection,
            protector: Protector::new(&keys.sent),
            keys,
            ssrc,
            intervals,
            tracks,
            connected: now,
            last: None,
            is_over: false,
            next_check: now + CHECK_EVERY.mul_f64(part),
            next_report: now + intervals.reports.mul_f64(part),
            event: None,
        }
    }

    /// Takes a datagram: its first bytes, and the length of the whole. Returns the answer to a check.
    pub(crate) fn datagram(
        &mut self,
        bytes: &[u8],
        length: usize,
        arrival: Duration,
        figures: &mut MediaFigures,
    ) -> Option<Vec<u8>> {
        let is_whole = bytes.len() == length;
        match Datagram::of(bytes) {
            Some(Datagram::Rtp) => self.rtp(bytes, length, arrival, figures),
            Some(Datagram::Rtcp) if is_whole => self.rtcp(bytes, arrival),
            Some(Datagram::Stun) if is_whole => {
                let Connection { local, remote, server, .. } = &self.connection;
                return ice::check(bytes, *server, local, remote).map(|check| check.answer);
            }
            _ => {}
        }
        None
    }

    fn rtp(&mut self, head: &[u8], length: usize, arrival: Duration, figures: &mut MediaFigures) {
        let [_, kind, high, low, t0, t1, t2, t3, s0, s1, s2, s3, ..] = *head else {
            return figures.packet(Arrival::Refused, Timing::default(), length);
        };
        let (sequence, timestamp) = (u16::from_be_bytes([high, low]), u32::from_be_bytes([t0, t1, t2, t3]));
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        let Some(track) = self.tracks.iter_mut().find(|track| track.payload_type == kind & 0x7f) else {
            return figures.packet(Arrival::Refused, Timing::default(), length);
        };
        if track.source.as_ref().is_none_or(|source| source.ssrc != ssrc) {
            track.finish(figures);
            track.source = Some(Source {
                ssrc,
                statistics: SourceStatistics::announced(track.clock_rate),
                lateness: Lateness::new(track.clock_rate),
                most_behind: Duration::ZERO,
                reports: Unprotector::new(&self.keys.received, 0),
            });
        }
        let Some(source) = &mut track.source else { return };
        let place = source.statistics.packet(sequence, timestamp, arrival);
        let timing = match place {
            Arrival::Refused => Timing::default(),
            _ => source.lateness.packet(timestamp, arrival, matches!(place, Arrival::Next { .. })),
        };
        source.most_behind = source.most_behind.max(timing.behind);
        figures.packet(place, timing, length);
        if self.last.is_none() {
            self.event = Some(Event::First(arrival));
        }
        self.last = self.last.max(Some(arrival));
    }

    /// Takes the time of a sender report: the server measures the way by it.
    fn rtcp(&mut self, bytes: &[u8], arrival: Duration) {
        let Some(&[s0, s1, s2, s3]) = bytes.get(4..8).and_then(|bytes| bytes.first_chunk()) else { return };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        let mut sources = self.tracks.iter_mut().filter_map(|track| track.source.as_mut());
        let Some(source) = sources.find(|source| source.ssrc == ssrc) else { return };
        let mut bytes = bytes.to_vec();
        let Ok(opened) = source.reports.rtcp(&mut bytes) else { return };
        for item in rtcp::parse(opened).unwrap_or_default() {
            if let RtcpItem::Sender(report) = item {
                source.statistics.sender_report(&report, arrival);
            }
        }
    }

    /// The check and the report that are due.
    pub(crate) fn due(&mut self, now: Duration) -> [Option<Vec<u8>>; 2] {
        let (mut check, mut report) = (None, None);
        if self.next_check <= now {
            self.next_check = now + CHECK_EVERY;
            let Connection { local, remote, tie_breaker, .. } = &self.connection;
            check = checks::request(local, remote, *tie_breaker);
        }
        if self.next_report <= now {
            self.next_report = now + self.intervals.reports;
            report = self.report(now);
        }
        [check, report]
    }

    fn report(&mut self, now: Duration) -> Option<Vec<u8>> {
        let sources = self.tracks.iter_mut().filter_map(|track| track.source.as_mut());
        let blocks: Vec<ReportBlock> = sources.map(|source| source.statistics.report(source.ssrc, now)).collect();
        let mut bytes = rtcp::receiver_report(self.ssrc, &blocks, NAME);
        self.protector.rtcp(&mut bytes, 0).ok()?;
        Some(bytes)
    }

    /// To be called each second or so: whether packets stopped coming.
    pub(crate) fn check_silence(&mut self, now: Duration) {
        let (since, patience) = match self.last {
            Some(last) => (last, self.intervals.patience.1),
            None => (self.connected, self.intervals.patience.0),
        };
        if !self.is_over && now.saturating_sub(since) > patience {
            self.is_over = true;
            self.event = Some(Event::Silent(self.last.is_some()));
        }
    }

    /// Returns what happened, once.
    pub(crate) fn event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// When the handshake was complete.
    pub(crate) fn connected(&self) -> Duration {
        self.connected
    }

    /// The last thing: notes what is known of each track at its end.
    pub(crate) fn finish(&mut self, figures: &mut MediaFigures) {
        self.tracks.iter_mut().for_each(|track| track.finish(figures));
    }
}

impl Track {
    fn new(payload_type: u8, clock_rate: u32) -> Self {
        Self { payload_type, clock_rate, source: None }
    }

    fn finish(&mut self, figures: &mut MediaFigures) {
        if let Some(source) = self.source.take() {
            figures.jitter.record(source.statistics.jitter());
            figures.buffer.record(source.most_behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{packet::Header, rtcp::SenderReport, srtp::MasterKey};

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn key(byte: u8) -> MasterKey {
        MasterKey::new(&[byte; 30])
    }

    fn media() -> Media {
        let credentials = |name: &str| IceCredentials {
            ufrag: format!("{name}-ufrag"),
            password: format!("{name}-password-of-22-bytes"),
        };
        let connection = Connection {
            local: credentials("viewer"),
            remote: credentials("server"),
            tie_breaker: 7,
            server: "192.0.2.1:8189".parse().unwrap(),
        };
        let keys = Keys { sent: key(1), received: key(2) };
        let intervals = Intervals { patience: (millis(10_000), millis(4_000)), reports: millis(1_000) };
        Media::new(connection, keys, &[(102, 90_000), (111, 48_000)], intervals, 0, millis(0))
    }

    fn packet(payload_type: u8, sequence: u16, timestamp: u32) -> Vec<u8> {
        let header = Header { payload_type, sequence, timestamp, ssrc: payload_type.into(), ..Header::default() };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend([0; 100]);
        bytes
    }

    #[test]
    fn packets_of_both_tracks_are_counted_without_keys() {
        let (mut media, mut figures) = (media(), MediaFigures::default());
        for (bytes, at) in [
            (packet(102, 5, 0), 100),
            (packet(111, 9, 0), 101),
            (packet(102, 7, 3600), 140),
            (packet(111, 10, 960), 300),
            (packet(103, 1, 0), 301),
        ] {
            let length = bytes.len();
            assert_eq!(media.datagram(&bytes, length, millis(at), &mut figures), None);
        }
        let counts = figures.counts;
        assert_eq!((counts.packets, counts.lost, counts.late, counts.foreign), (5, 1, 1, 1));
        assert_eq!((media.event(), media.event()), (Some(Event::First(millis(100))), None));
        media.finish(&mut figures);
        assert_eq!(figures.jitter.count(), 2);
    }

    #[test]
    fn reports_say_what_came_and_are_encrypted() {
        let (mut media, mut figures) = (media(), MediaFigures::default());
        for (sequence, timestamp) in [(5, 0), (7, 3600)] {
            let bytes = packet(102, sequence, timestamp);
            let length = bytes.len();
            media.datagram(&bytes, length, millis(100), &mut figures);
        }
        let sent = SenderReport { ssrc: 102, ntp: 5 << 32, timestamp: 0, packets: 2, octets: 200 };
        let mut bytes = sent.to_bytes("server");
        Protector::new(&key(2)).rtcp(&mut bytes, 0).unwrap();
        let length = bytes.len();
        media.datagram(&bytes, length, millis(150), &mut figures);
        let [_, Some(mut report)] = media.due(millis(1000)) else { panic!("no report") };
        let opened = Unprotector::new(&key(1), 0).rtcp(&mut report).map(|report| report.to_vec()).unwrap();
        let items = rtcp::parse(&opened).unwrap();
        let Some(RtcpItem::Reception(block)) = items.first() else { panic!("{items:?}") };
        assert_eq!((block.ssrc, block.lost, block.highest, block.last_report), (102, 1, 7, 5 << 16));
        assert_eq!(media.due(millis(1500)), [None, None], "once a second");
    }

    #[test]
    fn checks_are_made_and_answered() {
        let mut media = media();
        let [Some(check), _] = media.due(millis(0)) else { panic!("no check") };
        let Connection { local, remote, .. } = media.connection.clone();
        assert!(
            ice::check(&check, "192.0.2.9:5".parse().unwrap(), &remote, &local).is_some_and(|check| check.nominates)
        );
        let question = checks::request(&remote, &local, 9).unwrap();
        let length = question.len();
        let answer = media.datagram(&question, length, millis(1), &mut MediaFigures::default()).unwrap();
        assert!(checks::is_answer(&answer, &local));
        assert_eq!(media.due(millis(2400))[0], None);
        assert!(media.due(millis(2500))[0].is_some());
    }

    #[test]
    fn silence_is_told_once() {
        let mut media = media();
        media.check_silence(millis(10_000));
        assert_eq!(media.event(), None);
        media.check_silence(millis(10_001));
        assert_eq!(media.event(), Some(Event::Silent(false)));
        media.check_silence(millis(60_000));
        assert_eq!(media.event(), None);
    }
}
