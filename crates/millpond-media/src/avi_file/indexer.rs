//! Reads an AVI file: its header, then an index of its chunks, or else all chunks.

use super::{
    PATH,
    chunk::{self, CHUNK_HEADER, MOST_CHUNK},
    format::Form,
    header::{Header, HeaderReader, Read, Stream},
    index::{self, Listed, OldIndex},
    index_search::{self, IndexSearch, Searched},
    lane::Lane,
    walk::{Walk, Walked},
};
use crate::{
    budget::MOST_SKIPPED,
    error::MediaError,
    movie::{
        Movie, SkippedTrack, TrackKind,
        extraction::{Extraction, PacketForm},
        whole_frames::Extracted,
    },
    ts_file::Requests,
    units::{ByteRange, Timescale},
    window::Window,
    work::{Work, WorkError},
};
use bytes::Bytes;

/// Bytes of a request for the header.
const HEADERS: u64 = 64 << 10;
/// Bytes of the file for a step of work.
const STEP: u64 = 4096;
/// Least bytes of an entry of an index.
const ENTRY: u64 = 8;
/// Most bytes without chunks that are passed without a warning.
const MOST_PASSED: u64 = 64;

/// Result of one step.
#[derive(Debug)]
pub(crate) enum AviStep {
    /// The bytes of these ranges are needed.
    Needs(Vec<ByteRange>),
    Done(Box<Movie>),
}

/// The reading of one file.
#[derive(Debug)]
pub(crate) struct AviIndexer {
    object_len: u64,
    /// Most bytes of indexes.
    most: u64,
    /// Most bytes that are requested together.
    batch: u64,
    stage: Stage,
    left: Vec<SkippedTrack>,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    Header(Window, HeaderReader),
    Index(Box<(Header, IndexSearch)>),
    Scan(Box<Scan>),
    Done,
}

/// The reading of all chunks.
#[derive(Debug)]
struct Scan {
    requests: Requests,
    walk: Walk,
    lanes: Vec<Lane>,
    extracted: Extracted,
    /// Body of the first `movi`.
    movi: ByteRange,
    is_cut_short: bool,
    /// Whether the walk has ended.
    is_over: bool,
}

impl AviIndexer {
    /// Creates an indexer for an object of `object_len` bytes, which begins with `head`. The indexer holds at most `most` bytes of
    /// indexes, and requests at most `batch` bytes of chunks together.
    pub(crate) fn new(object_len: u64, head: Bytes, (most, batch): (u64, u64), work: Work) -> Self {
        let mut window = Window::new(0, object_len, HEADERS);
        window.append(head);
        let stage = Stage::Header(window, HeaderReader::default());
        Self { object_len, most, batch, stage, left: Vec::new(), work }
    }

    /// Whether all chunks are read: supplied bytes are dropped before further bytes are needed.
    pub(crate) fn is_scanning(&self) -> bool {
        matches!(self.stage, Stage::Scan(_))
    }

    /// Bytes of heap that the sample tables and unfinished frames hold so far.
    pub(crate) fn scanned_bytes(&self) -> usize {
        match &self.stage {
            Stage::Index(parts) => parts.1.heap_bytes(),
            Stage::Scan(scan) => scan.walk.heap_bytes() + scan.lanes.iter().map(Lane::heap_bytes).sum::<usize>(),
            Stage::Header(..) | Stage::Done => 0,
        }
    }

    /// Takes the bytes of a range that was needed.
    pub(crate) fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        match &mut self.stage {
            Stage::Header(window, _) if range.start == window.held_to() => window.append(bytes),
            Stage::Index(parts) => parts.1.supply(range, bytes),
            Stage::Scan(scan) => scan.requests.supply(range, bytes),
            Stage::Header(..) | Stage::Done => {}
        }
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The header is damaged, nothing of the file can be played, or the job has ended.
    pub(crate) fn step(&mut self) -> Result<AviStep, MediaError> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Header(mut window, mut reader) => match reader.read(&mut window, &self.work)? {
                    Read::Needs(size) => {
                        let range = window.want(size);
                        if range.is_empty() {
                            return Err(MediaError::truncated(PATH, window.at(), window.left(), size));
                        }
                        self.stage = Stage::Header(window, reader);
                        return Ok(AviStep::Needs(vec![range]));
                    }
                    Read::Done(header) => self.begin(header)?,
                },
                Stage::Index(mut parts) => match parts.1.step()? {
                    Searched::Needs(ranges) => {
                        self.stage = Stage::Index(parts);
                        return Ok(AviStep::Needs(ranges));
                    }
                    Searched::Found(lanes) => return self.finish(lanes, None, false),
                    Searched::Broken => {
                        let streams = parts.0.streams.iter();
                        let lanes = streams.filter_map(|stream| Some(Lane::new(stream, Form::of(stream).ok()?)));
                        self.stage = self.scan(&parts.0, lanes.collect());
                    }
                },
                Stage::Scan(mut scan) => {
                    while let Some(pieces) = scan.requests.take() {
                        for piece in pieces {
                            self.work.spend(piece.len() as u64 / STEP + 1).map_err(|error| at(&scan, error))?;
                            scan.walk.push(&piece);
                            scan.read(&self.work)?;
                        }
                    }
                    scan.requests.skip_to(scan.walk.skip());
                    let needs = scan.requests.needs();
                    if !needs.is_empty() && !scan.is_over {
                        self.stage = Stage::Scan(scan);
                        return Ok(AviStep::Needs(needs));
                    }
                    let Scan { walk, lanes, extracted, is_cut_short, .. } = *scan;
                    self.name_passed(&walk);
                    return self.finish(lanes, Some(extracted), is_cut_short || walk.is_cut_short);
                }
                Stage::Done => {
                    return Err(MediaError::invalid(PATH, 0, "a step after the last one", "none"));
                }
            }
        }
    }

    /// Decides by the header whether an index can list all samples.
    fn begin(&mut self, header: Header) -> Result<(), MediaError> {
        let mut forms = Vec::new();
        for stream in &header.streams {
            match Form::of(stream) {
                Ok(form) => forms.push((stream, form)),
                Err(error) => self.leave(stream.id(), &error),
            }
        }
        // A film whose pictures can't be played is refused, not played as sound.
        let is_film = header.streams.iter().any(Stream::is_video);
        let lacks_pictures = is_film && !forms.iter().any(|(stream, _)| stream.is_video());
        if forms.is_empty() || lacks_pictures {
            return Err(self.nothing(if lacks_pictures { "pictures of AVI" } else { PATH }, false));
        }
        let is_told = forms.iter().all(|(_, form)| form.is_told_by_index()) && !header.is_cut_short;
        let lanes = forms.into_iter().map(|(stream, form)| Lane::new(stream, form)).collect();
        self.stage = if is_told {
            let search = IndexSearch::new(&header, lanes, self.object_len, self.most, self.work.clone());
            Stage::Index(Box::new((header, search)))
        } else {
            self.scan(&header, lanes)
        };
        Ok(())
    }

    /// Begins to read all chunks.
    fn scan(&self, header: &Header, lanes: Vec<Lane>) -> Stage {
        let range = ByteRange::new(header.movi.start, self.object_len);
        Stage::Scan(Box::new(Scan {
            requests: Requests::new(range.start, range.end, self.batch),
            walk: Walk::new(range, lanes.iter().map(Lane::number)),
            lanes,
            extracted: Extracted::default(),
            movi: header.movi,
            is_cut_short: header.is_cut_short,
            is_over: false,
        }))
    }

    fn finish(
        &mut self,
        lanes: Vec<Lane>,
        extracted: Option<Extracted>,
        is_cut_short: bool,
    ) -> Result<AviStep, MediaError> {
        let is_extracted = extracted.is_some();
        let mut extracted = extracted.unwrap_or_default();
        let mut read = Vec::new();
        for lane in lanes {
            let id = lane.number() as u32 + 1;
            if lane.too_large() > 0 {
                let found = format!("{} chunks of more than {} MiB", lane.too_large(), MOST_CHUNK >> 20);
                self.leave(id, &MediaError::invalid("movi", 0, found, "smaller ones: these are left out"));
            }
            match lane.finish(&mut extracted) {
                Ok((stream, finished)) => {
                    finished.reason.iter().for_each(|error| self.leave(id, error));
                    read.push((stream, finished));
                }
                Err(error) => self.leave(id, &error),
            }
        }
        if read.is_empty() {
            return Err(self.nothing(PATH, is_cut_short));
        }
        let base = read.iter().map(|(_, finished)| finished.first()).min().unwrap_or(0);
        let (mut tracks, sources): (Vec<_>, Vec<_>) =
            read.into_iter().map(|(stream, finished)| finished.track(&stream, base)).unzip();
        for group in [true, false] {
            let others = tracks.iter_mut().filter(|track| matches!(track.kind, TrackKind::Video { .. }) == group);
            others.skip(1).for_each(|track| track.enabled = false);
        }
        let extraction = is_extracted.then(|| {
            let sources = sources.into_iter().flatten().collect();
            Box::new(Extraction::new((self.object_len, extracted.len), PacketForm::Chunks, 0, sources))
        });
        let movie = Movie::of_tracks(Timescale::MPEG, tracks, std::mem::take(&mut self.left));
        let movie = Movie { cut_short: is_cut_short, is_indivisible: true, extraction, ..movie };
        Ok(AviStep::Done(Box::new(movie)))
    }

    /// Adds the passed bytes to the skipped tracks.
    fn name_passed(&mut self, walk: &Walk) {
        if walk.passed > MOST_PASSED && !walk.is_cut_short {
            let found = format!("{} bytes without chunks", walk.passed);
            self.left.push(SkippedTrack::of_error(0, &MediaError::invalid("movi", 0, found, "a chunk")));
        }
    }

    fn leave(&mut self, id: u32, error: &MediaError) {
        if self.left.len() < MOST_SKIPPED {
            let number = id.saturating_sub(1);
            let reason = format!("stream {number}: {error}");
            self.left.push(SkippedTrack { reason, ..SkippedTrack::of_error(id, error) });
        }
    }

    fn nothing(&mut self, path: &str, cut_short: bool) -> MediaError {
        let found = std::mem::take(&mut self.left).into_iter().map(|left| left.reason).collect();
        MediaError::NoPlayableTrack { path: path.to_owned(), offset: 0, found, cut_short }
    }
}

impl Scan {
    /// Reads the chunks that have arrived.
    fn read(&mut self, work: &Work) -> Result<(), MediaError> {
        loop {
            let (stream, place, data) = match self.walk.next() {
                Walked::Chunk(stream, place, data) => (stream, place, Some(data)),
                Walked::TooLarge(stream, place) => (stream, place, None),
                Walked::Index(index) => {
                    self.measure_gaps(&index, work)?;
                    continue;
                }
                Walked::Needs => return Ok(()),
                Walked::End => {
                    self.is_over = true;
                    return Ok(());
                }
            };
            let Some(lane) = self.lanes.iter_mut().find(|lane| lane.number() == stream) else { continue };
            let before = lane.steps();
            lane.reach(place, self.walk.damages);
            match data {
                Some(data) => lane.read(place, &data, &mut self.extracted),
                None => lane.pass(place),
            }
            let steps = lane.steps().saturating_sub(before).saturating_add(1);
            work.spend(steps).map_err(|error| at(self, error))?;
        }
    }
}

impl Scan {
    /// Reads an index, which tells the chunks that are missing in damaged places.
    fn measure_gaps(&mut self, index: &[u8], work: &Work) -> Result<(), MediaError> {
        let places = index_search::by_stream(&self.lanes, Lane::has_unknown_gaps);
        if places.iter().all(Option::is_none) {
            return Ok(());
        }
        work.spend(index.len() as u64 / ENTRY).map_err(|error| at(self, error))?;
        let lanes = &mut self.lanes;
        let mut list = |Listed { stream, place, .. }: Listed| {
            if let Some(lane) = places.get(stream).copied().flatten().and_then(|at| lanes.get_mut(at)) {
                lane.gaps().list(place);
            }
        };
        match chunk::header(index) {
            Some(([b'i', b'x', digits @ ..], _)) => {
                let stream = chunk::stream_of([digits[0], digits[1], 0, 0]).map(|(stream, _)| stream);
                let listed = stream.and_then(|stream| index::standard(stream, index));
                listed.into_iter().flatten().for_each(&mut list);
            }
            _ => {
                OldIndex::new(index.get(CHUNK_HEADER as usize..).unwrap_or_default(), self.movi).chunks().for_each(list)
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.gaps().end_index());
        Ok(())
    }
}

fn at(scan: &Scan, error: WorkError) -> MediaError {
    MediaError::work(PATH, scan.walk.at(), error)
}
