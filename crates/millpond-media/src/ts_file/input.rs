//! The stream that a track is read from: its PES packets become frames, and the places of both in the file are noted.

use crate::{
    codec::StreamForm,
    movie::extraction::{ExtractedStream, ExtractedStreamBuilder, FramePlace, PacketForm, UnitPlace},
    ts::{Framed, Framer, PesUnit, StreamCoding, TsStream},
    units::ByteRange,
};

/// A stream that is being read.
#[derive(Debug)]
pub(super) struct Input {
    pid: u16,
    coding: StreamCoding,
    form: StreamForm,
    packets: PacketForm,
    framer: Framer,
    framed: Vec<Framed>,
    /// Bytes of the elementary stream so far.
    position: u64,
    source: ExtractedStreamBuilder,
}

impl Input {
    /// Begins to read a stream; `None` if its frames can't be read.
    pub(super) fn new(stream: TsStream, packets: PacketForm) -> Option<Self> {
        let TsStream { pid, coding, .. } = stream;
        Some(Self {
            pid,
            coding,
            form: coding.form()?,
            packets,
            framer: Framer::new(coding)?.for_files(),
            framed: Vec::new(),
            position: 0,
            source: ExtractedStreamBuilder::default(),
        })
    }

    pub(super) fn pid(&self) -> u16 {
        self.pid
    }

    pub(super) fn coding(&self) -> StreamCoding {
        self.coding
    }

    /// Form of the packets in the file.
    pub(super) fn packets(&self) -> PacketForm {
        self.packets
    }

    /// Takes the next PES packet. Returns the frames that it completes, in a list that [`take_back`](Self::take_back) takes again.
    pub(super) fn push(&mut self, unit: &PesUnit) -> Vec<Framed> {
        if !unit.data.is_empty() {
            let packets = ByteRange::new(unit.first_packet, unit.last_packet.saturating_add(self.packets.stride()));
            let payload = ByteRange::at(self.position, unit.data.len() as u64);
            self.source.push_unit(UnitPlace { packets, payload });
            self.position = payload.end;
        }
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.push(unit, &mut framed);
        framed
    }

    /// Takes back an empty list, whose memory the next frames use.
    pub(super) fn take_back(&mut self, framed: Vec<Framed>) {
        self.framed = framed;
    }

    /// Returns the last frames.
    pub(super) fn end(&mut self) -> Vec<Framed> {
        let mut framed = Vec::new();
        self.framer.finish(&mut framed);
        framed
    }

    /// Notes the place of a frame.
    pub(super) fn push_frame(&mut self, frame: FramePlace) {
        self.source.push_frame(frame);
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.framer.held() + self.source.heap_bytes()
    }

    /// Returns the places of its packets and frames so far.
    pub(super) fn so_far(&self) -> ExtractedStream {
        self.source.clone().finish(self.pid, self.form)
    }

    /// Returns the places of its packets and frames.
    pub(super) fn finish(self) -> ExtractedStream {
        self.source.finish(self.pid, self.form)
    }
}
