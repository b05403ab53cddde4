//! One receiver of frames.

use crate::{
    Counters, StoredMedia,
    admission::Booking,
    modules::supported_scale,
    outlet::Outlet,
    transmission::{Pace, Progress, Protection, Stopped, TrackSender, Transmitter},
};
use millpond_package::MediaKind;
use millpond_rtp::sdp_writer::Described;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// One receiver: its tracks, with what is carried over from one PLAY to the next.
#[derive(Debug)]
pub struct Subscriber {
    pub(crate) id: u64,
    /// While it plays, the sending thread has copies of these, and returns them at the end.
    pub(crate) tracks: Vec<TrackSender>,
    pub(crate) progress: Arc<Progress>,
    /// Rate control; `None` where it is off. Like the tracks, the sending thread has a copy while it plays.
    pub(crate) pace: Option<Box<Pace>>,
    pub(crate) transmitter: Transmitter,
    /// Bandwidth that was promised to it, once it has played.
    pub(crate) booking: Option<Booking>,
}

impl Subscriber {
    pub(crate) fn new(id: u64, progress: Progress, pace: Option<Box<Pace>>, transmitter: Transmitter) -> Self {
        Self { id, tracks: Vec::new(), progress: Arc::new(progress), pace, transmitter, booking: None }
    }

    /// Its rate control, where its receiver reports to the sending thread. Others are sent by TCP, which has its own.
    pub(crate) fn pace(&self) -> Option<Box<Pace>> {
        let reports = self.tracks.iter().any(|track| track.outlet.reports_from().is_some());
        self.pace.clone().filter(|_| reports)
    }

    /// Its number, which no other one has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// State of its transmission.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The ports of RTP and RTCP that its UDP packets leave from.
    pub fn ports(&self) -> (u16, u16) {
        self.transmitter.ports
    }

    /// Whether it has tracks.
    pub fn has_tracks(&self) -> bool {
        !self.tracks.is_empty()
    }

    /// The indexes of its tracks in their feed.
    pub fn set_up_tracks(&self) -> impl Iterator<Item = u16> + '_ {
        self.tracks.iter().map(|sender| sender.track)
    }

    /// Adds a track of a feed by its index, or sets it up again. `source` is its SSRC, and the keys where packets are encrypted.
    pub fn set_up(
        &mut self,
        track: usize,
        described: &Described<'_>,
        outlet: Arc<dyn Outlet>,
        source: (u32, Option<Box<Protection>>),
    ) {
        let new = TrackSender::new(track as u16, described, outlet, source);
        match self.tracks.iter_mut().find(|known| known.track == new.track) {
            Some(known) => *known = new,
            None => self.tracks.push(new),
        }
    }

    /// Keeps the packets of a track, for a receiver that asks for lost ones. They are sent again with a payload type.
    pub fn keep_packets(&mut self, track: usize, payload_type: u8) {
        if let Some(track) = self.tracks.iter_mut().find(|known| usize::from(known.track) == track) {
            track.keep_packets(payload_type, None);
        }
    }

    /// Keeps the encrypted packets of a track. `source` is the SSRC of the packets that are sent again, with its keys.
    pub fn keep_encrypted_packets(&mut self, track: usize, payload_type: u8, source: (u32, Box<Protection>)) {
        if let Some(track) = self.tracks.iter_mut().find(|known| usize::from(known.track) == track) {
            track.keep_packets(payload_type, Some(source));
        }
    }

    /// Sends RTP packets for WebRTC players: `most` bytes at most each, without B-frames, which these players don't decode.
    pub fn play_in_real_time(&mut self, most: usize) {
        for track in &mut self.tracks {
            track.bound_packets(most);
            track.play_in_real_time();
        }
    }

    /// Takes RTCP packets of a track's receiver that did not come to a sending thread.
    pub fn hear(&mut self, track: usize, packet: &mut [u8], counters: &Counters) {
        if let Some(track) = self.tracks.iter_mut().find(|known| usize::from(known.track) == track) {
            track.hear(packet, SystemTime::now(), counters);
        }
    }

    /// Takes RTCP packets of its receiver, which are decrypted and did not come to a sending thread. That thread answers them.
    pub fn report(&self, packet: &[u8]) {
        self.transmitter.hear(self.id, packet, &self.progress);
    }

    /// The scale that is played where `scale` is asked for: sound alone is played at 1 only.
    pub fn scale(&self, media: &StoredMedia, scale: f64) -> f64 {
        if self.video(media).is_some() { supported_scale(scale) } else { 1.0 }
    }

    /// The track of pictures.
    pub(crate) fn video(&self, media: &StoredMedia) -> Option<u16> {
        let kind = |track: u16| media.track(track).map(millpond_package::PresentedTrack::kind);
        self.tracks.iter().map(|sender| sender.track).find(|track| kind(*track) == Some(MediaKind::Video))
    }

    /// Takes back the tracks that an earlier stop left, because its future was dropped.
    pub(crate) fn recover(&mut self) {
        if let Some(stopped) = self.progress.take_ended() {
            self.tracks = stopped.tracks;
            self.pace = stopped.pace.or(self.pace.take());
        }
    }

    /// Stops its transmission and takes the tracks back. Returns the due time of the next frame, or `end` where all were sent.
    pub(crate) async fn stop(&mut self, end: Duration) -> Duration {
        let stopped = self.transmitter.stop(self.id).await;
        let stopped = stopped.or_else(|| Some(Stopped { position: end, ..self.progress.take_ended()? }));
        let Some(Stopped { mut tracks, pace, position }) = stopped else { return end };
        self.pace = pace.or(self.pace.take());
        // Reports that came another way were counted here.
        for (track, known) in tracks.iter_mut().zip(&self.tracks) {
            track.lost = track.lost.max(known.lost);
        }
        self.tracks = tracks;
        position
    }
}
