//! Several sample entries in one track (`stsd`, ISO/IEC 14496-12 8.5.2): clips that were joined.
//!
//! Pictures of H.264 or H.265 whose entries differ in their parameter sets are one track for players, if each key frame is
//! preceded by its sets (ISO/IEC 14496-15 5.4.2, 8.4.1).

use crate::{
    codec::{Codec, nal::NalSyntax},
    movie::{Track, sample_table::Sample},
};
use serde::{Deserialize, Serialize};

/// Most bytes of the parameter sets of an entry that are repeated before key frames.
const MOST_SETS: usize = 16 << 10;

/// Sample entries of one codec with different parameter sets, and the samples that each of them describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptions {
    entries: Vec<Description>,
    /// First sample of each stretch, and the place of its entry; in order, the first one from sample 0 on.
    stretches: Vec<(u32, u16)>,
}

/// One of the sample entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Codec with its parameter sets.
    pub codec: Codec,
    /// The whole sample entry box with its header, in ISO form.
    pub sample_entry: Vec<u8>,
    /// Parameter sets as NAL units of a sample, each after its length.
    sets: Vec<u8>,
}

impl Description {
    /// Describes samples by an entry. `None` for codecs without NAL units, and for sets too long for a length field or above 16
    /// KiB.
    #[must_use]
    pub fn new(codec: Codec, sample_entry: Vec<u8>) -> Option<Self> {
        let sets = sets_with_lengths(&codec).filter(|sets| sets.len() <= MOST_SETS)?;
        Some(Self { codec, sample_entry, sets })
    }
}

impl Descriptions {
    /// Creates the descriptions of a track. `stretches` are the first sample of each stretch, in order, and the place of its entry.
    #[must_use]
    pub fn new(entries: Vec<Description>, stretches: Vec<(u32, u16)>) -> Self {
        Self { entries, stretches }
    }

    /// Returns the descriptions of the samples of a part, numbered from its first sample.
    pub(crate) fn part(&self, samples: std::ops::Range<u32>) -> Self {
        let first = self.place(samples.start);
        let later = self.stretches.iter().filter(|(start, _)| samples.contains(start) && *start > samples.start);
        let later = later.map(|(start, place)| (start - samples.start, *place));
        let stretches = std::iter::once((0, first as u16)).chain(later).collect();
        Self { entries: self.entries.clone(), stretches }
    }

    /// First sample of each stretch, and the place of its entry.
    pub(crate) fn stretches(&self) -> &[(u32, u16)] {
        &self.stretches
    }

    /// The sample entries, in order of their first samples.
    #[must_use]
    pub fn entries(&self) -> &[Description] {
        &self.entries
    }

    /// Returns the place in [`entries`](Self::entries) of the description of sample `index`.
    #[must_use]
    pub fn place(&self, index: u32) -> usize {
        let after = self.stretches.partition_point(|(first, _)| *first <= index);
        self.stretches.get(after.saturating_sub(1)).map_or(0, |(_, place)| usize::from(*place))
    }

    /// Whether samples before `index` have another description.
    #[must_use]
    pub fn begins(&self, index: u32) -> bool {
        self.stretches.binary_search_by_key(&index, |(first, _)| *first).is_ok()
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let entry = |entry: &Description| {
            size_of::<Description>() + entry.codec.heap_bytes() + entry.sample_entry.len() + entry.sets.len()
        };
        self.entries.iter().map(entry).sum::<usize>() + self.stretches.capacity() * size_of::<(u32, u16)>()
    }
}

impl Track {
    /// Returns the parameter sets that must precede a sample in its bytes, as NAL units after their lengths. Empty except for
    /// key frames of a track with several [`Descriptions`], and for the first sample of each.
    #[must_use]
    pub fn sets_of(&self, sample: &Sample) -> &[u8] {
        let Some(descriptions) = &self.descriptions else { return &[] };
        if !sample.sync && !descriptions.begins(sample.index) {
            return &[];
        }
        descriptions.entries.get(descriptions.place(sample.index)).map_or(&[], |entry| &entry.sets)
    }

    /// Returns the codec with the parameter sets of sample `index`.
    #[must_use]
    pub fn codec_of(&self, index: u32) -> &Codec {
        let descriptions = self.descriptions.as_deref();
        let entry = descriptions.and_then(|descriptions| descriptions.entries.get(descriptions.place(index)));
        entry.map_or(&self.codec, |entry| &entry.codec)
    }
}

/// Returns the parameter sets of a codec as NAL units of its samples, each after its length. `None` for codecs without NAL units, and
/// where a set is too long for a length field.
#[must_use]
pub fn sets_with_lengths(codec: &Codec) -> Option<Vec<u8>> {
    let (_, size) = NalSyntax::of(codec)?;
    let sets: Vec<&[u8]> = match codec {
        Codec::Avc(config) => config.parameter_sets().collect(),
        Codec::Hevc(config) => config.parameter_sets().collect(),
        _ => return None,
    };
    let mut bytes = Vec::new();
    for set in sets {
        let length = u32::try_from(set.len()).ok()?.to_be_bytes();
        let (high, low) = length.split_at(length.len().checked_sub(size.into())?);
        if high.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(low);
        bytes.extend_from_slice(set);
    }
    Some(bytes)
}
