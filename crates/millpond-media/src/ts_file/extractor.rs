//! Makes bytes of an extracted object from the packets or chunks that hold them.

use super::packets::Packets;
use crate::{
    codec::StreamForm,
    error::MediaError,
    movie::extraction::{ExtractedStream, Extraction, FramePlace, PacketForm, UnitPlace},
    ts::{self, Demultiplexer, StreamCoding, TsEvent, TsLimits},
    units::ByteRange,
};
use bytes::{Bytes, BytesMut};

/// Most bytes of a range, and of a file from the first to the last packet of one range.
const MOST_SPAN: u64 = 64 << 20;
/// Most bytes of a file from the first to the last chunk of one range. Bytes between them are not held: those of tracks that are left
/// out, such as pictures beside sound.
const MOST_CHUNK_SPAN: u64 = 512 << 20;
/// Bytes whose packets are read together.
const CHUNK: usize = 64 << 10;
/// Path of errors.
const PATH: &str = "the extracted object";

/// Extracts one range of an extracted object.
///
/// Pass the bytes of [`source`](Self::source), a range of the file, to [`supply`](Self::supply), in order and in pieces of any size.
/// Then [`finish`](Self::finish) returns the range. Its bytes are those of the frames that the scan of the file found.
#[derive(Debug)]
pub struct Extractor {
    range: ByteRange,
    source: ByteRange,
    form: PacketForm,
    /// Offset in the file of the next byte.
    at: u64,
    packets: Packets,
    demultiplexer: Demultiplexer,
    events: Vec<TsEvent>,
    streams: Vec<Wanted>,
}

/// The frames of one stream that overlap the range.
#[derive(Debug)]
struct Wanted {
    pid: u16,
    form: StreamForm,
    /// Bytes before each frame that the file does not store.
    prefix: Vec<u8>,
    frames: Vec<FramePlace>,
    /// PES packets that hold them, the next one last.
    units: Vec<UnitPlace>,
    /// Range of the elementary stream from the first frame to the last one, and the bytes of it that were read.
    source: ByteRange,
    bytes: Vec<u8>,
}

impl Extraction {
    /// Returns the range of the file with the packets of a range of the extracted object.
    ///
    /// # Errors
    /// As [`Extractor::new`].
    pub fn source(&self, range: ByteRange) -> Result<ByteRange, MediaError> {
        Ok(wanted(self, range)?.0)
    }
}

impl Extractor {
    /// Creates an extractor of a range of the extracted object.
    ///
    /// # Errors
    /// The range exceeds the object, or its packets are spread over more than 64 MiB of the file; chunks over more than 512 MiB.
    pub fn new(extraction: &Extraction, range: ByteRange) -> Result<Self, MediaError> {
        let (source, streams) = wanted(extraction, range)?;
        let codings = streams.iter().map(|wanted| (wanted.pid, StreamCoding::of_form(wanted.form)));
        Ok(Self {
            range,
            source,
            form: extraction.packets(),
            at: source.start,
            packets: Packets::new(extraction.packets(), source.start),
            demultiplexer: Demultiplexer::of_streams(TsLimits::default(), codings),
            events: Vec::new(),
            streams,
        })
    }

    /// Range of the file that is needed; empty for an empty range.
    #[must_use]
    pub fn source(&self) -> ByteRange {
        self.source
    }

    /// Returns the most bytes of memory that it takes: packets that are assembled, gathered frames, and the result.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let gathered: u64 = self.streams.iter().map(|wanted| wanted.source.len()).sum();
        let assembled = if self.form == PacketForm::Chunks { 0 } else { self.source.len() };
        assembled + gathered + self.range.len()
    }

    /// Takes the next bytes of the file.
    pub fn supply(&mut self, bytes: &[u8]) {
        if self.form == PacketForm::Chunks {
            let at = self.at;
            self.at = at.saturating_add(bytes.len() as u64);
            return self.streams.iter_mut().for_each(|wanted| wanted.take_chunks(at, bytes));
        }
        for chunk in bytes.chunks(CHUNK) {
            self.packets.append(chunk);
            while let Some((packet, at)) = self.packets.next() {
                self.demultiplexer.packet(&packet, at, &mut self.events);
            }
            self.take();
        }
    }

    /// Returns the bytes of the range.
    ///
    /// # Errors
    /// The file is not the one that was indexed, or not all bytes were supplied.
    pub fn finish(mut self) -> Result<Bytes, MediaError> {
        self.demultiplexer.finish(&mut self.events);
        self.take();
        let mut bytes = BytesMut::zeroed(usize::try_from(self.range.len()).unwrap_or(usize::MAX));
        for wanted in &self.streams {
            for frame in &wanted.frames {
                wanted.copy(frame, self.range, &mut bytes)?;
            }
        }
        // Frames of a stream that was left out at the end of the scan are zeros. No sample refers to them.
        Ok(bytes.freeze())
    }

    /// Takes the PES packets so far.
    fn take(&mut self) {
        for event in self.events.drain(..) {
            let TsEvent::Unit(unit) = event else { continue };
            // A PID may have had several streams, one after the other.
            for wanted in self.streams.iter_mut().filter(|wanted| wanted.pid == unit.pid) {
                wanted.take(unit.first_packet, &unit.data);
            }
        }
    }
}

impl Wanted {
    /// Returns the frames of a stream in a range; `None` if there are none.
    fn of(stream: &ExtractedStream, range: ByteRange) -> Option<Self> {
        let frames: Vec<_> = stream.frames_in(range).collect();
        let source = ByteRange::new(frames.first()?.source.start, frames.last()?.source.end);
        let (pid, form, prefix) = (stream.pid, stream.form, stream.prefix.clone());
        Some(Self { pid, form, prefix, frames, units: Vec::new(), source, bytes: stream.held(source).to_vec() })
    }

    /// Takes a PES packet that begins in the transport packet at `at`.
    fn take(&mut self, at: u64, data: &[u8]) {
        let Some(unit) = self.units.pop_if(|unit| unit.packets.start == at) else { return };
        // A later map may have ended the PES packet early when the file was scanned.
        let data = data.get(..usize::try_from(unit.payload.len()).unwrap_or(usize::MAX)).unwrap_or(data);
        self.gather(unit.payload.start, data);
    }

    /// Takes the parts of chunks that are in `bytes`. `at` is the offset of `bytes` in the file.
    fn take_chunks(&mut self, at: u64, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len() as u64);
        while let Some(UnitPlace { packets, payload }) = self.units.last().copied() {
            let part = ByteRange::new(packets.start.max(at), packets.end.min(end));
            let from = usize::try_from(part.start.saturating_sub(at)).unwrap_or(usize::MAX);
            let data = bytes.get(from..).unwrap_or_default();
            let data = data.get(..usize::try_from(part.len()).unwrap_or(usize::MAX)).unwrap_or(data);
            self.gather(payload.start.saturating_add(part.start.saturating_sub(packets.start)), data);
            if packets.end > end {
                return;
            }
            self.units.pop();
        }
    }

    /// Appends bytes that are at `start` of the elementary stream, as far as they are wanted and next.
    fn gather(&mut self, start: u64, data: &[u8]) {
        let next = self.source.start + self.bytes.len() as u64;
        let skip = next.saturating_sub(start);
        let most = self.source.end.saturating_sub(next);
        let data = data.get(usize::try_from(skip).unwrap_or(usize::MAX)..).unwrap_or_default();
        let data = data.get(..usize::try_from(most).unwrap_or(usize::MAX)).unwrap_or(data);
        // If bytes are missing, later bytes have no place.
        if start <= next {
            self.bytes.extend_from_slice(data);
        }
    }

    /// Copies the bytes of a frame that are in the range.
    fn copy(&self, frame: &FramePlace, range: ByteRange, out: &mut [u8]) -> Result<(), MediaError> {
        let FramePlace { extracted, source } = *frame;
        let missing = || MediaError::invalid(PATH, extracted.start, "other packets", "those that were indexed");
        let begin = source.start.checked_sub(self.source.start).ok_or_else(missing)?;
        let begin = usize::try_from(begin).unwrap_or(usize::MAX);
        let end = begin.saturating_add(usize::try_from(source.len()).unwrap_or(usize::MAX));
        let data = ts::frame_of(self.form, self.bytes.get(begin..end).ok_or_else(missing)?).ok_or_else(missing)?;
        let begun = extracted.start.saturating_add(self.prefix.len() as u64);
        if begun.saturating_add(data.len() as u64) != extracted.end {
            return Err(missing());
        }
        copy(&self.prefix, extracted.start, range, out).ok_or_else(missing)?;
        copy(&data, begun, range, out).ok_or_else(missing)
    }
}

/// Copies those of `bytes` that are in `range` into `out`, which has the bytes of `range`. `start` is the place of the first of
/// `bytes`. `None` if `out` is too short.
fn copy(bytes: &[u8], start: u64, range: ByteRange, out: &mut [u8]) -> Option<()> {
    let end = start.saturating_add(bytes.len() as u64);
    let part = ByteRange::new(start.max(range.start), end.min(range.end));
    if part.is_empty() {
        return Some(());
    }
    let from = (part.start - start) as usize..(part.end - start) as usize;
    let to = (part.start - range.start) as usize..(part.end - range.start) as usize;
    out.get_mut(to)?.copy_from_slice(bytes.get(from)?);
    Some(())
}

/// Returns the range of the file with the packets of a range, and what is wanted of each stream.
fn wanted(extraction: &Extraction, range: ByteRange) -> Result<(ByteRange, Vec<Wanted>), MediaError> {
    if range.end > extraction.len() {
        let left = extraction.len().saturating_sub(range.start);
        return Err(MediaError::truncated(PATH, range.start, left, range.len()));
    }
    if range.len() > MOST_SPAN {
        return Err(MediaError::too_large(PATH, range.start, range.len(), MOST_SPAN, "bytes of a range"));
    }
    let stride = extraction.packets().stride();
    let most = if extraction.packets() == PacketForm::Chunks { MOST_CHUNK_SPAN } else { MOST_SPAN };
    let mut source: Option<ByteRange> = None;
    let mut all = Vec::new();
    for stream in extraction.streams().iter().filter(|_| !range.is_empty()) {
        let Some(mut wanted) = Wanted::of(stream, range) else { continue };
        for unit in stream.units_of(wanted.source) {
            // A packet behind a damaged place is only recognised by the one behind it.
            let end = unit.packets.end.saturating_add(stride).min(extraction.file_len());
            let packets = ByteRange::new(unit.packets.start, end);
            let joined = source
                .map_or(packets, |source| ByteRange::new(source.start.min(packets.start), source.end.max(packets.end)));
            if joined.len() > most {
                let what = "bytes between the packets of a range";
                return Err(MediaError::too_large(PATH, range.start, joined.len(), most, what));
            }
            source = Some(joined);
            wanted.units.push(unit);
        }
        wanted.units.reverse();
        all.push(wanted);
    }
    Ok((source.unwrap_or(ByteRange::new(0, 0)), all))
}
