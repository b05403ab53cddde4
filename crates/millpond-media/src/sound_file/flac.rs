//! FLAC (RFC 9639): metadata blocks, then frames without lengths. A frame ends where the next one begins: at a header with the next
//! number, before which the frame's checksum stands.

use super::{
    flac_end::{End, OpenFrame},
    flac_frame::{FrameHeader, StreamInfo},
    flac_picture::{self, PICTURE},
    id3::TaggedPicture,
    nothing, tags, vorbis_comment,
};
use crate::{
    codec::make::{self, Made},
    error::MediaError,
    movie::{
        Movie, Track,
        sample_table::{SampleTable, SampleTableBuilder},
        tags::Tags,
    },
    scan::{FileReader, Progress},
    units::{ByteRange, Timescale},
    window::Window,
    work::Work,
};

/// Path of errors.
const PATH: &str = "FLAC";
/// Bytes of the signature, and of the header of a metadata block.
const SIGNATURE: u64 = 4;
const BLOCK_HEADER: u64 = 4;
/// Most metadata blocks.
const MOST_BLOCKS: u32 = 1024;
/// Most bytes without a frame that are passed.
const MOST_PASSED: u64 = 1 << 20;
/// Bytes searched in one step of work.
const SEARCHED_A_STEP: u64 = 64;

/// Reads a FLAC file.
#[derive(Debug, Default)]
pub(super) struct Flac {
    /// Sample entry and properties of the stream.
    stream: Option<(Made, StreamInfo)>,
    blocks: u32,
    /// The best picture among the metadata blocks.
    picture: Option<TaggedPicture>,
    tags: Tags,
    /// Whether metadata blocks follow.
    is_at_frames: bool,
    /// The frame at the position.
    open: Option<OpenFrame>,
    /// Samples of a frame where their number is fixed; and the first sample of the file.
    first: Option<(u64, u64)>,
    table: SampleTableBuilder,
    /// Bytes since the last frame.
    passed: u64,
    is_cut_short: bool,
}

impl FileReader for Flac {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        while !self.is_at_frames {
            if let Some(size) = self.block(window, work)? {
                return Ok(Progress::Needs(size));
            }
        }
        loop {
            let at = window.at();
            let spent = |steps: u64| work.spend(steps).map_err(|error| MediaError::work(PATH, at, error));
            spent(1)?;
            let Some((open, (_, info))) = self.open.as_mut().zip(self.stream.as_ref()) else {
                if window.bytes((FrameHeader::MOST as u64).min(window.left())).is_none() {
                    return Ok(Progress::Scans(FrameHeader::MOST as u64));
                }
                if window.left() == 0 || self.passed > MOST_PASSED || tags::begins_tail(window.held()) {
                    return self.finish(at);
                }
                self.open(window);
                if self.open.is_none() {
                    spent(self.pass(window) / SEARCHED_A_STEP)?;
                }
                continue;
            };
            let before = open.searched();
            let end = open.search(info, window.held(), window.holds_end());
            spent((open.searched() - before) as u64 / SEARCHED_A_STEP)?;
            let header = open.header;
            match end {
                End::Short => return Ok(Progress::Scans(window.held().len() as u64 + 1)),
                End::At(length) => {
                    self.push(&header, at, length);
                    window.advance(length as u64);
                }
                End::Lost(bytes) => {
                    self.passed += bytes as u64;
                    window.advance(bytes as u64);
                }
                End::Cut => {
                    self.is_cut_short = true;
                    return self.finish(at);
                }
            }
            self.open = None;
        }
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }
}

impl Flac {
    /// Reads a metadata block, or passes it. Returns the bytes that are needed.
    fn block(&mut self, window: &mut Window, work: &Work) -> Result<Option<u64>, MediaError> {
        let at = window.at();
        work.spend(1).map_err(|error| MediaError::work(PATH, at, error))?;
        // The first block follows the signature.
        let before = if self.stream.is_none() { SIGNATURE } else { 0 };
        let needed = before + BLOCK_HEADER + if self.stream.is_none() { StreamInfo::BYTES as u64 } else { 0 };
        let Some(bytes) = window.bytes(needed) else {
            if needed > window.left() {
                return Err(MediaError::truncated(PATH, at, window.left(), needed));
            }
            return Ok(Some(needed));
        };
        self.blocks += 1;
        if self.blocks > MOST_BLOCKS {
            let (found, most) = (u64::from(self.blocks), u64::from(MOST_BLOCKS));
            return Err(MediaError::too_large(PATH, at, found, most, "metadata blocks"));
        }
        let Some([kind, size @ ..]) = bytes.get(before as usize..).and_then(|rest| rest.first_chunk::<4>()) else {
            return Ok(Some(needed));
        };
        let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
        if self.stream.is_none() {
            let info = StreamInfo::read(bytes.get((before + BLOCK_HEADER) as usize..).unwrap_or_default());
            let info =
                info.ok_or_else(|| MediaError::invalid("FLAC/STREAMINFO", at, "a rate of 0", "a sampling rate"))?;
            self.stream = Some((make::flac_head(&bytes)?, info));
        }
        let whole = before + BLOCK_HEADER + size;
        if whole > window.left() {
            return Err(MediaError::truncated("FLAC metadata block", at, window.left(), whole));
        }
        if kind & 0x7f == PICTURE && before == 0 {
            let looked = BLOCK_HEADER + size.min(flac_picture::LOOKED);
            let Some(bytes) = window.bytes(looked) else { return Ok(Some(looked)) };
            let body = bytes.get(BLOCK_HEADER as usize..).unwrap_or_default();
            if let Some(picture) = flac_picture::picture(body, ByteRange::at(at + BLOCK_HEADER, size)) {
                self.picture = Some(TaggedPicture::better(self.picture, picture));
            }
        }
        if kind & 0x7f == vorbis_comment::BLOCK && before == 0 {
            let looked = BLOCK_HEADER + size.min(vorbis_comment::LOOKED);
            let Some(bytes) = window.bytes(looked) else { return Ok(Some(looked)) };
            let found = vorbis_comment::tags(bytes.get(BLOCK_HEADER as usize..).unwrap_or_default());
            self.tags = std::mem::take(&mut self.tags).or(found);
        }
        window.advance(whole);
        self.is_at_frames = kind & 0x80 != 0;
        Ok(None)
    }

    /// Opens the frame at the position, if there is one.
    fn open(&mut self, window: &Window) {
        let header = FrameHeader::read(window.held());
        self.open = header.filter(|header| self.is_next(header)).map(OpenFrame::new);
    }

    /// Whether a frame may follow those that were read.
    fn is_next(&self, header: &FrameHeader) -> bool {
        let is_of_stream = self.stream.as_ref().is_some_and(|(_, info)| info.has(header));
        is_of_stream && self.first.is_none_or(|_| self.time(header) >= self.table.next_dts())
    }

    /// Number of a frame's first sample in the file.
    fn time(&self, header: &FrameHeader) -> i64 {
        let (fixed, first) = self.first.unwrap_or((self.fixed_block(header), 0));
        let sample = if header.is_variable { header.number } else { header.number.saturating_mul(fixed) };
        i64::try_from(sample.saturating_sub(first)).unwrap_or(i64::MAX)
    }

    /// Samples of each frame, if these are equal. The last frame of a file may be shorter.
    fn fixed_block(&self, header: &FrameHeader) -> u64 {
        let blocks = self.stream.as_ref().map_or((0, 0), |(_, info)| info.blocks);
        if blocks.0 == blocks.1 && blocks.0 > 0 { blocks.0.into() } else { header.block.into() }
    }

    fn push(&mut self, header: &FrameHeader, at: u64, length: usize) {
        self.passed = 0;
        if self.first.is_none() {
            let first = u64::try_from(self.time(header)).unwrap_or(0);
            self.first = Some((self.fixed_block(header), first));
        }
        self.table.set_start_dts(self.time(header));
        self.table.push(at, u32::try_from(length).unwrap_or(u32::MAX), header.block, 0, true);
    }

    /// Passes bytes up to the next one that may begin a frame. Returns their number.
    fn pass(&mut self, window: &mut Window) -> u64 {
        let rest = window.held().get(1..).unwrap_or_default();
        let passed = rest.iter().position(|byte| *byte == 0xff).unwrap_or(rest.len()) as u64 + 1;
        self.passed += passed;
        window.advance(passed);
        passed
    }

    fn finish(&mut self, at: u64) -> Result<Progress, MediaError> {
        let table = std::mem::replace(&mut self.table, SampleTable::builder()).finish();
        let stream = self.stream.take().and_then(|(made, info)| Some((made, Timescale::new(info.sample_rate)?)));
        let Some((made, rate)) = stream.filter(|_| !table.is_empty()) else {
            return Err(nothing(PATH, at, "no frames behind the metadata blocks", self.is_cut_short));
        };
        let left_out = (self.passed > MOST_PASSED).then(|| {
            let found = format!("{} bytes without frames", self.passed);
            MediaError::invalid(PATH, at, found, "a frame").to_string()
        });
        let track = Track { samples: table, ..Track::live(1, made, rate, "und") };
        let movie = super::movie(track, None, left_out.into_iter().collect());
        let artwork = self.picture.map(|picture| picture.artwork.into());
        let tags = std::mem::take(&mut self.tags);
        Ok(Progress::Done(Box::new(Movie { cut_short: self.is_cut_short, artwork, tags, ..movie })))
    }
}

#[cfg(test)]
mod tests;
