//! Common encryption in init segments and fragments (ISO/IEC 23001-7): headers of protection systems, and auxiliary
//! information of a fragment's samples.

use super::boxes::BoxWriter;
use crate::{presentation::track::MediaTrack, timeline::Timed};
use millpond_media::protection::{Auxiliary, KeyParameters, Protection};

/// First index of groups that a fragment itself describes (ISO/IEC 14496-12 8.9.4).
const FIRST_GROUP: u32 = 0x1_0001;
/// Flag of `senc`: entries have subsamples (ISO/IEC 23001-7 7.2).
const SUBSAMPLES: u32 = 2;
/// Length of a subsample entry in bytes.
const SUBSAMPLE: usize = 6;
/// Writes the `pssh` boxes of the movie, for `moov` (ISO/IEC 23001-7 8.1).
pub(super) fn movie_headers(w: &mut BoxWriter, media: &MediaTrack) {
    if media.track().protection.is_some() {
        media.movie.system_headers.iter().for_each(|header| w.bytes(&header.whole));
    }
}

/// Writes the `pssh` boxes of the samples' original fragments, for `moof`.
pub(super) fn fragment_headers(w: &mut BoxWriter, media: &MediaTrack, samples: &[Timed]) {
    let Some(protection) = &media.track().protection else { return };
    if protection.headers.is_empty() {
        return;
    }
    let index = |timed: &Timed| timed.sample.index;
    let (Some(first), Some(last)) = (samples.iter().map(index).min(), samples.iter().map(index).max()) else { return };
    // The fragment with the first sample began before it.
    let headers = &protection.headers;
    let before = headers.partition_point(|header| header.sample <= first);
    let begins = headers.get(..before).and_then(<[_]>::last).map_or(first, |header| header.sample);
    let from = headers.partition_point(|header| header.sample < begins);
    let to = headers.partition_point(|header| header.sample <= last);
    let mut places: Vec<u32> = headers.get(from..to).unwrap_or_default().iter().map(|header| header.header).collect();
    places.sort_unstable();
    places.dedup();
    let all = &media.movie.fragment_headers;
    places.iter().filter_map(|place| all.get(*place as usize)).for_each(|header| w.bytes(&header.whole));
}

/// Writes the encryption boxes of a `traf`: groups of samples with other keys, and sizes, offset and entries of
/// auxiliary information. `moof` is the position of its `moof` in the buffer.
pub(super) fn sample_boxes(w: &mut BoxWriter, media: &MediaTrack, samples: &[Timed], moof: usize) {
    let Some(protection) = &media.track().protection else { return };
    let fragment = Fragment::of(protection, samples);
    fragment.groups(w);
    fragment.entries(w, moof);
}

/// Encryption of a fragment's samples.
struct Fragment<'a> {
    protection: &'a Protection,
    /// Entry and size of each sample.
    samples: Vec<(Auxiliary<'a>, u64)>,
    /// Whether entries have subsamples.
    subsamples: bool,
    /// Group that clear samples are assigned to where the fragment also has encrypted ones.
    stand_in: Option<u16>,
}

impl<'a> Fragment<'a> {
    fn of(protection: &'a Protection, samples: &[Timed]) -> Self {
        let mut cursor = protection.samples.cursor();
        let entry = |timed: &Timed| Some((cursor.get(timed.sample.index)?, timed.sample.range.len()));
        let samples: Vec<(Auxiliary<'a>, u64)> = samples.iter().filter_map(entry).collect();
        let protected = |entry: &&(Auxiliary<'_>, u64)| parameters(protection, entry.0.group).is_protected;
        let stand_in = samples.iter().find(protected).map(|(entry, _)| entry.group);
        let is_mixed = stand_in.is_some() && !samples.iter().all(|entry| protected(&entry));
        let subsamples = is_mixed || samples.iter().any(|(entry, _)| entry.subsamples.is_some());
        Self { protection, samples, subsamples, stand_in }
    }

    /// Returns the group to which a sample is assigned. Some players don't support clear samples in `senc`, whose
    /// entries have no initialization vector. Next to encrypted samples, clear ones count as encrypted with only clear
    /// bytes.
    fn group(&self, entry: &Auxiliary<'_>) -> u16 {
        let is_protected = parameters(self.protection, entry.group).is_protected;
        self.stand_in.filter(|_| !is_protected).unwrap_or(entry.group)
    }

    /// Writes `sgpd` and `sbgp` of type `seig` (ISO/IEC 14496-12 8.9), where a sample's parameters differ from the
    /// track's.
    fn groups(&self, w: &mut BoxWriter) {
        let mut described: Vec<u16> = Vec::new();
        let mut runs: Vec<(u32, u16)> = Vec::new();
        for group in self.samples.iter().map(|(entry, _)| self.group(entry)) {
            match runs.last_mut() {
                Some((count, last)) if *last == group => *count += 1,
                _ => runs.push((1, group)),
            }
        }
        described.extend(runs.iter().map(|(_, group)| *group).filter(|group| *group > 0));
        described.sort_unstable();
        described.dedup();
        if described.is_empty() {
            return;
        }
        let number = |group: u16| described.binary_search(&group).map_or(0, |place| FIRST_GROUP + place as u32);
        w.full(b"sbgp", 0, 0, |w| {
            w.bytes(b"seig");
            w.u32(u32::try_from(runs.len()).unwrap_or(u32::MAX));
            for (count, group) in &runs {
                w.u32(*count);
                w.u32(number(*group));
            }
        });
        w.full(b"sgpd", 1, 0, |w| {
            w.bytes(b"seig");
            w.u32(0);
            w.u32(u32::try_from(described.len()).unwrap_or(u32::MAX));
            described.iter().for_each(|group| description(w, parameters(self.protection, *group)));
        });
    }

    /// Writes `senc` (ISO/IEC 23001-7 7.2), and `saiz` and `saio` that point to its entries; nothing where all entries
    /// are empty.
    fn entries(&self, w: &mut BoxWriter, moof: usize) {
        let sizes: Vec<usize> = self.samples.iter().map(|(entry, size)| self.entry_size(entry, *size)).collect();
        if sizes.iter().all(|size| *size == 0) {
            return;
        }
        let mut place = 0;
        let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        w.full(b"senc", 0, if self.subsamples { SUBSAMPLES } else { 0 }, |w| {
            w.u32(count);
            place = w.out.len() - moof;
            self.samples.iter().for_each(|(entry, size)| self.entry(w, entry, *size));
        });
        // A size has 8 bits (ISO/IEC 14496-12 8.7.8). Where one is larger, players read the entries of `senc` only.
        let Ok(sizes) = sizes.into_iter().map(u8::try_from).collect::<Result<Vec<u8>, _>>() else { return };
        let same = sizes.first().copied().filter(|first| sizes.iter().all(|size| size == first));
        w.full(b"saiz", 0, 0, |w| {
            w.bytes(&[same.unwrap_or(0)]);
            w.u32(count);
            if same.is_none() {
                w.bytes(&sizes);
            }
        });
        w.full(b"saio", 0, 0, |w| {
            w.u32(1);
            w.u32(u32::try_from(place).unwrap_or(u32::MAX));
        });
    }

    fn entry_size(&self, entry: &Auxiliary<'_>, size: u64) -> usize {
        let iv_size = usize::from(parameters(self.protection, self.group(entry)).iv_size);
        match (self.stand_in, self.subsamples) {
            (None, _) => 0,
            (_, false) => iv_size,
            (_, true) => iv_size + 2 + SUBSAMPLE * usize::from(self.count(entry, size)),
        }
    }

    /// Number of subsamples of a sample of `size` bytes.
    fn count(&self, entry: &Auxiliary<'_>, size: u64) -> u16 {
        match entry.subsamples {
            Some(subsamples) => u16::try_from(subsamples.len() / SUBSAMPLE).unwrap_or(u16::MAX),
            None if parameters(self.protection, entry.group).is_protected => 1,
            None => u16::try_from(size.div_ceil(CLEAR_MOST).max(1)).unwrap_or(u16::MAX),
        }
    }

    fn entry(&self, w: &mut BoxWriter, entry: &Auxiliary<'_>, size: u64) {
        let own = parameters(self.protection, entry.group);
        if own.is_protected {
            w.bytes(entry.iv);
        } else {
            w.zeros(usize::from(parameters(self.protection, self.group(entry)).iv_size));
        }
        if !self.subsamples {
            return;
        }
        let count = self.count(entry, size);
        w.u16(count);
        match entry.subsamples {
            Some(subsamples) => w.bytes(subsamples),
            None if own.is_protected => {
                w.u16(0);
                w.u32(u32::try_from(size).unwrap_or(u32::MAX));
            }
            None => {
                for number in 0..u64::from(count) {
                    let left = size.saturating_sub(number * CLEAR_MOST).min(CLEAR_MOST);
                    w.u16(u16::try_from(left).unwrap_or(u16::MAX));
                    w.u32(0);
                }
            }
        }
    }
}

/// Most clear bytes of one subsample.
const CLEAR_MOST: u64 = u16::MAX as u64;

fn parameters(protection: &Protection, group: u16) -> &KeyParameters {
    let place = usize::from(group).checked_sub(1);
    place.and_then(|place| protection.groups.get(place)).unwrap_or(&protection.parameters)
}

/// Writes an entry of `sgpd` (`CencSampleEncryptionInformationGroupEntry`, ISO/IEC 23001-7 6), preceded by its length.
fn description(w: &mut BoxWriter, parameters: &KeyParameters) {
    let constant = if parameters.is_protected && parameters.iv_size == 0 { &parameters.constant_iv[..] } else { &[] };
    let length = 20 + if constant.is_empty() { 0 } else { 1 + constant.len() };
    w.u32(u32::try_from(length).unwrap_or(u32::MAX));
    w.bytes(&[0, parameters.crypt_blocks << 4 | parameters.skip_blocks]);
    w.bytes(&[u8::from(parameters.is_protected), parameters.iv_size]);
    w.bytes(&parameters.key_id.0);
    if let Ok(size @ 1..) = u8::try_from(constant.len()) {
        w.bytes(&[size]);
        w.bytes(constant);
    }
}

#[cfg(test)]
mod tests;
