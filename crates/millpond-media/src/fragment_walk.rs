//! Finding all movie fragments of an object with few round trips.
//!
//! The object after the movie box is a lane of boxes. An index (`sidx`, `mfra`) cuts it into lanes at the places it
//! names, and all lanes are walked at once. A lane finds every fragment in it, named or not, so an index that leaves
//! some out does no harm; one that points astray shows as a box that passes its lane, and is then not believed.

use crate::{
    boxes::{FourCc, Node, show},
    budget::Rounds,
    error::MediaError,
    fragment_places::{random_access, random_access_size, segment_index},
    lane::{Arrived, Here, Lane},
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What is left of an object is read whole up to this size: one round trip instead of one a fragment.
const WHOLE: u64 = 1 << 20;
/// Read at a place that an index names.
const NAMED: u64 = 4 << 10;
/// Read at a place that a walk came to.
const HOP: u64 = 16 << 10;
/// Most read at a place that turns out to need no more.
const MOST: u64 = 64 << 10;
/// Bytes asked for at once.
const BATCH: u64 = 32 << 20;
/// Indexes used: more than a tree of them has. A file with one before each fragment gains nothing from them.
const MAX_CUTS: u32 = 256;
/// Most lanes: places beyond that are found by walking. A day of fragments of one second has fewer.
const MAX_LANES: usize = 1 << 17;
/// Bytes of heap that a fragment takes beside its own.
const FRAGMENT_HEAP: u64 = 128;

/// The walk over the fragments of one object.
#[derive(Debug)]
pub(crate) struct FragmentWalk {
    /// All that is after the movie box.
    all: ByteRange,
    lanes: Vec<Lane>,
    /// Fragments found, by place.
    moofs: BTreeMap<u64, Bytes>,
    held: u64,
    limit: u64,
    tail: Tail,
    largest: u64,
    believe: bool,
    /// Indexes that were used.
    cuts: u32,
    /// Why the walk ended before the object did.
    broken: Option<MediaError>,
    rounds: Rounds,
    work: Work,
}

/// The end of the object, where an `mfra` may be.
#[derive(Debug)]
enum Tail {
    /// Not asked for.
    Unknown,
    /// Asked for: the last bytes, or the whole `mfra`.
    Asked(ByteRange),
    /// Read, or of no use.
    Settled,
}

/// What a look at a lane came to.
enum Look {
    /// Walked to its end.
    Through,
    /// Needs so many bytes from where it is.
    Wants(u64),
    /// Cut it at these places.
    Cut(Vec<u64>),
    /// What is here can't be: the index that led here is wrong, or the object ends in garbage.
    Astray,
}

impl FragmentWalk {
    /// A walk over `rest`, the lane after the movie box, that holds at most `limit` bytes of metadata.
    /// Steps are spent on `work`.
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

    /// Walks as far as the bytes at hand go, and gives the ranges it needs next; none when it is through.
    pub(crate) fn step(&mut self, arrived: &mut Arrived) -> Result<Vec<ByteRange>, MediaError> {
        let first = self.lanes.first().map_or(self.all.end, Lane::at);
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

    /// Asks for the end of the object along with the rest, if there may be an index.
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

    /// The fragments in file order, and why there are no more, if the object breaks off.
    pub(crate) fn into_fragments(self) -> (BTreeMap<u64, Bytes>, Option<MediaError>) {
        (self.moofs, self.broken)
    }

    /// Without an index, from the beginning.
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
                // After the last box garbage is passed over; where an index points to, it tells on the index.
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
                    // A copy: a slice would hold all that was read with it.
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

    /// Whether another index is used.
    fn may_cut(&mut self) -> bool {
        self.believe && self.cuts < MAX_CUTS && self.lanes.len() < MAX_LANES && self.rounds.cut(self.lanes.len())
    }

    /// Ends `lane` here.
    fn leave(lane: &mut Lane) -> Look {
        lane.advance(lane.left());
        Look::Through
    }

    fn room_for(&self, lane: &Lane, size: u64, kind: FourCc) -> Result<(), MediaError> {
        let total = self.held.saturating_add(size);
        if total > self.limit {
            return Err(MediaError::too_large(show(kind), lane.at(), total, self.limit, "bytes of metadata"));
        }
        Ok(())
    }

    /// How much to read where the next box is not known.
    fn ask_at(&self, lane: &Lane) -> u64 {
        if self.all.len() <= WHOLE {
            return lane.left();
        }
        let least = if self.lanes.len() > 1 { NAMED } else { HOP };
        (self.largest + self.largest / 2).clamp(least, MOST)
    }

    /// Cuts the lanes at `places`; those outside of them, or at their ends, change nothing.
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

    /// The places that the `mfra` names, once it is here.
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
        // The walk ends where the index begins: one box less to look at.
        self.cut(vec![start]);
        self.lanes.retain(|lane| lane.at() < start);
        self.all.end = start;
        Some(random_access(&mfra))
    }
}
