//! Turns the bytes of an object into its index, without I/O.

use crate::{
    avi_file::{self, AviIndexer, AviStep},
    boxes::{FIRST, HEADER, Node},
    budget::Rounds,
    error::MediaError,
    flv_file,
    index::{
        entry_points::EntrySearch,
        finer_clock, first_frames,
        fragment_walk::FragmentWalk,
        lane::{Arrived, Lane},
        movie_box_search::{MovieBox, MovieBoxSearch},
        outline_search::{OutlineSearch, Outlined},
    },
    matroska::{self, MatroskaIndexer, MatroskaStep},
    movie::{Movie, sample_table::SampleTable},
    mp4::{chapters::ChapterTrack, moov::MovieDraft},
    scan::{FileScan, ScanStep},
    sound_file,
    ts_file::{self, TsFileIndexer, TsFileStep},
    units::{ByteRange, Timescale},
    work::Work,
};
use bytes::Bytes;

/// Limits on the bytes that an [`Indexer`] reads and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// Most bytes of movie and fragment boxes held.
    pub max_metadata: u64,
    /// Length of the first read in bytes.
    pub head: u64,
    /// Most bytes of a transport stream, or of the chunks of AVI, that are requested together.
    pub batch: u64,
}

impl Default for IndexLimits {
    fn default() -> Self {
        Self { max_metadata: 256 << 20, head: 64 << 10, batch: 8 << 20 }
    }
}

/// Result of one poll of an [`Indexer`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an index ends with one `Done`, which is taken apart at once")]
pub enum Step {
    /// The bytes of these ranges are needed; they can be read in parallel.
    Need(Vec<ByteRange>),
    /// The finished index.
    Done(Movie),
}

/// Reads the index of one object.
///
/// Call [`poll`](Self::poll). For [`Step::Need`], pass the bytes of each range to [`supply`](Self::supply), in any order, and
/// poll again. A poll before all ranges are supplied returns the missing ones. The first error is final. [`Step::Done`] is final
/// too.
///
/// A progressive file takes one batch of reads, or two where the movie box is large or at the end. A fragmented file
/// takes two or three with an index of its fragments (`sidx`, `mfra`), else one per fragment. Where sync flags look
/// wrong, the first bytes of a few samples are read too, in up to 21 further batches. MP3 takes one more batch of a few
/// bytes per track. So do chapters in a track of text, where the movie box doesn't list them: 32 reads of 64 KiB at most.
///
/// A transport stream is read as a whole, at most [`batch`](IndexLimits::batch) bytes at a time. So is an AVI file without an index, or
/// whose chunks are no samples. Of other AVI files, the header, the index and the first frames are read. Sound files and FLV files are
/// read from their beginning to their end, in requests of 1 MiB. PCM is told by headers alone.
///
/// With [`outlining`](Self::outlining), a fragmented file with an index of its fragments takes two or three batches of a few
/// kilobytes, and gets an [`Outline`](crate::Outline).
#[derive(Debug)]
pub struct Indexer {
    object_len: u64,
    limits: IndexLimits,
    outlining: bool,
    /// Offsets at which another file begins that was joined with the one before.
    joints: Vec<u64>,
    /// Number of the programme of a transport stream that is read.
    programme: Option<u16>,
    /// Where the walk over all fragments begins, if no outline is found: the movie box, its offset, and what follows it.
    whole: Option<(Bytes, Lane)>,
    /// The outlined movie before its samples were compared with the media.
    outlined: Option<Box<Movie>>,
    /// Titles of chapters that are read with the first frames.
    chapter_track: Option<ChapterTrack>,
    stage: Stage,
    missing: Vec<ByteRange>,
    arrived: Arrived,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    /// Searching for the movie box.
    Boxes(Lane, Rounds),
    /// Reading a Matroska file.
    Matroska(Box<MatroskaIndexer>),
    /// Reading a transport stream.
    TransportStream(Box<TsFileIndexer>),
    /// Reading an AVI file.
    Avi(Box<AviIndexer>),
    /// Reading a sound file or an FLV file.
    Scan(Box<FileScan>),
    /// Searching for a table of fragments.
    Outline(Box<OutlineSearch>),
    /// Searching for fragments.
    Fragments(Box<(MovieDraft, FragmentWalk)>),
    /// Reading first frames.
    Frames(Box<Movie>),
    /// Comparing sync flags with the media.
    Entries(Box<EntrySearch>),
    /// The index was returned.
    Done,
    Failed(MediaError),
}

impl Indexer {
    /// Creates an indexer for an object of `object_len` bytes, with [`IndexLimits::default`].
    #[must_use]
    pub fn new(object_len: u64) -> Self {
        Self::with_limits(object_len, IndexLimits::default())
    }

    /// Creates an indexer for an object of `object_len` bytes.
    #[must_use]
    pub fn with_limits(object_len: u64, limits: IndexLimits) -> Self {
        let limits = IndexLimits { head: limits.head.max(HEADER), ..limits };
        let stage = Stage::Boxes(Lane::new(0, object_len), Rounds::to_movie_box());
        Self {
            object_len,
            limits,
            outlining: false,
            joints: Vec::new(),
            programme: None,
            whole: None,
            outlined: None,
            chapter_track: None,
            stage,
            missing: Vec::new(),
            arrived: Arrived::default(),
            work: Work::unlimited(),
        }
    }

    /// Makes an index with the samples of the first fragment and an [`Outline`](crate::Outline) of all, where the object has an
    /// index of its fragments. Other objects get an index of all samples, which is marked as indivisible.
    #[must_use]
    pub fn outlining(self) -> Self {
        Self { outlining: true, ..self }
    }

    /// Notes that the object consists of files that were joined, each of which begins at one of these offsets, in rising order.
    /// Counters of a transport stream may begin anew there, and fragments are searched from each on.
    #[must_use]
    pub fn joined_at(self, joints: &[u64]) -> Self {
        Self { joints: joints.to_vec(), ..self }
    }

    /// Chooses the programme of a transport stream by its number. Without a number, the first programme with pictures is read, or else
    /// the first one with sound.
    #[must_use]
    pub fn of_programme(self, programme: Option<u16>) -> Self {
        Self { programme, ..self }
    }

    /// Spends each step of indexing on `work`; without this call the steps are unlimited.
    #[must_use]
    pub fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// Returns the ranges needed next, or the finished movie.
    ///
    /// # Errors
    /// The bytes are no playable file, or hold more metadata than the limits allow.
    pub fn poll(&mut self) -> Result<Step, MediaError> {
        if !self.missing.is_empty() {
            return Ok(Step::Need(self.missing.clone()));
        }
        match self.advance() {
            Ok(Step::Need(ranges)) => {
                self.missing.clone_from(&ranges);
                Ok(Step::Need(ranges))
            }
            Ok(done) => Ok(done),
            Err(error) => {
                self.stage = Stage::Failed(error.clone());
                self.arrived = Arrived::default();
                Err(error)
            }
        }
    }

    /// Whether the ranges needed now are headers of fragments. Further ones follow them over the whole object.
    #[must_use]
    pub fn is_at_fragments(&self) -> bool {
        matches!(self.stage, Stage::Fragments(_))
    }

    /// Whether the ranges needed now are of the first and the last frames, which the first viewer needs too.
    #[must_use]
    pub fn is_at_frames(&self) -> bool {
        matches!(&self.stage, Stage::Matroska(indexer) if indexer.is_at_frames())
    }

    /// Whether bytes that were supplied are not held any more when the next ones are needed.
    #[must_use]
    pub fn is_scanning(&self) -> bool {
        match &self.stage {
            Stage::Matroska(indexer) => indexer.is_at_blocks() || indexer.is_at_frames(),
            Stage::TransportStream(_) | Stage::Scan(_) => true,
            Stage::Avi(indexer) => indexer.is_scanning(),
            _ => false,
        }
    }

    /// Bytes of heap that the sample tables of a scan hold so far.
    #[must_use]
    pub fn scanned_bytes(&self) -> usize {
        match &self.stage {
            Stage::Matroska(indexer) => indexer.scanned_bytes(),
            Stage::TransportStream(indexer) => indexer.scanned_bytes(),
            Stage::Avi(indexer) => indexer.scanned_bytes(),
            Stage::Scan(scan) => scan.heap_bytes(),
            _ => 0,
        }
    }

    /// Returns the movie of the part that a scan has read so far. The finished movie begins with the same samples, at the same places and
    /// times, unless its extraction [begins otherwise](crate::Extraction::begins_otherwise). Only the last samples may have other
    /// durations. `None` where no scan runs, and while the beginning is not certain.
    #[must_use]
    pub fn so_far(&self) -> Option<Movie> {
        match &self.stage {
            Stage::TransportStream(indexer) => indexer.so_far(),
            _ => None,
        }
    }

    /// Passes in the bytes of one range that the last [`poll`](Self::poll) returned. Fewer bytes than the range has
    /// make the next poll fail. A range that was not requested is ignored.
    pub fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        let Some(position) = self.missing.iter().position(|&missing| missing == range) else { return };
        self.missing.swap_remove(position);
        let found = bytes.len() as u64;
        if found < range.len() {
            self.missing.clear();
            self.stage = Stage::Failed(MediaError::truncated("the object", range.start, found, range.len()));
            return;
        }
        self.arrived.put(range, bytes.slice(..range.len() as usize));
    }

    fn advance(&mut self) -> Result<Step, MediaError> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Boxes(lane, rounds) => self.find_moov(lane, rounds),
            Stage::Matroska(indexer) => self.read_matroska(indexer),
            Stage::TransportStream(indexer) => self.read_transport_stream(indexer),
            Stage::Avi(indexer) => self.read_avi(indexer),
            Stage::Scan(scan) => self.scan(scan),
            Stage::Outline(search) => self.find_outline(search),
            Stage::Fragments(parts) => self.find_fragments(*parts),
            Stage::Frames(mut movie) => {
                first_frames::learn(&mut movie, &self.arrived);
                if let Some(track) = self.chapter_track.take() {
                    movie.chapters = track.read(|range| self.arrived.get(range).cloned());
                }
                Ok(self.done(*movie))
            }
            Stage::Entries(search) => self.find_entries(*search),
            Stage::Done => Err(MediaError::invalid("the object", 0, "a poll after the movie was handed out", "none")),
            Stage::Failed(error) => Err(error),
        }
    }

    fn find_moov(&mut self, mut lane: Lane, mut rounds: Rounds) -> Result<Step, MediaError> {
        rounds.begin(1, lane.at(), &self.work)?;
        if let Some(bytes) = self.arrived.take_from(lane.held_to()) {
            if lane.at() == 0 && bytes.starts_with(&matroska::MAGIC) {
                let (most, work) = (self.limits.max_metadata, self.work.clone());
                let indexer = MatroskaIndexer::new(self.object_len, most, self.limits.head, self.outlining, work);
                self.arrived.put(ByteRange::at(0, bytes.len() as u64), bytes);
                return self.read_matroska(Box::new(indexer));
            }
            if lane.held_to() == 0 && !is_iso(&bytes) {
                if avi_file::is_avi(&bytes) {
                    let limits = (self.limits.max_metadata, self.limits.batch);
                    return self.read_avi(Box::new(AviIndexer::new(self.object_len, bytes, limits, self.work.clone())));
                }
                if let Some((form, start)) = ts_file::find_packets(&bytes, self.object_len) {
                    let joints = std::mem::take(&mut self.joints);
                    let batch = (start, self.limits.batch);
                    let indexer = TsFileIndexer::new(self.object_len, form, batch, self.work.clone()).joined_at(joints);
                    return self.read_transport_stream(Box::new(indexer.of_programme(self.programme)));
                }
                if let Some(reader) = flv_file::reader(&bytes).or_else(|| sound_file::reader(&bytes)) {
                    return self.scan(Box::new(FileScan::new(self.object_len, bytes, reader, self.work.clone())));
                }
            }
            lane.append(bytes);
        }
        let search = MovieBoxSearch { object_len: self.object_len, limits: self.limits, work: &self.work };
        let moov = match search.step(&mut lane)? {
            MovieBox::Wants(range) => {
                self.stage = Stage::Boxes(lane, rounds);
                return Ok(Step::Need(vec![range]));
            }
            MovieBox::Found(moov) => moov,
        };
        let node = Node::new(&moov, lane.at(), "moov")
            .ok_or_else(|| MediaError::truncated("moov", lane.at(), moov.len() as u64, 8))?;
        let mut draft = MovieDraft::parse(&node, self.object_len, self.work.clone())?;
        if !draft.fragmented() {
            self.chapter_track = draft.take_chapter_track();
            return self.finish(draft);
        }
        let at = lane.at();
        lane.advance(moov.len() as u64);
        if self.outlining && draft.is_divisible() {
            let pictures = draft.tracks.iter().filter(|track| track.is_video());
            let others = draft.tracks.iter().filter(|track| !track.is_video());
            let tracks = pictures.chain(others).map(|track| track.header.id).collect();
            let has_samples = draft.has_own_samples();
            self.whole = Some((moov.clone(), lane.clone()));
            let search = OutlineSearch::new((at, moov), lane, tracks, has_samples, self.work.clone());
            return self.find_outline(Box::new(search));
        }
        let walk = self.walk_of(lane, moov.len());
        self.find_fragments((draft, walk))
    }

    /// Reads a Matroska file as far as the bytes allow.
    fn read_matroska(&mut self, mut indexer: Box<MatroskaIndexer>) -> Result<Step, MediaError> {
        loop {
            let ranges = match indexer.step()? {
                MatroskaStep::Done(movie) => return Ok(self.done(*movie)),
                MatroskaStep::Needs(ranges) => ranges,
            };
            let arrived = self.take_arrived(&ranges);
            if arrived.is_empty() {
                self.stage = Stage::Matroska(indexer);
                return Ok(Step::Need(ranges));
            }
            for (range, bytes) in arrived {
                indexer.supply(range, bytes);
            }
        }
    }

    /// Reads a transport stream as far as the bytes allow.
    fn read_transport_stream(&mut self, mut indexer: Box<TsFileIndexer>) -> Result<Step, MediaError> {
        loop {
            let ranges = match indexer.step()? {
                TsFileStep::Done(movie) => return Ok(self.done(*movie)),
                TsFileStep::Needs(ranges) => ranges,
            };
            let arrived = self.take_arrived(&ranges);
            if arrived.is_empty() {
                self.stage = Stage::TransportStream(indexer);
                return Ok(Step::Need(ranges));
            }
            for (range, bytes) in arrived {
                indexer.supply(range, bytes);
            }
        }
    }

    /// Reads an AVI file as far as the bytes allow.
    fn read_avi(&mut self, mut indexer: Box<AviIndexer>) -> Result<Step, MediaError> {
        loop {
            let ranges = match indexer.step()? {
                AviStep::Done(movie) => return Ok(self.done(*movie)),
                AviStep::Needs(ranges) => ranges,
            };
            let arrived = self.take_arrived(&ranges);
            if arrived.is_empty() {
                self.stage = Stage::Avi(indexer);
                return Ok(Step::Need(ranges));
            }
            for (range, bytes) in arrived {
                indexer.supply(range, bytes);
            }
        }
    }

    /// Reads a sound file or an FLV file as far as the bytes allow.
    fn scan(&mut self, mut scan: Box<FileScan>) -> Result<Step, MediaError> {
        loop {
            let range = match scan.step()? {
                ScanStep::Done(movie) => return Ok(self.done(*movie)),
                ScanStep::Needs(range) => range,
            };
            match self.arrived.take(range) {
                Some(bytes) => scan.supply(bytes),
                None => {
                    self.stage = Stage::Scan(scan);
                    return Ok(Step::Need(vec![range]));
                }
            }
        }
    }

    /// Returns those of some ranges that have arrived.
    fn take_arrived(&mut self, ranges: &[ByteRange]) -> Vec<(ByteRange, Bytes)> {
        ranges.iter().filter_map(|range| Some((*range, self.arrived.take_from(range.start)?))).collect()
    }

    /// Begins the walk over all fragments behind a movie box of `header` bytes.
    fn walk_of(&self, lane: Lane, header: usize) -> FragmentWalk {
        let limit = self.limits.max_metadata.saturating_sub(header as u64);
        FragmentWalk::new(lane, limit, self.work.clone()).joined_at(&self.joints)
    }

    fn find_outline(&mut self, mut search: Box<OutlineSearch>) -> Result<Step, MediaError> {
        match search.step(&mut self.arrived)? {
            Outlined::Needs(wanted) => {
                self.stage = Stage::Outline(search);
                Ok(Step::Need(wanted))
            }
            Outlined::Refused => self.find_all_instead(search.has_plain_end()),
            Outlined::Found(movie) => {
                self.outlined = Some(movie.clone());
                self.find_entries(EntrySearch::of(*movie, self.work.clone())?)
            }
        }
    }

    /// Walks over all fragments, because no outline is possible.
    fn find_all_instead(&mut self, has_plain_end: bool) -> Result<Step, MediaError> {
        (self.outlined, self.arrived) = (None, Arrived::default());
        let Some((moov, lane)) = self.whole.take() else {
            return Err(MediaError::invalid("moov", 0, "no movie box", "one"));
        };
        let at = lane.at().saturating_sub(moov.len() as u64);
        let node = Node::new(&moov, at, "moov").ok_or_else(|| MediaError::truncated("moov", at, 0, 8))?;
        let draft = MovieDraft::parse(&node, self.object_len, self.work.clone())?;
        let walk = self.walk_of(lane, moov.len());
        self.find_fragments((draft, if has_plain_end { walk.without_tail() } else { walk }))
    }

    fn find_fragments(&mut self, (mut draft, mut walk): (MovieDraft, FragmentWalk)) -> Result<Step, MediaError> {
        let wanted = walk.step(&mut self.arrived)?;
        if !wanted.is_empty() {
            self.stage = Stage::Fragments(Box::new((draft, walk)));
            return Ok(Step::Need(wanted));
        }
        let (moofs, broken) = walk.into_fragments();
        for (number, (place, bytes)) in moofs.iter().enumerate() {
            if let Some(moof) = Node::new(bytes, *place, format!("moof[{}]", number + 1)) {
                draft.add_fragment(&moof)?;
            }
        }
        if let Some(broken) = broken {
            draft.skip(0, broken.to_string());
        }
        self.finish(draft)
    }

    fn finish(&mut self, draft: MovieDraft) -> Result<Step, MediaError> {
        let search = EntrySearch::of(draft.finish()?, self.work.clone())?;
        self.find_entries(search)
    }

    fn find_entries(&mut self, mut search: EntrySearch) -> Result<Step, MediaError> {
        let wanted = search.step(&mut self.arrived)?;
        if wanted.is_empty() {
            let mut movie = search.finish()?;
            finer_clock::refine(&mut movie, &self.work)?;
            // Other samples may have other flags, or need another clock: nothing is known of them.
            let is_changed = self.outlined.take().is_some_and(|before| facts(&before) != facts(&movie));
            return if is_changed { self.find_all_instead(false) } else { self.look_at_frames(movie) };
        }
        self.stage = Stage::Entries(Box::new(search));
        Ok(Step::Need(wanted))
    }

    /// Requests the first frames whose content the movie box doesn't describe, and titles of chapters.
    fn look_at_frames(&mut self, movie: Movie) -> Result<Step, MediaError> {
        let mut wanted = first_frames::wanted(&movie);
        wanted.extend(self.chapter_track.iter().flat_map(ChapterTrack::wanted));
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(self.done(movie));
        }
        self.arrived = Arrived::default();
        self.stage = Stage::Frames(Box::new(movie));
        Ok(Step::Need(wanted))
    }

    fn done(&self, movie: Movie) -> Step {
        let is_indivisible = (self.outlining || !movie.fragmented) && movie.outline.is_none();
        Step::Done(Movie { is_indivisible, ..movie })
    }
}

/// Whether an object begins with a box of a known type, so that it is in no other format.
fn is_iso(head: &[u8]) -> bool {
    head.get(4..8).is_some_and(|kind| FIRST.iter().any(|first| &first[..] == kind))
}

/// Returns the facts of an outlined movie that comparing it with the media must not change.
fn facts(movie: &Movie) -> Vec<(Timescale, &SampleTable)> {
    movie.tracks.iter().map(|track| (track.timescale, &track.samples)).collect()
}

/// Returns the index of an object that is in memory.
///
/// # Errors
/// As [`Indexer::poll`].
pub fn index_bytes(object: &[u8]) -> Result<Movie, MediaError> {
    let mut indexer = Indexer::new(object.len() as u64);
    loop {
        match indexer.poll()? {
            Step::Done(movie) => return Ok(movie),
            Step::Need(ranges) => {
                for range in ranges {
                    let bytes = object.get(range.start as usize..range.end as usize).unwrap_or_default();
                    indexer.supply(range, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
