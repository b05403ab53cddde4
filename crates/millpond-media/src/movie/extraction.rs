//! The map of an extracted object to the transport stream file, AVI file or Matroska file that holds its frames.
//!
//! In a transport stream a frame is scattered over packets, so its bytes are no range of the file. The frames of all tracks, in ISO
//! form and one after the other, are thought of as an object of their own: the extracted object. It exists only as this map. The
//! frames of a track have rising places in it, and so have their bytes in the track's elementary stream.
//!
//! The chunks of AVI files hold frames in other forms than samples, such as the byte stream format, and parts of frames of sound. A
//! chunk is treated like a PES packet whose bytes are all payload. So is a frame of a Matroska file whose tracks lack the common
//! beginning of their frames (header stripping, RFC 9559 5.1.4.1.31.6): the extracted frame has it again.
//!
//! The texts of teletext pages are in no range of the file: the map itself holds them.

use crate::{
    codec::StreamForm,
    movie::sample_table::{Sample, SampleTable, SampleTableBuilder},
    units::ByteRange,
};
use serde::{Deserialize, Serialize};

/// Ranges of the extracted object to places in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    file_len: u64,
    len: u64,
    packets: PacketForm,
    /// Timestamp of the time 0 of the presentation, in ticks of 90 kHz.
    zero: u64,
    streams: Vec<ExtractedStream>,
    /// Whether a track lacks the first frames of its stream, because most of its frames are of another kind.
    begins_otherwise: bool,
}

/// The form of packets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacketForm {
    /// Packets of 188 bytes (ISO/IEC 13818-1 2.4.3.2).
    Plain,
    /// Packets after 4 bytes with their arrival time: M2TS of Blu-ray and of camcorders.
    Timed,
    /// Packets before 16 bytes of Reed-Solomon parity (ETSI EN 300 429).
    Parity,
    /// No packets: each unit is a range of the file, such as the data of an AVI chunk, or a frame of Matroska.
    Chunks,
}

impl PacketForm {
    /// Bytes from the beginning of a packet to the beginning of the next; 0 without packets.
    #[must_use]
    pub const fn stride(self) -> u64 {
        match self {
            Self::Plain => 188,
            Self::Timed => 192,
            Self::Parity => 204,
            Self::Chunks => 0,
        }
    }
}

/// Frames of one track, and the PES packets that hold them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExtractedStream {
    pub(crate) pid: u16,
    pub(crate) form: StreamForm,
    /// Bytes before each frame that the file does not store; empty in most files.
    pub(crate) prefix: Vec<u8>,
    /// Frames: their ranges in the extracted object. Their times are their places in the elementary stream, and their composition
    /// offsets the numbers of bytes by which they are longer there.
    frames: SampleTable,
    /// PES packets: the ranges of the file from their first to their last transport packet. Their times are the places of their
    /// payloads in the elementary stream.
    units: SampleTable,
    /// The elementary stream itself, where the file does not store it: subtitles that were made of teletext. Empty for other streams.
    held: Vec<u8>,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    /// Range of the extracted object.
    pub(crate) extracted: ByteRange,
    /// Range of the elementary stream.
    pub(crate) source: ByteRange,
}

/// A PES packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitPlace {
    /// Range of the file from its first transport packet to its last one.
    pub(crate) packets: ByteRange,
    /// Range of the elementary stream that is its payload.
    pub(crate) payload: ByteRange,
}

impl Extraction {
    /// Creates the map of an extracted object of `len` bytes. `zero` is the timestamp of the time 0 of the presentation.
    pub(crate) fn new(
        (file_len, len): (u64, u64),
        packets: PacketForm,
        zero: u64,
        streams: Vec<ExtractedStream>,
    ) -> Self {
        Self { file_len, len, packets, zero, streams, begins_otherwise: false }
    }

    /// Notes whether a track lacks the first frames of its stream.
    pub(crate) fn with_another_beginning(self, begins_otherwise: bool) -> Self {
        Self { begins_otherwise, ..self }
    }

    /// Returns the timestamp of the time 0 of the presentation, in ticks of 90 kHz (ISO/IEC 13818-1 2.4.3.7). It has 33 bits.
    #[must_use]
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Whether a track lacks the first frames of its stream, because most of its frames are of another kind. An index of the file's
    /// beginning alone then has other samples: it keeps these first frames.
    #[must_use]
    pub fn begins_otherwise(&self) -> bool {
        self.begins_otherwise
    }

    /// Length of the extracted object.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the extracted object has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of the file.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Form of the packets in the file.
    #[must_use]
    pub fn packets(&self) -> PacketForm {
        self.packets
    }

    pub(crate) fn streams(&self) -> &[ExtractedStream] {
        &self.streams
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let streams = self.streams.iter().map(ExtractedStream::heap_bytes);
        size_of::<Self>() + self.streams.capacity() * size_of::<ExtractedStream>() + streams.sum::<usize>()
    }
}

impl ExtractedStream {
    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes() + self.units.heap_bytes() + self.prefix.capacity() + self.held.capacity()
    }

    /// Returns the stream with its own bytes.
    pub(crate) fn holding(self, held: Vec<u8>) -> Self {
        Self { held, ..self }
    }

    /// Returns a range of the elementary stream that is held here, as far as it is.
    pub(crate) fn held(&self, source: ByteRange) -> &[u8] {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.held.len());
        self.held.get(place(source.start)..place(source.end)).unwrap_or_default()
    }

    /// Returns the frames with bytes in a range of the extracted object.
    pub(crate) fn frames_in(&self, range: ByteRange) -> impl Iterator<Item = FramePlace> + '_ {
        let first = self.frames.at_offset(range.start).unwrap_or(0);
        let frames = self.frames.range(first..self.frames.len()).map(|sample| FramePlace {
            extracted: sample.range,
            source: ByteRange::at(
                u64::try_from(sample.dts).unwrap_or(0),
                sample.range.len().saturating_add_signed(i64::from(sample.composition)),
            ),
        });
        frames
            .skip_while(move |frame| frame.extracted.end <= range.start)
            .take_while(move |frame| frame.extracted.start < range.end)
    }

    /// Returns the PES packets with bytes of a range of the elementary stream.
    pub(crate) fn units_of(&self, source: ByteRange) -> impl Iterator<Item = UnitPlace> + '_ {
        let first = i64::try_from(source.start).ok().and_then(|start| self.units.at_dts(start)).unwrap_or(0);
        let units = self.units.range(first..self.units.len()).map(|sample: Sample| UnitPlace {
            packets: sample.range,
            payload: ByteRange::at(u64::try_from(sample.dts).unwrap_or(0), u64::from(sample.duration)),
        });
        units.take_while(move |unit| unit.payload.start < source.end)
    }
}

/// Notes the PES packets and the frames of one stream, both in the order of the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtractedStreamBuilder {
    prefix: Vec<u8>,
    frames: SampleTableBuilder,
    units: SampleTableBuilder,
}

impl ExtractedStreamBuilder {
    /// Creates the builder of a stream that has `prefix` before each frame in the extracted object.
    pub(crate) fn behind(prefix: Vec<u8>) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Bytes before each frame that the file does not store.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Adds a PES packet. Ones without payload need not be noted.
    pub(crate) fn push_unit(&mut self, unit: UnitPlace) {
        let UnitPlace { packets, payload } = unit;
        self.units.set_start_dts(signed(payload.start));
        self.units.push(packets.start, narrow(packets.len()), narrow(payload.len()), 0, true);
    }

    /// Adds a frame.
    pub(crate) fn push_frame(&mut self, frame: FramePlace) {
        let FramePlace { extracted, source } = frame;
        let more = signed(source.len()).saturating_sub(signed(extracted.len()));
        self.frames.set_start_dts(signed(source.start));
        let more = i32::try_from(more).unwrap_or(i32::MAX);
        self.frames.push(extracted.start, narrow(extracted.len()), narrow(source.len()), more, true);
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes() + self.units.heap_bytes() + self.prefix.capacity()
    }

    /// Returns the stream of this PID.
    pub(crate) fn finish(self, pid: u16, form: StreamForm) -> ExtractedStream {
        let (prefix, frames, units) = (self.prefix, self.frames.finish(), self.units.finish());
        ExtractedStream { pid, form, prefix, frames, units, held: Vec::new() }
    }
}

/// Places in files and streams have less than 63 bits.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Lengths of frames and PES packets have less than 32 bits. A PES packet that is scattered over 4 GiB is not extracted.
fn narrow(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> ExtractedStream {
        let mut builder = ExtractedStreamBuilder::default();
        for number in 0..300 {
            let packets = ByteRange::at(number * 1880, 376);
            builder.push_unit(UnitPlace { packets, payload: ByteRange::at(number * 200, 200) });
            // A frame begins behind 20 bytes that are left out, and is 40 bytes shorter than in the stream.
            let source = ByteRange::at(number * 200 + 20, 150);
            builder.push_frame(FramePlace { extracted: ByteRange::at(number * 1000, 110), source });
        }
        builder.finish(0x100, StreamForm::Avc)
    }

    #[test]
    fn frames_and_units_are_found_by_their_places() {
        let stream = stream();
        let frames: Vec<_> = stream.frames_in(ByteRange::new(150_109, 151_001)).collect();
        let expected = [150, 151].map(|number| FramePlace {
            extracted: ByteRange::at(number * 1000, 110),
            source: ByteRange::at(number * 200 + 20, 150),
        });
        assert_eq!(frames, expected);
        assert_eq!(stream.frames_in(ByteRange::new(150_110, 151_000)).count(), 0, "between two frames");
        assert_eq!(stream.frames_in(ByteRange::new(0, 1 << 40)).count(), 300);
        let units: Vec<_> = stream.units_of(ByteRange::new(399, 401)).map(|unit| unit.packets.start).collect();
        assert_eq!(units, [1880, 3760]);
        let last = stream.units_of(ByteRange::new(59_999, 70_000)).collect::<Vec<_>>();
        let packets = ByteRange::at(299 * 1880, 376);
        assert_eq!(last, [UnitPlace { packets, payload: ByteRange::new(59_800, 60_000) }]);
    }
}
