//! The sample entries of a track, made of the configurations that its stream states.

use crate::{
    codec::{
        Codec, TrackKind,
        make::{self, Made},
    },
    error::MediaError,
    mp4::sample_entries::{self, MOST_ENTRIES, SampleEntries, StoredEntry},
    ts::{TsConfiguration, TsFrame},
};

/// Path of errors.
const PATH: &str = "the stream";

/// Decides which frames one track can have.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// Configuration of the next frame, where that is new.
    next: Option<TsConfiguration>,
    /// Configurations of pictures that were used, each with the number of its entry: its place, from 1.
    known: Vec<TsConfiguration>,
    played: Option<Played>,
    /// Whether the next frames have another configuration than the track.
    is_other: bool,
    /// Reason for the lack of an entry, or of some frames.
    reason: Option<MediaError>,
}

#[derive(Clone, Debug)]
struct Played {
    first: StoredEntry,
    entries: SampleEntries,
}

/// The finished entries: the one that stands for all samples, and the entries among which they are divided.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) entry: StoredEntry,
    pub(super) entries: SampleEntries,
    /// Reason for the lack of some frames.
    pub(super) reason: Option<MediaError>,
}

impl Entries {
    /// Takes the configuration of the frames that follow.
    pub(super) fn configure(&mut self, configuration: TsConfiguration) {
        self.next = Some(configuration);
    }

    /// Codec and kind of the track; `None` before its first frame.
    pub(super) fn first(&self) -> Option<(&Codec, &TrackKind)> {
        self.played.as_ref().map(|played| (&played.first.codec, &played.first.kind))
    }

    /// Whether the track has a frame that would be sample `number`. `at` is the place of the frame in the file.
    pub(super) fn accept(&mut self, frame: &TsFrame, number: u32, at: u64) -> bool {
        if let Some(configuration) = self.next.take() {
            self.change(configuration, &frame.data, number, at);
        }
        self.played.is_some() && !self.is_other
    }

    fn change(&mut self, configuration: TsConfiguration, frame: &[u8], number: u32, at: u64) {
        let is_picture = matches!(configuration, TsConfiguration::Avc { .. } | TsConfiguration::Hevc { .. });
        // The picture size of the rest may differ: it is left out for good.
        if is_picture && self.is_other {
            return;
        }
        if self.played.is_none() {
            match made(&configuration, frame) {
                Ok(made) => self.play(configuration, made, number),
                Err(error) => self.reason = Some(error),
            }
            return;
        }
        if let Some(place) = self.known.iter().position(|known| *known == configuration) {
            return self.begin(place, number);
        }
        // Parameter sets that can't be read are damaged: the frames go on.
        let (Ok(made), Some(played)) = (made(&configuration, frame), &mut self.played) else { return };
        let entry = stored(made, self.known.len());
        self.is_other = !can_follow(&entry, &played.first);
        if self.is_other {
            let (found, expected) = sample_entries::told_apart(&entry, &played.first);
            let expected = format!("{expected} as before: such frames are left out");
            self.reason = Some(MediaError::invalid(PATH, at, found, expected));
        } else if is_picture {
            if self.known.len() >= MOST_ENTRIES {
                let (found, most) = (self.known.len() as u64 + 1, MOST_ENTRIES as u64);
                self.reason = Some(MediaError::too_large(PATH, at, found, most, "configurations"));
                self.is_other = true;
                return;
            }
            played.entries.add(entry.number, Ok(entry));
            self.known.push(configuration);
            self.begin(self.known.len() - 1, number);
        }
    }

    /// Begins the track with its first frame.
    fn play(&mut self, configuration: TsConfiguration, made: Made, number: u32) {
        let first = stored(made, 0);
        let mut entries = SampleEntries::of((PATH.to_owned(), 0), first.clone());
        entries.begin(first.number, number);
        self.known.push(configuration);
        (self.played, self.reason) = (Some(Played { first, entries }), None);
    }

    /// Uses a known configuration again.
    fn begin(&mut self, place: usize, number: u32) {
        self.is_other = false;
        if let Some(played) = &mut self.played {
            played.entries.begin(place as u32 + 1, number);
        }
    }

    /// Returns the entries of the track.
    ///
    /// # Errors
    /// There is none; with the reason, where one is known.
    pub(super) fn finish(self) -> Result<Chosen, Option<MediaError>> {
        match self.played {
            Some(Played { first, entries }) => Ok(Chosen { entry: first, entries, reason: self.reason }),
            None => Err(self.reason),
        }
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

/// Whether a decoder goes on from frames of `first` to those of `entry`: pictures of one size; sound whose frames tell all.
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
