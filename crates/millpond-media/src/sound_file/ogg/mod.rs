//! Ogg (RFC 3533) with Opus or FLAC. The first link of chained streams is served.

mod headers;
mod page;
mod stream;
#[cfg(test)]
mod tests;

use crate::{
    error::MediaError,
    movie::{Movie, SkippedTrack, Track, tags::Tags},
    scan::{FileReader, Progress},
    units::Timescale,
    window::Window,
    work::Work,
};
use page::{CAPTURE, Page, Read};
use stream::{PATH, Stream};

/// Most logical streams.
const MOST_STREAMS: usize = 64;
/// Most bytes between two pages that are passed.
const MOST_PASSED: u64 = 1 << 20;
/// Bytes searched in one step of work.
const SEARCHED_A_STEP: u64 = 64;

/// Reads an Ogg file.
#[derive(Debug, Default)]
pub(super) struct Ogg {
    streams: Vec<Stream>,
    /// Whether pages of all streams were begun: further first pages belong to the next link.
    is_begun: bool,
    /// Bytes since the last page.
    passed: u64,
    /// Offset of the second link.
    chained: Option<u64>,
    is_cut_short: bool,
}

impl FileReader for Ogg {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        loop {
            let at = window.at();
            work.spend(1).map_err(|error| MediaError::work(PATH, at, error))?;
            let (held, ends) = (window.held(), window.holds_end());
            if window.left() == 0 || self.passed > MOST_PASSED {
                return self.finish();
            }
            let needed = match Page::read(held) {
                Read::Short(size) => size,
                Read::Page(page) if held.len() < page.length => page.length,
                Read::Page(page) => {
                    let steps = page.pieces.len() as u64 + self.header_bytes(&page) / SEARCHED_A_STEP;
                    work.spend(steps).map_err(|error| MediaError::work(PATH, at, error))?;
                    self.passed = 0;
                    let bytes = held.get(..page.length).unwrap_or(held);
                    let is_over = self.page(&page, bytes, at)?;
                    window.advance(page.length as u64);
                    if is_over {
                        return self.finish();
                    }
                    continue;
                }
                Read::Garbage => {
                    let steps = self.pass(window) / SEARCHED_A_STEP;
                    work.spend(steps).map_err(|error| MediaError::work(PATH, at, error))?;
                    continue;
                }
            };
            if ends {
                self.is_cut_short = true;
                return self.finish();
            }
            return Ok(Progress::Scans(needed as u64));
        }
    }

    fn heap_bytes(&self) -> usize {
        self.streams.iter().map(Stream::heap_bytes).sum()
    }
}

impl Ogg {
    /// Takes a page. Returns whether no further one is needed.
    fn page(&mut self, page: &Page, bytes: &[u8], at: u64) -> Result<bool, MediaError> {
        // Some writers repeat the headers of a stream.
        let is_repeated = self.streams.iter().any(|stream| stream.serial == page.serial && !stream.has_frames());
        if page.is_first && !is_repeated {
            if self.is_begun {
                self.chained = Some(at);
                return Ok(true);
            }
            if self.streams.len() >= MOST_STREAMS {
                let found = self.streams.len() as u64 + 1;
                return Err(MediaError::too_large(PATH, at, found, MOST_STREAMS as u64, "streams"));
            }
            let first = page.pieces.first();
            let packet = first.and_then(|piece| bytes.get(piece.start..piece.start + piece.length));
            self.streams.push(Stream::new(page.serial, packet.unwrap_or_default(), at));
            return Ok(false);
        }
        self.is_begun = true;
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.serial == page.serial) {
            stream.push(page, bytes, at);
        }
        Ok(!self.streams.iter().any(Stream::plays))
    }

    /// Bytes of a page that may have header packets, which are searched for tags and a cover.
    fn header_bytes(&self, page: &Page) -> u64 {
        let has_headers = self.streams.iter().any(|stream| stream.serial == page.serial && !stream.has_frames());
        if has_headers { page.length as u64 } else { 0 }
    }

    /// Passes bytes up to the next one that may begin a page. Returns their number.
    fn pass(&mut self, window: &mut Window) -> u64 {
        let rest = window.held().get(1..).unwrap_or_default();
        let found = rest.iter().position(|byte| Some(byte) == CAPTURE.first());
        let passed = found.unwrap_or(rest.len()) as u64 + 1;
        self.passed += passed;
        window.advance(passed);
        passed
    }

    fn finish(&mut self) -> Result<Progress, MediaError> {
        let mut tracks: Vec<Track> = Vec::new();
        let (mut skipped, mut tags) = (Vec::new(), Tags::default());
        let mut streams = std::mem::take(&mut self.streams);
        let artwork = streams.iter_mut().find_map(Stream::take_artwork);
        let clock = streams.iter().find_map(Stream::rate).unwrap_or(Timescale::MPEG);
        for (id, mut stream) in (1..).zip(streams) {
            tags = tags.or(stream.take_tags());
            match stream.finish(id, clock) {
                Some(Ok(track)) => tracks.push(track),
                Some(Err(error)) => skipped.push(SkippedTrack::of_error(id, &error)),
                None => {}
            }
        }
        if tracks.is_empty() {
            let found = skipped.into_iter().map(|track| track.reason).collect();
            let (path, cut_short) = (PATH.to_owned(), self.is_cut_short);
            return Err(MediaError::NoPlayableTrack { path, offset: 0, found, cut_short });
        }
        if let Some(at) = self.chained {
            let error = MediaError::unsupported(PATH, at, "a further link of chained streams");
            skipped.push(SkippedTrack::of_error(0, &error));
        }
        if self.passed > MOST_PASSED {
            let found = format!("{} bytes without pages", self.passed);
            let error = MediaError::invalid(PATH, 0, found, "pages up to the end");
            skipped.push(SkippedTrack::of_error(0, &error));
        }
        let movie = Movie { cut_short: self.is_cut_short, artwork, tags, ..Movie::of_tracks(clock, tracks, skipped) };
        Ok(Progress::Done(Box::new(movie)))
    }
}
