//! The track of a title: the samples of all clips that one decoder plays, in one table.

use super::StitchItem;
use crate::{
    codec::captions::CaptionChannels,
    movie::{
        Edit, Track,
        descriptions::Descriptions,
        edits::{first_shown, media_end},
        sample_table::{SampleTable, SampleTableBuilder},
    },
    mp4::sample_entries::{SampleEntries, StoredEntry, told_apart},
    units::Timescale,
};

/// Returns the track of clips, each with the place of its item, and the reason why one decoder can't play some of them. Those are
/// left out.
pub(super) fn joined(clips: &[(usize, Track)], items: &[StitchItem]) -> (Option<Track>, Option<String>) {
    let Some((_, first)) = clips.first() else { return (None, None) };
    let Some(timescale) = clips.iter().map(|(_, clip)| clip.timescale).max() else { return (None, None) };
    let mut joining = Joining::new(timescale);
    let mut split = None;
    for (place, clip) in clips {
        if let Err(fault) = joining.add(clip) {
            let label = items.get(*place).map_or("", |item| &item.label);
            split.get_or_insert_with(|| format!("item {} ({label}): {fault}", place + 1));
        }
    }
    let captions = CaptionChannels::joined(clips.iter().map(|(_, clip)| clip.captions));
    (joining.finish(first, captions), split)
}

struct Joining {
    timescale: Timescale,
    entries: Option<SampleEntries>,
    first: Option<StoredEntry>,
    samples: SampleTableBuilder,
    edits: Vec<Edit>,
    /// Time up to which the edits show the title, in nanoseconds.
    elapsed: u64,
    /// Composition time at which the last sample ends.
    end: i64,
    /// Number of the last sample entry.
    number: u32,
}

impl Joining {
    fn new(timescale: Timescale) -> Self {
        let (samples, edits) = (SampleTable::builder(), Vec::new());
        Self { timescale, entries: None, first: None, samples, edits, elapsed: 0, end: 0, number: 0 }
    }

    /// Adds a clip.
    ///
    /// # Errors
    /// Another decoder is needed.
    fn add(&mut self, clip: &Track) -> Result<(), String> {
        let numbers = self.describe(clip)?;
        let entries = self.entries.as_mut();
        if let Some(entries) = entries {
            for (start, number) in numbers {
                entries.begin(number, self.samples.len().saturating_add(start));
            }
        }
        let moved = self.push(clip);
        let mut at = 0_u64;
        for edit in &clip.edits {
            if let Some(time) = edit.media_time {
                if at > self.elapsed {
                    self.edits.push(Edit { duration: at - self.elapsed, media_time: None });
                }
                let time = clip.timescale.convert(time, self.timescale).saturating_add(moved);
                self.edits.push(Edit { duration: edit.duration, media_time: Some(time) });
                self.elapsed = at.saturating_add(edit.duration);
            }
            at = at.saturating_add(edit.duration);
        }
        Ok(())
    }

    /// Notes the sample entries of a clip. Returns the first sample of each stretch of the clip, and the number of its entry.
    fn describe(&mut self, clip: &Track) -> Result<Vec<(u32, u32)>, String> {
        let stored = |number: u32, codec: &crate::codec::Codec, sample_entry: &[u8]| StoredEntry {
            number,
            codec: codec.clone(),
            kind: clip.kind,
            sample_entry: sample_entry.to_vec(),
            location: None,
            is_encrypted: false,
        };
        let before = self.number;
        let (all, stretches) = match clip.descriptions.as_deref() {
            Some(described) => {
                let entries = described.entries().iter().zip(before + 1..);
                let all = entries.map(|(entry, number)| stored(number, &entry.codec, &entry.sample_entry)).collect();
                (all, numbered(described, before))
            }
            None => (vec![stored(before + 1, &clip.codec, &clip.sample_entry)], vec![(0, before + 1)]),
        };
        for entry in all {
            self.number = entry.number;
            match (&mut self.entries, &self.first) {
                (Some(entries), Some(first)) => {
                    entries.add(entry.number, Ok(entry.clone()));
                    if !entries.has(entry.number) {
                        let (found, expected) = told_apart(&entry, first);
                        return Err(format!("found {found}, expected {expected} as before it"));
                    }
                }
                _ => {
                    self.first = Some(entry.clone());
                    self.entries = Some(SampleEntries::of(("stitched title".to_owned(), 0), entry));
                }
            }
        }
        Ok(stretches)
    }

    /// Appends the samples of a clip after all others, in decoding order and in order of presentation. Returns the ticks by which
    /// their times are moved.
    fn push(&mut self, clip: &Track) -> i64 {
        let to = |ticks: i64| clip.timescale.convert(ticks, self.timescale);
        let moved = match self.samples.is_empty() {
            true => 0,
            false => {
                let decoded = self.samples.next_dts().saturating_sub(to(clip.samples.start_dts()));
                decoded.max(self.end.saturating_sub(to(first_shown(&clip.samples))))
            }
        };
        for sample in &clip.samples {
            let dts = to(sample.dts);
            let end = to(sample.dts.saturating_add(i64::from(sample.duration)));
            let composition = to(sample.pts()).saturating_sub(dts);
            self.samples.set_start_dts(dts.saturating_add(moved));
            self.samples.push(
                sample.range.start,
                u32::try_from(sample.range.len()).unwrap_or(u32::MAX),
                u32::try_from(end.saturating_sub(dts)).unwrap_or(u32::MAX),
                i32::try_from(composition).unwrap_or(0),
                sample.sync,
            );
        }
        self.end = to(media_end(&clip.samples)).saturating_add(moved);
        moved
    }

    fn finish(self, first: &Track, captions: Option<CaptionChannels>) -> Option<Track> {
        let (entry, descriptions): (_, Option<Descriptions>) = self.entries?.finish();
        let StoredEntry { codec, kind, sample_entry, .. } = entry?;
        Some(Track {
            id: first.id,
            kind,
            timescale: self.timescale,
            language: first.language.clone(),
            name: first.name.clone(),
            enabled: true,
            alternate_group: 0,
            purposes: first.purposes,
            captions,
            codec,
            sample_entry,
            edits: self.edits,
            samples: self.samples.finish(),
            descriptions: descriptions.map(Box::new),
            protection: None,
        })
    }
}

/// Returns the stretches of a clip with the numbers of their entries, which follow `before`.
fn numbered(described: &Descriptions, before: u32) -> Vec<(u32, u32)> {
    described.stretches().iter().map(|(start, place)| (*start, before + 1 + u32::from(*place))).collect()
}
