//! Movie fragments: `moof` and the header of `mdat`, from the times and sizes of samples alone.

use super::boxes::BoxWriter;
use bytes::Bytes;

/// Sample flags (ISO/IEC 14496-12 8.8.3.1) of a sync sample, which depends on no other.
const SYNC: u32 = 0x0200_0000;
/// Sample flags of other samples, which depend on others.
const NOT_SYNC: u32 = 0x0101_0000;

/// `tfhd` flags (8.8.7.1).
const DEFAULT_DURATION: u32 = 0x08;
const DEFAULT_SIZE: u32 = 0x10;
const DEFAULT_FLAGS: u32 = 0x20;
const BASE_IS_MOOF: u32 = 0x02_0000;

/// `trun` flags (8.8.8.1).
const DATA_OFFSET: u32 = 0x01;
const FIRST_FLAGS: u32 = 0x04;
const DURATIONS: u32 = 0x100;
const SIZES: u32 = 0x200;
const FLAGS: u32 = 0x400;
const OFFSETS: u32 = 0x800;

/// One sample of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentSample {
    /// Ticks up to the next sample's decode time.
    pub duration: u32,
    /// Bytes.
    pub size: u32,
    /// Ticks from its decode time to its presentation time.
    pub offset: i64,
    /// Whether decoding can begin with it.
    pub is_sync: bool,
}

/// Samples of one track in a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackRun {
    /// ID of the track.
    pub id: u32,
    /// Decode time of the first sample in ticks of the track.
    pub decode_time: u64,
    /// The samples in decode order.
    pub samples: Vec<FragmentSample>,
}

/// Returns `moof` and the header of `mdat` for fragment `sequence` (from 1). The bytes of all samples follow, run by run.
#[must_use]
pub fn fragment_head(sequence: u32, runs: &[TrackRun]) -> Bytes {
    let rows: usize = runs.iter().map(|run| run.samples.len()).sum();
    let mut w = BoxWriter::with_capacity(64 + runs.len() * 96 + rows * 16);
    let mut places = Vec::with_capacity(runs.len());
    w.put(b"moof", |w| {
        w.full(b"mfhd", 0, 0, |w| w.u32(sequence));
        for run in runs {
            w.put(b"traf", |w| {
                let columns = Columns::of(&run.samples);
                columns.track_fragment_header(w, run.id);
                w.full(b"tfdt", 1, 0, |w| w.u64(run.decode_time));
                places.push(columns.run(w, &run.samples));
            });
        }
    });
    let bytes = |run: &TrackRun| run.samples.iter().map(|sample| u64::from(sample.size)).sum::<u64>();
    let header = media_data_header(runs.iter().map(bytes).sum());
    let mut offset = (w.out.len() + header.len()) as u64;
    for (run, place) in runs.iter().zip(places) {
        w.out[place..place + 4].copy_from_slice(&i32::try_from(offset).unwrap_or(i32::MAX).to_be_bytes());
        offset = offset.saturating_add(bytes(run));
    }
    w.bytes(&header);
    w.out.into()
}

/// Returns the header of an `mdat` (8.1.1) with `bytes` bytes of media.
pub(super) fn media_data_header(bytes: u64) -> Vec<u8> {
    let mut w = BoxWriter::with_capacity(16);
    match u32::try_from(bytes.saturating_add(8)) {
        Ok(size) => {
            w.u32(size);
            w.bytes(b"mdat");
        }
        Err(_) => {
            w.u32(1);
            w.bytes(b"mdat");
            w.u64(bytes.saturating_add(16));
        }
    }
    w.out
}

/// Fields that all samples share, and fields of each.
pub(super) struct Columns {
    duration: Option<u32>,
    size: Option<u32>,
    flags: Flags,
    has_offsets: bool,
    /// Whether a sample is presented before it is decoded.
    is_signed: bool,
}

enum Flags {
    /// All samples have the same flags.
    Same(u32),
    /// One sync sample, then others.
    First,
    Each,
}

impl Columns {
    pub(super) fn of(rows: &[FragmentSample]) -> Self {
        let same = |value: fn(&FragmentSample) -> u32| {
            let first = rows.first().map(value)?;
            rows.iter().all(|r| value(r) == first).then_some(first)
        };
        let rest_sync = rows.iter().skip(1).any(|r| r.is_sync);
        let flags = match rows.first().is_some_and(|r| r.is_sync) {
            true if rows.len() > 1 && !rest_sync => Flags::First,
            sync if rows.iter().all(|r| r.is_sync == sync) => Flags::Same(if sync { SYNC } else { NOT_SYNC }),
            _ => Flags::Each,
        };
        Self {
            duration: same(|r| r.duration),
            size: same(|r| r.size),
            flags,
            has_offsets: rows.iter().any(|r| r.offset != 0),
            is_signed: rows.iter().any(|r| r.offset < 0),
        }
    }

    /// Writes `tfhd` (8.8.7).
    pub(super) fn track_fragment_header(&self, w: &mut BoxWriter, id: u32) {
        let default_flags = match self.flags {
            Flags::Same(flags) => Some(flags),
            Flags::First => Some(NOT_SYNC),
            Flags::Each => None,
        };
        let flag = |value: Option<u32>, flag| if value.is_some() { flag } else { 0 };
        let flags = BASE_IS_MOOF
            | flag(self.duration, DEFAULT_DURATION)
            | flag(self.size, DEFAULT_SIZE)
            | flag(default_flags, DEFAULT_FLAGS);
        w.full(b"tfhd", 0, flags, |w| {
            w.u32(id);
            [self.duration, self.size, default_flags].into_iter().flatten().for_each(|value| w.u32(value));
        });
    }

    /// Returns the bits of a composition offset: in version 1 a signed number (8.8.8.3). An offset that 32 bits of the version can't hold is
    /// 0, as another one would be read.
    fn offset(&self, row: &FragmentSample) -> u32 {
        match self.is_signed {
            true => i32::try_from(row.offset).unwrap_or(0) as u32,
            false => u32::try_from(row.offset).unwrap_or(0),
        }
    }

    /// Writes `trun` (8.8.8). Returns the position of the data offset, which isn't known yet.
    pub(super) fn run(&self, w: &mut BoxWriter, rows: &[FragmentSample]) -> usize {
        let flag = |wanted: bool, flag| if wanted { flag } else { 0 };
        let each = matches!(self.flags, Flags::Each);
        let flags = DATA_OFFSET
            | flag(matches!(self.flags, Flags::First), FIRST_FLAGS)
            | flag(self.duration.is_none(), DURATIONS)
            | flag(self.size.is_none(), SIZES)
            | flag(each, FLAGS)
            | flag(self.has_offsets, OFFSETS);
        let mut place = 0;
        w.full(b"trun", self.is_signed.into(), flags, |w| {
            w.u32(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            place = w.out.len();
            w.u32(0);
            if matches!(self.flags, Flags::First) {
                w.u32(SYNC);
            }
            for row in rows {
                if self.duration.is_none() {
                    w.u32(row.duration);
                }
                if self.size.is_none() {
                    w.u32(row.size);
                }
                if each {
                    w.u32(if row.is_sync { SYNC } else { NOT_SYNC });
                }
                if self.has_offsets {
                    w.u32(self.offset(row));
                }
            }
        });
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of `trun` and the composition offsets of samples, as they are read (8.8.8.2).
    fn read_back(offsets: &[i64]) -> (u8, Vec<i64>) {
        let sample = |offset: &i64| FragmentSample { duration: 1, size: 1, offset: *offset, is_sync: true };
        let run = TrackRun { id: 1, decode_time: 0, samples: offsets.iter().map(sample).collect() };
        let head = fragment_head(1, &[run]);
        let place = head.windows(4).position(|name| name == b"trun").unwrap();
        let (version, rows) = (head[place + 4], &head[place + 16..]);
        let word = |row: &[u8]| u32::from_be_bytes(row.try_into().unwrap());
        let read = |row: &[u8]| if version == 0 { i64::from(word(row)) } else { i64::from(word(row) as i32) };
        (version, rows[..4 * offsets.len()].chunks(4).map(read).collect())
    }

    #[test]
    fn offsets_are_read_as_they_were_or_as_zero() {
        let large = i64::from(u32::MAX) - 1;
        assert_eq!(read_back(&[0, 5, large]), (0, vec![0, 5, large]));
        assert_eq!(read_back(&[-5, 5, i64::from(i32::MAX)]), (1, vec![-5, 5, i64::from(i32::MAX)]));
        // Both in one run: there is no field for it.
        assert_eq!(read_back(&[-5, 5, large]), (1, vec![-5, 5, 0]));
        assert_eq!(read_back(&[1, 1 << 33, 2]), (0, vec![1, 0, 2]));
    }
}
