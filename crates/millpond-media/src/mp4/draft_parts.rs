//! Drafts of movies that hold the samples of some fragments only.

use crate::{
    codec::TrackKind,
    movie::sample_table::SampleTable,
    mp4::moov::{MovieDraft, TrackDraft},
};

impl MovieDraft {
    /// Whether the samples of a fragment can be presented without those before it. That is not so for text, PCM, media in
    /// other files, and tracks with several sample entries.
    pub(crate) fn is_divisible(&self) -> bool {
        self.media_end().is_some() && !self.tracks.is_empty() && self.tracks.iter().all(TrackDraft::is_divisible)
    }

    /// Whether the movie box has samples of a track.
    pub(crate) fn has_own_samples(&self) -> bool {
        self.tracks.iter().any(|track| track.unfragmented > 0)
    }

    /// Leaves out the samples of the movie box.
    pub(crate) fn without_samples(mut self) -> Self {
        for track in &mut self.tracks {
            let samples = SampleTable::builder().even(track.header.usual_duration(0));
            track.samples = if track.is_video() { samples.keep_presentation() } else { samples };
            (track.unfragmented, track.fragment_start) = (0, i64::MIN);
        }
        self
    }

    /// Makes the last edits open-ended if the movie box has samples: they were written before the fragments.
    pub(crate) fn open_all_edits(&mut self) {
        for track in self.tracks.iter_mut().filter(|track| track.unfragmented > 0) {
            track.header.edits.last_mut().into_iter().for_each(|edit| edit.duration = 0);
        }
    }

    /// Whether each track has samples, unless it may lack them, and no sample of one was left out or moved.
    pub(crate) fn is_regular(&self, may_lack: impl Fn(u32) -> bool) -> bool {
        let is_regular = |track: &TrackDraft| {
            (!track.samples.is_empty() || may_lack(track.header.id))
                && track.cut.is_none()
                && track.overlap.is_none()
                && track.header.entries.is_single()
        };
        self.tracks.iter().all(is_regular)
    }
}

impl TrackDraft {
    fn is_divisible(&self) -> bool {
        let is_clear = self.protection.is_none() || self.unfragmented == 0;
        let is_plain = self.pcm.is_none() && self.clips.is_none() && self.cut.is_none();
        self.header.kind != TrackKind::Text && is_plain && is_clear && self.header.entries.is_single()
    }
}
