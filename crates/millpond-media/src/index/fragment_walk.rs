//! Finds all movie fragments of an object in few round trips.
//!
//! The object after the movie box is one lane of boxes. An index (`sidx`, `mfra`) cuts it into several lanes at the
//! offsets it names, and all lanes are walked in parallel. Joints of an object of several files cut it too. A lane finds
//! every fragment in it, so an index that omits some does no harm. A wrong index shows as a box that extends past its
//! lane, and is then ignored.

use crate::{
    boxes::{FourCc, Node, show},
    budget::Rounds,
    error::MediaError,
    index::lane::{Arrived, Here, Lane},
    mp4::fragment_places::{random_access, random_access_size, segment_index},
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// An object's rest up to this many bytes is read whole, in one round trip instead of one per fragment.
const WHOLE: u64 = 1 << 20;
/// Bytes read at an offset that an index names.
const NAMED: u64 = 4 << 10;
/// Bytes read at an offset that a walk reached.
const HOP: u64 = 16 << 10;
/// Most bytes read where the next box is not known.
const MOST: u64 = 64 << 10;
/// Most bytes requested in one round.
const BATCH: u64 = 32 << 20;
/// Most indexes used, which is more than a tree of them has. A file with an index before each fragment gains nothing
/// from them.
const MAX_CUTS: u32 = 256;
/// Most lanes. Further fragments are found by walking. A day of fragments of one second needs fewer.
const MAX_LANES: usize = 1 << 17;
/// Bytes of heap that a fragment takes besides its box.
const FRAGMENT_HEAP: u64 = 128;

/// The walk over the fragments of one object.
#[derive(Debug)]
pub(crate) struct FragmentWalk {
    /// Range after the movie box.
    all: ByteRange,
    lanes: Vec<Lane>,
    /// Fragments found, by offset.
    moofs: BTreeMap<u64, Bytes>,
    held: u64,
    limit: u64,
    tail: Tail,
    largest: u64,
    believe: bool,
    /// Number of indexes used.
    cuts: u32,
    /// Error that ended the walk before the end of the object.
    broken: Option<MediaError>,
    rounds: Rounds,
    work: Work,
}

/// The end of the object, which may hold an `mfra`.
#[derive(Debug)]
enum Tail {
    /// Not requested yet.
    Unknown,
    /// Requested: the last bytes, or the whole `mfra`.
    Asked(ByteRange),
    /// Read, or useless.
    Settled,
}

/// Result of one visit of a lane.
enum Look {
    /// The lane was walked to its end.
    Through,
    /// The lane needs this many bytes from its position.
    Wants(u64),
    /// An index names these offsets, at which lanes are to be cut.
    Cut(Vec<u64>),
    /// The bytes are impossible: the index that led here is wrong, or the object ends in garbage.
    Astray,
}

impl FragmentWalk {
    /// Starts a walk over `rest`, the lane after the movie box, that holds at most `limit` bytes of metadata. Steps are
    /// spent on `work`.
    pub(crate) fn new(rest: Lane, limit: u64, work: Work) -> Self {
        let tail = if rest.left() <= WHOLE { Tail::Settled } else { Tail::Unknown };
        let all = ByteRange::new(rest.at(), rest.end());
        let moofs = BTreeMap::new();
        Self {
            all,
            lanes: vec![rest],
            moofs,
            held: 0,
            limit,
            tail,
            largest: 0,
            believe: true,
            cuts: 0,
            broken: None,
            rounds: Rounds::to_fragments(),
            work,
        }
    }

    /// Walks from each of these offsets at the same time, because a file begins there that was joined with the one before.
    pub(crate) fn joined_at(mut self, joints: &[u64]) -> Self {
        if !joints.is_empty() {
            self.cut(joints.to_vec());
        }
        self
    }

    /// Skips the search for an index at the end of the object.
    pub(crate) fn without_tail(self) -> Self {
        Self { tail: Tail::Settled, ..self }
    }

    /// Walks as far as the available bytes allow, and returns the ranges needed next; none at the end.
    pub(crate) fn step(&mut self, arrived: &mut Arrived) -> Result<Vec<ByteRange>, MediaError> {
        let first = self.lanes.first().map_or(self.all.end, |lane| lane.at());
        self.rounds.begin(self.lanes.len(), first, &self.work)?;
        if let Some(places) = self.read_tail(arrived) {
            self.cut(places);
        }
        let mut wanted = Vec::new();
        for lane in &mut self.lanes {
            if let Some(bytes) = arrived.take_from(lane.held_to()) {
                lane.append(bytes);
            }
        }
        let mut index = 0;
        let mut asked = 0;
        while let Some(mut lane) = self.lanes.get(index).cloned() {
            let look = self.look(&mut lane)?;
            if let Some(slot) = self.lanes.get_mut(index) {
                *slot = lane.clone();
            }
            match look {
                Look::Through => index += 1,
                Look::Cut(places) => self.cut(places),
                Look::Astray if self.cuts > 0 => return Ok(self.start_over()),
                Look::Astray => {
                    self.lanes.truncate(index);
                }
                Look::Wants(size) => {
                    let range = lane.want(size);
                    asked += range.len();
                    wanted.push(range);
                    index += 1;
                    if asked >= BATCH {
                        break;
                    }
                }
            }
        }
        self.lanes.retain(|lane| lane.left() > 0);
        self.ask_tail(&mut wanted);
        wanted.sort_unstable();
        wanted.dedup();
        Ok(wanted)
    }

    /// Also requests the end of the object, if it may hold an index.
    fn ask_tail(&mut self, wanted: &mut Vec<ByteRange>) {
        if let Tail::Asked(range) = self.tail {
            wanted.push(range);
        } else if matches!(self.tail, Tail::Unknown) && !wanted.is_empty() {
            if self.lanes.len() > 1 {
                self.tail = Tail::Settled;
            } else {
                let range = ByteRange::new(self.all.end.saturating_sub(MOST).max(self.all.start), self.all.end);
                self.tail = Tail::Asked(range);
                wanted.push(range);
            }
        }
    }

    /// Returns the fragments in file order, and the error that ended the walk early, if any.
    pub(crate) fn into_fragments(self) -> (BTreeMap<u64, Bytes>, Option<MediaError>) {
        (self.moofs, self.broken)
    }

    /// Starts again from the beginning, without an index.
    fn start_over(&mut self) -> Vec<ByteRange> {
        self.cuts = 0;
        self.believe = false;
        self.tail = Tail::Settled;
        self.moofs.clear();
        self.held = 0;
        self.broken = None;
        let lane = Lane::new(self.all.start, self.all.end);
        let wanted = vec![lane.want(HOP)];
        self.lanes = vec![lane];
        wanted
    }

    /// Walks `lane` until bytes are missing.
    fn look(&mut self, lane: &mut Lane) -> Result<Look, MediaError> {
        loop {
            self.work.spend(1).map_err(|error| MediaError::work("moof", lane.at(), error))?;
            let (header, size) = match lane.here() {
                Here::End => return Ok(Look::Through),
                Here::Unknown => return Ok(Look::Wants(self.ask_at(lane))),
                // Garbage after the last box is skipped. Garbage at an offset from an index proves the index wrong.
                Here::Garbage if lane.end() == self.all.end && !lane.at_start() => return Ok(Self::leave(lane)),
                Here::Garbage => return Ok(Look::Astray),
                Here::Box { header, size } => (header, size),
            };
            if size > lane.left() && lane.end() < self.all.end {
                return Ok(Look::Astray);
            }
            if size > lane.left() && &header.kind == b"moof" {
                self.broken = Some(MediaError::truncated("moof", lane.at(), lane.left(), size));
                return Ok(Self::leave(lane));
            }
            match &header.kind {
                b"moof" => {
                    self.room_for(lane, size, header.kind)?;
                    let Some(bytes) = lane.bytes(size) else { return Ok(Look::Wants(size)) };
                    self.held += size + FRAGMENT_HEAP;
                    self.largest = self.largest.max(size);
                    // A copy, because a slice would keep everything that was read with it.
                    self.moofs.insert(lane.at(), Bytes::copy_from_slice(&bytes));
                }
                b"sidx" if self.may_cut() && size <= lane.left() => {
                    self.room_for(lane, size, header.kind)?;
                    let Some(bytes) = lane.bytes(size) else { return Ok(Look::Wants(size)) };
                    let places = Node::new(&bytes, lane.at(), "sidx").and_then(|sidx| segment_index(&sidx));
                    lane.advance(size);
                    return Ok(Look::Cut(places.unwrap_or_default()));
                }
                _ => {}
            }
            lane.advance(size);
        }
    }

    /// Whether another index may be used.
    fn may_cut(&mut self) -> bool {
        self.believe && self.cuts < MAX_CUTS && self.lanes.len() < MAX_LANES && self.rounds.cut(self.lanes.len())
    }

    /// Ends `lane` at its position.
    fn leave(lane: &mut Lane) -> Look {
        let left = lane.left();
        lane.advance(left);
        Look::Through
    }

    fn room_for(&self, lane: &Lane, size: u64, kind: FourCc) -> Result<(), MediaError> {
        let total = self.held.saturating_add(size);
        if total > self.limit {
            return Err(MediaError::too_large(show(kind), lane.at(), total, self.limit, "bytes of metadata"));
        }
        Ok(())
    }

    /// Returns how many bytes to read where the next box is not known.
    fn ask_at(&self, lane: &Lane) -> u64 {
        if self.all.len() <= WHOLE {
            return lane.left();
        }
        let least = if self.lanes.len() > 1 { NAMED } else { HOP };
        (self.largest + self.largest / 2).clamp(least, MOST)
    }

    /// Cuts the lanes at `places`. Offsets outside of the lanes, or at their ends, have no effect.
    fn cut(&mut self, mut places: Vec<u64>) {
        self.cuts += 1;
        places.sort_unstable();
        places.dedup();
        places.truncate(MAX_LANES.saturating_sub(self.lanes.len()));
        let mut places = places.into_iter().peekable();
        let mut lanes = Vec::with_capacity(self.lanes.len() + places.len());
        for mut lane in std::mem::take(&mut self.lanes) {
            while let Some(place) = places.next_if(|&place| place < lane.end()) {
                if place > lane.at() {
                    let rest = lane.split_off(place);
                    lanes.push(std::mem::replace(&mut lane, rest));
                }
            }
            lanes.push(lane);
        }
        self.lanes = lanes;
    }

    /// Returns the offsets that the `mfra` names, once it has arrived.
    fn read_tail(&mut self, arrived: &mut Arrived) -> Option<Vec<u64>> {
        let Tail::Asked(range) = self.tail else { return None };
        let bytes = arrived.take(range)?;
        self.tail = Tail::Settled;
        let size = random_access_size(&bytes)?;
        let start = self.all.end.checked_sub(size).filter(|&start| start >= self.all.start)?;
        let Some(skip) = start.checked_sub(range.start) else {
            if size <= self.limit {
                self.tail = Tail::Asked(ByteRange::new(start, self.all.end));
            }
            return None;
        };
        let bytes = bytes.get(usize::try_from(skip).ok()?..)?;
        let mfra = Node::new(bytes, start, "mfra").filter(|node| &node.kind == b"mfra")?;
        // The walk ends before the index, which saves a visit.
        self.cut(vec![start]);
        self.lanes.retain(|lane| lane.at() < start);
        self.all.end = start;
        Some(random_access(&mfra))
    }
}
