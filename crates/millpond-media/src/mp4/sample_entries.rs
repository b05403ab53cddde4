//! Chooses the sample entries of a track (`stsd`, ISO/IEC 14496-12 8.5.2) whose samples can follow each other.

use crate::{
    boxes::Node,
    codec::{AacConfig, Codec, TrackKind, nal::NalSyntax},
    error::MediaError,
    movie::descriptions::{Description, Descriptions},
    mp4::announced,
};

/// Object type of AAC LC, which is the core of HE-AAC too (ISO/IEC 14496-3 table 1.17).
const AAC_LC: u8 = 2;
/// Most sample entries of a track that are read.
pub(crate) const MOST_ENTRIES: usize = 16;

/// One sample entry.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntry {
    /// Number in `stsd`, from 1.
    pub(crate) number: u32,
    pub(crate) codec: Codec,
    pub(crate) kind: TrackKind,
    /// The whole box, in ISO form.
    pub(crate) sample_entry: Vec<u8>,
    /// URL of the other file that holds its samples.
    pub(crate) location: Option<String>,
    pub(crate) is_encrypted: bool,
}

/// Whether the samples of a sample entry stay in the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The samples stay in the track.
    Kept,
    /// The samples can't follow the first entry's samples, and are left out.
    LeftOut,
    /// `stsd` has no entry of that number.
    Unknown,
}

/// The sample entries of a track.
#[derive(Clone, Debug)]
pub(crate) struct SampleEntries {
    /// Path and offset of `stsd`, for messages.
    place: (String, u64),
    /// Entries whose samples can follow each other. The first one decides which others can.
    kept: Vec<StoredEntry>,
    /// For each of them, the place of the first one that is equal.
    alike: Vec<u16>,
    /// Entries whose samples are left out.
    refused: Vec<Refused>,
    /// Those of them whose samples can be a clip of their own, by the samples that can follow each other.
    others: Vec<SampleEntries>,
    /// First sample of each stretch, and the place of its entry in `kept`.
    stretches: Vec<(u32, u16)>,
}

#[derive(Clone, Debug)]
struct Refused {
    number: u32,
    what: String,
    samples: u64,
}

impl SampleEntries {
    /// Creates the entries of a track. Samples of most other entries must be able to follow samples of `first`.
    pub(crate) fn new(stsd: &Node<'_>, first: StoredEntry) -> Self {
        let place = (stsd.path.clone(), stsd.offset);
        Self::of(place, first)
    }

    /// Creates the entries of a track whose first one was found at `place`, for messages.
    pub(crate) fn of(place: (String, u64), first: StoredEntry) -> Self {
        let (refused, stretches, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { place, kept: vec![first], alike: vec![0], refused, stretches, others }
    }

    /// Adds an entry, or the reason why it can't be read.
    pub(crate) fn add(&mut self, number: u32, entry: Result<StoredEntry, MediaError>) {
        let what = match entry {
            Ok(entry) if self.kept.first().is_some_and(|first| follows(&entry, first)) => {
                self.keep(entry);
                return;
            }
            Ok(entry) => {
                let what = self.kept.first().map_or_else(|| shown(&entry), |first| told_apart(&entry, first).0);
                self.add_other(entry);
                what
            }
            Err(error) => error.to_string(),
        };
        self.refused.push(Refused { number, what, samples: 0 });
    }

    /// Adds an entry that equals the first.
    pub(crate) fn add_alike(&mut self, number: u32) {
        if let Some(first) = self.kept.first() {
            self.keep(StoredEntry { number, ..first.clone() });
        }
    }

    /// Notes an entry whose samples can't follow those of the first, but can be a clip of their own.
    fn add_other(&mut self, entry: StoredEntry) {
        if !self.kept.first().is_some_and(|first| stands_alone(&entry, first)) {
            return;
        }
        let has_place = |other: &&mut Self| other.kept.first().is_some_and(|first| follows(&entry, first));
        match self.others.iter_mut().find(has_place) {
            Some(other) => other.keep(entry),
            None => self.others.push(Self::of(self.place.clone(), entry)),
        }
    }

    /// Leaves out all samples that can't follow the first entry's samples.
    pub(crate) fn forget_others(&mut self) {
        self.others.clear();
    }

    /// Returns the entries of each kind of clip: samples of one kind can follow each other. Empty where all samples can.
    pub(crate) fn kinds(&self) -> Vec<Self> {
        if self.others.is_empty() {
            return Vec::new();
        }
        let main = Self { refused: Vec::new(), others: Vec::new(), stretches: Vec::new(), ..self.clone() };
        std::iter::once(main).chain(self.others.iter().cloned()).collect()
    }

    /// Whether samples of entry `number` are of this kind.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.kept.iter().any(|entry| entry.number == number)
    }

    fn keep(&mut self, entry: StoredEntry) {
        let is_alike = |other: &StoredEntry| is_same(&entry.codec, &other.codec) && entry.kind == other.kind;
        let place = self.kept.iter().position(is_alike).unwrap_or(self.kept.len());
        self.alike.push(u16::try_from(place).unwrap_or(u16::MAX));
        self.kept.push(entry);
    }

    /// Whether there is one sample entry.
    pub(crate) fn is_single(&self) -> bool {
        self.kept.len() == 1 && self.refused.is_empty() && self.others.is_empty()
    }

    /// Leaves all entries out except for the first.
    pub(crate) fn keep_first(&mut self) {
        self.kept.truncate(1);
        self.alike.truncate(1);
        self.refused.clear();
        self.others.clear();
    }

    /// Notes that samples from `first` on have entry `number`.
    pub(crate) fn begin(&mut self, number: u32, first: u32) -> Fate {
        let Some(place) = self.kept.iter().position(|entry| entry.number == number) else {
            let is_refused = self.refused.iter().any(|refused| refused.number == number);
            return if is_refused { Fate::LeftOut } else { Fate::Unknown };
        };
        // An entry equal to an earlier one stands for it.
        let place = self.alike.get(place).copied().unwrap_or(0);
        if self.stretches.last().is_some_and(|last| last.0 == first) {
            self.stretches.pop();
        }
        if self.stretches.last().is_none_or(|last| last.1 != place) {
            self.stretches.push((first, place));
        }
        Fate::Kept
    }

    /// Counts samples of entry `number` that are left out.
    pub(crate) fn leave_out(&mut self, number: u32, samples: u32) {
        let samples = u64::from(samples);
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.number == number) {
            refused.samples = refused.samples.saturating_add(samples);
        } else if self.refused.len() < MOST_ENTRIES {
            let what = format!("beyond the {MOST_ENTRIES} that are read");
            self.refused.push(Refused { number, what, samples });
        }
    }

    /// Returns a line for each entry whose samples are left out: everywhere, or only in RTSP where the track `has_clips`.
    pub(crate) fn warnings(&self, has_clips: bool) -> Vec<String> {
        let (path, offset) = &self.place;
        let Some(first) = self.kept.first() else { return Vec::new() };
        let line = |Refused { number, what, samples }: &Refused| {
            let is_clip = has_clips && self.others.iter().any(|other| other.has(*number));
            let fate =
                if is_clip { "they are played by HLS and DASH, and left out of RTSP" } else { "they are left out" };
            format!(
                "{path} at byte {offset}: found {samples} samples of sample entry {number} ({what}), expected entries \
                 whose samples can follow those of entry {} ({}): {fate}",
                first.number,
                shown(first)
            )
        };
        self.refused.iter().filter(|refused| refused.samples > 0).map(line).collect()
    }

    /// Returns the entry that stands for all samples, and the descriptions of samples where their parameter sets differ.
    pub(crate) fn finish(self) -> (Option<StoredEntry>, Option<Descriptions>) {
        let mut used: Vec<u16> = Vec::new();
        for (_, place) in &self.stretches {
            if !used.contains(place) {
                used.push(*place);
            }
        }
        let entries: Vec<&StoredEntry> = used.iter().filter_map(|place| self.kept.get(usize::from(*place))).collect();
        let announced = match &entries[..] {
            [] => return (self.kept.first().cloned(), None),
            [only] => return (Some((*only).clone()), None),
            entries => announced::of(entries),
        };
        let described = entries.iter().map(|entry| Description::new(entry.codec.clone(), entry.sample_entry.clone()));
        let Some(described) = described.collect::<Option<Vec<_>>>() else { return (announced, None) };
        let place = |old: &u16| used.iter().position(|place| place == old).unwrap_or(0) as u16;
        let stretches = self.stretches.iter().map(|(first, old)| (*first, place(old))).collect();
        (announced, Some(Descriptions::new(described, stretches)))
    }
}

/// Whether samples of `entry` can follow those of `first` in one track.
pub(crate) fn follows(entry: &StoredEntry, first: &StoredEntry) -> bool {
    if entry.location != first.location || entry.is_encrypted || first.is_encrypted {
        return false;
    }
    let is_picture = matches!((entry.kind, first.kind), (TrackKind::Video { .. }, TrackKind::Video { .. }));
    match (&entry.codec, &first.codec) {
        (Codec::Avc(_), Codec::Avc(_)) | (Codec::Hevc(_), Codec::Hevc(_)) => {
            let length = |codec| NalSyntax::of(codec).map(|(_, length)| length);
            let can_describe = |entry: &StoredEntry| Description::new(entry.codec.clone(), Vec::new()).is_some();
            is_picture
                && length(&entry.codec) == length(&first.codec)
                && transfer(&entry.codec) == transfer(&first.codec)
                && can_describe(entry)
                && can_describe(first)
        }
        // Key frames tell size and colours.
        (Codec::Vp9(a), Codec::Vp9(b)) => {
            (a.fourcc, a.profile, a.bit_depth) == (b.fourcc, b.profile, b.bit_depth)
                && transfer(&entry.codec) == transfer(&first.codec)
        }
        (Codec::Av1(a), Codec::Av1(b)) => {
            (a.profile, a.bit_depth, a.monochrome) == (b.profile, b.bit_depth, b.monochrome)
                && (a.chroma.0, a.chroma.1) == (b.chroma.0, b.chroma.1)
                && transfer(&entry.codec) == transfer(&first.codec)
        }
        (a, b) => is_same(a, b) && entry.kind == first.kind,
    }
}

/// Whether samples of `entry` can be a clip of their own beside those of `first`. MPEG audio is told by its frames, which are
/// not read for clips.
fn stands_alone(entry: &StoredEntry, first: &StoredEntry) -> bool {
    let is_kind = match (entry.kind, first.kind) {
        (TrackKind::Video { .. }, TrackKind::Video { .. }) => true,
        (TrackKind::Audio { .. }, TrackKind::Audio { .. }) => {
            let plays = |codec: &Codec| codec.fits_fmp4() && codec.fits_beside_video();
            let is_told = |codec: &Codec| !matches!(codec, Codec::MpegAudio(_) | Codec::Pcm(_));
            [&entry.codec, &first.codec].into_iter().all(|codec| plays(codec) && is_told(codec))
        }
        _ => false,
    };
    is_kind && entry.location == first.location && !entry.is_encrypted && !first.is_encrypted
}

/// Whether decoders need no other configuration for the one than for the other. Bit rates are no part of it.
fn is_same(a: &Codec, b: &Codec) -> bool {
    match (a, b) {
        (Codec::Aac(a), Codec::Aac(b)) => {
            let plain = |config: &AacConfig| {
                let config = AacConfig { average_bitrate: 0, ..config.clone() };
                match is_told_by_fields(&config) {
                    true => AacConfig { audio_specific_config: Vec::new(), ..config },
                    false => config,
                }
            };
            plain(a) == plain(b)
        }
        (a, b) => a == b,
    }
}

/// Whether the parsed fields are all that a decoder needs. Encoders write one configuration in several forms: an extension may
/// state that there is no SBR. Channels that a program config element lists are in the record only.
const fn is_told_by_fields(config: &AacConfig) -> bool {
    config.object_type == AAC_LC && config.channel_config != 0
}

/// Returns the transfer characteristics of pictures with a high dynamic range: PQ or HLG (ISO/IEC 23091-2 8.2).
fn transfer(codec: &Codec) -> Option<u8> {
    codec.color().map(|color| color.transfer).filter(|transfer| matches!(transfer, 16 | 18))
}

/// Returns the properties of an entry for messages.
pub(crate) fn shown(entry: &StoredEntry) -> String {
    let codec = entry.codec.parameter();
    let encrypted = if entry.is_encrypted { ", encrypted" } else { "" };
    let elsewhere = if entry.location.is_some() { ", in another file" } else { "" };
    match entry.kind {
        TrackKind::Video { width, height, .. } => format!("{codec}, {width}x{height}{encrypted}{elsewhere}"),
        TrackKind::Audio { channels, sample_rate } => {
            format!("{codec}, {sample_rate} Hz, {channels} channels{encrypted}{elsewhere}")
        }
        TrackKind::Text => format!("{codec}{encrypted}{elsewhere}"),
    }
}

/// Returns the properties of an entry and of the first one, for messages. Equal texts get the first property that differs.
pub(crate) fn told_apart(entry: &StoredEntry, first: &StoredEntry) -> (String, String) {
    let (found, expected) = (shown(entry), shown(first));
    if found != expected {
        return (found, expected);
    }
    let differs = details(&entry.codec).into_iter().zip(details(&first.codec)).find(|(a, b)| a != b);
    let (a, b) =
        differs.unwrap_or_else(|| ("another decoder configuration".to_owned(), "its decoder configuration".to_owned()));
    (format!("{found}, {a}"), format!("{expected}, {b}"))
}

/// Returns the properties of a codec that its short text lacks, in a fixed order.
fn details(codec: &Codec) -> Vec<String> {
    match codec {
        Codec::Aac(config) => vec![
            format!("object type {} in the core", config.object_type),
            format!("{} Hz in the core", config.sample_rate),
            format!("{} samples a frame", config.frame_length),
            format!("AudioSpecificConfig {}", hex(&config.audio_specific_config)),
        ],
        codec => {
            let length = NalSyntax::of(codec).map(|(_, length)| format!("NAL unit lengths of {length} bytes"));
            let transfer = transfer(codec).map(|transfer| format!("transfer characteristics {transfer}"));
            vec![length.unwrap_or_default(), transfer.unwrap_or_else(|| "no PQ or HLG".to_owned())]
        }
    }
}

/// Most bytes of a configuration in a message.
const SHOWN_BYTES: usize = 16;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(SHOWN_BYTES).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests;
