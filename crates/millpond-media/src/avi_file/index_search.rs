//! The search for an index of the media: the standard indexes of OpenDML, or `idx1` behind the first `movi`.

use super::{
    PATH,
    chunk::{self, CHUNK_HEADER, MOST_CHUNK},
    header::{Header, MOST_STREAMS},
    index::{self, Listed, OldIndex},
    lane::Lane,
};
use crate::{error::MediaError, units::ByteRange, window::Window, work::Work};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a request for the headers of chunks behind the media.
const HEADERS: u64 = 4096;
/// Most chunks between the media and the index.
const MOST_CHUNKS: u32 = 64;
/// Most standard indexes of OpenDML. A stream has about one for each GiB.
const MOST_INDEXES: usize = 4096;
/// Most bytes of a chunk that an index may list. A chunk of PCM is divided, so it may have more bytes than other chunks.
const MOST_LISTED: u64 = 64 << 20;
/// Most bytes of the media behind the last chunk of `idx1`: indexes of OpenDML and chunks of streams that are left out may follow it.
const MOST_TAIL: u64 = 8 << 20;
/// Bytes of a key frame that describe its codec.
const BEGINNING: u64 = 4096;
/// Entries for which work is spent together.
const BATCH: u32 = 1024;

/// Result of a step.
#[derive(Debug)]
pub(super) enum Searched {
    Needs(Vec<ByteRange>),
    /// The lanes with all samples.
    Found(Vec<Lane>),
    /// The file has no index, or an index that does not fit the file.
    Broken,
}

/// The search in one file.
#[derive(Debug)]
pub(super) struct IndexSearch {
    object_len: u64,
    /// Most bytes of indexes.
    most: u64,
    movi: ByteRange,
    lanes: Vec<Lane>,
    /// Sum of the sizes of the chunks listed so far.
    listed: u64,
    /// Highest end of a chunk listed so far.
    listed_to: u64,
    state: State,
    wanted: Vec<ByteRange>,
    arrived: BTreeMap<u64, Bytes>,
    work: Work,
}

#[derive(Debug)]
enum State {
    /// Reads indexes of streams.
    Standard(Vec<(usize, ByteRange)>),
    /// Walks to `idx1`.
    Old(Window, u32),
    /// Compares the headers of listed chunks, and reads key frames.
    Ends,
}

impl IndexSearch {
    /// Begins the search in an object of `object_len` bytes, which holds at most `most` bytes of indexes.
    pub(super) fn new(header: &Header, lanes: Vec<Lane>, object_len: u64, most: u64, work: Work) -> Self {
        let of = |lane: &Lane| {
            let stream = header.streams.get(lane.number())?;
            let places = index::indexes(&stream.super_index)?;
            let number = lane.number();
            Some(places.into_iter().map(move |place| (number, place)))
        };
        let indexes: Option<Vec<_>> = lanes.iter().map(of).collect();
        let state = match indexes {
            Some(indexes) => State::Standard(indexes.into_iter().flatten().collect()),
            None => {
                let start = header.movi.end.saturating_add(header.movi.end % 2);
                State::Old(Window::new(start, object_len, HEADERS), 0)
            }
        };
        let (wanted, arrived) = (Vec::new(), BTreeMap::new());
        Self { object_len, most, movi: header.movi, lanes, listed: 0, listed_to: 0, state, wanted, arrived, work }
    }

    /// Bytes of heap held by the samples.
    pub(super) fn heap_bytes(&self) -> usize {
        self.lanes.iter().map(Lane::heap_bytes).sum()
    }

    /// Takes the bytes of a range that was needed.
    pub(super) fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        if self.wanted.contains(&range) {
            self.arrived.insert(range.start, bytes);
        }
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The job has ended.
    pub(super) fn step(&mut self) -> Result<Searched, MediaError> {
        loop {
            let missing: Vec<_> =
                self.wanted.iter().filter(|range| !self.arrived.contains_key(&range.start)).copied().collect();
            if !missing.is_empty() {
                return Ok(Searched::Needs(missing));
            }
            let is_right = match std::mem::replace(&mut self.state, State::Ends) {
                State::Standard(indexes) if self.wanted.is_empty() => self.want_indexes(indexes),
                State::Standard(indexes) => self.read_indexes(&indexes)?,
                State::Old(window, chunks) => self.find_old(window, chunks)?,
                State::Ends => {
                    let is_right = self.compare();
                    let lanes = std::mem::take(&mut self.lanes);
                    return Ok(if is_right { Searched::Found(lanes) } else { Searched::Broken });
                }
            };
            if !is_right {
                return Ok(Searched::Broken);
            }
        }
    }

    /// Requests the indexes of all streams. Returns `false` if the indexes exceed the file or the limits.
    fn want_indexes(&mut self, indexes: Vec<(usize, ByteRange)>) -> bool {
        let end = self.object_len;
        let cut = |(stream, place): (usize, ByteRange)| (stream, ByteRange::new(place.start, place.end.min(end)));
        let mut indexes: Vec<_> = indexes.into_iter().map(cut).collect();
        indexes.sort_unstable_by_key(|(_, place)| place.start);
        let bytes: u64 = indexes.iter().map(|(_, place)| place.len()).sum();
        // Two indexes can't begin at the same place.
        let is_apart = indexes.windows(2).all(|pair| matches!(pair, [(_, a), (_, b)] if a.start < b.start));
        let is_whole = indexes.iter().all(|(_, place)| place.len() > CHUNK_HEADER);
        self.wanted = indexes.iter().map(|(_, place)| *place).collect();
        let is_right = is_apart && is_whole && bytes <= self.most && indexes.len() <= MOST_INDEXES;
        self.state = State::Standard(indexes);
        is_right && !self.wanted.is_empty()
    }

    fn read_indexes(&mut self, indexes: &[(usize, ByteRange)]) -> Result<bool, MediaError> {
        self.wanted.clear();
        let arrived = std::mem::take(&mut self.arrived);
        for (stream, place) in indexes {
            let listed = arrived.get(&place.start).and_then(|bytes| index::standard(*stream, bytes));
            let Some(listed) = listed else { return Ok(false) };
            if !self.take(listed)? {
                return Ok(false);
            }
        }
        Ok(self.want_ends())
    }

    /// Walks to `idx1`, and reads it.
    fn find_old(&mut self, mut window: Window, mut chunks: u32) -> Result<bool, MediaError> {
        if let Some(bytes) = self.wanted.pop().and_then(|range| self.arrived.remove(&range.start)) {
            window.append(bytes);
        }
        loop {
            chunks += 1;
            if window.left() < CHUNK_HEADER || chunks > MOST_CHUNKS {
                return Ok(false);
            }
            let Some(header) = window.bytes(CHUNK_HEADER) else { return Ok(self.want(window, chunks, CHUNK_HEADER)) };
            let Some((kind, size)) = chunk::header(&header) else { return Ok(false) };
            let whole = CHUNK_HEADER + chunk::padded(size);
            match &kind {
                b"idx1" => {
                    // A further RIFF chunk has media that this index does not list.
                    let wanted = (whole + 4).min(window.left());
                    if wanted > self.most || CHUNK_HEADER + size > window.left() {
                        return Ok(false);
                    }
                    let Some(bytes) = window.bytes(wanted) else { return Ok(self.want(window, chunks, wanted)) };
                    let body = bytes.get(CHUNK_HEADER as usize..).unwrap_or_default();
                    let (body, next) = body.split_at_checked(chunk::padded(size) as usize).unwrap_or((body, &[]));
                    if next.starts_with(b"RIFF") {
                        return Ok(false);
                    }
                    let index = OldIndex::new(body, self.movi);
                    let is_right =
                        self.take(index.chunks())? && self.listed_to.saturating_add(MOST_TAIL) >= self.movi.end;
                    return Ok(is_right && self.want_ends());
                }
                b"RIFF" => return Ok(false),
                _ if whole > window.left() => return Ok(false),
                _ => window.advance(whole),
            }
        }
    }

    /// Requests `size` bytes from the position of the walk on. Returns `true`.
    fn want(&mut self, window: Window, chunks: u32, size: u64) -> bool {
        self.wanted = vec![window.want(size)];
        self.state = State::Old(window, chunks.saturating_sub(1));
        true
    }

    /// Gives chunks to their lanes. Returns `false` if the file can't hold the chunks.
    fn take(&mut self, chunks: impl Iterator<Item = Listed>) -> Result<bool, MediaError> {
        let places = by_stream(&self.lanes, |_| true);
        let (mut count, mut before) = (0, self.steps());
        for Listed { stream, place, is_key } in chunks {
            count += 1;
            if u32::is_multiple_of(count, BATCH) {
                let steps = self.steps();
                self.spend(u64::from(BATCH) + (steps - before))?;
                before = steps;
            }
            let Some(lane) = places.get(stream).copied().flatten().and_then(|at| self.lanes.get_mut(at)) else {
                continue;
            };
            // Chunks don't overlap, so their sizes add up to no more than the file.
            self.listed = self.listed.saturating_add(place.len());
            self.listed_to = self.listed_to.max(place.end);
            let is_within = place.start >= self.movi.start && place.end <= self.object_len;
            if !is_within || place.len() > MOST_LISTED || self.listed > self.object_len {
                return Ok(false);
            }
            if place.len() > MOST_CHUNK && !lane.is_divided() {
                lane.pass(place);
            } else {
                lane.listed(place, is_key);
            }
        }
        self.spend(u64::from(count % BATCH) + (self.steps() - before))?;
        Ok(true)
    }

    fn steps(&self) -> u64 {
        self.lanes.iter().map(Lane::steps).sum()
    }

    fn spend(&self, steps: u64) -> Result<(), MediaError> {
        self.work.spend(steps).map_err(|error| MediaError::work(PATH, self.movi.end, error))
    }

    /// Requests the headers of the first and the last chunk of each lane, and the key frames that describe their codecs. Returns
    /// `false` if no chunk is listed.
    fn want_ends(&mut self) -> bool {
        let header = |place: ByteRange| ByteRange::new(place.start.saturating_sub(CHUNK_HEADER), place.start);
        let ends = self.lanes.iter().filter_map(Lane::ends);
        let headers = ends.flat_map(|(first, last)| [header(first), header(last)]);
        let frames = self.lanes.iter().filter_map(Lane::describes_itself).map(beginning);
        self.wanted = headers.chain(frames).collect();
        self.wanted.sort_unstable();
        self.wanted.dedup_by_key(|range| range.start);
        self.state = State::Ends;
        !self.wanted.is_empty()
    }

    /// Compares the headers with the index, and gives key frames to their lanes.
    fn compare(&mut self) -> bool {
        let bytes = |start: u64| self.arrived.get(&start);
        for lane in &mut self.lanes {
            for place in lane.ends().into_iter().flat_map(|(first, last)| [first, last]) {
                let header =
                    place.start.checked_sub(CHUNK_HEADER).and_then(bytes).and_then(|bytes| chunk::header(bytes));
                let is_right = header.is_some_and(|(kind, size)| {
                    size == place.len() && chunk::stream_of(kind).is_some_and(|(stream, _)| stream == lane.number())
                });
                if !is_right {
                    return false;
                }
            }
            if let Some(place) = lane.describes_itself() {
                let Some(frame) = bytes(place.start) else { return false };
                if !lane.describe(frame) {
                    return false;
                }
            }
        }
        true
    }
}

/// Returns the places of some lanes, by the numbers of their streams.
pub(super) fn by_stream(lanes: &[Lane], is_wanted: impl Fn(&Lane) -> bool) -> [Option<usize>; MOST_STREAMS] {
    let mut places = [None; MOST_STREAMS];
    for (at, lane) in lanes.iter().enumerate().filter(|(_, lane)| is_wanted(lane)) {
        if let Some(place) = places.get_mut(lane.number()) {
            *place = Some(at);
        }
    }
    places
}

fn beginning(place: ByteRange) -> ByteRange {
    ByteRange::new(place.start, place.end.min(place.start.saturating_add(BEGINNING)))
}
