//! Fragmented MP4 (ISO/IEC 14496-12 8.8) that arrives: from bytes to samples.

use crate::{
    boxes::{BoxHeader, FIRST, FourCc, HEADER, Node, show},
    error::MediaError,
    movie::{SkippedTrack, Track},
    mp4::moov::MovieDraft,
    protection::SystemHeaders,
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::collections::VecDeque;

/// Most bytes of a `moov` or a `moof`.
const MOST_METADATA: u64 = 1 << 20;
/// Most bytes of a sample.
const MOST_SAMPLE: u64 = 16 << 20;
/// Most tracks. Further ones are skipped.
const MOST_TRACKS: usize = 16;

/// Content of a fragmented MP4 stream, in the order of its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum FragmentEvent {
    /// The tracks of a movie box, without samples: at first, and after each movie box that differs from the one before.
    Tracks {
        /// Tracks in file order, at most 16.
        tracks: Vec<Track>,
        /// Tracks that are not read, with reasons.
        skipped: Vec<SkippedTrack>,
    },
    /// A sample.
    Sample(StreamedSample),
    /// A track fragment with errors, or samples whose bytes are not where it says. The stream continues.
    Fault(String),
}

/// A sample with its media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamedSample {
    /// Index of the track in [`FragmentEvent::Tracks`].
    pub track: usize,
    /// Decoding time in ticks of the track.
    pub dts: i64,
    /// Presentation time in ticks of the track, without edits.
    pub pts: i64,
    /// Duration in ticks of the track.
    pub duration: u32,
    /// Whether decoding can begin here.
    pub is_sync: bool,
    /// Media.
    pub data: Bytes,
}

/// Reads a fragmented MP4 stream: initialization, then fragments, in any number and order.
///
/// Segments of CMAF that are sent one by one are passed on one after the other. The movie box may be repeated. Boxes
/// other than `moov`, `moof` and `mdat` are skipped. Samples come from the media after their `moof`, in the order of
/// their bytes.
///
/// Held are at most one movie box or fragment of 1 MiB, and one sample of 16 MiB.
#[derive(Debug)]
pub struct FragmentStream {
    /// Bytes that are not used yet.
    buffer: Vec<u8>,
    used: usize,
    /// Offset in the stream of the first byte of `buffer`.
    offset: u64,
    part: Part,
    /// The movie box, and the state of its tracks.
    movie: Option<(Vec<u8>, MovieDraft)>,
    /// Samples of the last fragment whose media have not arrived, by offset.
    due: VecDeque<Due>,
    /// Samples of the current `mdat` that can't be read.
    lost: u32,
    /// The error that ended the stream.
    failed: Option<MediaError>,
}

/// Part of the stream at the current position.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The header of a box.
    Header,
    /// A whole `moov` or `moof` of this size.
    Metadata(FourCc, u64),
    /// Media up to this offset.
    Media(u64),
    /// A box that is skipped, up to this offset.
    Skipped(u64),
}

/// A sample whose media have not arrived.
#[derive(Clone, Copy, Debug)]
struct Due {
    range: ByteRange,
    track: usize,
    dts: i64,
    pts: i64,
    duration: u32,
    is_sync: bool,
}

impl Default for FragmentStream {
    fn default() -> Self {
        Self::new()
    }
}

impl FragmentStream {
    /// Creates a reader at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            used: 0,
            offset: 0,
            part: Part::Header,
            movie: None,
            due: VecDeque::new(),
            lost: 0,
            failed: None,
        }
    }

    /// Takes bytes of the stream, and appends the events that they complete.
    ///
    /// # Errors
    /// Bytes that are no boxes, a fragment before the first movie box, an invalid movie box, or a box beyond its limit.
    /// The stream has ended then, and each further call returns the same error.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<FragmentEvent>) -> Result<(), MediaError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.buffer.extend_from_slice(bytes);
        let result = self.read(events);
        self.buffer.drain(..self.used);
        self.offset += self.used as u64;
        self.used = 0;
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
        }
        result
    }

    /// Ends the current piece: the next bytes begin with a box. Segments are sent one by one, and senders may break off within
    /// one. A box that is not complete is dropped; the movie box stays.
    pub fn end_piece(&mut self, events: &mut Vec<FragmentEvent>) {
        let is_whole = matches!(self.part, Part::Header) && self.buffer.is_empty();
        if self.failed.is_some() || is_whole {
            return;
        }
        self.due.clear();
        self.lost = 0;
        events.push(FragmentEvent::Fault(format!("byte {}: the bytes end within a box", self.at())));
        self.offset += self.buffer.len() as u64;
        self.buffer = Vec::new();
        self.part = Part::Header;
    }

    /// Offset in the stream of the next byte to use.
    fn at(&self) -> u64 {
        self.offset + self.used as u64
    }

    /// Bytes from the current position on.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    fn read(&mut self, events: &mut Vec<FragmentEvent>) -> Result<(), MediaError> {
        while match self.part {
            Part::Header => self.header()?,
            Part::Metadata(kind, size) => self.metadata(kind, size as usize, events)?,
            Part::Media(end) => self.media(end, events),
            Part::Skipped(end) => self.skip_to(end),
        } {}
        Ok(())
    }

    /// Reads the header of a box; returns whether it has arrived.
    fn header(&mut self) -> Result<bool, MediaError> {
        let (at, rest) = (self.at(), self.rest());
        let Some(header) = BoxHeader::parse(rest) else {
            if rest.len() < HEADER as usize {
                return Ok(false);
            }
            let found = format!("the bytes \"{}\"", rest[..8].escape_ascii());
            return Err(MediaError::invalid("the stream", at, found, "a box with a size and a type"));
        };
        let is_printable = header.kind.iter().all(|byte| (0x20..0x7f).contains(byte));
        if !is_printable || at == 0 && !FIRST.contains(&&header.kind) {
            let found = format!("a box of type {}", show(header.kind));
            return Err(MediaError::invalid("the stream", at, found, "a box of fragmented MP4"));
        }
        let end = header.size.map_or(u64::MAX, |size| at.saturating_add(size));
        self.part = match &header.kind {
            b"moov" | b"moof" => {
                let size = header.size.unwrap_or(u64::MAX);
                if size > MOST_METADATA {
                    let (path, what) = (show(header.kind), "bytes of metadata");
                    return Err(MediaError::too_large(path, at, size, MOST_METADATA, what));
                }
                Part::Metadata(header.kind, size)
            }
            b"mdat" => {
                // Media without a box `mvex` before them (8.8.1) are those of a file that a movie box describes as a whole.
                if self.movie.as_ref().is_none_or(|(_, draft)| !draft.fragmented()) {
                    let expected = "fragmented MP4 (ffmpeg -movflags frag_keyframe+empty_moov+default_base_moof)";
                    return Err(MediaError::invalid("the stream", at, "the media of a progressive MP4 file", expected));
                }
                self.used += header.header as usize;
                Part::Media(end)
            }
            _ => Part::Skipped(end),
        };
        Ok(true)
    }

    /// Takes a `moov` or `moof`; returns whether all of it has arrived.
    fn metadata(&mut self, kind: FourCc, size: usize, events: &mut Vec<FragmentEvent>) -> Result<bool, MediaError> {
        let Some(bytes) = self.rest().get(..size).map(<[u8]>::to_vec) else { return Ok(false) };
        if &kind == b"moov" {
            self.movie_box(bytes, events)?;
        } else {
            self.fragment(&bytes, events)?;
        }
        self.used += size;
        self.part = Part::Header;
        Ok(true)
    }

    fn movie_box(&mut self, bytes: Vec<u8>, events: &mut Vec<FragmentEvent>) -> Result<(), MediaError> {
        if self.movie.as_ref().is_some_and(|(before, _)| *before == bytes) {
            return Ok(());
        }
        let (draft, tracks, skipped) = movie(&bytes, self.at())?;
        self.lose_due(events);
        self.movie = Some((bytes, draft));
        events.push(FragmentEvent::Tracks { tracks, skipped });
        Ok(())
    }

    fn fragment(&mut self, bytes: &[u8], events: &mut Vec<FragmentEvent>) -> Result<(), MediaError> {
        let at = self.at();
        self.lose_due(events);
        let Some((_, draft)) = &mut self.movie else {
            return Err(MediaError::invalid("moof", at, "a fragment before any movie box", "moov first"));
        };
        let Some(moof) = Node::new(bytes, at, "moof") else { return Ok(()) };
        draft.begin_fragment(Work::unlimited());
        draft.add_fragment(&moof)?;
        let mut due = Vec::new();
        for (track, draft) in draft.tracks.iter_mut().enumerate() {
            events.extend(draft.cut.take().map(FragmentEvent::Fault));
            for sample in draft.take_samples().iter() {
                let (range, pts) = (sample.range, sample.pts());
                let (dts, duration, is_sync) = (sample.dts, sample.duration, sample.sync);
                due.push(Due { range, track, dts, pts, duration, is_sync });
            }
        }
        events.extend(draft.skipped.drain(..).map(|skipped| FragmentEvent::Fault(skipped.reason)));
        draft.system_headers = SystemHeaders::default();
        due.sort_by_key(|due| due.range.start);
        self.due = due.into();
        Ok(())
    }

    /// Gives the samples that have arrived; returns whether the media box is complete.
    fn media(&mut self, end: u64, events: &mut Vec<FragmentEvent>) -> bool {
        let mut is_waiting = false;
        while let Some(due) = self.due.front().copied().filter(|due| due.range.start <= end) {
            if due.range.start < self.at() || due.range.end > end || due.range.len() > MOST_SAMPLE {
                self.lost += 1;
                self.due.pop_front();
                continue;
            }
            let has_begun = self.skip_to(due.range.start);
            let data = self.rest().get(..due.range.len() as usize).filter(|_| has_begun).map(Bytes::copy_from_slice);
            let Some(data) = data else {
                is_waiting = true;
                break;
            };
            self.used += data.len();
            self.due.pop_front();
            let Due { track, dts, pts, duration, is_sync, .. } = due;
            events.push(FragmentEvent::Sample(StreamedSample { track, dts, pts, duration, is_sync, data }));
        }
        let is_done = !is_waiting && self.skip_to(end);
        if is_done && self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let why = "overlap, pass the end of their mdat, or are too large";
            events.push(FragmentEvent::Fault(format!("{lost} samples {why}")));
        }
        is_done
    }

    /// Skips bytes up to an offset; returns whether all of them have arrived. The part ends there, if it is one that is
    /// skipped.
    fn skip_to(&mut self, end: u64) -> bool {
        let (at, left) = (self.at(), self.rest().len() as u64);
        let skipped = end.saturating_sub(at).min(left);
        self.used += skipped as usize;
        let is_whole = at + skipped >= end;
        if is_whole && matches!(self.part, Part::Skipped(to) | Part::Media(to) if to == end) {
            self.part = Part::Header;
        }
        is_whole
    }

    /// Drops the samples whose media did not follow their fragment.
    fn lose_due(&mut self, events: &mut Vec<FragmentEvent>) {
        let lost = std::mem::take(&mut self.due).len();
        if lost > 0 {
            events.push(FragmentEvent::Fault(format!("the media of {lost} samples do not follow their moof")));
        }
    }
}

/// Reads a movie box at `offset`: the state of its tracks, and the tracks.
fn movie(bytes: &[u8], offset: u64) -> Result<(MovieDraft, Vec<Track>, Vec<SkippedTrack>), MediaError> {
    let moov = Node::new(bytes, offset, "moov").ok_or_else(|| MediaError::truncated("moov", offset, 0, 8))?;
    let parse =
        || MovieDraft::parse(&moov, u64::MAX, Work::unlimited()).map(|draft| draft.limit_to_stream(MOST_TRACKS));
    let (tracks, skipped) = parse()?.into_tracks();
    if tracks.is_empty() {
        let found = skipped.into_iter().map(|skipped| skipped.reason).collect();
        return Err(MediaError::NoPlayableTrack { path: "moov".to_owned(), offset, found, cut_short: false });
    }
    Ok((parse()?, tracks, skipped))
}

#[cfg(test)]
mod tests;
