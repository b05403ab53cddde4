//! Records of a copy, and their bytes.
//!
//! Each record is a byte with its kind, its length in four bytes, and its fields. Numbers are big endian.

use crate::{
    live::{Cut, LiveFormat, Part, Targets, WindowEpoch, WindowTrack},
    presentation::track::MediaKind,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use std::time::Duration;

/// Version of the records. Others can't be read.
pub(super) const VERSION: u8 = 1;
/// Kinds of records.
pub(super) const HEAD: u8 = 1;
pub(super) const EPOCH: u8 = 2;
pub(super) const TARGETS: u8 = 3;
pub(super) const OPENED: u8 = 4;
pub(super) const PART: u8 = 5;
pub(super) const CLOSED: u8 = 6;
pub(super) const ALIVE: u8 = 7;
pub(super) const ENDED: u8 = 8;
/// Kinds of tracks.
pub(super) const KINDS: [MediaKind; 3] = [MediaKind::Video, MediaKind::Audio, MediaKind::Text];

/// One step of a copy.
#[derive(Clone, Debug)]
pub enum CopyRecord {
    /// The window begins. It is the first record, once.
    Head(CopyHead),
    /// An epoch is announced.
    Epoch(WindowEpoch),
    /// A decision of the cutter.
    Cut(Cut),
    /// The window is as it was: nothing is new.
    Alive,
    /// The window has ended. Nothing goes on from it.
    Ended,
}

/// The run and the tracks of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyHead {
    /// Name of the run in URIs.
    pub run: String,
    /// Discontinuity sequence number of the first segment.
    pub discontinuity: u64,
    /// The tracks.
    pub tracks: Vec<WindowTrack>,
}

impl CopyRecord {
    /// Appends the bytes of the record. Those of samples are not copied.
    pub fn write(&self, out: &mut Vec<Bytes>) {
        let mut fields = BytesMut::with_capacity(64);
        let (kind, media): (u8, &[Bytes]) = match self {
            Self::Head(head) => {
                write_head(head, &mut fields);
                (HEAD, &[])
            }
            Self::Epoch(epoch) => {
                write_epoch(epoch, &mut fields);
                (EPOCH, &[])
            }
            Self::Cut(Cut::Targets(targets)) => {
                write_targets(targets, &mut fields);
                (TARGETS, &[])
            }
            Self::Cut(Cut::Opened { segment, epoch, start, is_independent }) => {
                fields.put_u64(segment.0);
                fields.put_u32(*epoch);
                put_time(*start, &mut fields);
                fields.put_u8((*is_independent).into());
                (OPENED, &[])
            }
            Self::Cut(Cut::Part(part)) => {
                write_part(part, &mut fields);
                (PART, &*part.bytes)
            }
            Self::Cut(Cut::Closed { track, segment, start, duration }) => {
                fields.put_u16(u16::try_from(*track).unwrap_or(u16::MAX));
                fields.put_u64(segment.0);
                fields.put_i64(*start);
                fields.put_i64(*duration);
                (CLOSED, &[])
            }
            Self::Alive => (ALIVE, &[]),
            Self::Ended => (ENDED, &[]),
        };
        let length = fields.len() + media.iter().map(Bytes::len).sum::<usize>();
        let mut head = BytesMut::with_capacity(5 + fields.len());
        head.put_u8(kind);
        head.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        head.extend_from_slice(&fields);
        out.push(head.freeze());
        out.extend_from_slice(media);
    }
}

fn write_head(CopyHead { run, discontinuity, tracks }: &CopyHead, out: &mut BytesMut) {
    out.put_u8(VERSION);
    put_text(run, out);
    out.put_u64(*discontinuity);
    out.put_u8(u8::try_from(tracks.len()).unwrap_or(u8::MAX));
    for WindowTrack { name, kind, timescale } in tracks {
        put_text(name, out);
        out.put_u8(
            KINDS.iter().position(|known| known == kind).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX),
        );
        out.put_u32(timescale.get());
    }
}

fn write_epoch(epoch: &WindowEpoch, out: &mut BytesMut) {
    out.put_u32(epoch.number);
    put_time(epoch.from, out);
    put_time(epoch.wall, out);
    out.put_u8(u8::try_from(epoch.formats.len()).unwrap_or(u8::MAX));
    for (track, format) in epoch.formats.iter().enumerate() {
        let Some((format, init)) = format.as_ref().zip(epoch.init(track)) else {
            out.put_u8(0);
            continue;
        };
        let LiveFormat { language, label, is_default, frame_rate, .. } = format;
        out.put_u8(1 + u8::from(*is_default));
        put_text(language.as_deref().unwrap_or_default(), out);
        put_text(label, out);
        let (numerator, denominator) = frame_rate.unwrap_or_default();
        out.put_u32(numerator);
        out.put_u32(denominator);
        out.put_u32(u32::try_from(init.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(init);
    }
}

fn write_targets(targets: &Targets, out: &mut BytesMut) {
    out.put_u32(targets.segment.seconds());
    let parts = targets.parts.as_deref().unwrap_or_default();
    out.put_u8(u8::try_from(parts.len()).unwrap_or(u8::MAX));
    parts.iter().for_each(|part| put_time(*part, out));
}

fn write_part(part: &Part, out: &mut BytesMut) {
    out.put_u16(u16::try_from(part.track).unwrap_or(u16::MAX));
    out.put_u64(part.segment.0);
    out.put_u16(part.index);
    out.put_i64(part.start);
    out.put_i64(part.decode_time);
    out.put_u32(u32::try_from(part.rows.len()).unwrap_or(u32::MAX));
    for row in &part.rows {
        out.put_u32(row.duration);
        out.put_u32(row.size);
        out.put_i64(row.offset);
        out.put_u8(row.is_sync.into());
    }
    out.put_u32(part.bytes.first().map_or(0, |head| u32::try_from(head.len()).unwrap_or(u32::MAX)));
}

fn put_time(time: Duration, out: &mut BytesMut) {
    out.put_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Writes a text of at most 255 bytes; longer ones are cut.
fn put_text(text: &str, out: &mut BytesMut) {
    let text = &text[..text.floor_char_boundary(usize::from(u8::MAX))];
    out.put_u8(u8::try_from(text.len()).unwrap_or(0));
    out.extend_from_slice(text.as_bytes());
}
