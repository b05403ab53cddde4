//! Small ranges scattered over an object, such as the headers of movie fragments, in few origin requests.
//!
//! If each range names the next one, a walk would wait for a request at each range. So the gap between two ranges is read too,
//! through the slice cache, if this takes little more time than another request. So a run of near ranges takes one request. Its
//! slices stay cached for viewers. Far ranges are read exactly.
//!
//! Ranges at known positions are requested at the same time, which makes their number cheap. There only gaps are read that
//! are no longer than the ranges.
//!
//! Bytes read beyond the ranges are bounded in three ways:
//!
//! - A gap at known positions has at most a slice, and a gap of a walk four slices.
//! - A gap of a walk takes at most [`COST`] times the delay of the request that it saves. Gaps at known positions have at
//!   most as many bytes as the ranges.
//! - Runs of an object have at most half of the bytes that the caches hold. Behind that, ranges are read exactly.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use crate::error::OriginError;
use crate::reading::object::Object;
use crate::reading::reader::Reader;
use crate::schedule::LinkEstimate;
use crate::store::Store;

/// Requests under way at once.
const PARALLEL: usize = 16;
/// Time that a gap of a walk may take, as a multiple of the delay of the request that it saves.
const COST: f64 = 2.0;
/// Longest gap of a walk that is read, in slices: 2 MiB, a fragment of four seconds at 4 Mbit/s.
const GAP: u64 = 4;
/// Slices of the first run of a walk. Each run is twice as long as the one before.
const FIRST: u64 = 2;
/// Longest run of a walk in bytes. Its request is never further ahead of the walk than others of their readers.
const LONGEST: u64 = 256 << 20;

/// Reads scattered ranges of one object, batch by batch. Gaps between near ranges are read too, within limits:
/// `docs/design/decisions/0015-fragment-headers.md`.
#[derive(Debug)]
pub struct Scattered {
    store: Store,
    object: Arc<Object>,
    /// Ends of the ranges of the last batch.
    ends: Vec<u64>,
    /// The run of the walk under way.
    run: Option<Reader>,
    /// Length of the next run of the walk.
    length: u64,
    /// Bytes that further runs may have.
    room: u64,
    /// Link to assume instead of the measured one.
    #[cfg(test)]
    link: Option<LinkEstimate>,
}

/// Ranges that are read by one task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A range that is read exactly.
    Exact(Range<u64>),
    /// Near ranges in order, which are read with the gaps between them.
    Run(Vec<Range<u64>>),
}

impl Part {
    /// Reads the end of an object in whole slices, because a run that gets there would read it again.
    fn widen(&mut self, len: u64) {
        if let Self::Exact(range) = self
            && range.end == len
        {
            *self = Self::Run(vec![range.clone()]);
        }
    }
}

impl Store {
    /// Returns a reader of small ranges that are scattered over an object.
    pub fn scattered(&self, object: &Arc<Object>) -> Scattered {
        let memory = self.memory().budget();
        let disk = self.slices().disk().filter(|_| object.is_storable()).map_or(0, |disk| disk.stats().capacity);
        Scattered {
            store: self.clone(),
            object: object.clone(),
            ends: Vec::new(),
            run: None,
            length: FIRST * self.slice_size(),
            room: memory.saturating_add(disk) / 2,
            #[cfg(test)]
            link: None,
        }
    }
}

impl Scattered {
    /// Reads a batch of ranges, each [exactly](Store::read_all) and all at once.
    ///
    /// # Errors
    ///
    /// As [`Store::read_all`].
    pub async fn read(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<(Range<u64>, Bytes)>, OriginError> {
        self.ends = ranges.iter().map(|range| range.end).collect();
        self.run = None;
        self.parts(ranges.into_iter().map(Part::Exact)).await
    }

    /// Reads a batch of ranges of a walk: over the whole object, each range behind one of the batch before, or at positions
    /// that an index named.
    ///
    /// # Errors
    ///
    /// As [`Store::read_all`].
    pub async fn walk(&mut self, mut ranges: Vec<Range<u64>>) -> Result<Vec<(Range<u64>, Bytes)>, OriginError> {
        if self.object.file().is_some() {
            return self.read(ranges).await;
        }
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let ends = std::mem::replace(&mut self.ends, ranges.iter().map(|range| range.end).collect());
        let reach = self.reach(&ranges);
        let (near, far): (Vec<_>, Vec<_>) =
            ranges.into_iter().partition(|range| self.store.is_near(&self.object, range));
        let mut parts = grouped(far, reach, self.store.slices().run(), &mut self.room);
        // At most one range continues the walk. The others of its batch lie far away.
        let follows = |part: &Part| match part {
            Part::Exact(range) => ends.iter().any(|end| (*end..=end.saturating_add(reach)).contains(&range.start)),
            Part::Run(_) => false,
        };
        let hop = parts.iter().position(follows).map(|index| parts.swap_remove(index));
        let mut read = Vec::new();
        match hop {
            Some(Part::Exact(range)) if self.continues(&range) => {
                let bytes = self.hop(range.clone()).await?;
                read.push((range, bytes));
            }
            other => parts.extend(other),
        }
        if reach >= self.store.slice_size() {
            parts.iter_mut().for_each(|part| part.widen(self.object.meta().len));
        }
        parts.extend(near.into_iter().map(Part::Exact));
        read.extend(self.parts(parts.into_iter()).await?);
        Ok(read)
    }

    /// Returns the longest gap that is read instead of another request.
    fn reach(&self, ranges: &[Range<u64>]) -> u64 {
        let gap = if ranges.len() > 2 {
            ranges.iter().map(|range| range.end.saturating_sub(range.start)).max().unwrap_or(0)
        } else {
            let slice = self.store.slice_size();
            let (link, is_measured) = self.link();
            // A float becomes the nearest integer in range.
            let worth = ((link.bandwidth * link.delay * COST) as u64).min(GAP * slice);
            // Small reads would never measure the link: a run does.
            return if is_measured { worth } else { worth.max(slice) };
        };
        gap.min(self.store.slice_size())
    }

    /// Returns the link, and whether enough bytes came over it to know it. Before that, its bandwidth is a lower bound.
    fn link(&self) -> (LinkEstimate, bool) {
        #[cfg(test)]
        if let Some(link) = self.link {
            return (link, true);
        }
        let source = self.object.source();
        (source.link().estimate, source.is_measured())
    }

    /// Whether the run of the walk holds a range, or may be followed by another run.
    fn continues(&mut self, range: &Range<u64>) -> bool {
        let slice = self.store.slice_size();
        if self.run.as_ref().is_some_and(|run| run.remaining().end >= range.end) {
            return true;
        }
        self.run = None;
        let length = self.length.min(self.object.meta().len.saturating_sub(range.start)).min(self.room);
        if length < range.end.saturating_sub(range.start).max(slice.min(self.length)) {
            return false;
        }
        let end = range.start.saturating_add(length).div_ceil(slice).saturating_mul(slice);
        self.room -= length;
        self.length = self.length.saturating_mul(2).min(LONGEST);
        self.run = Some(self.store.read(&self.object, range.start..end));
        true
    }

    /// Reads the next range of the walk from its run.
    async fn hop(&mut self, range: Range<u64>) -> Result<Bytes, OriginError> {
        if let Some(run) = &mut self.run {
            run.reach(range.start).await?;
        }
        self.store.read_all(&self.object, range).await
    }

    async fn parts(&self, parts: impl Iterator<Item = Part> + Send) -> Result<Vec<(Range<u64>, Bytes)>, OriginError> {
        let reads: Vec<_> = parts.map(|part| read_part(&self.store, &self.object, part)).collect();
        let read: Vec<_> = futures_util::stream::iter(reads).buffer_unordered(PARALLEL).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }
}

/// Joins sorted ranges with gaps of at most `reach` to runs of at most `most` bytes and `room` bytes in all.
fn grouped(ranges: Vec<Range<u64>>, reach: u64, most: u64, room: &mut u64) -> Vec<Part> {
    let mut groups: Vec<Vec<Range<u64>>> = Vec::new();
    for range in ranges {
        if let Some(group) = groups.last_mut()
            && let (Some(first), Some(last)) = (group.first(), group.last())
            && let (start, end) = (first.start, last.end)
            && range.start <= end.saturating_add(reach)
            && range.end.saturating_sub(start) <= most
            && range.end.saturating_sub(end) <= *room
        {
            *room -= range.end.saturating_sub(end);
            group.push(range);
        } else {
            groups.push(vec![range]);
        }
    }
    let part = |mut group: Vec<Range<u64>>| match group.pop() {
        Some(only) if group.is_empty() => Part::Exact(only),
        last => Part::Run(group.into_iter().chain(last).collect()),
    };
    groups.into_iter().map(part).collect()
}

async fn read_part(store: &Store, object: &Arc<Object>, part: Part) -> Result<Vec<(Range<u64>, Bytes)>, OriginError> {
    let ranges = match part {
        Part::Exact(range) => return Ok(vec![(range.clone(), store.read_all(object, range).await?)]),
        Part::Run(ranges) => ranges,
    };
    let start = ranges.first().map_or(0, |range| range.start);
    let slice = store.slice_size();
    let end = ranges.last().map_or(0, |range| range.end).div_ceil(slice).saturating_mul(slice);
    let mut run = store.read(object, start..end);
    let mut read = Vec::with_capacity(ranges.len());
    for range in ranges {
        run.reach(range.start).await?;
        read.push((range.clone(), store.read_all(object, range).await?));
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
