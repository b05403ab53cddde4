//! One stream of a segment: its carriage and write position.

use super::{
    Continuity, ElementaryStream, Unit, carriage,
    carriage::Form,
    nal,
    packet::{self, PacketWriter, Start},
    pes, psi,
    sizes::Planned,
};
use crate::{
    ObjectIndex, ObjectRange, PackageError,
    plan::{Damage, reads},
};
use millpond_media::{AacConfig, Codec, PrivateForm, Track};

/// PID of the first stream; the PIDs of other streams follow it.
pub(super) const FIRST_PID: u16 = 0x100;
/// Ticks (90 kHz) by which the clock is behind decoding times: a tenth of a second to fill decoder buffers.
pub(super) const CLOCK_DELAY: i64 = 9_000;
/// Most bytes of an AAC frame: `aac_frame_length` has 13 bits and counts the header.
const MOST_ADTS: u64 = 0x1fff - AacConfig::ADTS_HEADER as u64;
/// The same limit as text for errors.
const ADTS_LIMIT: &str = "an AAC frame of at most 8184 bytes (the limit of ADTS)";

/// Zeros in place of damaged bytes: `trailing_zero_8bits` of the last unit (H.264 and H.265, Annex B.1.1).
const ZEROS: [u8; 1024] = [0; 1024];

/// A stream that is being written.
pub(super) struct Lane {
    /// Object that contains the units.
    pub(super) object: ObjectIndex,
    /// Units in decoding order.
    pub(super) units: Vec<Unit>,
    /// For each unit, the lowest offset of it and all later units.
    floors: Vec<u64>,
    /// Number of units written.
    written: usize,
    form: Form,
    /// Form of subtitles.
    text: Option<PrivateForm>,
    stream_id: u8,
    pid: u16,
    writer: PacketWriter,
    /// Whether this stream carries the clock.
    clock: bool,
    /// Whether the next packet's counter doesn't continue that of the segment before.
    discontinuity: bool,
}

impl Lane {
    /// Creates stream `index` of the segment, which is number `among` of its kind (video or audio); also returns its
    /// entry for the program map table. `clock` marks the stream that carries the clock.
    pub(super) fn new(
        stream: ElementaryStream,
        index: u16,
        among: u8,
        clock: bool,
    ) -> Result<(Self, psi::StreamEntry), PackageError> {
        let track = track(&stream)?;
        let codec = &track.codec;
        let (Some(form), Some(stream_type)) = (Form::of(track), carriage::stream_type(codec)) else {
            return Err(refused(codec));
        };
        check_sizes(codec, &stream)?;
        let pid = FIRST_PID + index;
        let entry = psi::StreamEntry::of(track, pid, stream_type);
        let text = match codec {
            Codec::PrivateText(config) => Some(config.form),
            _ => None,
        };
        let stream_id = carriage::stream_id(codec, among);
        let writer = PacketWriter::new(pid, stream.first_counter);
        let discontinuity = match stream.continuity {
            Continuity::Counted => !form.exact(),
            Continuity::Written => false,
            Continuity::New => true,
        };
        let ElementaryStream { object, units, .. } = stream;
        let floors = reads::floors(units.iter().map(|unit| unit.range));
        Ok((
            Self { object, units, floors, written: 0, form, text, stream_id, pid, writer, clock, discontinuity },
            entry,
        ))
    }

    /// PID of the stream.
    pub(super) fn pid(&self) -> u16 {
        self.pid
    }

    /// Continuity counter of the next packet.
    pub(super) fn counter(&self) -> u8 {
        self.writer.counter()
    }

    /// Whether packet counts follow from sample sizes.
    pub(super) fn exact(&self) -> bool {
        self.form.exact()
    }

    /// Returns the lowest offset of the unwritten units.
    pub(super) fn floor(&self) -> u64 {
        self.floors.get(self.written).copied().unwrap_or(u64::MAX)
    }

    /// Returns the range of a unit.
    pub(super) fn read(&self, unit: usize) -> Option<ObjectRange> {
        self.units.get(unit).map(|u| ObjectRange { object: self.object, range: u.range })
    }

    /// Writes a unit. `first` is the PES packet that begins with the unit, if any. Zeros replace the rest of a picture from the first NAL
    /// unit length that does not fit, because the number of packets is fixed. `damage` counts such pictures.
    pub(super) fn write(
        &mut self,
        unit: usize,
        first: Option<&Planned>,
        sample: &[u8],
        (out, damage): (&mut Vec<u8>, &mut Option<Damage>),
    ) -> Result<(), PackageError> {
        self.written = unit + 1;
        let Some(&unit) = self.units.get(unit) else { return Ok(()) };
        if let Form::Nal { kind, length_size, .. } = self.form {
            let mut units = nal::Checked::new(kind, length_size, sample);
            if let Some(malformed) = units.take_malformed() {
                let fault = PackageError::Sample {
                    object: self.object,
                    range: unit.range,
                    offset: malformed.offset as u64,
                    found: malformed.found,
                    expected: "NAL units whose length fields fill the sample exactly",
                };
                Damage::count(damage, self.object, fault);
            }
            self.write_picture(&unit, kind, units, first, out);
            return Ok(());
        }
        if let Some(size) = first {
            let (of_sound, of_text);
            let header: &[u8] = match self.text {
                Some(form) => {
                    of_text = pes::text_header(form, unit.pts, size.payload);
                    &of_text
                }
                None => {
                    of_sound = pes::audio_header(self.stream_id, unit.pts, size.payload);
                    &of_sound
                }
            };
            let len = usize::try_from(size.payload).unwrap_or(usize::MAX).saturating_add(header.len());
            let start = self.start(&unit);
            self.writer.begin(len, size.packets, start, out);
            self.writer.write(header, out);
        }
        if let Form::Adts(config) = &self.form {
            let header = config.adts_header(sample.len()).ok_or_else(|| too_long(self.object, &unit, ADTS_LIMIT))?;
            self.writer.write(&header, out);
        }
        self.writer.write(sample, out);
        Ok(())
    }

    fn write_picture(
        &mut self,
        unit: &Unit,
        kind: nal::NalCodec,
        mut units: nal::Checked<'_>,
        size: Option<&Planned>,
        out: &mut Vec<u8>,
    ) {
        let start = self.start(unit);
        let header = pes::video_header(self.stream_id, unit);
        let own = units.take_delimiter();
        let delimiter = match &own {
            Some(unit) => [&nal::START_CODE, *unit],
            None => [kind.delimiter(), &[]],
        };
        let (sets, orientation): (&[u8], &[u8]) = match (&self.form, unit.sets) {
            (Form::Nal { parameter_sets, orientation, .. }, Some(place)) => {
                (parameter_sets.get(place).map_or(&[], Vec::as_slice), orientation)
            }
            _ => (&[], &[]),
        };
        let head = [&header[..], delimiter[0], delimiter[1], sets];
        let exact = self.form.exact();
        let mut zeros = if exact { units.left_out() } else { 0 };
        let len = head.iter().map(|piece| piece.len()).sum::<usize>() + orientation.len() + units.len() + zeros;
        let planned = size.filter(|_| exact).map(|s| s.packets);
        self.writer.begin(len, planned.unwrap_or_else(|| packet::count(len as u64)), start, out);
        for piece in head {
            self.writer.write(piece, out);
        }
        // Messages follow the parameter sets and precede the first slice of a picture.
        let mut message = orientation;
        for [code, unit] in units.pieces() {
            if !message.is_empty() && kind.is_slice(unit) {
                self.writer.write(std::mem::take(&mut message), out);
            }
            self.writer.write(code, out);
            self.writer.write(unit, out);
        }
        self.writer.write(message, out);
        while zeros > 0 {
            let piece = ZEROS.get(..zeros).unwrap_or(&ZEROS);
            self.writer.write(piece, out);
            zeros -= piece.len();
        }
    }

    /// Writes a packet with only a PCR, for a unit that is decoded at `dts`.
    pub(super) fn write_clock(&self, dts: i64, out: &mut Vec<u8>) {
        self.writer.clock(dts.saturating_sub(CLOCK_DELAY), out);
    }

    fn start(&mut self, unit: &Unit) -> Start {
        Start {
            discontinuity: std::mem::take(&mut self.discontinuity),
            random_access: unit.sync,
            clock: self.clock.then(|| unit.dts.saturating_sub(CLOCK_DELAY)),
        }
    }
}

/// Returns the track of a stream.
pub(super) fn track(stream: &ElementaryStream) -> Result<&Track, PackageError> {
    let found = stream.movie.tracks.len();
    let missing = || PackageError::Track { object: stream.object, track: stream.track, found };
    stream.movie.track(stream.track).ok_or_else(missing)
}

fn refused(codec: &Codec) -> PackageError {
    PackageError::Container {
        container: "MPEG-2 TS",
        found: format!("{} ({})", codec.name(), codec.parameter()),
        expected: "H.264, HEVC, AAC that fits ADTS, MPEG audio, AC-3 or E-AC-3",
    }
}

/// Checks that audio frames fit the length fields of ADTS and of PES packets.
fn check_sizes(codec: &Codec, stream: &ElementaryStream) -> Result<(), PackageError> {
    if carriage::is_video(codec) {
        return Ok(());
    }
    let (most, expected) = match codec {
        Codec::Aac(_) => (MOST_ADTS, ADTS_LIMIT),
        Codec::PrivateText(_) => (pes::MOST_TEXT, "subtitles of at most 65496 bytes (the limit of a PES packet)"),
        _ => (pes::MOST_AUDIO, "an audio frame of at most 65527 bytes (the limit of a PES packet)"),
    };
    match stream.units.iter().find(|u| u.range.len() > most) {
        None => Ok(()),
        Some(unit) => Err(too_long(stream.object, unit, expected)),
    }
}

fn too_long(object: ObjectIndex, unit: &Unit, expected: &'static str) -> PackageError {
    let found = format!("{} bytes", unit.range.len());
    PackageError::Sample { object, range: unit.range, offset: 0, found, expected }
}
