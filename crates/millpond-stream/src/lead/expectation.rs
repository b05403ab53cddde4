//! What is known of a stream's frames before they arrive.

use super::Tempo;
use crate::Format;
use millpond_media::codec::Codec;

/// What the format of a leading track states, and what earlier frames of the same codec configuration have shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectation {
    /// Index of the track and its ticks a second; `None` before the first epoch.
    track: Option<(u16, u32)>,
    /// Configuration of the track's codec.
    codec: Option<Codec>,
    stated: Option<Tempo>,
    /// What frames have shown last, with the configuration of their codec and their ticks a second.
    shown: Option<(Codec, u32, Tempo)>,
}

impl Expectation {
    /// Notes the format of the track.
    pub(super) fn describe(&mut self, track: u16, format: &Format) {
        self.track = Some((track, format.timescale()));
        self.codec = Some(format.track.codec.clone());
        self.stated = Tempo::stated(track, format);
    }

    /// Notes what frames of the track have shown.
    pub(super) fn learn(&mut self, tempo: Tempo) {
        let Some((_, timescale)) = self.track.filter(|(track, _)| *track == tempo.track) else { return };
        match &mut self.shown {
            Some((codec, of, shown)) if *of == timescale && Some(&*codec) == self.codec.as_ref() => *shown = tempo,
            shown => *shown = self.codec.clone().map(|codec| (codec, timescale, tempo)),
        }
    }

    /// Takes over what frames have shown before.
    pub(super) fn recall(&mut self, earlier: Self) {
        self.shown = earlier.shown;
    }

    /// Tempo that is expected of the next frames: as the format states it, else as earlier frames with the same parameter sets
    /// showed it.
    pub(super) fn tempo(&self) -> Option<Tempo> {
        let (track, timescale) = self.track?;
        let is_same = |(codec, of, _): &&(Codec, u32, Tempo)| *of == timescale && Some(codec) == self.codec.as_ref();
        let shown = self.shown.as_ref().filter(is_same).map(|(_, _, shown)| Tempo { track, ..*shown });
        let interval = shown.and_then(|shown| shown.interval);
        match self.stated {
            Some(stated) => Some(Tempo { interval: stated.interval.or(interval), ..stated }),
            None => shown,
        }
    }
}
