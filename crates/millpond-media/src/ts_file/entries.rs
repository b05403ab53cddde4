//! The sample entries of a track, made of the configurations that its stream states.
//!
//! Frames of one kind can follow each other in one decoder. Where the configuration changes to another kind, a clip begins.

use super::parts::Part;
use crate::{
    codec::{
        Codec, TrackKind,
        make::{self, Made},
    },
    error::MediaError,
    movie::descriptions::Descriptions,
    mp4::sample_entries::{self, MOST_ENTRIES, SampleEntries, StoredEntry},
    ts::{TsConfiguration, TsFrame},
};

/// Path of errors.
const PATH: &str = "the stream";
/// Most kinds of frames of a track.
const MOST_KINDS: usize = 16;
/// Most configurations that are recognised when they are repeated.
const MOST_KNOWN: usize = 64;

/// Decides which frames one track can have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    /// Configuration of the next frame, where that is new.
    next: Option<TsConfiguration>,
    known: Vec<Known>,
    kinds: Vec<Kind>,
    /// Runs of frames with one sample entry, in order.
    runs: Vec<Run>,
    /// Kind of the next frames; `None` where they are left out.
    current: Option<usize>,
    /// Whether a decoder begins with the next frame, which must be a key frame.
    begins: bool,
    /// Number of sample entries.
    entries: usize,
    /// Reason for the lack of an entry, or of some frames.
    reason: Option<MediaError>,
}

/// A configuration that was used.
#[derive(Clone, Debug)]
struct Known {
    configuration: TsConfiguration,
    kind: usize,
    /// Number of its sample entry, from 1.
    number: u32,
}

/// Frames that can follow each other in one decoder.
#[derive(Clone, Debug)]
struct Kind {
    first: StoredEntry,
    entries: SampleEntries,
    /// Offset of its first frame in the file.
    at: u64,
}

/// Frames with one sample entry.
#[derive(Clone, Debug)]
struct Run {
    /// Number of its first sample in the track.
    first: u32,
    kind: usize,
    number: u32,
}

impl Entries {
    /// Takes the configuration of the frames that follow.
    pub(crate) fn configure(&mut self, configuration: TsConfiguration) {
        self.next = Some(configuration);
    }

    /// Codec and kind of media of the frames of a kind.
    pub(crate) fn media(&self, kind: usize) -> Option<(&Codec, &TrackKind)> {
        self.kinds.get(kind).map(|kind| (&kind.first.codec, &kind.first.kind))
    }

    /// Returns the kind of a frame that would be sample `number`; `None` if the track has no such frame. `at` is its place in the file.
    pub(crate) fn accept(&mut self, frame: &TsFrame, number: u32, at: u64) -> Option<usize> {
        if let Some(configuration) = self.next.take() {
            self.change(configuration, &frame.data, number, at);
        }
        let kind = self.current?;
        if self.begins && !frame.is_sync {
            return None;
        }
        self.begins = false;
        Some(kind)
    }

    fn change(&mut self, configuration: TsConfiguration, frame: &[u8], number: u32, at: u64) {
        let known = self.known.iter().find(|known| known.configuration == configuration);
        if let Some((kind, entry)) = known.map(|known| (known.kind, known.number)) {
            return self.begin(kind, entry, number);
        }
        let entry = match made(&configuration, frame) {
            Ok(made) => stored(made, self.entries),
            Err(error) if self.kinds.is_empty() => {
                self.reason = Some(error);
                return;
            }
            // Parameter sets that can't be read are damaged: the frames go on.
            Err(_) => return,
        };
        let fitting = self.kinds.iter().position(|kind| can_follow(&entry, &kind.first));
        let (kind, entry) = match fitting {
            Some(kind) => match self.join(kind, entry, at) {
                Some(entry) => (kind, entry),
                None => return self.leave_out(),
            },
            None => match self.add(entry, at) {
                Some(added) => added,
                None => return self.leave_out(),
            },
        };
        if self.known.len() < MOST_KNOWN {
            self.known.push(Known { configuration, kind, number: entry });
        }
        self.begin(kind, entry, number);
    }

    /// Adds an entry to a kind, and returns its number. Sound keeps the first entry of the kind, because its frames state their
    /// configuration. `None` beyond the limit.
    fn join(&mut self, kind: usize, entry: StoredEntry, at: u64) -> Option<u32> {
        let kind = self.kinds.get_mut(kind)?;
        if !matches!(entry.kind, TrackKind::Video { .. }) {
            return Some(kind.first.number);
        }
        if self.entries >= MOST_ENTRIES {
            let (found, most) = (self.entries as u64 + 1, MOST_ENTRIES as u64);
            self.reason = Some(MediaError::too_large(PATH, at, found, most, "configurations"));
            return None;
        }
        let number = entry.number;
        kind.entries.add(number, Ok(entry));
        self.entries += 1;
        Some(number)
    }

    /// Adds a kind, which begins with an entry. Returns its place, and the number of the entry. `None` if the kind can't be a clip.
    fn add(&mut self, entry: StoredEntry, at: u64) -> Option<(usize, u32)> {
        if let Some(Kind { first, .. }) = self.kinds.first()
            && !(stands_alone(&entry) && stands_alone(first))
        {
            let (found, expected) = sample_entries::told_apart(&entry, first);
            let expected = format!("{expected} as before: such frames are left out");
            self.reason = Some(MediaError::invalid(PATH, at, found, expected));
            return None;
        }
        if self.kinds.len() >= MOST_KINDS {
            let (found, most) = (self.kinds.len() as u64 + 1, MOST_KINDS as u64);
            self.reason =
                Some(MediaError::too_large(PATH, at, found, most, "configurations that need another decoder"));
            return None;
        }
        if self.kinds.is_empty() {
            self.reason = None;
        }
        let number = entry.number;
        let entries = SampleEntries::of((PATH.to_owned(), 0), entry.clone());
        self.kinds.push(Kind { first: entry, entries, at });
        self.entries += 1;
        Some((self.kinds.len() - 1, number))
    }

    /// Begins a run of frames with an entry.
    fn begin(&mut self, kind: usize, entry: u32, first: u32) {
        self.begins |= self.current != Some(kind);
        self.current = Some(kind);
        self.runs.pop_if(|run| run.first == first);
        if self.runs.last().is_none_or(|run| (run.kind, run.number) != (kind, entry)) {
            self.runs.push(Run { first, kind, number: entry });
        }
    }

    fn leave_out(&mut self) {
        self.current = None;
    }

    /// Returns the entry that stands for all samples of some parts of a kind, and the descriptions of samples where these differ.
    pub(super) fn described(&self, kind: usize, parts: &[&Part]) -> Option<(StoredEntry, Option<Descriptions>)> {
        self.described_in(kind, parts.iter().map(|part| (part.start, part.samples.len())))
    }

    /// Returns the entry and the descriptions of a track whose `samples` are all of a kind.
    pub(crate) fn described_whole(&self, kind: usize, samples: u32) -> Option<(StoredEntry, Option<Descriptions>)> {
        self.described_in(kind, [(0, samples)].into_iter())
    }

    /// Returns the entry and the descriptions of stretches of samples. A stretch has the number of its first sample, and a count.
    fn described_in(
        &self,
        kind: usize,
        stretches: impl Iterator<Item = (u32, u32)>,
    ) -> Option<(StoredEntry, Option<Descriptions>)> {
        let kind = self.kinds.get(kind)?;
        let (mut entries, mut before) = (kind.entries.clone(), 0_u32);
        for (start, count) in stretches {
            let end = start.saturating_add(count);
            let after = self.runs.partition_point(|run| run.first <= start);
            let runs = self.runs.get(after.saturating_sub(1)..).unwrap_or_default();
            for run in runs.iter().take_while(|run| run.first < end) {
                entries.begin(run.number, before.saturating_add(run.first.saturating_sub(start)));
            }
            before = before.saturating_add(count);
        }
        let (entry, descriptions) = entries.finish();
        Some((entry.unwrap_or_else(|| kind.first.clone()), descriptions))
    }

    /// Returns the reason why frames of a kind are not played like frames of the `main` kind. `fate` is the end of the reason.
    pub(crate) fn other_than(&self, main: usize, kind: usize, samples: u64, fate: &str) -> Option<MediaError> {
        let (main, kind) = (self.kinds.get(main)?, self.kinds.get(kind)?);
        let (found, expected) = sample_entries::told_apart(&kind.first, &main.first);
        let found = format!("{samples} frames of {found}");
        Some(MediaError::invalid(PATH, kind.at, found, format!("{expected}: {fate}")))
    }

    /// Returns the reason for the lack of an entry, or of some frames.
    pub(crate) fn take_reason(&mut self) -> Option<MediaError> {
        self.reason.take()
    }

    /// Whether there is no entry at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// Makes a sample entry of a configuration, and of a frame where that tells more.
fn made(configuration: &TsConfiguration, frame: &[u8]) -> Result<Made, MediaError> {
    match configuration {
        TsConfiguration::Avc { sps, pps } => make::avc(sps, pps),
        TsConfiguration::Hevc { vps, sps, pps } => make::hevc(vps, sps, pps),
        TsConfiguration::Aac { audio_specific_config } => make::aac(audio_specific_config),
        TsConfiguration::MpegAudio { .. } => make::mpeg_audio(frame),
        TsConfiguration::Ac3 { .. } => make::ac3(frame),
        TsConfiguration::Eac3 { .. } => make::eac3(frame),
        TsConfiguration::Opus { channels, .. } => make::opus(*channels),
    }
}

fn stored(made: Made, place: usize) -> StoredEntry {
    let Made { codec, kind, sample_entry } = made;
    StoredEntry { number: place as u32 + 1, codec, kind, sample_entry, location: None, is_encrypted: false }
}

/// Whether frames can be a clip of their own: their codec must fit all outputs with clips.
fn stands_alone(entry: &StoredEntry) -> bool {
    match entry.kind {
        TrackKind::Video { .. } => true,
        _ => entry.codec.fits_fmp4() && entry.codec.fits_beside_video(),
    }
}

/// Whether a decoder goes on from frames of `first` to those of `entry`: pictures of one size; sound whose frames state their configuration.
fn can_follow(entry: &StoredEntry, first: &StoredEntry) -> bool {
    let size = |kind: &TrackKind| match kind {
        TrackKind::Video { width, height, .. } => Some((*width, *height)),
        _ => None,
    };
    let rate = |kind: &TrackKind| match kind {
        TrackKind::Audio { sample_rate, .. } => Some(*sample_rate),
        _ => None,
    };
    match (&entry.codec, &first.codec) {
        (Codec::Avc(_), Codec::Avc(_)) | (Codec::Hevc(_), Codec::Hevc(_)) => {
            size(&entry.kind) == size(&first.kind) && sample_entries::follows(entry, first)
        }
        (Codec::Ac3(_), Codec::Ac3(_)) | (Codec::Eac3(_), Codec::Eac3(_)) => rate(&entry.kind) == rate(&first.kind),
        (Codec::MpegAudio(a), Codec::MpegAudio(b)) => (a.layer, a.sample_rate) == (b.layer, b.sample_rate),
        (a, b) => a == b,
    }
}
