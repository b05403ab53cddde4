//! Reads the records of a copy.

use super::record::{ALIVE, CLOSED, CopyHead, CopyRecord, ENDED, EPOCH, HEAD, KINDS, OPENED, PART, TARGETS, VERSION};
use crate::{
    fmp4::FragmentSample,
    live::{Cut, LiveFormat, Part, SegmentNumber, TRACK_ID, TargetDuration, Targets, WindowEpoch, WindowTrack},
};
use bytes::{Buf as _, Bytes, BytesMut};
use millpond_media::{
    fragment_stream::{FragmentEvent, FragmentStream},
    units::Timescale,
};
use std::{sync::Arc, time::Duration};

/// Bytes before the fields of a record: its kind, and its length.
const PREFIX: usize = 5;
/// Most bytes of a record: those of a window at its default.
const LONGEST: usize = 64 << 20;
/// Most tracks of a window, with its subtitles.
const MOST_TRACKS: usize = 32;
/// Most bytes of an init segment.
const MOST_INIT: usize = 1 << 20;
/// Most samples of a part.
const MOST_ROWS: usize = 1 << 16;
/// Bytes of a sample's times.
const ROW: usize = 17;
/// Digits of the name of a run.
const RUN: usize = 16;

/// Why a copy can't be read: it ends, and is begun again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The node that sends it has another version.
    #[error(
        "the node sends copies of version {0}, and this one reads version {VERSION}: run one version of the server on all nodes"
    )]
    Version(u8),
    /// A record is longer than any can be.
    #[error("record {record} of the copy has {length} bytes, more than {LONGEST}")]
    Long {
        /// Number of the record, from 0.
        record: u64,
        /// Its length.
        length: usize,
    },
    /// A record has other fields than its kind.
    #[error("record {record} of the copy, of kind {kind}, can't be read: expected {expected}")]
    Record {
        /// Number of the record, from 0.
        record: u64,
        /// Its kind.
        kind: u8,
        /// The field or order that was expected.
        expected: &'static str,
    },
}

/// Reads a copy as its bytes arrive.
#[derive(Debug, Default)]
pub struct CopyReader {
    waiting: BytesMut,
    /// Records so far.
    records: u64,
    /// Tracks of the window; `None` before its head.
    tracks: Option<Vec<Timescale>>,
}

impl CopyReader {
    /// Takes bytes. Call [`read`](Self::read) until it has no record before more are given.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Returns the next record; `None` until it is complete.
    ///
    /// # Errors
    /// It can't be read. Nothing after it can.
    pub fn read(&mut self) -> Result<Option<CopyRecord>, CopyError> {
        let Some(([kind, a, b, c, d], _)) = self.waiting.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let (kind, length) = (*kind, u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        let record = self.records;
        if length > LONGEST {
            return Err(CopyError::Long { record, length });
        }
        if self.waiting.len() - PREFIX < length {
            return Ok(None);
        }
        self.waiting.advance(PREFIX);
        let mut fields = Fields(self.waiting.split_to(length).freeze());
        self.records += 1;
        if kind == HEAD
            && let Some(version) = fields.0.first().copied().filter(|version| *version != VERSION)
        {
            return Err(CopyError::Version(version));
        }
        let read = self.parse(kind, &mut fields);
        let read = read.and_then(|read| if fields.0.is_empty() { Ok(read) } else { Err("no more fields") });
        read.map(Some).map_err(|expected| CopyError::Record { record, kind, expected })
    }

    fn parse(&mut self, kind: u8, fields: &mut Fields) -> Result<CopyRecord, &'static str> {
        if kind == HEAD {
            if self.tracks.is_some() {
                return Err("one head");
            }
            let head = fields.head()?;
            self.tracks = Some(head.tracks.iter().map(|track| track.timescale).collect());
            return Ok(CopyRecord::Head(head));
        }
        if matches!(kind, ALIVE | ENDED) {
            return Ok(if kind == ALIVE { CopyRecord::Alive } else { CopyRecord::Ended });
        }
        let tracks = self.tracks.as_deref().ok_or("the head before other records")?;
        let cut = match kind {
            EPOCH => return fields.epoch(tracks).map(CopyRecord::Epoch),
            TARGETS => Cut::Targets(fields.targets(tracks.len())?),
            OPENED => Cut::Opened {
                segment: SegmentNumber(fields.u64()?),
                epoch: fields.u32()?,
                start: fields.time()?,
                is_independent: fields.u8()? != 0,
            },
            PART => Cut::Part(fields.part(tracks.len())?),
            CLOSED => Cut::Closed {
                track: fields.track(tracks.len())?,
                segment: SegmentNumber(fields.u64()?),
                start: fields.i64()?,
                duration: fields.i64()?,
            },
            _ => return Err("a known kind"),
        };
        Ok(CopyRecord::Cut(cut))
    }
}

/// The fields of a record that are not read yet.
struct Fields(Bytes);

impl Fields {
    fn take(&mut self, length: usize) -> Result<Bytes, &'static str> {
        if length > self.0.len() { Err("more bytes") } else { Ok(self.0.split_to(length)) }
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], &'static str> {
        let mut array = [0; LENGTH];
        array.copy_from_slice(&self.take(LENGTH)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, &'static str> {
        self.array().map(i64::from_be_bytes)
    }

    /// A count or a length.
    fn count(&mut self, most: usize) -> Result<usize, &'static str> {
        usize::try_from(self.u32()?).ok().filter(|count| *count <= most).ok_or("a lower count")
    }

    fn time(&mut self) -> Result<Duration, &'static str> {
        self.u64().map(Duration::from_nanos)
    }

    fn text(&mut self) -> Result<String, &'static str> {
        let length = self.u8()?;
        String::from_utf8(self.take(length.into())?.into()).map_err(|_| "UTF-8")
    }

    fn track(&mut self, tracks: usize) -> Result<usize, &'static str> {
        Some(usize::from(self.u16()?)).filter(|track| *track < tracks).ok_or("a track of the head")
    }

    fn head(&mut self) -> Result<CopyHead, &'static str> {
        self.u8()?;
        let run = self.text()?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if run.len() != RUN || !run.bytes().all(is_digit) {
            return Err("the name of a run, of 16 hexadecimal digits");
        }
        let discontinuity = self.u64()?;
        let count = usize::from(self.u8()?);
        if !(1..=MOST_TRACKS).contains(&count) {
            return Err("1 to 32 tracks");
        }
        let track = |_| -> Result<WindowTrack, &'static str> {
            let name = self.text()?;
            let kind = KINDS.get(usize::from(self.u8()?)).copied().ok_or("a kind of tracks")?;
            let timescale = Timescale::new(self.u32()?).ok_or("a timescale")?;
            Ok(WindowTrack { name, kind, timescale })
        };
        let tracks = (0..count).map(track).collect::<Result<_, _>>()?;
        Ok(CopyHead { run, discontinuity, tracks })
    }

    fn epoch(&mut self, tracks: &[Timescale]) -> Result<WindowEpoch, &'static str> {
        let (number, from, wall) = (self.u32()?, self.time()?, self.time()?);
        if usize::from(self.u8()?) != tracks.len() {
            return Err("a format for each track");
        }
        let formats = tracks.iter().map(|scale| self.format(*scale)).collect::<Result<_, _>>()?;
        Ok(WindowEpoch::copied(number, from, wall, formats))
    }

    /// The format of a track, with its init segment.
    fn format(&mut self, timescale: Timescale) -> Result<Option<(LiveFormat, Bytes)>, &'static str> {
        let flags = self.u8()?;
        if flags == 0 {
            return Ok(None);
        }
        let (language, label) = (Some(self.text()?).filter(|language| !language.is_empty()), self.text()?);
        let frame_rate = Some((self.u32()?, self.u32()?)).filter(|(_, denominator)| *denominator > 0);
        let length = self.count(MOST_INIT)?;
        let init = self.take(length)?;
        let mut events = Vec::new();
        FragmentStream::new().push(&init, &mut events).map_err(|_| "an init segment")?;
        let track = events.into_iter().find_map(|event| match event {
            FragmentEvent::Tracks { tracks, .. } => tracks.into_iter().next(),
            _ => None,
        });
        let track = track.filter(|track| track.timescale == timescale).ok_or("an init segment with the track")?;
        let (track, is_default) = (Arc::new(track), flags > 1);
        let format = LiveFormat { track, language, label, is_default, frame_rate, id: TRACK_ID, early: 0 };
        Ok(Some((format, init)))
    }

    fn targets(&mut self, tracks: usize) -> Result<Targets, &'static str> {
        let segment = TargetDuration::new(self.u32()?);
        let count = usize::from(self.u8()?);
        if count != 0 && count > tracks {
            return Err("a target for each track at most");
        }
        let parts = (0..count).map(|_| self.time()).collect::<Result<Box<[_]>, _>>()?;
        Ok(Targets { segment, parts: Some(parts).filter(|parts| !parts.is_empty()) })
    }

    fn part(&mut self, tracks: usize) -> Result<Part, &'static str> {
        let (track, segment, index) = (self.track(tracks)?, SegmentNumber(self.u64()?), self.u16()?);
        let (start, decode_time) = (self.i64()?, self.i64()?);
        let count = self.count(MOST_ROWS.min(self.0.len() / ROW))?;
        let row = |_| -> Result<FragmentSample, &'static str> {
            let (duration, size, offset) = (self.u32()?, self.u32()?, self.i64()?);
            Ok(FragmentSample { duration, size, offset, is_sync: self.u8()? != 0 })
        };
        let rows = (0..count).map(row).collect::<Result<Box<[_]>, _>>()?;
        let head = self.count(LONGEST)?;
        let lengths = std::iter::once(head).chain(rows.iter().map(|row| row.size as usize));
        let bytes = lengths.map(|length| self.take(length)).collect::<Result<Vec<_>, _>>()?;
        Ok(Part {
            track,
            segment,
            index,
            start,
            decode_time,
            duration: rows.iter().map(|row| i64::from(row.duration)).fold(0, i64::saturating_add),
            is_independent: rows.iter().any(|row| row.is_sync),
            rows,
            bytes: bytes.into(),
        })
    }
}
