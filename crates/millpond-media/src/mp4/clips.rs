//! Clips of a track whose samples need decoders of several kinds: other codecs, sampling rates or numbers of channels.
//!
//! A decoder is set up again at the beginning of such a clip, so each clip becomes its own track.

use crate::{
    codec::TrackKind,
    movie::{
        Track,
        sample_table::{SampleTable, SampleTableBuilder},
    },
    mp4::{sample_entries::SampleEntries, trak::TrackHeader},
};

/// Most clips of a track. A track of more keeps only the samples of its main kind.
const MOST_CLIPS: usize = 64;

/// The clips of one track while its tables are read.
#[derive(Debug)]
pub(crate) struct Clips {
    /// Sample entries of each kind of clip.
    kinds: Vec<SampleEntries>,
    all: Vec<Clip>,
    /// Whether samples are left out: their entry is of no kind.
    is_left_out: bool,
    is_picture: bool,
    usual_duration: u32,
}

#[derive(Debug)]
struct Clip {
    /// Place of its kind.
    kind: usize,
    entries: SampleEntries,
    samples: SampleTableBuilder,
}

impl Clips {
    /// Returns the clips of a track, none yet; `None` where all its samples are of one kind. Clips of a track with several edits are
    /// not told apart, because an edit may show them in any order.
    pub(crate) fn of(header: &TrackHeader) -> Option<Self> {
        let kinds = header.entries.kinds();
        let shown = header.edits.iter().filter(|edit| edit.media_time.is_some()).count();
        let is_picture = matches!(header.kind, TrackKind::Video { .. });
        let usual_duration = header.usual_duration(0);
        let clips = Self { kinds, all: Vec::new(), is_left_out: true, is_picture, usual_duration };
        (!clips.kinds.is_empty() && shown < 2).then_some(clips)
    }

    /// Notes that samples from decode time `dts` on have sample entry `number`.
    pub(crate) fn begin(&mut self, number: u32, dts: i64) {
        let kind = self.kinds.iter().position(|kind| kind.has(number));
        self.is_left_out = kind.is_none();
        let Some((kind, entries)) = kind.and_then(|kind| Some((kind, self.kinds.get(kind)?))) else { return };
        if self.all.last().is_none_or(|last| last.kind != kind) {
            if self.all.len() > MOST_CLIPS {
                self.is_left_out = true;
                return;
            }
            let mut samples = SampleTable::builder().even(self.usual_duration);
            if self.is_picture {
                samples = samples.keep_presentation();
            }
            self.all.push(Clip { kind, entries: entries.clone(), samples });
        }
        if let Some(clip) = self.all.last_mut() {
            clip.entries.begin(number, clip.samples.len());
            clip.samples.set_start_dts(dts);
        }
    }

    /// Appends a sample to the last clip, unless its sample entry is of no kind.
    pub(crate) fn push(&mut self, offset: u64, size: u32, duration: u32, composition: i32, is_sync: bool) {
        if let Some(clip) = self.all.last_mut().filter(|_| !self.is_left_out) {
            clip.samples.push(offset, size, duration, composition, is_sync);
        }
    }

    /// Returns the clips as tracks. Empty where there are fewer than two or too many.
    pub(crate) fn finish(self, header: &TrackHeader) -> Vec<Track> {
        let mut all = self.all;
        all.retain(|clip| !clip.samples.is_empty());
        if all.len() < 2 || all.len() > MOST_CLIPS {
            return Vec::new();
        }
        let track = |Clip { entries, samples, .. }| {
            TrackHeader { entries, ..header.clone() }.with_samples(SampleTableBuilder::finish(samples), None)
        };
        all.into_iter().map(track).collect()
    }
}
