//! Finds the table of fragments of a fragmented file, and makes a movie of it with the samples of the first fragment.
//!
//! The table is a `sidx` before the fragments, with those that it refers to, or an `mfra` at the end of the object. Besides it
//! the first and the last fragment are read. The first one tells where the stated times begin. The last one tells whether they
//! still fit there. A file whose table is missing or wrong is refused, and its fragments are read one by one.

use crate::{
    boxes::Node,
    budget::Rounds,
    error::MediaError,
    index::{
        lane::{Arrived, Here, Lane},
        outline_ends::{Ends, EndsStep, Plan},
    },
    movie::Movie,
    mp4::{
        fragment_places::random_access_size,
        fragment_tables::{FragmentTable, MOST_FRAGMENTS, SegmentIndex, random_access},
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes read where the next box is not known.
const HOP: u64 = 16 << 10;
/// Bytes read of the end of the object, and of an index whose size is not known.
const TAIL: u64 = 64 << 10;
/// Bytes read at an index that another one refers to.
const NAMED: u64 = 4 << 10;
/// Most indexes of one file.
const MOST_INDEXES: usize = 256;
/// Deepest index below another one.
const DEEPEST: u32 = 4;
/// Longest header that is kept with an outline.
const MOST_HEADER: usize = 256 << 10;
/// Longest `mfra`.
const MOST_INDEX: u64 = 16 << 20;
/// Most boxes before the first fragment.
const MOST_BOXES: u32 = 1024;

/// The search for the table of fragments of one object.
#[derive(Debug)]
pub(crate) struct OutlineSearch {
    moov: (u64, Bytes),
    object_len: u64,
    /// Ids of the tracks, pictures first.
    tracks: Vec<u32>,
    /// Offset of the first fragment.
    first: u64,
    /// Offset after the movie box.
    begin: u64,
    has_header_samples: bool,
    stage: Stage,
    indexes: BTreeMap<u64, SegmentIndex>,
    /// Whether the end of the object was read, and has no index.
    has_plain_end: bool,
    rounds: Rounds,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    /// Walking to the first fragment.
    Front(Lane, u32),
    /// Reading indexes that others refer to.
    Deeper(Vec<Lane>),
    /// Reading the end of the object.
    Tail(ByteRange),
    /// Reading the first and the last fragment.
    Ends(Box<Ends>),
}

/// Result of one step.
pub(crate) enum Outlined {
    /// These ranges are needed.
    Needs(Vec<ByteRange>),
    /// The fragments can't be outlined.
    Refused,
    /// The movie with its outline.
    Found(Box<Movie>),
}

impl OutlineSearch {
    /// Begins behind the movie box at `moov`, where `lane` is. `tracks` are the ids of its tracks, pictures first.
    pub(crate) fn new(moov: (u64, Bytes), lane: Lane, tracks: Vec<u32>, has_header_samples: bool, work: Work) -> Self {
        Self {
            object_len: lane.end(),
            first: 0,
            begin: lane.at(),
            stage: Stage::Front(lane, 0),
            indexes: BTreeMap::new(),
            has_plain_end: false,
            rounds: Rounds::to_fragments(),
            moov,
            tracks,
            has_header_samples,
            work,
        }
    }

    /// Whether the end of the object was read, and has no index.
    pub(crate) fn has_plain_end(&self) -> bool {
        self.has_plain_end
    }

    /// Continues with the bytes that arrived.
    ///
    /// # Errors
    /// The job has ended.
    pub(crate) fn step(&mut self, arrived: &mut Arrived) -> Result<Outlined, MediaError> {
        self.rounds.begin(1, self.begin, &self.work)?;
        if self.moov.1.len() > MOST_HEADER {
            return Ok(Outlined::Refused);
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Deeper(Vec::new()));
        match stage {
            Stage::Front(lane, boxes) => self.front(lane, boxes, arrived),
            Stage::Deeper(lanes) => self.deeper(lanes, arrived),
            Stage::Tail(range) => self.tail(range, arrived),
            Stage::Ends(ends) => self.ends(ends, arrived),
        }
    }

    fn front(&mut self, mut lane: Lane, mut boxes: u32, arrived: &mut Arrived) -> Result<Outlined, MediaError> {
        if let Some(bytes) = arrived.take_from(lane.held_to()) {
            lane.append(bytes);
        }
        loop {
            boxes += 1;
            let (kind, size) = match lane.here() {
                Here::Unknown => return Ok(self.need_front(lane, boxes, HOP)),
                Here::Box { header, size } if size <= lane.left() && boxes < MOST_BOXES => (header.kind, size),
                Here::End | Here::Garbage | Here::Box { .. } => return Ok(Outlined::Refused),
            };
            match &kind {
                b"moof" => break,
                b"sidx" => {
                    let Some(bytes) = lane.bytes(size) else { return Ok(self.need_front(lane, boxes, size)) };
                    self.add_index(lane.at(), &bytes);
                }
                _ => {}
            }
            lane.advance(size);
        }
        self.first = lane.at();
        if self.indexes.is_empty() || self.has_header_samples {
            return Ok(self.ask_tail());
        }
        self.deeper(Vec::new(), arrived)
    }

    fn need_front(&mut self, lane: Lane, boxes: u32, size: u64) -> Outlined {
        let range = lane.want(size);
        self.stage = Stage::Front(lane, boxes);
        Outlined::Needs(vec![range])
    }

    /// Adds the index at an offset. Returns whether it is valid.
    fn add_index(&mut self, at: u64, bytes: &[u8]) -> bool {
        let index = Node::new(bytes, at, "sidx").and_then(|node| SegmentIndex::parse(&node));
        let is_valid = index.is_some();
        self.indexes.extend(index.map(|index| (at, index)));
        is_valid
    }

    /// Reads the indexes that others refer to, until all are known.
    fn deeper(&mut self, lanes: Vec<Lane>, arrived: &mut Arrived) -> Result<Outlined, MediaError> {
        let mut wanted = Vec::new();
        let mut waiting = Vec::new();
        for mut lane in lanes {
            if let Some(bytes) = arrived.take_from(lane.held_to()) {
                lane.append(bytes);
            }
            let Here::Box { header, size } = lane.here() else { return Ok(Outlined::Refused) };
            if &header.kind != b"sidx" || size > lane.left().min(MOST_INDEX) {
                return Ok(Outlined::Refused);
            }
            match lane.bytes(size) {
                Some(bytes) if !self.add_index(lane.at(), &bytes) => return Ok(Outlined::Refused),
                Some(_) => {}
                None => {
                    wanted.push(lane.want(size));
                    waiting.push(lane);
                }
            }
        }
        let references = self.indexes.values().flat_map(|index| &index.references).filter(|r| r.is_index);
        let unknown: BTreeSet<(u64, u64)> = references
            .filter(|r| !self.indexes.contains_key(&r.start.offset))
            .map(|r| (r.start.offset, r.end.0))
            .collect();
        if self.indexes.len() + unknown.len() > MOST_INDEXES {
            return Ok(Outlined::Refused);
        }
        for (start, end) in unknown {
            let is_waiting = waiting.iter().any(|lane| lane.at() == start);
            let end = end.min(self.object_len);
            if is_waiting || start >= end {
                if !is_waiting {
                    return Ok(Outlined::Refused);
                }
                continue;
            }
            let lane = Lane::new(start, end);
            wanted.push(lane.want(NAMED));
            waiting.push(lane);
        }
        if !wanted.is_empty() {
            self.stage = Stage::Deeper(waiting);
            return Ok(Outlined::Needs(wanted));
        }
        let tables = self.flattened();
        self.tables_found(tables, self.object_len, arrived)
    }

    /// Returns a table for each track of an index that no other refers to.
    fn flattened(&self) -> Vec<FragmentTable> {
        let inner: BTreeSet<u64> = self
            .indexes
            .values()
            .flat_map(|index| &index.references)
            .filter(|reference| reference.is_index)
            .map(|reference| reference.start.offset)
            .collect();
        let mut tables: Vec<FragmentTable> = Vec::new();
        for (_, index) in self.indexes.iter().filter(|(at, _)| !inner.contains(at)) {
            if tables.iter().any(|table| table.track == index.track) {
                continue;
            }
            let timescale = Some(index.timescale);
            let mut table = FragmentTable { track: index.track, timescale, starts: Vec::new(), end: None };
            if self.append(index, &mut table, 0).is_some() {
                tables.push(table);
            }
        }
        tables
    }

    /// Appends the fragments of an index; `None` where they can't be those of one track.
    fn append(&self, index: &SegmentIndex, table: &mut FragmentTable, depth: u32) -> Option<()> {
        let fits = depth <= DEEPEST && index.track == table.track && Some(index.timescale) == table.timescale;
        fits.then_some(())?;
        for reference in &index.references {
            if reference.is_index {
                self.append(self.indexes.get(&reference.start.offset)?, table, depth + 1)?;
            } else {
                (table.starts.len() < MOST_FRAGMENTS).then_some(())?;
                table.starts.push(reference.start);
                table.end = Some(reference.end);
            }
        }
        Some(())
    }

    fn ask_tail(&mut self) -> Outlined {
        let range = ByteRange::new(self.object_len.saturating_sub(TAIL).max(self.first), self.object_len);
        self.stage = Stage::Tail(range);
        Outlined::Needs(vec![range])
    }

    fn tail(&mut self, range: ByteRange, arrived: &mut Arrived) -> Result<Outlined, MediaError> {
        let Some(bytes) = arrived.take(range) else { return Ok(Outlined::Refused) };
        let Some(size) = random_access_size(&bytes).filter(|size| *size <= MOST_INDEX) else {
            self.has_plain_end = true;
            return Ok(Outlined::Refused);
        };
        let Some(start) = self.object_len.checked_sub(size).filter(|start| *start > self.first) else {
            return Ok(Outlined::Refused);
        };
        let Some(skip) = start.checked_sub(range.start) else {
            let all = ByteRange::new(start, self.object_len);
            self.stage = Stage::Tail(all);
            return Ok(Outlined::Needs(vec![all]));
        };
        let mfra = bytes.get(skip as usize..).and_then(|bytes| Node::new(bytes, start, "mfra"));
        let Some(mfra) = mfra.filter(|node| &node.kind == b"mfra") else { return Ok(Outlined::Refused) };
        let mut tables = random_access(&mfra);
        for table in &mut tables {
            // The first fragment may be unnamed, or in the movie box.
            let first = if self.has_header_samples { self.begin } else { self.first };
            if let Some(start) = table.starts.first().copied().filter(|start| start.offset > first) {
                table.starts.insert(0, crate::mp4::fragment_tables::FragmentStart { offset: first, ..start });
            }
        }
        self.tables_found(tables, start, arrived)
    }

    /// Goes on to the first and the last fragment. Media end by `end`.
    fn tables_found(
        &mut self,
        tables: Vec<FragmentTable>,
        end: u64,
        arrived: &mut Arrived,
    ) -> Result<Outlined, MediaError> {
        let begin = if self.has_header_samples { self.begin } else { self.first };
        let main = self.tracks.iter().find_map(|id| tables.iter().position(|table| table.track == *id));
        let Some(main) = main else { return Ok(Outlined::Refused) };
        let plan = Plan {
            moov: self.moov.clone(),
            object_len: self.object_len,
            begin,
            end,
            has_header_samples: self.has_header_samples,
            tables,
            main,
        };
        match Ends::new(plan, self.work.clone()) {
            Some(ends) => self.ends(Box::new(ends), arrived),
            None => Ok(Outlined::Refused),
        }
    }

    fn ends(&mut self, mut ends: Box<Ends>, arrived: &mut Arrived) -> Result<Outlined, MediaError> {
        Ok(match ends.step(arrived)? {
            EndsStep::Needs(ranges) => {
                self.stage = Stage::Ends(ends);
                Outlined::Needs(ranges)
            }
            EndsStep::Refused => Outlined::Refused,
            EndsStep::Found(movie) => Outlined::Found(movie),
        })
    }
}

#[cfg(test)]
mod tests;
