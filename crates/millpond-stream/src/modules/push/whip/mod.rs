//! WHIP: a server gets an offer by HTTP, and media by WebRTC (RFC 9725).
//!
//! The server is called as by WHEP ([`calling_webrtc`](crate::calling_webrtc)); the choice of tracks is in [`offered_tracks`]. Frames leave
//! at the distances of their times. Packets that get lost are sent again when the server asks for them.

mod error;
mod media_track;
mod offered_tracks;
mod peer_reports;
mod sent_packets;

pub(super) use error::WhipError;

use super::pace::Pace;
use crate::{
    Frame, Run,
    calling_webrtc::{Call, CallPurpose, Called, CalledSession, Link, STREAM, WebRtcEndpoint},
    live::{FormatsChanged, Program},
    web::Web,
};
use media_track::MediaTrack;
use millpond_rtp::rtcp::RtcpItem;
use millpond_webrtc::Datagram;
use offered_tracks::OfferedTracks;
use peer_reports::PeerReports;
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// Time for a connection, from the offer on. It is less than that for modules of all protocols: the error then tells what is missing.
const OPENING: Duration = Duration::from_secs(9);
/// Most bytes of frames that wait for their time. Further ones leave the first ones early.
const WAITING: usize = 32 << 20;

/// A session of a publisher at a WHIP endpoint.
pub(super) struct WhipWay {
    program: Program,
    /// Closed before the session is ended.
    link: Link,
    tracks: Vec<MediaTrack>,
    reports: PeerReports,
    pace: Pace,
    /// Frames that wait for their time.
    waiting: VecDeque<(Instant, Frame)>,
    /// Bytes of them.
    bytes: usize,
    /// Number of the epoch of the last frame that was sent; `None` before the first one.
    epoch: Option<u32>,
    /// Ended by a request when this is dropped.
    _session: CalledSession,
}

impl WhipWay {
    /// Sends an offer, and connects to the server that answers it. Returns once the server takes packets.
    pub(super) async fn open(
        endpoint: &WebRtcEndpoint,
        web: &Arc<dyn Web>,
        program: &Program,
    ) -> Result<Self, WhipError> {
        let offered = OfferedTracks::of(program)?;
        let call = Call { endpoint, web, purpose: CallPurpose::Publish, patience: OPENING };
        let sections = offered.sections();
        let (called, taken) = call.make(&sections, |answer| offered.taken(answer, program.path())).await?;
        let Called { link, keys, session } = called;
        let tracks = offered.media(&taken, program, &keys);
        let reports = PeerReports::new(keys.received);
        let (program, pace, waiting) = (program.clone(), Pace::default(), VecDeque::new());
        Ok(Self { program, link, tracks, reports, pace, waiting, bytes: 0, epoch: None, _session: session })
    }

    /// Takes frames. They leave when they are due.
    pub(super) fn send(&mut self, run: &Run) -> Result<(), WhipError> {
        let now = Instant::now();
        let Self { tracks, pace, waiting, bytes, .. } = self;
        for frame in run.iter().filter(|frame| tracks.iter().any(|track| track.track() == frame.track)) {
            *bytes += frame.data.len();
            waiting.push_back((pace.moment(frame.due, now), frame.clone()));
        }
        while self.bytes > WAITING {
            self.send_first(now)?;
        }
        Ok(())
    }

    /// Sends the packets of the first frame that waits, and the report that is due with it.
    fn send_first(&mut self, now: Instant) -> Result<(), FormatsChanged> {
        let Some((_, frame)) = self.waiting.pop_front() else { return Ok(()) };
        self.bytes -= frame.data.len();
        if self.epoch.replace(frame.epoch) != Some(frame.epoch) {
            self.enter(frame.epoch)?;
        }
        let Self { link, tracks, pace, .. } = self;
        let Some(track) = tracks.iter_mut().find(|track| track.track() == frame.track) else { return Ok(()) };
        track.packets(&frame, now, |packet| link.send(packet));
        let position = pace.position(now).unwrap_or(frame.due);
        if let Some(report) = track.report(position, (now, SystemTime::now()), STREAM) {
            link.send(report);
        }
        Ok(())
    }

    /// Goes on with the formats of an epoch.
    fn enter(&mut self, number: u32) -> Result<(), FormatsChanged> {
        let Some(epoch) = self.program.feed().epoch(number) else { return Ok(()) };
        let of = |track: u16| epoch.formats.get(usize::from(track)).and_then(Option::as_ref);
        if self.tracks.iter_mut().all(|track| track.adopt(of(track.track()))) { Ok(()) } else { Err(FormatsChanged) }
    }

    /// Sends frames at their times, and answers the server, until the connection ends. Cancel safe.
    pub(super) async fn serve(&mut self) -> WhipError {
        loop {
            if let Err(error) = self.turn(Instant::now()) {
                return error;
            }
            self.link.wait(self.waiting.front().map(|(at, _)| *at)).await;
        }
    }

    fn turn(&mut self, now: Instant) -> Result<(), WhipError> {
        let Self { link, tracks, reports, .. } = self;
        let mut repeated = Vec::new();
        // A server sends no media.
        link.turn(now, |kind, packet| {
            let items = if kind == Datagram::Rtcp { reports.open(packet) } else { Vec::new() };
            for item in items {
                if let RtcpItem::Nack(nack) = item
                    && let Some(track) = tracks.iter_mut().find(|track| track.ssrc() == nack.source)
                {
                    repeated.extend(nack.sequences().filter_map(|sequence| track.repeat(sequence, now)));
                }
            }
        })?;
        repeated.into_iter().for_each(|packet| link.send(packet));
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            self.send_first(now)?;
        }
        Ok(())
    }
}

impl Drop for WhipWay {
    /// Tells the server that the tracks end.
    fn drop(&mut self) {
        let Self { link, tracks, pace, .. } = self;
        if let Some(position) = pace.position(Instant::now()) {
            let last = tracks.iter_mut().filter_map(|track| track.bye(position, SystemTime::now(), STREAM));
            last.for_each(|packet| link.send(packet));
        }
    }
}
