//! Appends the samples of movie fragments (`moof`, ISO/IEC 14496-12 8.8) to their tracks.

use crate::{
    boxes::{Fields, FullBox, Node},
    budget::Budget,
    error::MediaError,
    movie::sample_table::{MAX_SAMPLES, SampleTableBuilder},
    mp4::{
        moov::{MovieDraft, TrackDraft, Trex},
        pcm_units::PcmUnits,
        sample_entries::Fate,
    },
    protection::Container,
};

/// Most samples of zero bytes in a run that has no field for each sample.
const MAX_EMPTY_SAMPLES: u32 = 1024;

/// `sample_is_non_sync_sample` (8.8.3.1).
const NON_SYNC: u32 = 0x0001_0000;
/// `sample_depends_on` 1 (and 3, reserved): not an I picture.
const DEPENDS: u32 = 0x0100_0000;

/// Flags of `tfhd` (8.8.7) and `trun` (8.8.8) for optional fields.
mod flag {
    pub(crate) const BASE_DATA_OFFSET: u32 = 0x1;
    pub(crate) const DESCRIPTION: u32 = 0x2;
    pub(crate) const DEFAULT_DURATION: u32 = 0x8;
    pub(crate) const DEFAULT_SIZE: u32 = 0x10;
    pub(crate) const DEFAULT_FLAGS: u32 = 0x20;
    pub(crate) const BASE_IS_MOOF: u32 = 0x2_0000;

    pub(crate) const DATA_OFFSET: u32 = 0x1;
    pub(crate) const FIRST_SAMPLE_FLAGS: u32 = 0x4;
    pub(crate) const DURATION: u32 = 0x100;
    pub(crate) const SIZE: u32 = 0x200;
    pub(crate) const FLAGS: u32 = 0x400;
    pub(crate) const COMPOSITION: u32 = 0x800;
}

/// Settings of all runs of a track fragment.
#[derive(Debug)]
struct Traf {
    defaults: Trex,
    /// Offset from which data offsets count.
    base: u64,
    /// Offset of a run that has no data offset.
    next: u64,
    /// Whether the samples belong to their track.
    is_kept: bool,
}

impl MovieDraft {
    /// Appends the samples of `moof`. An invalid track fragment ends only its own track.
    ///
    /// # Errors
    /// The job has ended.
    pub(crate) fn add_fragment(&mut self, moof: &Node<'_>) -> Result<(), MediaError> {
        self.budget.justify(moof.whole.len());
        let headers = self.system_headers.of_fragment(moof).unwrap_or_else(|error| {
            self.skip_once(0, error);
            Vec::new()
        });
        // Without a base offset, data of the first track begins at the moof, and that of each other track where the
        // last one ended (8.8.7.1).
        let mut implicit = moof.offset;
        for traf in moof.children_of(b"traf") {
            let mut track = 0;
            self.budget.step(&traf, 1)?;
            match self.add_track_fragment(&traf, moof, implicit, &headers, &mut track) {
                Ok(end) => implicit = end,
                Err(error @ MediaError::Work { .. }) => return Err(error),
                Err(error) => match self.tracks.iter_mut().find(|t| t.header.id == track) {
                    Some(draft) if draft.cut.is_none() => draft.cut = Some(error.to_string()),
                    Some(_) => {}
                    None => self.skip_once(track, error),
                },
            }
        }
        Ok(())
    }

    /// Records an error of a track that is not played, or that has no id, once.
    fn skip_once(&mut self, track: u32, error: MediaError) {
        if !self.skipped.iter().any(|skipped| skipped.id == track) {
            self.skip(track, error.to_string());
        }
    }

    /// Appends the samples of one `traf`, and returns the end of its data.
    fn add_track_fragment(
        &mut self,
        node: &Node<'_>,
        moof: &Node<'_>,
        implicit: u64,
        headers: &[u32],
        track: &mut u32,
    ) -> Result<u64, MediaError> {
        let mut traf = self.track_fragment_header(&node.need(b"tfhd")?, moof.offset, implicit, track)?;
        let Self { tracks, budget, .. } = self;
        if let Some(draft) = tracks.iter_mut().find(|t| t.header.id == traf.defaults.track) {
            let is_clear = draft.header.clear_description == Some(traf.defaults.description);
            let to = traf.defaults.description;
            match if is_clear { Fate::Kept } else { draft.header.entries.begin(to, draft.samples.len()) } {
                Fate::Kept => {}
                Fate::LeftOut => {
                    draft.header.entries.leave_out(to, claimed_samples(node));
                    traf.is_kept = false;
                }
                Fate::Unknown => {
                    let from = draft.header.description;
                    return Err(node.unsupported(format!("a change from sample entry {from} to {to} within the track")));
                }
            }
            if let Some(tfdt) = node.child(b"tfdt").filter(|_| traf.is_kept) {
                let FullBox { version, mut fields, .. } = tfdt.full()?;
                let time = fields.versioned(version)?;
                let time = i64::try_from(time)
                    .map_err(|_| tfdt.invalid(format!("a decode time of {time}"), format!("at most {}", i64::MAX)))?;
                draft.begin_at(time, || format!("{} at byte {}", tfdt.path, tfdt.offset));
            }
            if let Some(protection) = draft.protection.as_mut().filter(|_| draft.cut.is_none()) {
                let (first, count) = (draft.samples.len(), claimed_samples(node));
                if is_clear {
                    protection.add_clear(node, first, count)?;
                } else {
                    let at = Container { tables: node, track: node, whole: moof, base: traf.base };
                    protection.add(at, first, count, budget)?;
                }
                protection.add_headers(first, headers);
            }
        }
        for run in node.children_of(b"trun") {
            self.budget.step(&run, 1)?;
            self.add_run(&run, &mut traf)?;
        }
        Ok(traf.next)
    }

    /// Reads `tfhd` (8.8.7), whose fields override the defaults of the track.
    fn track_fragment_header(
        &self,
        tfhd: &Node<'_>,
        moof: u64,
        implicit: u64,
        track: &mut u32,
    ) -> Result<Traf, MediaError> {
        let FullBox { flags, mut fields, .. } = tfhd.full()?;
        *track = fields.u32()?;
        let known = self.defaults.get(track).copied();
        let mut defaults = known.unwrap_or(Trex { track: *track, description: 1, ..Trex::default() });
        let base = if flags & flag::BASE_DATA_OFFSET != 0 {
            fields.u64()?
        } else if flags & flag::BASE_IS_MOOF != 0 {
            moof
        } else {
            implicit
        };
        for (bit, field) in [
            (flag::DESCRIPTION, &mut defaults.description),
            (flag::DEFAULT_DURATION, &mut defaults.duration),
            (flag::DEFAULT_SIZE, &mut defaults.size),
            (flag::DEFAULT_FLAGS, &mut defaults.flags),
        ] {
            if flags & bit != 0 {
                *field = fields.u32()?;
            }
        }
        Ok(Traf { defaults, base, next: base, is_kept: true })
    }

    /// Appends the samples of one `trun` (8.8.8) and moves `traf.next` to their end.
    fn add_run(&mut self, node: &Node<'_>, traf: &mut Traf) -> Result<(), MediaError> {
        let FullBox { flags, mut fields, .. } = node.full()?;
        let claimed = fields.u32()?;
        if flags & flag::DATA_OFFSET != 0 {
            let offset = i64::from(fields.i32()?);
            traf.next = traf
                .base
                .checked_add_signed(offset)
                .ok_or_else(|| node.invalid(format!("a data offset of {offset}"), "a place in the object"))?;
        }
        let first_flags = if flags & flag::FIRST_SAMPLE_FLAGS != 0 { Some(fields.u32()?) } else { None };
        let per_sample = (flags & 0xf00).count_ones() as usize * 4;
        let count = match (fields.rest().len().checked_div(per_sample), traf.defaults.size) {
            // A count beyond the fields that are present is cut to them.
            (Some(present), _) => claimed.min(u32::try_from(present).unwrap_or(u32::MAX)),
            (None, 0) if claimed > MAX_EMPTY_SAMPLES => {
                let found = format!("{claimed} samples of no bytes and no fields");
                return Err(node.invalid(found, format!("at most {MAX_EMPTY_SAMPLES}")));
            }
            (None, _) => claimed.min(MAX_SAMPLES),
        };
        let limit = self.media_end().unwrap_or(u64::MAX);
        let Self { tracks, budget, .. } = self;
        let draft = tracks.iter_mut().find(|t| t.header.id == traf.defaults.track && t.cut.is_none() && traf.is_kept);
        let run = Run { node, flags, first_flags, count, fields, limit };
        let Some(draft) = draft else { return run.add(traf, budget, None) };
        let added = match &mut draft.pcm {
            Some(units) if per_sample == 0 && traf.defaults.size == units.frame() => {
                run.add_frames(traf, budget, units, &mut draft.samples)
            }
            _ => run.add(traf, budget, Some(draft)),
        };
        if let Some(units) = &mut draft.pcm {
            units.end(&mut draft.samples);
        }
        added
    }
}

/// Number of samples that the runs of a `traf` claim.
fn claimed_samples(traf: &Node<'_>) -> u32 {
    let count = |run: Node<'_>| run.full().and_then(|FullBox { mut fields, .. }| fields.u32()).unwrap_or(0);
    traf.children_of(b"trun").map(count).fold(0, u32::saturating_add)
}

/// A `trun` (8.8.8), read up to its samples.
struct Run<'a, 'n> {
    node: &'n Node<'a>,
    flags: u32,
    first_flags: Option<u32>,
    count: u32,
    fields: Fields<'a, 'n>,
    /// Offset by which samples must end.
    limit: u64,
}

impl Run<'_, '_> {
    /// Appends the samples to their track, if it is played, and moves `traf.next` to their end.
    fn add(
        mut self,
        traf: &mut Traf,
        budget: &mut Budget,
        mut draft: Option<&mut TrackDraft>,
    ) -> Result<(), MediaError> {
        for index in 0..self.count {
            let mut field = |bit, default| if self.flags & bit != 0 { self.fields.u32() } else { Ok(default) };
            let duration = field(flag::DURATION, traf.defaults.duration)?;
            let size = field(flag::SIZE, traf.defaults.size)?;
            let default_flags = self.first_flags.filter(|_| index == 0).unwrap_or(traf.defaults.flags);
            let sample_flags = field(flag::FLAGS, default_flags)?;
            // Composition offsets are signed in version 1 only, but writers put negative ones into version 0 too.
            let composition = field(flag::COMPOSITION, 0)? as i32;
            let end = traf.next.checked_add(u64::from(size)).filter(|&end| end <= self.limit);
            let end = end.ok_or_else(|| self.passes_the_end(index, size, traf.next))?;
            match &mut draft {
                Some(TrackDraft { pcm: Some(units), samples, .. }) => {
                    let frame = units.frame();
                    if !size.is_multiple_of(frame) {
                        let found = format!("sample {index} of {size} bytes");
                        return Err(self.node.invalid(found, format!("whole frames of {frame}")));
                    }
                    budget.samples(self.node, units.needed(size / frame).max(1))?;
                    units.sample(samples, traf.next, size, duration);
                }
                Some(draft) => {
                    budget.samples(self.node, 1)?;
                    let sync = !draft.is_video() || sample_flags & (NON_SYNC | DEPENDS) == 0;
                    draft.samples.push(traf.next, size, duration, composition, sync);
                }
                None => budget.samples(self.node, 1)?,
            }
            traf.next = end;
        }
        Ok(())
    }

    /// Like [`add`](Self::add), for samples that are all one frame of PCM.
    fn add_frames(
        self,
        traf: &mut Traf,
        budget: &mut Budget,
        units: &mut PcmUnits,
        samples: &mut SampleTableBuilder,
    ) -> Result<(), MediaError> {
        let Trex { size, duration, .. } = traf.defaults;
        let room = self.limit.saturating_sub(traf.next) / u64::from(size.max(1));
        let fit = self.count.min(u32::try_from(room).unwrap_or(u32::MAX));
        budget.samples(self.node, units.needed(fit))?;
        units.begin(fit);
        units.frames(samples, traf.next, fit, duration);
        traf.next += u64::from(fit) * u64::from(size);
        if fit < self.count { Err(self.passes_the_end(fit, size, traf.next)) } else { Ok(()) }
    }

    fn passes_the_end(&self, index: u32, size: u32, at: u64) -> MediaError {
        let found = format!("sample {index} of {size} bytes at {at}");
        self.node.invalid(found, format!("an end by {}, the end of the object", self.limit))
    }
}

#[cfg(test)]
mod tests;
