//! Fast forward and rewind: key frames only (RFC 2326 12.34).

use super::loader::OnFirst;
use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    resources::Resources,
    stored::{LoadError, MediaReader, Planned, PlannedBlock, StoredMedia},
};
use futures_util::future::BoxFuture;
use millpond_package::{PresentedTrack, timeline::Timed};
use millpond_rtp::payload::Conversion;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "key frames",
    about: "loads the key frames of a stored title, forward or backward",
    inputs: 0,
    outputs: 1,
};

/// Scales at which key frames are sent. Those between 1 and the least are played at 1.
const LEAST: f64 = 2.0;
const MOST: f64 = 32.0;
/// Least time between two pictures. Where key frames are closer, some are left out.
const APART: Duration = Duration::from_millis(66);

/// A way through the key frames of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeyFrames {
    /// Where it begins, in seconds.
    pub(crate) from: f64,
    /// Where it ends: before `from` for rewind.
    pub(crate) to: f64,
    /// Seconds of the presentation in a second: below 0 for rewind.
    pub(crate) scale: f64,
}

/// One of the key frames.
#[derive(Clone, Debug, PartialEq)]
struct KeyFrame {
    timed: Timed,
    /// Due time from the start of the way.
    due: Duration,
}

/// The scale that is played where `scale` is asked for.
#[must_use]
pub fn supported_scale(scale: f64) -> f64 {
    if scale >= LEAST {
        scale.min(MOST)
    } else if scale < 0.0 {
        scale.clamp(-MOST, -1.0)
    } else {
        1.0
    }
}

impl KeyFrames {
    /// Lists the key frames on the way in the order in which they are sent. Heavy work: it reads every key frame's times.
    fn list(self, track: &PresentedTrack) -> Vec<KeyFrame> {
        let Some(timescale) = track.source_track().map(|source| source.timescale.get()) else { return Vec::new() };
        let timed = |ordinal: u32| track.samples_of(ordinal..ordinal.saturating_add(1)).pop();
        let all = track.sync_ordinals().filter_map(|ordinal| timed(ordinal).map(|timed| (ordinal, timed.pts)));
        let chosen = self.choose(all, timescale);
        chosen.into_iter().filter_map(|(ordinal, due)| timed(ordinal).map(|timed| KeyFrame { timed, due })).collect()
    }

    /// Chooses key frames, of which `all` gives ordinals and presentation times. Returns ordinals and due times.
    fn choose(self, all: impl Iterator<Item = (u32, i64)>, timescale: u32) -> Vec<(u32, Duration)> {
        let at = |pts: i64| pts as f64 / f64::from(timescale.max(1));
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let mut all: Vec<(u32, i64)> = all.filter(|(_, pts)| (low - 0.001..=high).contains(&at(*pts))).collect();
        if self.scale < 0.0 {
            all.reverse();
        }
        let mut next = Duration::ZERO;
        let mut keys = Vec::new();
        for (ordinal, pts) in all {
            let due = Duration::try_from_secs_f64(((at(pts) - self.from) / self.scale).max(0.0));
            let Ok(due) = due else { continue };
            if due >= next {
                next = due + APART;
                keys.push((ordinal, due));
            }
        }
        keys
    }

    /// The presentation time that a key frame is sent with, in ticks: the time since the start of the way.
    fn shown(self, due: Duration, timescale: u32) -> i64 {
        let start = (self.from * f64::from(timescale)).round() as i64;
        start + (due.as_secs_f64() * f64::from(timescale)).round() as i64
    }

    /// The position in the presentation after so much time.
    pub(crate) fn position(self, gone: Duration) -> Duration {
        let at = self.from + gone.as_secs_f64() * self.scale;
        let at = at.clamp(self.from.min(self.to), self.from.max(self.to));
        Duration::try_from_secs_f64(at).unwrap_or_default()
    }
}

/// Gives the key frames on a way, one by one, with numbers and times of their own.
pub(crate) struct KeyFrameLoader {
    reader: MediaReader,
    media: Arc<StoredMedia>,
    track: u16,
    keys: KeyFrames,
    on_first: Option<OnFirst>,
}

impl KeyFrameLoader {
    pub(crate) fn new(
        resources: &Resources,
        media: Arc<StoredMedia>,
        (track, keys): (u16, KeyFrames),
        on_first: OnFirst,
    ) -> Self {
        Self { reader: resources.reader.clone(), media, track, keys, on_first: Some(on_first) }
    }

    async fn load(self, output: &Output) -> Result<(), LoadError> {
        let Self { reader, media, track, keys, mut on_first } = self;
        let Some(presented) = media.track(track) else { return Ok(()) };
        let Some(source) = presented.source_track() else { return Ok(()) };
        let timescale = source.timescale.get();
        for (number, KeyFrame { timed, due }) in (0..).zip(list(&reader, &media, (track, keys)).await?) {
            if output.ready().await.is_err() {
                return Ok(());
            }
            let Some(range) = presented.place(&timed.sample) else { continue };
            let pts = keys.shown(due, timescale);
            let (conversion, sets) = (Conversion::None, presented.sets_of(&timed.sample));
            let planned = Planned { track, number, due, pts, is_sync: true, range, conversion, sets };
            let block = PlannedBlock::single(planned).read(&reader, &media).await?;
            if output.send(block.frames).await.is_err() {
                return Ok(());
            }
            if let Some(on_first) = on_first.take() {
                on_first();
            }
        }
        Ok(())
    }
}

async fn list(
    reader: &MediaReader,
    media: &Arc<StoredMedia>,
    (track, keys): (u16, KeyFrames),
) -> Result<Vec<KeyFrame>, LoadError> {
    let (reply, listed) = oneshot::channel();
    let media = media.clone();
    let list = move || {
        let _ = reply.send(media.track(track).map(|track| keys.list(track)).unwrap_or_default());
    };
    reader.heavy.run(Box::new(list)).await.map_err(LoadError::Refused)?;
    Ok(listed.await.unwrap_or_default())
}

impl Module for KeyFrameLoader {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move { Ok(self.load(&output).await?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(from: f64, to: f64, scale: f64) -> Vec<(u32, f64)> {
        // Key frames two seconds apart.
        let all = (0..10).map(|number| (number * 50, i64::from(number) * 2000));
        let keys = KeyFrames { from, to, scale }.choose(all, 1000);
        keys.iter().map(|(ordinal, due)| (ordinal / 50, due.as_secs_f64())).collect()
    }

    #[test]
    fn rates_that_cannot_be_had_are_one() {
        for (asked, played) in
            [(1.0, 1.0), (0.5, 1.0), (1.5, 1.0), (2.0, 2.0), (100.0, 32.0), (-0.5, -1.0), (-99.0, -32.0)]
        {
            assert_eq!(supported_scale(asked), played, "{asked}");
        }
    }

    #[test]
    fn key_frames_come_in_the_order_and_time_of_the_way() {
        assert_eq!(chosen(4.0, 10.0, 4.0), [(2, 0.0), (3, 0.5), (4, 1.0), (5, 1.5)]);
        assert_eq!(chosen(5.0, 0.0, -2.0), [(2, 0.5), (1, 1.5), (0, 2.5)]);
        // At 32 times they would be 62.5 ms apart: every other one is left out.
        assert_eq!(chosen(0.0, 8.0, 32.0), [(0, 0.0), (2, 0.125), (4, 0.25)]);
        assert_eq!(chosen(100.0, 200.0, 2.0), []);
    }

    #[test]
    fn time_on_the_wire_is_the_time_that_goes_by() {
        let keys = KeyFrames { from: 10.0, to: 0.0, scale: -2.0 };
        assert_eq!(keys.shown(Duration::from_millis(1500), 90_000), 900_000 + 135_000);
        assert_eq!(keys.position(Duration::from_secs(2)), Duration::from_secs(6));
        assert_eq!(keys.position(Duration::from_secs(200)), Duration::ZERO);
    }
}
