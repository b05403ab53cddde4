//! Frames into packets, and packets to their outlets.

use super::TrackSender;
use crate::{
    Counters, Frame,
    outlet::{Backlog, Datagrams, Packets},
};
use bytes::Bytes;
use millpond_rtp::{
    packet::HEADER,
    payload::{Packetizer, PayloadError, Piece},
};
use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// Makes packets, for all subscribers of a sending thread.
pub(super) struct Packetizing {
    pub(super) datagrams: Datagrams,
    pub(super) counters: Arc<Counters>,
    /// Bursts of an outlet that leave in one round: more than one in long rounds.
    bursts: usize,
    /// Pieces of the frame that was cut last: many subscribers get the same one.
    pieces: Vec<Piece>,
    /// That frame, how it was cut, and the bytes of a payload.
    cut: Option<(Bytes, Packetizer, usize)>,
    /// Pieces of what is sent before a frame.
    extra: Vec<Piece>,
    headers: Vec<[u8; HEADER]>,
    /// Time of the round.
    pub(super) now: Instant,
    /// A packet that is being encrypted.
    sealed: Vec<u8>,
}

/// Packets that were sent, and their bytes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) packets: usize,
    pub(super) bytes: usize,
}

/// How much of a frame was sent.
pub(super) enum Sent {
    Whole,
    Part,
    /// Nothing: the rate lets no packet leave before this moment.
    Later(Instant),
    /// Nothing: the receiver reads nothing.
    Stuck,
}

impl Packetizing {
    pub(super) fn new(counters: Arc<Counters>, bursts: usize, now: Instant) -> Self {
        let (pieces, extra, headers, sealed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { datagrams: Datagrams::new(), counters, bursts, pieces, cut: None, extra, headers, now, sealed }
    }

    /// Forgets the last frame, so that nothing keeps its memory.
    pub(super) fn forget(&mut self) {
        self.cut = None;
    }

    /// Cuts a frame into pieces, unless that was the last one.
    fn cut(&mut self, track: &TrackSender, frame: &Bytes) -> Result<(), PayloadError> {
        let (packetizer, size) = (track.packetizer, track.payload_size());
        let is_known = |(last, by, most): &(Bytes, Packetizer, usize)| {
            (last.as_ptr(), last.len(), *by, *most) == (frame.as_ptr(), frame.len(), packetizer, size)
        };
        if self.cut.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        self.cut = None;
        self.pieces.clear();
        packetizer.cut(frame, size, &mut self.pieces)?;
        self.cut = Some((frame.clone(), packetizer, size));
        Ok(())
    }

    /// Sends the packets of a frame from number `sent` on, up to `most`.
    pub(super) fn frame(&mut self, track: &mut TrackSender, frame: &Frame, sent: &mut usize, most: usize) -> Sent {
        // Frames for a receiver that is behind are dropped, then pictures up to the next one that can be decoded by itself.
        let backlog = track.outlet.backlog();
        track.skips = backlog > Backlog::Medium || (track.skips && !frame.is_sync);
        if backlog == Backlog::Stuck {
            return Sent::Stuck;
        }
        if track.skips || (*sent == 0 && track.is_out_of_order(frame)) {
            self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
            return Sent::Whole;
        }
        if *sent == 0 && frame.is_sync {
            self.parameter_sets(track, frame);
        }
        if self.cut(track, &frame.data).is_err() {
            self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
            return Sent::Whole;
        }
        let all = self.pieces.len();
        let burst = track.outlet.burst(all).saturating_mul(self.bursts).min(most);
        let range = *sent..all.min(sent.saturating_add(burst));
        let end = range.end;
        let message = track.orientation.clone().filter(|_| frame.is_sync);
        let slice = message.as_ref().and_then(|_| track.packetizer.first_slice(&frame.data, &self.pieces));
        match (message, slice.filter(|slice| range.contains(slice))) {
            (Some(message), Some(slice)) => {
                self.send(track, &frame.data, frame.pts, range.start..slice);
                self.part(track, &message, frame.pts);
                self.send(track, &frame.data, frame.pts, slice..end);
            }
            _ => self.send(track, &frame.data, frame.pts, range),
        }
        if end < all {
            *sent = end;
            return Sent::Part;
        }
        self.counters.frames.fetch_add(1, Ordering::Relaxed);
        Sent::Whole
    }

    /// Sends the parameter sets of a key frame that has none. Not all players keep the description's sets, and a receiver of a
    /// multicast group may never have requested a description.
    fn parameter_sets(&mut self, track: &mut TrackSender, frame: &Frame) {
        let Some(sets) = track.sets.clone().filter(|_| !track.packetizer.stands_alone(&frame.data)) else { return };
        self.part(track, &sets, frame.pts);
    }

    /// Sends NAL units that are a part of an access unit, but not its end.
    fn part(&mut self, track: &mut TrackSender, data: &Bytes, pts: i64) {
        let mut pieces = std::mem::take(&mut self.extra);
        pieces.clear();
        if track.packetizer.cut(data, track.payload_size(), &mut pieces).is_ok() {
            pieces.iter_mut().for_each(|piece| piece.marker = false);
            self.send_pieces(track, data, pts, &pieces);
        }
        self.extra = pieces;
    }

    /// Sends packets of a track again that its receiver asks for, `most` at most. Those that can't be sent again are counted. Returns
    /// what was sent.
    pub(super) fn repeat(&mut self, track: &mut TrackSender, asked: impl Iterator<Item = u16>, most: usize) -> Volume {
        let TrackSender { history, outlet, .. } = track;
        let mut all = Volume::default();
        for sequence in asked {
            self.sealed.clear();
            let mut history = history.as_mut().filter(|_| all.packets < most);
            let is_sent = history.as_mut().is_some_and(|history| history.repeat(sequence, self.now, &mut self.sealed));
            if is_sent {
                outlet.send_again(&mut self.datagrams, &self.sealed);
                all.packets += 1;
                all.bytes += self.sealed.len();
            }
            let count = if is_sent { &self.counters.repeated_packets } else { &self.counters.refused_repeats };
            count.fetch_add(1, Ordering::Relaxed);
        }
        all
    }

    /// Sends some of the pieces that `data` was cut into.
    fn send(&mut self, track: &mut TrackSender, data: &Bytes, pts: i64, range: Range<usize>) {
        let pieces = std::mem::take(&mut self.pieces);
        self.send_pieces(track, data, pts, pieces.get(range).unwrap_or_default());
        self.pieces = pieces;
    }

    fn send_pieces(&mut self, track: &mut TrackSender, data: &Bytes, pts: i64, pieces: &[Piece]) {
        let Self { datagrams, counters, headers, now, sealed, .. } = self;
        let bytes: usize = pieces.iter().map(|piece| HEADER + piece.len()).sum();
        counters.packets.fetch_add(pieces.len() as u64, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if track.protection.is_some() {
            for piece in pieces {
                let header = track.header(pts, piece.marker, piece.len());
                if let Some(history) = &mut track.history {
                    history.push(header, piece, data, *now);
                }
                sealed.clear();
                match track.seal(header, piece, data, sealed) {
                    Ok(()) => track.outlet.send_whole(datagrams, sealed),
                    Err(_) => _ = counters.failed_sends.fetch_add(1, Ordering::Relaxed),
                }
            }
            return;
        }
        headers.clear();
        for piece in pieces {
            let header = track.header(pts, piece.marker, piece.len());
            headers.push(header.to_bytes());
            if let Some(history) = &mut track.history {
                history.push(header, piece, data, *now);
            }
        }
        track.outlet.send(datagrams, &Packets { headers, pieces, frame: data });
    }
}
