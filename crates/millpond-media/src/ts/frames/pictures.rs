//! Assembles pictures of H.264 and H.265 from byte streams (Annex B of both standards).

use super::{
    FrameFault, Framed, TsFrame,
    access_unit::{AccessUnit, Role, begins_access_unit, begins_picture},
    anchors::{Anchor, Anchors},
    byte_stream::{START_CODE, find_start_code, trimmed},
    parameter_sets::SetsById,
    picture_times::{PictureTime, PictureTimes},
};
use crate::{codec::nal::NalSyntax, ts::event::PesUnit, units::ByteRange};
use bytes::Bytes;

/// Most bytes of a picture.
const MOST_BYTES: usize = 16 << 20;
/// Most pictures that begin in one PES packet.
const MOST_PICTURES: u32 = 256;
/// Most changes of the configuration in one PES packet.
const MOST_CHANGES: u32 = 4;
/// PES packets that must hold whole pictures before a picture is taken to end with its packet.
const ALIGNED: u32 = 8;
/// Longest PES packet of stated length that is taken to hold a whole picture: a longer one may have been cut because its
/// length field has 16 bits.
const LONGEST_WHOLE: usize = 60_000;

/// Assembler of one stream.
#[derive(Debug)]
pub(super) struct Pictures {
    syntax: NalSyntax,
    /// Bytes of the open NAL unit; before the first start code, the last two bytes.
    raw: Vec<u8>,
    /// Position of the first byte of `raw` in the stream.
    position: u64,
    /// Bytes of `raw` in which no start code begins.
    scanned: usize,
    /// Position of the open NAL unit's start code; `None` where none is open.
    open: Option<u64>,
    unit: AccessUnit,
    /// First field of a frame, which waits for the second one.
    first_field: Option<(AccessUnit, Option<Anchor>)>,
    sets: SetsById,
    anchors: Anchors,
    times: PictureTimes,
    /// PES packets so far that began with a picture; `None` after one that did not.
    aligned: Option<u32>,
    /// Pictures and configurations of the current PES packet.
    pictures: u32,
    changes: u32,
}

impl Pictures {
    pub(super) fn new(syntax: NalSyntax) -> Self {
        Self {
            syntax,
            raw: Vec::new(),
            position: 0,
            scanned: 0,
            open: None,
            unit: AccessUnit::default(),
            first_field: None,
            sets: SetsById::default(),
            anchors: Anchors::default(),
            times: PictureTimes::default(),
            aligned: Some(0),
            pictures: 0,
            changes: 0,
        }
    }

    /// Bytes of pictures that are being assembled.
    pub(super) fn held(&self) -> usize {
        let first = self.first_field.as_ref().map_or(0, |(field, _)| field.data.len());
        self.raw.len() + self.unit.data.len() + first
    }

    /// Never takes a picture to end with its PES packet.
    pub(super) fn wait_for_next(&mut self) {
        self.aligned = None;
    }

    /// Takes the next PES packet of the stream.
    pub(super) fn push(&mut self, unit: &PesUnit, out: &mut Vec<Framed>) {
        if unit.follows_loss {
            self.forget(out);
        }
        if self.unit.data.len() + self.raw.len() + unit.data.len() > MOST_BYTES {
            self.forget(out);
            self.position += unit.data.len() as u64;
            return out.push(Framed::Fault(FrameFault::TooLarge));
        }
        (self.pictures, self.changes) = (0, 0);
        if !unit.data.is_empty() {
            let is_aligned = begins_access_unit(self.syntax, &unit.data);
            self.aligned = self.aligned.filter(|_| is_aligned).map(|count| count.saturating_add(1));
        }
        self.anchors.push(self.position + self.raw.len() as u64, unit);
        self.raw.extend_from_slice(&unit.data);
        self.scan(out);
        if unit.is_broken {
            return self.forget(out);
        }
        let is_whole = unit.is_unbounded || unit.data.len() <= LONGEST_WHOLE;
        if is_whole && self.aligned.is_some_and(|count| count > ALIGNED) {
            self.end_picture(out);
        }
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, out: &mut Vec<Framed>) {
        self.end_picture(out);
        self.emit_first_field(out);
    }

    /// Drops the picture that is being assembled: bytes of it are missing.
    fn forget(&mut self, out: &mut Vec<Framed>) {
        if self.unit.has_slice || self.open.is_some() || self.first_field.take().is_some() {
            out.push(Framed::Fault(FrameFault::Incomplete));
        }
        self.first_field = None;
        self.position += self.raw.len() as u64;
        self.raw.clear();
        (self.scanned, self.open) = (0, None);
        self.unit = AccessUnit::default();
        self.anchors.clear();
        self.times.skip();
    }

    /// Takes the NAL units that end in `raw`: at the start code of the next one.
    fn scan(&mut self, out: &mut Vec<Framed>) {
        let mut raw = std::mem::take(&mut self.raw);
        let (mut begin, mut from) = (0, self.scanned);
        if self.open.is_none() && self.first_field.is_some() {
            let skipped = raw.get(..find_start_code(&raw, 0).unwrap_or(raw.len())).unwrap_or_default();
            // Garbage between two fields would become a part of their frame.
            if skipped.iter().any(|byte| *byte != 0) {
                self.emit_first_field(out);
            }
        }
        while let Some(code) = find_start_code(&raw, from) {
            if let Some(at) = self.open {
                self.nal(raw.get(begin..code).unwrap_or_default(), at, out);
            }
            self.open = Some(self.position + code as u64);
            begin = code + START_CODE;
            from = begin;
        }
        // The last two bytes may begin a start code.
        let searched = raw.len().saturating_sub(2).max(from);
        if self.open.is_none() {
            begin = searched;
        }
        raw.drain(..begin);
        self.raw = raw;
        self.position += begin as u64;
        self.scanned = searched - begin;
    }

    /// Ends the open NAL unit and the picture.
    fn end_picture(&mut self, out: &mut Vec<Framed>) {
        let raw = std::mem::take(&mut self.raw);
        if let Some(at) = self.open.take() {
            self.nal(&raw, at, out);
        }
        self.position += raw.len() as u64;
        self.scanned = 0;
        self.complete(out);
    }

    /// Takes a NAL unit whose start code is at `at`, with the zeros that may follow it.
    fn nal(&mut self, unit: &[u8], at: u64, out: &mut Vec<Framed>) {
        let unit = trimmed(unit);
        if unit.is_empty() {
            return;
        }
        let role = Role::of(self.syntax, unit);
        let begins = match role {
            Role::Delimiter => true,
            Role::Set(_) | Role::Prefix => self.unit.has_slice,
            Role::Slice => self.unit.has_slice && begins_picture(self.syntax, unit),
            Role::Suffix | Role::Filler => false,
        };
        if begins {
            self.complete(out);
        }
        self.unit.at.get_or_insert(at);
        match role {
            Role::Delimiter | Role::Filler => {}
            Role::Set(kind) => {
                if !self.sets.insert(self.syntax, kind, unit) {
                    out.push(Framed::Fault(FrameFault::TooLarge));
                }
            }
            Role::Slice | Role::Prefix | Role::Suffix => {
                if role == Role::Slice && !self.unit.has_slice && self.syntax == NalSyntax::Avc {
                    self.unit.field = self.sets.field(unit);
                }
                self.unit.append(self.syntax, role, unit, at);
            }
        }
    }

    /// Ends the access unit.
    fn complete(&mut self, out: &mut Vec<Framed>) {
        let unit = std::mem::take(&mut self.unit);
        let Some(at) = unit.at.filter(|_| unit.has_slice) else {
            // Nothing that is left out may stand between two fields: their frame is one stretch of the stream.
            if !unit.data.is_empty() {
                self.emit_first_field(out);
            }
            return;
        };
        let anchor = self.anchors.take(at);
        self.pictures += 1;
        if unit.lacks_start || self.pictures > MOST_PICTURES {
            self.emit_first_field(out);
            self.times.skip();
            let fault = if unit.lacks_start { FrameFault::Incomplete } else { FrameFault::TooLarge };
            return out.push(Framed::Fault(fault));
        }
        if let Some((mut first, anchor)) = self.first_field.take() {
            let is_second = matches!((first.field, unit.field), (Some(a), Some(b)) if a.is_completed_by(b));
            if is_second {
                first.join(&unit);
                return self.emit(first, anchor, out);
            }
            self.emit(first, anchor, out);
        }
        if unit.field.is_some() {
            self.first_field = Some((unit, anchor));
        } else {
            self.emit(unit, anchor, out);
        }
    }

    /// Ends the wait for a second field.
    fn emit_first_field(&mut self, out: &mut Vec<Framed>) {
        if let Some((unit, anchor)) = self.first_field.take() {
            self.emit(unit, anchor, out);
        }
    }

    fn emit(&mut self, unit: AccessUnit, anchor: Option<Anchor>, out: &mut Vec<Framed>) {
        if self.changes < MOST_CHANGES
            && let Some(configuration) = self.sets.changed(self.syntax)
        {
            self.changes += 1;
            out.push(Framed::Configuration(configuration));
        }
        let Some(PictureTime { pts, dts, is_estimated }) = self.times.next(anchor) else {
            return out.push(Framed::Fault(FrameFault::Untimed));
        };
        out.push(Framed::Frame(TsFrame {
            pts,
            dts,
            data: Bytes::from(unit.data),
            source: unit.source.unwrap_or(ByteRange::new(0, 0)),
            is_sync: unit.is_sync,
            is_estimated,
        }));
    }
}
