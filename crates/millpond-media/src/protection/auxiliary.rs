//! Auxiliary information of samples (ISO/IEC 23001-7 7.1): initialization vectors and subsamples, as in the file.

use serde::{Deserialize, Serialize};

/// Most entries between two marks.
const STEP: u32 = 64;

/// Length in bytes of a subsample entry: 16 bits for the clear bytes, 32 bits for the protected ones.
pub(crate) const SUBSAMPLE: usize = 6;

/// Form of consecutive entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Form {
    /// Number of the samples' group, from 1; 0 for none.
    pub(crate) group: u16,
    /// Length of an initialization vector in bytes.
    pub(crate) iv_size: u8,
    /// Whether subsamples follow each initialization vector.
    pub(crate) subsamples: bool,
}

impl Form {
    fn is_empty(self) -> bool {
        self.iv_size == 0 && !self.subsamples
    }
}

/// A position from which a walk over entries can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    sample: u32,
    /// Offset of its entry in the bytes. Metadata has fewer than 2^32 bytes.
    position: u32,
    form: Form,
}

/// The auxiliary information of all samples of a track, in decoding order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuxiliaryTable {
    len: u32,
    largest: u32,
    marks: Vec<Mark>,
    bytes: Vec<u8>,
    /// Whether the bytes of the next entry do not follow those of the last one.
    broken: bool,
}

/// The auxiliary information of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxiliary<'a> {
    /// Group of the sample in [`Protection::groups`](super::Protection::groups), from 1; 0 for none.
    pub group: u16,
    /// Initialization vector; empty where it is constant, or the sample is not encrypted.
    pub iv: &'a [u8],
    /// Subsamples of six bytes each, without their count; `None` where the whole sample is encrypted in the same way.
    pub subsamples: Option<&'a [u8]>,
}

impl AuxiliaryTable {
    /// Number of samples that have an entry.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no sample has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of the largest entry in bytes, with its count of subsamples.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.largest
    }

    /// Bytes of heap that the table holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>() + self.bytes.capacity()
    }

    /// Returns a cursor before the first entry.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { table: self, mark: 0, sample: 0, position: 0 }
    }

    /// Continues at sample `first`: earlier entries for later samples are dropped.
    pub(crate) fn resume(&mut self, first: u32) {
        self.marks.truncate(self.marks.partition_point(|mark| mark.sample < first));
        self.len = first;
        self.broken = true;
    }

    /// Appends `count` samples without bytes of their own.
    pub(crate) fn push_alike(&mut self, form: Form, count: u32) {
        if count > 0 {
            self.push(form, &[]);
            self.len = self.len.saturating_add(count - 1);
        }
    }

    /// Appends one entry as in the file: initialization vector, count of subsamples, subsamples.
    pub(crate) fn push(&mut self, form: Form, entry: &[u8]) {
        let goes_on = |mark: &Mark| mark.form == form && (form.is_empty() || self.len - mark.sample < STEP);
        if std::mem::take(&mut self.broken) || !self.marks.last().is_some_and(goes_on) {
            self.marks.push(Mark {
                sample: self.len,
                position: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
                form,
            });
        }
        self.bytes.extend_from_slice(entry);
        self.largest = self.largest.max(u32::try_from(entry.len()).unwrap_or(u32::MAX));
        self.len = self.len.saturating_add(1);
    }

    /// Releases excess capacity.
    pub(crate) fn shrink(&mut self) {
        self.marks.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}

/// A position in an [`AuxiliaryTable`]. Lookups are cheap where samples are requested in order.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    table: &'a AuxiliaryTable,
    /// Index of the mark before the next entry.
    mark: usize,
    /// Sample of the next entry, and the entry's offset.
    sample: u32,
    position: u64,
}

impl<'a> Cursor<'a> {
    /// Returns the entry of sample `index`.
    pub fn get(&mut self, index: u32) -> Option<Auxiliary<'a>> {
        if index >= self.table.len {
            return None;
        }
        let ends = self.table.marks.get(self.mark + 1).is_some_and(|next| next.sample <= index);
        if index < self.sample || ends {
            self.mark = self.table.marks.partition_point(|mark| mark.sample <= index).checked_sub(1)?;
            let mark = self.table.marks.get(self.mark)?;
            (self.sample, self.position) = (mark.sample, u64::from(mark.position));
        }
        let form = self.table.marks.get(self.mark)?.form;
        if form.is_empty() {
            self.sample = index;
        }
        loop {
            let (entry, size) = self.here(form)?;
            (self.sample, self.position) = (self.sample + 1, self.position + size as u64);
            if self.sample > index {
                return Some(entry);
            }
        }
    }

    fn here(&self, form: Form) -> Option<(Auxiliary<'a>, usize)> {
        let bytes = self.table.bytes.get(usize::try_from(self.position).ok()?..)?;
        let (iv, rest) = bytes.split_at_checked(usize::from(form.iv_size))?;
        if !form.subsamples {
            return Some((Auxiliary { group: form.group, iv, subsamples: None }, iv.len()));
        }
        let (count, rest) = rest.split_first_chunk()?;
        let subsamples = rest.get(..usize::from(u16::from_be_bytes(*count)) * SUBSAMPLE)?;
        let size = iv.len() + count.len() + subsamples.len();
        Some((Auxiliary { group: form.group, iv, subsamples: Some(subsamples) }, size))
    }
}
