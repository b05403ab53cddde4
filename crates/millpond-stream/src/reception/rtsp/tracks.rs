//! The tracks of one session: packets in, units to the assembly out.

use crate::{
    reception::{
        assembly::Assembly,
        attendance::{Rhythm, patience},
        format::StreamFormat,
        rtsp::track::SessionTrack,
        source::RtpInfoPolicy,
    },
    source_health::SourceCounts,
};
use bytes::Bytes;
use millpond_media::Timescale;
use millpond_rtp::{
    client::{ClientPlayback, ClientTrack, TrackTransport},
    payload::{PayloadError, Unit},
    receive::ReorderLimits,
    sdp_reader::{MediaDescription, SessionDescription},
};
use std::{sync::Arc, time::Duration};

/// Most tracks of a stream.
const MOST_TRACKS: usize = 8;
/// Packet types of RTCP, which some servers send among RTP packets (RFC 5761 4).
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;

/// The tracks of a session.
#[derive(Debug)]
pub(in crate::reception) struct Tracks {
    all: Vec<SessionTrack>,
    /// Whether frames are passed on: all formats are known, or were waited for long enough.
    has_begun: bool,
    /// Arrival of the first unit.
    first: Option<Duration>,
    /// Arrival of the last unit; `None` before the first one.
    last: Option<Duration>,
    /// Longest time between the arrivals of two units.
    longest: Duration,
    /// Time that packets of all tracks are held.
    hold: Duration,
    units: Vec<Unit>,
}

/// A stream that is received, and its track.
#[derive(Debug)]
pub(in crate::reception) struct Chosen {
    /// Index of the stream in the description.
    pub(in crate::reception) stream: usize,
    /// Index of the track in the stream's formats.
    pub(in crate::reception) track: u16,
    pub(in crate::reception) format: StreamFormat,
    pub(in crate::reception) description: MediaDescription,
}

/// Chooses the streams that can be received. Others are named in the log.
pub(in crate::reception) fn choose(description: &SessionDescription, assembly: &mut Assembly) -> Vec<Chosen> {
    for skipped in &description.skipped {
        assembly.name(format!("section of a session description skipped: {skipped}"));
    }
    let is_supported = |stream: &&(usize, &MediaDescription)| {
        // Identifier and number depend on the streams that remain.
        let read = StreamFormat::new(stream.1, 1, 1);
        if let Err(why) = &read {
            let MediaDescription { section, media, encoding, .. } = stream.1;
            assembly.name(format!("stream of a source left out: section {section} ({media}): {encoding}: {why}"));
        }
        read.is_ok()
    };
    let all: Vec<_> = description.streams.iter().enumerate().collect();
    let all: Vec<_> = all.iter().filter(is_supported).take(MOST_TRACKS).copied().collect();
    let clock = |media: &MediaDescription| Timescale::new(media.clock_rate).unwrap_or(Timescale::MPEG);
    let kinds: Vec<_> = all.iter().map(|(_, media)| (media.media.as_str(), clock(media))).collect();
    let tracks = assembly.adopt(&kinds);
    let chosen = all.iter().zip(tracks).filter_map(|((stream, media), track)| {
        let Some(track) = track else {
            tracing::warn!(stream, encoding = %media.encoding, "stream of a source left out: it was not there before");
            return None;
        };
        let format = StreamFormat::new(media, u32::from(track) + 1, assembly.number(track)).ok()?;
        Some(Chosen { stream: *stream, track, format, description: (*media).clone() })
    });
    chosen.collect()
}

impl Tracks {
    /// Creates the tracks of a session that is set up.
    ///
    /// # Errors
    /// A payload format is not supported.
    pub(in crate::reception) fn new(
        chosen: Vec<Chosen>,
        agreed: &[ClientTrack],
        now: Duration,
    ) -> Result<Self, PayloadError> {
        let track = |(chosen, agreed): (Chosen, &ClientTrack)| {
            let limits = match agreed.transport {
                TrackTransport::Interleaved { .. } => ReorderLimits::IN_ORDER,
                TrackTransport::Unicast { .. } | TrackTransport::Multicast { .. } => ReorderLimits::UDP,
            };
            SessionTrack::new(chosen, agreed, limits, now)
        };
        let all = chosen.into_iter().zip(agreed).map(track).collect::<Result<_, _>>()?;
        let (longest, hold) = (Duration::ZERO, Duration::ZERO);
        Ok(Self { all, has_begun: false, first: None, last: None, longest, hold, units: Vec::new() })
    }

    /// Takes note of the reply to PLAY.
    pub(in crate::reception) fn playing(
        &mut self,
        playback: &ClientPlayback,
        policy: RtpInfoPolicy,
        assembly: &mut Assembly,
    ) {
        if policy == RtpInfoPolicy::Trust {
            for (track, start) in self.all.iter_mut().zip(&playback.starts) {
                track.begin(start, assembly);
            }
        }
    }

    /// Takes a packet of an interleaved channel. Packets of unknown channels are ignored.
    pub(in crate::reception) fn interleaved(
        &mut self,
        channel: u8,
        packet: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
    ) {
        let place = self.all.iter().position(|track| track.has_channel(channel));
        let Some(place) = place else { return };
        let is_rtcp = self.all[place].is_rtcp_channel(channel);
        self.packet(place, is_rtcp, packet, now, assembly);
    }

    /// Takes a packet of the track at a place.
    pub(in crate::reception) fn packet(
        &mut self,
        place: usize,
        is_rtcp: bool,
        packet: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
    ) {
        let Some(track) = self.all.get_mut(place) else { return };
        if is_rtcp || packet.get(1).is_some_and(|kind| RTCP.contains(kind)) {
            return track.rtcp(packet, now, assembly);
        }
        track.rtp(packet, now, (&mut self.units, &mut *assembly));
        self.take_units(place, now, assembly);
    }

    /// Gives up packets that were waited for long enough. Packets of all tracks are held for the time of the slowest repairs, so
    /// that pictures and sound stay together.
    pub(in crate::reception) fn tick(&mut self, now: Duration, assembly: &mut Assembly) {
        let hold = self.all.iter_mut().map(|track| track.hold(now)).max().unwrap_or_default();
        self.all.iter_mut().for_each(|track| track.hold_at_least(hold));
        self.hold = hold;
        for place in 0..self.all.len() {
            self.all[place].tick(now, &mut self.units);
            self.take_units(place, now, assembly);
        }
    }

    /// Asks the sender of the track at a place for key frames from now on.
    pub(in crate::reception) fn ask_for_key_frames(&mut self, place: usize, now: Duration) {
        if let Some(track) = self.all.get_mut(place) {
            track.ask_for_key_frames(now);
        }
    }

    /// Asks for key frames as seldom as a server expects it, where it is asked at all.
    pub(in crate::reception) fn ask_as_of_a_server(&mut self) {
        self.all.iter_mut().for_each(SessionTrack::ask_as_of_a_server);
    }

    /// Returns the requests for lost packets and key frames that are due, each with the place of its track.
    pub(in crate::reception) fn feedback(&mut self, now: Duration) -> impl Iterator<Item = (usize, Vec<u8>)> {
        let requests = self.all.iter_mut().enumerate();
        requests.filter_map(move |(place, track)| Some((place, track.feedback(now)?)))
    }

    /// Takes the time of a request of the session and its reply.
    pub(in crate::reception) fn requested(&mut self, took: Duration) {
        self.all.iter_mut().for_each(|track| track.requested(took));
    }

    /// Time at which [`tick`](Tracks::tick) and [`feedback`](Tracks::feedback) must be called, if any.
    pub(in crate::reception) fn wake(&self) -> Option<Duration> {
        self.all.iter().filter_map(SessionTrack::wake).min()
    }

    fn take_units(&mut self, place: usize, now: Duration, assembly: &mut Assembly) {
        let mut units = std::mem::take(&mut self.units);
        for unit in units.drain(..) {
            self.longest = self.longest.max(self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last)));
            self.first.get_or_insert(now);
            self.last = Some(now);
            // The time at which it would have come out without a hold: times of frames follow the source and not our delay.
            self.unit(place, unit, now.saturating_sub(self.hold), assembly);
        }
        self.units = units;
    }

    fn unit(&mut self, place: usize, unit: Unit, now: Duration, assembly: &mut Assembly) {
        let (is_changed, unit) = self.all[place].sift(unit, now);
        if self.has_begun && is_changed {
            assembly.change(self.formats(assembly));
        } else if !self.has_begun && self.is_ready(now) {
            self.begin(assembly);
        }
        if let Some(unit) = unit
            && self.has_begun
        {
            assembly.unit(self.all[place].track(), unit, now);
        }
    }

    /// Whether all formats are known, but those of tracks that send nothing.
    fn is_ready(&self, now: Duration) -> bool {
        let first = self.first.unwrap_or(now);
        let is_silent = |track: &SessionTrack| !track.is_heard() && now >= first + patience(track.is_video());
        self.all.iter().all(|track| track.has_format() || is_silent(track))
            && self.all.iter().any(SessionTrack::has_format)
    }

    /// Begins without the formats that are still unknown. Returns whether there is any format.
    pub(in crate::reception) fn begin_without(&mut self, assembly: &mut Assembly) -> bool {
        let has_any = self.all.iter().any(SessionTrack::has_format);
        if has_any && !self.has_begun {
            self.begin(assembly);
        }
        has_any
    }

    fn begin(&mut self, assembly: &mut Assembly) {
        self.has_begun = true;
        assembly.begin(self.formats(assembly));
    }

    fn formats(&self, assembly: &Assembly) -> Arc<[Option<crate::Format>]> {
        let of = |place| self.all.iter().find(|track| usize::from(track.track()) == place)?.format().cloned();
        (0..assembly.tracks()).map(of).collect()
    }

    /// Whether frames are passed on.
    pub(in crate::reception) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns how units arrived; `None` before the first one.
    pub(in crate::reception) fn rhythm(&self) -> Option<Rhythm> {
        Some(Rhythm { last: self.last?, longest: self.longest })
    }

    /// Whether all sources sent BYE.
    pub(in crate::reception) fn have_ended(&self) -> bool {
        self.all.iter().all(SessionTrack::has_ended)
    }

    /// Returns the receiver report of each track, and where to send it.
    pub(in crate::reception) fn reports(&mut self, now: Duration) -> impl Iterator<Item = (TrackTransport, Vec<u8>)> {
        self.all.iter_mut().map(move |track| (track.transport(), track.report(now)))
    }

    /// Returns the counts of all tracks so far. A session counts once it gave a unit.
    pub(in crate::reception) fn counts(&self) -> SourceCounts {
        let mut sum = SourceCounts { sessions: u64::from(self.last.is_some()), ..SourceCounts::default() };
        self.all.iter().for_each(|track| sum += track.counts());
        sum
    }

    /// The tracks.
    pub(in crate::reception) fn all(&self) -> &[SessionTrack] {
        &self.all
    }
}
