//! Fragments of a segment: from a frame that a cue names to the next one.

use super::{
    clusters::Mark,
    cues::Cue,
    head::Found,
    stretch::Marks,
    track_entry::{EntryKind, TrackEntry},
};
use crate::units::ByteRange;

/// Longest headers of a cluster, a group and a block, and the beginning of the block that a cue names.
const HEADERS: u64 = 3 * 12 + 64;
/// Bytes of a cluster in which a block is searched first, whose place the cue doesn't state.
const SEARCHED: u64 = 4096;
/// Most fragments.
const MOST: usize = 1 << 20;

/// Fragments in the order of the file: two at least.
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    /// Number of the track whose frames the cues name.
    pub(super) track: u64,
    pub(super) all: Vec<Fragment>,
    /// End of the last.
    pub(super) end: u64,
    /// Bytes behind the place of a first frame in which it is found.
    pub(super) margin: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    /// Time of its first frame, in ticks of the segment.
    pub(super) time: i64,
    /// Offset of the cluster with its first frame.
    pub(super) offset: u64,
    /// Offset of the frame, as far as the cue states it.
    pub(super) place: u64,
}

impl Fragments {
    /// Makes fragments of the cues of a track of pictures, or else of sound. `None` where the cues name fewer than two frames, or
    /// not in the order of the file.
    pub(super) fn of(found: &Found, plays: impl Fn(&TrackEntry) -> bool) -> Option<Self> {
        let cues = found.cues.as_deref()?;
        let has_cues = |entry: &&TrackEntry| plays(entry) && cues.iter().any(|cue| cue.track == entry.number);
        let of_kind = |is_kind: fn(&EntryKind) -> bool| {
            found.tracks.iter().filter(|entry| is_kind(&entry.kind)).find(has_cues).map(|entry| entry.number)
        };
        let track = of_kind(|kind| matches!(kind, EntryKind::Video(_)))
            .or_else(|| of_kind(|kind| matches!(kind, EntryKind::Audio(_))))?;
        let (start, end) = found.segment;
        // Cues, tags and attachments may follow the last cluster.
        let last = cues.iter().filter(|cue| cue.track == track).map(|cue| start.saturating_add(cue.cluster)).max()?;
        let end = found.places.iter().copied().filter(|place| *place > last).min().unwrap_or(end).min(end);
        let fragment = |cue: &Cue| Fragment {
            time: cue.time,
            offset: start.saturating_add(cue.cluster),
            place: start.saturating_add(cue.cluster).saturating_add(cue.place.unwrap_or(0)).min(end),
        };
        let own = || cues.iter().filter(|cue| cue.track == track);
        let margin = if own().all(|cue| cue.place.is_some()) { HEADERS } else { SEARCHED };
        let mut all: Vec<Fragment> = own().map(fragment).take(MOST).collect();
        all.sort_unstable_by_key(|fragment| fragment.time);
        all.dedup_by_key(|fragment| fragment.time);
        // Of frames whose place in their cluster isn't known, the first one begins a fragment.
        all.dedup_by_key(|fragment| fragment.place);
        let first = all.first_mut()?;
        (first.offset, first.place) = (found.first_cluster, found.first_cluster);
        let is_rising = |pair: &[Fragment]| matches!(pair, [a, b] if a.offset <= b.offset && a.place < b.place);
        let fits = all.len() > 1 && all.windows(2).all(is_rising) && all.last().is_some_and(|last| last.place < end);
        fits.then_some(Self { track, all, end, margin })
    }

    /// Returns the bytes of the fragment at `place`, and the marks at which it begins and ends.
    pub(super) fn stretch(&self, place: usize) -> Option<(ByteRange, Marks)> {
        let mark = |fragment: &Fragment| Mark { track: self.track, time: fragment.time };
        let (fragment, next) = (self.all.get(place)?, self.all.get(place + 1));
        let end = next.map_or(self.end, |next| next.place.saturating_add(self.margin).min(self.end));
        let marks = Marks { begin: (place > 0).then(|| mark(fragment)), until: next.map(mark) };
        Some((ByteRange::new(fragment.offset, end), marks))
    }

    /// Joins the last two fragments, or the first two; `false` where there are only two.
    pub(super) fn join(&mut self, is_last: bool) -> bool {
        if self.all.len() < 3 {
            return false;
        }
        self.all.remove(if is_last { self.all.len() - 1 } else { 1 });
        true
    }
}
