//! Media that a publisher pushes, of whatever format: pieces in, frames to the assembly out.

use crate::{
    reception::{
        PublishedMedia,
        announced::{Backchannel, Received},
        assembly::{Assembly, COUNT},
        flv::FlvFrames,
        fragments::FragmentFrames,
        module_frames::FramePassage,
        published::ADDRESS,
        rtsp::tracks::Tracks,
        transport::{Faults, ProgrammeFrames},
        udp::UdpMedia,
    },
    source_health::{SourceCounts, SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_rtp::client::TrackTransport;
use std::time::Duration;

/// Time within which formats must be known.
const FORMATS: Duration = Duration::from_secs(10);

/// The media of one publication.
pub(super) struct PushedMedia {
    kind: Kind,
    faults: Faults,
    began: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

enum Kind {
    Rtp { tracks: Box<Tracks>, passed: Vec<Option<u8>>, udp: UdpMedia, back: Option<Backchannel> },
    Transport(Box<ProgrammeFrames>),
    Fragments(Box<FragmentFrames>),
    Flv(Box<FlvFrames>),
    Frames(Box<FramePassage>),
}

impl PushedMedia {
    /// Begins to receive.
    ///
    /// # Errors
    /// Nothing can be received.
    pub(super) fn new(media: PublishedMedia, assembly: &mut Assembly, now: Duration) -> Result<Self, SourceError> {
        assembly.share_clock(!matches!(media, PublishedMedia::Rtp(_)));
        assembly.set_steady(matches!(media, PublishedMedia::Frames(_)));
        let kind = match media {
            PublishedMedia::Rtp(media) => {
                let Received { tracks, passed, udp, back } = media.receive(assembly, now)?;
                Kind::Rtp { tracks: Box::new(tracks), passed, udp, back }
            }
            PublishedMedia::Transport => Kind::Transport(Box::new(ProgrammeFrames::new(None, FORMATS))),
            PublishedMedia::Fragments { is_split } => Kind::Fragments(Box::new(FragmentFrames::new(is_split))),
            PublishedMedia::Flv => Kind::Flv(Box::new(FlvFrames::new(ADDRESS))),
            PublishedMedia::Frames(frames) => Kind::Frames(Box::new(FramePassage::new(*frames))),
        };
        Ok(Self { kind, faults: Faults::default(), began: now, counts: now })
    }

    /// Takes a piece.
    ///
    /// # Errors
    /// The media can't be received.
    pub(super) fn push(
        &mut self,
        channel: u8,
        bytes: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
    ) -> Result<(), SourceError> {
        match &mut self.kind {
            Kind::Rtp { tracks, passed, .. } => {
                // Channels of RTP are even numbers.
                let (rtp, is_rtcp) = (channel & !1, channel & 1 == 1);
                match passed.iter().position(|passed| *passed == Some(rtp)) {
                    Some(place) => tracks.packet(place, is_rtcp, bytes, now, assembly),
                    None => tracks.interleaved(channel, bytes, now, assembly),
                }
            }
            Kind::Transport(programme) => {
                programme.push(bytes, now, assembly, &mut self.faults);
                if let Some((_, words)) = programme.problem() {
                    return Err(no_media(words));
                }
            }
            Kind::Fragments(fragments) => fragments.push(channel, bytes, now, assembly, &mut self.faults)?,
            Kind::Flv(flv) => flv.push(bytes, now, assembly, &mut self.faults)?,
            Kind::Frames(_) => {}
        }
        Ok(())
    }

    /// Whether pieces of a channel are media. Reports alone are no sign that a stream goes on.
    pub(super) fn is_media(&self, channel: u8) -> bool {
        match &self.kind {
            Kind::Rtp { passed, .. } => channel & 1 == 0 || !passed.contains(&Some(channel & !1)),
            _ => true,
        }
    }

    /// Waits for packets by UDP, or for frames of a module. Cancel safe.
    pub(super) async fn readable(&mut self) {
        match &mut self.kind {
            Kind::Rtp { udp, .. } => udp.readable().await,
            Kind::Frames(frames) => frames.readable().await,
            Kind::Transport(_) | Kind::Fragments(_) | Kind::Flv(_) => std::future::pending().await,
        }
    }

    /// Takes the packets that arrived by UDP, or the frames of a module. `hear` is told the bytes of each packet or run.
    pub(super) fn read(&mut self, now: Duration, assembly: &mut Assembly, hear: impl Fn(usize)) {
        match &mut self.kind {
            Kind::Rtp { tracks, udp, .. } => udp.receive(|place, is_rtcp, packet| {
                hear(packet.len());
                tracks.packet(place, is_rtcp, &packet, now, assembly);
            }),
            Kind::Frames(frames) => frames.read(now, assembly).into_iter().for_each(hear),
            Kind::Transport(_) | Kind::Fragments(_) | Kind::Flv(_) => {}
        }
    }

    /// Does all that is due.
    ///
    /// # Errors
    /// Formats were not known in time.
    pub(super) fn advance(&mut self, now: Duration, assembly: &mut Assembly) -> Result<(), SourceError> {
        let is_late = now >= self.began + FORMATS;
        match &mut self.kind {
            Kind::Rtp { tracks, passed, back, .. } => {
                tracks.tick(now, assembly);
                for (place, request) in tracks.feedback(now) {
                    if let (Some(Some(channel)), Some(back)) = (passed.get(place), &*back) {
                        back(channel + 1, &request);
                    }
                }
                let waits = !tracks.has_begun() && tracks.rhythm().is_some();
                if waits && is_late && !tracks.begin_without(assembly) {
                    return Err(no_media("no parameter sets"));
                }
            }
            Kind::Transport(programme) => {
                programme.tick(now, assembly);
                if is_late && programme.rhythm().is_none() {
                    return Err(no_media(programme.missing()));
                }
            }
            Kind::Fragments(fragments) => {
                fragments.tick(now, assembly);
                if is_late && !fragments.has_begun() {
                    return Err(no_media("no movie box (moov)"));
                }
            }
            Kind::Flv(flv) => {
                flv.tick(now, assembly);
                if is_late && !flv.has_begun() {
                    return Err(no_media("no pictures and no sound with a configuration"));
                }
            }
            Kind::Frames(_) => {}
        }
        if let Some((count, last)) = self.faults.due(now) {
            tracing::warn!(count, last, "damage in published media");
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            assembly.count(self.counts());
        }
        Ok(())
    }

    /// Returns the counts of the publication so far. Fragmented MP4, RTMP and frames of a module have no packets.
    pub(super) fn counts(&self) -> SourceCounts {
        match &self.kind {
            Kind::Rtp { tracks, .. } => tracks.counts(),
            Kind::Transport(programme) => programme.counts(),
            Kind::Fragments(fragments) => {
                SourceCounts { sessions: u64::from(fragments.has_begun()), ..SourceCounts::default() }
            }
            Kind::Flv(flv) => flv.counts(),
            Kind::Frames(frames) => SourceCounts { sessions: u64::from(frames.has_begun()), ..SourceCounts::default() },
        }
    }

    /// Sends receiver reports.
    pub(super) fn report(&mut self, now: Duration) {
        let Kind::Rtp { tracks, passed, udp, back } = &mut self.kind else { return };
        for (place, (transport, report)) in tracks.reports(now).enumerate() {
            match (transport, passed.get(place), &*back) {
                (TrackTransport::Interleaved { channels: (_, rtcp) }, _, Some(back)) => back(rtcp, &report),
                (_, Some(Some(channel)), Some(back)) => back(channel + 1, &report),
                _ => udp.report(place, &report),
            }
        }
    }

    /// Time at which [`advance`](Self::advance) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let formats = self.began + FORMATS;
        let (waits, wake) = match &self.kind {
            Kind::Rtp { tracks, .. } => (!tracks.has_begun() && tracks.rhythm().is_some(), tracks.wake()),
            Kind::Transport(programme) => (programme.rhythm().is_none(), programme.wake()),
            Kind::Fragments(fragments) => (!fragments.has_begun(), fragments.wake()),
            Kind::Flv(flv) => (!flv.has_begun(), flv.wake()),
            Kind::Frames(_) => (false, None),
        };
        [waits.then_some(formats), wake].into_iter().flatten().min()
    }
}

fn no_media(words: &str) -> SourceError {
    SourceError { kind: SourceErrorKind::NoMedia, address: ADDRESS.to_owned(), words: words.to_owned() }
}
