//! Reads what stands before the clusters of a segment, and what its `SeekHead` names.

use super::{
    attachments::Attachments,
    chapters,
    cues::{self, Cue},
    ebml::{self, Header, Here, LONGEST_HEADER},
    ids,
    segment::{self, Info},
    tags::{self, Names, TrackDuration},
    track_entry::TrackEntry,
};
use crate::{
    error::MediaError,
    movie::{artwork::ImageRange, chapter::Chapter, tags::Tags},
    units::ByteRange,
    window::Window,
    work::Work,
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Most elements before the first cluster.
const MOST_ELEMENTS: u32 = 1024;
/// Most elements that a `SeekHead` leads to.
const MOST_SEEKS: usize = 8;
/// Longest tags that are read.
const MOST_TAGS: u64 = 64 << 10;
/// Longest chapters that are read.
const MOST_CHAPTER_BYTES: u64 = 256 << 10;
/// Bytes read behind an element that a `SeekHead` names.
const BEHIND: u64 = 8 << 10;
/// Bytes read at an element that a `SeekHead` names.
const NAMED: u64 = 64 << 10;
/// Most bytes from the cues to the end of the segment that are requested at once: a second request costs more than these bytes.
const LONGEST_END: u64 = 256 << 10;

/// The elements of a segment before its clusters, and those that its `SeekHead` names, while they are read.
#[derive(Debug)]
pub(super) struct Head {
    object_len: u64,
    most: u64,
    window: Window,
    stage: Stage,
    /// Beginning and end of the segment's body.
    segment: (u64, u64),
    first_cluster: Option<u64>,
    info: Option<Info>,
    tracks: Option<Vec<TrackEntry>>,
    cues: Option<Vec<Cue>>,
    durations: Vec<TrackDuration>,
    chapters: Option<Vec<Chapter>>,
    /// The attached files, while they are read.
    attachments: Option<Attachments>,
    artwork: Option<ImageRange>,
    /// Title that `Info` states.
    title: Option<String>,
    names: Names,
    /// Elements that `SeekHead` names, by their offsets.
    named: BTreeMap<u64, u32>,
    /// Offsets of all elements of the segment that were named or read.
    places: Vec<u64>,
    seeks: usize,
    elements: u32,
    work: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the segment.
    Top,
    /// In the segment, before its clusters.
    Front,
    /// At an element that `SeekHead` names.
    Named,
}

/// A head that was read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) info: Info,
    pub(super) tracks: Vec<TrackEntry>,
    /// Cues of all tracks; `None` where there are none.
    pub(super) cues: Option<Vec<Cue>>,
    /// Durations of tracks, as far as tags before the clusters or behind the cues state them.
    pub(super) durations: Vec<TrackDuration>,
    pub(super) chapters: Vec<Chapter>,
    pub(super) artwork: Option<ImageRange>,
    pub(super) tags: Tags,
    /// Beginning and end of the segment's body.
    pub(super) segment: (u64, u64),
    pub(super) first_cluster: u64,
    /// Offsets of other elements that `SeekHead` names.
    pub(super) places: Vec<u64>,
}

/// Result of one step.
#[derive(Debug)]
pub(super) enum Step {
    Needs(ByteRange),
    Found(Box<Found>),
}

impl Head {
    /// Begins at the first byte of an object. Elements have at most `most` bytes; a request has `read_size`.
    pub(super) fn new(object_len: u64, most: u64, read_size: u64, work: Work) -> Self {
        Self {
            object_len,
            most,
            window: Window::new(0, object_len, read_size),
            stage: Stage::Top,
            segment: (0, object_len),
            first_cluster: None,
            info: None,
            tracks: None,
            cues: None,
            durations: Vec::new(),
            chapters: None,
            attachments: None,
            artwork: None,
            title: None,
            names: Names::default(),
            named: BTreeMap::new(),
            places: Vec::new(),
            seeks: 0,
            elements: 0,
            work,
        }
    }

    /// Takes the bytes of the range that was needed.
    pub(super) fn supply(&mut self, bytes: Bytes) {
        self.window.append(bytes);
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The file is no Matroska, has no tracks or clusters, or an element is damaged or too large.
    pub(super) fn step(&mut self) -> Result<Step, MediaError> {
        loop {
            let at = self.window.at();
            self.work.spend(1).map_err(|error| MediaError::work("Segment", at, error))?;
            self.elements += 1;
            if self.elements > MOST_ELEMENTS {
                let (found, most) = (u64::from(self.elements), u64::from(MOST_ELEMENTS));
                return Err(MediaError::too_large("Segment", at, found, most, "elements before the first cluster"));
            }
            match self.attached() {
                Next::Needs(size) => return Ok(Step::Needs(self.window.want(size))),
                Next::On => {}
                Next::Seek => match self.next_named()? {
                    Some(found) => return Ok(Step::Found(Box::new(found))),
                    None => continue,
                },
            }
            let header = match Here::of(&self.window) {
                Here::Unknown => return Ok(Step::Needs(self.window.want(LONGEST_HEADER))),
                Here::Element(header) => header,
                Here::End | Here::Garbage if self.stage == Stage::Top => {
                    return Err(MediaError::invalid("the file", at, "no segment", "a Matroska segment"));
                }
                // Files that are still written, or damaged, may end anywhere.
                Here::End | Here::Garbage => match self.next_named()? {
                    Some(found) => return Ok(Step::Found(Box::new(found))),
                    None => continue,
                },
            };
            let done = match self.stage {
                Stage::Top => self.at_top(&header)?,
                Stage::Front => self.in_segment(&header)?,
                Stage::Named => self.at_named(&header)?,
            };
            match done {
                Next::Needs(size) => return Ok(Step::Needs(self.window.want(size))),
                Next::On => {}
                Next::Seek => {
                    if let Some(found) = self.next_named()? {
                        return Ok(Step::Found(Box::new(found)));
                    }
                }
            }
        }
    }

    fn at_top(&mut self, header: &Header) -> Result<Next, MediaError> {
        let at = self.window.at();
        match header.id {
            ids::SEGMENT => {
                self.window.advance(header.length);
                let start = self.window.at();
                let end = header.body.map_or(self.object_len, |body| start.saturating_add(body).min(self.object_len));
                self.segment = (start, end);
                self.window.set_end(end);
                self.stage = Stage::Front;
                Ok(Next::On)
            }
            ids::EBML => {
                let Some(bytes) = self.whole(header)? else { return Ok(Next::Needs(self.needed(header))) };
                if let Some(element) = segment::element(&bytes, at) {
                    segment::check_header(&element)?;
                }
                self.window.advance(bytes.len() as u64);
                Ok(Next::On)
            }
            _ => self.pass(header),
        }
    }

    fn in_segment(&mut self, header: &Header) -> Result<Next, MediaError> {
        if header.id == ids::CLUSTER {
            self.first_cluster = Some(self.window.at());
            return Ok(Next::Seek);
        }
        self.take(header)
    }

    fn at_named(&mut self, header: &Header) -> Result<Next, MediaError> {
        match self.take(header)? {
            // Muxers write tags behind the cues.
            Next::On if self.attachments.is_some() || self.has_tags_next() => Ok(Next::On),
            Next::On => Ok(Next::Seek),
            Next::Needs(size) => Ok(Next::Needs(size + BEHIND)),
            next => Ok(next),
        }
    }

    /// Whether tags follow, all of whose bytes are there.
    fn has_tags_next(&self) -> bool {
        let Here::Element(header) = Here::of(&self.window) else { return false };
        header.id == ids::TAGS && header.whole().is_some_and(|whole| self.window.bytes(whole).is_some())
    }

    /// Reads attached files as far as the bytes allow, if the position is among them. After the search, passes the remaining files.
    fn attached(&mut self) -> Next {
        let Some(files) = &mut self.attachments else { return Next::On };
        if let Some(size) = files.step(&mut self.window) {
            return Next::Needs(size);
        }
        let rest = files.end().saturating_sub(self.window.at());
        self.artwork = self.artwork.or(files.artwork());
        self.attachments = None;
        self.window.advance(rest);
        if self.stage == Stage::Named && !self.has_tags_next() { Next::Seek } else { Next::On }
    }

    /// Reads an element of the segment, if it is of use, and passes it.
    fn take(&mut self, header: &Header) -> Result<Next, MediaError> {
        let at = self.window.at();
        let is_wanted = match header.id {
            ids::SEEK_HEAD => true,
            ids::INFO => self.info.is_none(),
            ids::TRACKS => self.tracks.is_none(),
            ids::CUES => self.cues.is_none(),
            ids::TAGS => header.whole().is_some_and(|whole| whole <= MOST_TAGS),
            ids::CHAPTERS => self.chapters.is_none() && header.whole().is_some_and(|whole| whole <= MOST_CHAPTER_BYTES),
            _ => false,
        };
        self.named.remove(&at);
        if header.id == ids::ATTACHMENTS
            && let Some(whole) = header.whole().filter(|whole| *whole <= self.window.left() && self.artwork.is_none())
        {
            self.attachments = Some(Attachments::new(at + whole));
            self.window.advance(header.length);
            return Ok(Next::On);
        }
        if !is_wanted {
            return self.pass(header);
        }
        let bytes = match self.whole(header) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Next::Needs(self.needed(header))),
            // A file plays without the others.
            Err(error) if matches!(header.id, ids::INFO | ids::TRACKS) => return Err(error),
            Err(_) => return self.pass(header),
        };
        if let Some(element) = segment::element(&bytes, at) {
            match header.id {
                ids::SEEK_HEAD => {
                    let start = self.segment.0;
                    let seeks = segment::seeks(&element).into_iter();
                    let found = seeks.map(|(id, place)| (start.saturating_add(place), id));
                    let found: Vec<(u64, u32)> = found.filter(|(place, _)| *place > at).take(MOST_SEEKS).collect();
                    self.places.extend(found.iter().filter(|(_, id)| *id != ids::CLUSTER).map(|(place, _)| *place));
                    self.named.extend(found);
                }
                ids::INFO => {
                    self.info = Some(Info::read(&element)?);
                    self.title = element.child(ids::TITLE).map(|title| title.text());
                }
                ids::TRACKS => self.tracks = Some(segment::tracks(&element)?),
                ids::TAGS => {
                    self.durations.extend(tags::durations(&element));
                    self.names.add(&element);
                }
                ids::CHAPTERS => self.chapters = Some(chapters::read(&element)),
                _ => match cues::read(&element, &self.work) {
                    Err(error @ MediaError::Work { .. }) => return Err(error),
                    found => self.cues = found.ok(),
                },
            }
        }
        self.window.advance(bytes.len() as u64);
        Ok(Next::On)
    }

    /// Passes an element.
    fn pass(&mut self, header: &Header) -> Result<Next, MediaError> {
        match header.whole() {
            Some(whole) if whole <= self.window.left() => {
                self.window.advance(whole);
                Ok(Next::On)
            }
            _ if self.stage == Stage::Top => {
                let (left, whole) = (self.window.left(), header.whole().unwrap_or(u64::MAX));
                Err(MediaError::truncated(ebml::name(header.id), self.window.at(), left, whole))
            }
            _ => Ok(Next::Seek),
        }
    }

    /// Returns the whole element at the position, if it is there.
    fn whole(&self, header: &Header) -> Result<Option<Bytes>, MediaError> {
        let (name, at) = (ebml::name(header.id), self.window.at());
        let Some(whole) = header.whole() else {
            return Err(MediaError::invalid(name, at, "an unknown size", "a size"));
        };
        if whole > self.most {
            return Err(MediaError::too_large(name, at, whole, self.most, "bytes of metadata"));
        }
        if whole > self.window.left() {
            return Err(MediaError::truncated(name, at, self.window.left(), whole));
        }
        Ok(self.window.bytes(whole))
    }

    fn needed(&self, header: &Header) -> u64 {
        header.whole().unwrap_or(0)
    }

    /// Goes to the next element that is needed and named. Returns the head when there is none.
    fn next_named(&mut self) -> Result<Option<Found>, MediaError> {
        while let Some((place, id)) = self.named.pop_first() {
            let is_wanted = match id {
                ids::SEEK_HEAD => true,
                ids::INFO => self.info.is_none(),
                ids::TRACKS => self.tracks.is_none(),
                ids::CUES => self.cues.is_none(),
                ids::CHAPTERS => self.chapters.is_none(),
                ids::ATTACHMENTS => self.artwork.is_none(),
                ids::CLUSTER => {
                    self.first_cluster.get_or_insert(place);
                    false
                }
                _ => false,
            };
            self.seeks += 1;
            if is_wanted && self.seeks <= MOST_SEEKS && place < self.segment.1 {
                let left = self.segment.1 - place;
                let read_size = if id == ids::CUES && left <= LONGEST_END { left } else { NAMED };
                self.window = Window::new(place, self.segment.1, read_size);
                self.stage = Stage::Named;
                return Ok(None);
            }
        }
        let missing = |what: &str| Err(MediaError::invalid("Segment", self.segment.0, format!("no {what}"), "one"));
        let Some(tracks) = self.tracks.take() else { return missing("Tracks") };
        let Some(first_cluster) = self.first_cluster else { return missing("Cluster") };
        Ok(Some(Found {
            info: self.info.take().unwrap_or_default(),
            tracks,
            cues: self.cues.take(),
            durations: std::mem::take(&mut self.durations),
            chapters: self.chapters.take().unwrap_or_default(),
            artwork: self.artwork,
            tags: std::mem::take(&mut self.names).finish(self.title.take()),
            segment: self.segment,
            first_cluster,
            places: std::mem::take(&mut self.places),
        }))
    }
}

/// The position at which reading goes on behind an element.
enum Next {
    /// This many bytes from the position on are needed.
    Needs(u64),
    On,
    /// The next element is elsewhere.
    Seek,
}
