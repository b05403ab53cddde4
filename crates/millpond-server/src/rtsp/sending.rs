//! What a session sends in a round.

use super::{
    batch::Batch,
    cut::PERIOD,
    record::End,
    track::{SentTrack, Sink},
    transmit::Stream,
    wire::Room,
};
use crate::metrics::StreamCounters;
use bytes::Bytes;
use millpond_graph::{Frame, Gone};
use millpond_rtp::{packet::HEADER, payload::Piece};
use std::{
    io::IoSlice,
    ops::Range,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Between two rounds.
pub(super) const ROUND: Duration = Duration::from_millis(5);
/// Between two sender reports of a track (RFC 3550 6.2: at least 5 s).
const REPORTS: Duration = Duration::from_secs(5);
/// A frame that goes out later than this is late.
pub(super) const LATE: Duration = Duration::from_millis(100);
/// From the last frame to the end of the source: who reads the report first would miss the frame.
const LINGER: Duration = Duration::from_millis(500);
/// Packets that go out at once of a frame; what is more goes out in the next rounds (microrounds, row A4). Small
/// receive buffers hold some 90 packets.
const BURST: usize = 16;
/// A frame goes out within so many rounds, 30 ms, however large: a receiver that buffers 52 ms (row A7) waits for none.
const ROUNDS: usize = 6;

/// Where packets go on their way, and what is counted.
pub(super) struct Outputs {
    pub(super) rtp: Batch,
    pub(super) rtcp: Batch,
    pub(super) counters: Arc<StreamCounters>,
    pieces: Vec<Piece>,
    heads: Vec<u8>,
    /// A packet that is being sealed.
    sealed: Vec<u8>,
}

impl Outputs {
    pub(super) fn new(counters: Arc<StreamCounters>) -> Self {
        Self {
            rtp: Batch::new(),
            rtcp: Batch::new(),
            counters,
            pieces: Vec::new(),
            heads: Vec::new(),
            sealed: Vec::new(),
        }
    }
}

/// A session on a thread that sends.
pub(super) struct Sending {
    pub(super) stream: Stream,
    /// When `position` was due; nothing before the first frames are there.
    began: Option<Instant>,
    reported: Option<Instant>,
    /// What was due last.
    pub(super) last: Duration,
    /// Packets of the next frame that went out already.
    sent: usize,
    supply: Supply,
    /// When its origin was last told that nothing comes.
    told: Option<Instant>,
    /// When the end is told, once all frames went out.
    ends: Option<Instant>,
}

/// Whether frames are loaded in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    Steady,
    /// Nothing was there to be sent.
    Empty,
    /// What came then is late; it has been counted.
    Behind,
}

/// What becomes of a session after a round.
pub(super) enum Next {
    At(Instant),
    Over,
}

impl Sending {
    pub(super) fn new(stream: Stream) -> Self {
        let last = stream.position;
        Self { stream, began: None, reported: None, last, sent: 0, supply: Supply::Steady, told: None, ends: None }
    }

    /// Sends what is due.
    pub(super) fn visit(&mut self, now: Instant, outputs: &mut Outputs) -> Next {
        if self.began.is_none() && matches!(self.stream.frames.peek(), Ok(None)) {
            // What comes late at the beginning is waited for, not caught up with.
            return Next::At(now + ROUND);
        }
        let began = *self.began.get_or_insert(now);
        let mut position = self.position(began, now);
        if self.reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORTS) {
            self.reported = Some(now);
            self.report(position, outputs, None);
        }
        let speed = self.stream.speed;
        loop {
            let Self { stream, last, sent, .. } = self;
            let frame = match stream.frames.peek() {
                Ok(Some(frame)) if frame.due >= stream.to => return self.end(position, now, outputs),
                Ok(Some(frame)) if frame.due <= position => frame,
                Ok(Some(frame)) => return Next::At(now + (frame.due - position).div_f64(speed)),
                Ok(None) => {
                    self.supply = Supply::Empty;
                    self.starve(position, now);
                    return Next::At(now + ROUND);
                }
                Err(Gone) => return self.end(position, now, outputs),
            };
            let track = stream.tracks.iter_mut().find(|track| track.track == usize::from(frame.track));
            // Numbers wrap.
            let ahead = |track: &SentTrack| frame.number.wrapping_sub(track.next) as i32;
            let Some(track) = track.filter(|track| ahead(track) >= 0) else {
                // It begins behind that.
                stream.frames.pass();
                continue;
            };
            if ahead(track) > 0 {
                // Some are missing: a channel's, of which this session took too few.
                track.skips = true;
            }
            *last = frame.due;
            let late = position - frame.due;
            match self.supply {
                Supply::Empty if late > LATE => {
                    self.supply = Supply::Behind;
                    outputs.counters.missed_deadlines.fetch_add(1, Ordering::Relaxed);
                    stream.progress.missed.fetch_add(1, Ordering::Relaxed);
                    // What follows is due later by as much.
                    let shift = stream.lateness.shift(late.div_f64(speed));
                    self.began = Some(began + shift);
                    position = position.saturating_sub(shift.mul_f64(speed));
                }
                Supply::Steady if late > LATE && *sent == 0 => {
                    outputs.counters.lagging_frames.fetch_add(1, Ordering::Relaxed);
                }
                _ if late <= LATE => self.supply = Supply::Steady,
                _ => {}
            }
            if let (Some(origin), 0) = (&stream.origin, *sent) {
                origin.count(late > LATE && self.supply != Supply::Steady);
            }
            if *sent == 0 && late > LATE {
                outputs.counters.late_frames.fetch_add(1, Ordering::Relaxed);
            }
            match outputs.frame(track, frame, sent) {
                Sent::Whole => {
                    track.next = frame.number.wrapping_add(1);
                    *sent = 0;
                    stream.frames.pass();
                }
                Sent::Part => return Next::At(now + ROUND),
                Sent::Stuck => {
                    stream.progress.is_stuck.store(true, Ordering::Relaxed);
                    stream.progress.record.ends(End::Stuck);
                    return Next::Over;
                }
            }
        }
    }

    /// Nothing is there to be sent: where something is overdue, its origin is told, as if a frame had come too late.
    fn starve(&mut self, position: Duration, now: Instant) {
        let is_new = self.told.is_none_or(|told| now.saturating_duration_since(told) >= LATE);
        if let Some(origin) = &self.stream.origin
            && is_new
            && position > self.last + PERIOD + LATE
        {
            self.told = Some(now);
            origin.count(true);
        }
    }

    /// What is due now.
    fn position(&self, began: Instant, now: Instant) -> Duration {
        self.stream.position + now.saturating_duration_since(began).mul_f64(self.stream.speed)
    }

    fn end(&mut self, position: Duration, now: Instant, outputs: &mut Outputs) -> Next {
        let end = *self.ends.get_or_insert(now + LINGER);
        if now < end {
            return Next::At(end);
        }
        self.report(position, outputs, Some("end of stream"));
        Next::Over
    }

    fn report(&mut self, position: Duration, outputs: &mut Outputs, ends: Option<&str>) {
        for track in &mut self.stream.tracks {
            let Some(bytes) = track.rtcp(position, ends) else { continue };
            match &track.sink {
                Sink::Udp { rtcp, .. } => outputs.rtcp.add_plain(*rtcp, &bytes),
                Sink::Tcp { wire, channels } => {
                    wire.send(|pending| interleave(pending, channels.1, &[&bytes]));
                }
            }
        }
    }

    /// When the next frame is due, else what was due last.
    pub(super) fn resumes_at(&mut self) -> Duration {
        self.stream.frames.peek().ok().flatten().map_or(self.last, |frame| frame.due)
    }
}

/// How much of a frame went out.
enum Sent {
    Whole,
    Part,
    /// The receiver doesn't read.
    Stuck,
}

impl Outputs {
    /// Sends the packets of a frame from number `sent` on.
    fn frame(&mut self, track: &mut SentTrack, frame: &Frame, sent: &mut usize) -> Sent {
        // Over a full connection frames are left out; then pictures up to the next that stands alone.
        let room = track.sink.room();
        track.skips = room != Room::Enough || (track.skips && !frame.is_sync);
        if room == Room::None {
            return Sent::Stuck;
        }
        if track.skips {
            self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
            return Sent::Whole;
        }
        if *sent == 0 && frame.is_sync {
            self.parameter_sets(track, frame);
        }
        self.pieces.clear();
        if track.packetizer.cut(&frame.data, track.room(), &mut self.pieces).is_err() {
            self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
            return Sent::Whole;
        }
        let all = self.pieces.len();
        let range = match &track.sink {
            Sink::Udp { .. } => *sent..all.min(*sent + BURST.max(all.div_ceil(ROUNDS))),
            Sink::Tcp { .. } => 0..all,
        };
        let end = range.end;
        let message = track.orientation.clone().filter(|_| frame.is_sync);
        let place = message.as_ref().and_then(|_| track.packetizer.first_slice(&frame.data, &self.pieces));
        match (message, place.filter(|place| range.contains(place))) {
            (Some(message), Some(place)) => {
                self.packets(track, &frame.data, frame.pts, range.start..place);
                self.message(track, &message, frame.pts);
                self.packets(track, &frame.data, frame.pts, place..end);
            }
            _ => self.packets(track, &frame.data, frame.pts, range),
        }
        if end < all {
            *sent = end;
            return Sent::Part;
        }
        self.counters.frames.fetch_add(1, Ordering::Relaxed);
        Sent::Whole
    }

    /// Sends the parameter sets of a key frame that comes without them: not all players keep those of the description, and
    /// who joins a group may never have asked for one.
    fn parameter_sets(&mut self, track: &mut SentTrack, frame: &Frame) {
        let Some(sets) = track.sets.clone().filter(|_| !track.packetizer.stands_alone(&frame.data)) else { return };
        self.pieces.clear();
        if track.packetizer.cut(&sets, track.room(), &mut self.pieces).is_ok() {
            // The access unit goes on.
            self.pieces.iter_mut().for_each(|piece| piece.marker = false);
            self.packets(track, &sets, frame.pts, 0..self.pieces.len());
        }
    }

    /// Sends a message about a picture between the pieces of its frame.
    fn message(&mut self, track: &mut SentTrack, message: &Bytes, pts: i64) {
        let pieces = std::mem::take(&mut self.pieces);
        if track.packetizer.cut(message, track.room(), &mut self.pieces).is_ok() {
            // The access unit goes on.
            self.pieces.iter_mut().for_each(|piece| piece.marker = false);
            self.packets(track, message, pts, 0..self.pieces.len());
        }
        self.pieces = pieces;
    }

    /// Sends some of the pieces that `data` was cut into.
    fn packets(&mut self, track: &mut SentTrack, data: &Bytes, pts: i64, range: Range<usize>) {
        let pieces = self.pieces.get(range).unwrap_or_default();
        let bytes: usize = pieces.iter().map(|piece| HEADER + piece.len()).sum();
        self.counters.packets.fetch_add(pieces.len() as u64, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if track.srtp.is_some() {
            for piece in pieces {
                self.sealed.clear();
                if track.seal(pts, piece, data, &mut self.sealed).is_err() {
                    self.counters.failed_sends.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                match &track.sink {
                    Sink::Udp { rtp, .. } => self.rtp.add_whole(*rtp, &self.sealed),
                    Sink::Tcp { wire, channels } => {
                        wire.send(|pending| interleave(pending, channels.0, &[&self.sealed]));
                    }
                }
            }
            return;
        }
        match track.sink.clone() {
            Sink::Udp { rtp, .. } => {
                self.rtp.hold(data);
                for piece in pieces {
                    let header = track.header(pts, piece.marker, piece.len());
                    self.rtp.add(rtp, &header, piece);
                }
            }
            Sink::Tcp { wire, channels } => {
                self.heads.clear();
                let heads = heads(track, pts, pieces, channels.0, &mut self.heads);
                let mut slices = slices(&self.heads, heads, pieces, data);
                wire.send_slices(&mut slices);
            }
        }
    }
}

/// What stands in front of each piece on a connection: channel, length, header (RFC 2326 10.12). Says where each lies.
fn heads(track: &mut SentTrack, pts: i64, pieces: &[Piece], channel: u8, heads: &mut Vec<u8>) -> Vec<Range<usize>> {
    let head = |piece: &Piece| {
        let from = heads.len();
        let header = track.header(pts, piece.marker, piece.len());
        let length = (HEADER + piece.len()) as u16;
        heads.extend_from_slice(&[b'$', channel]);
        heads.extend_from_slice(&length.to_be_bytes());
        heads.extend_from_slice(&header);
        heads.extend_from_slice(piece.head());
        from..heads.len()
    };
    pieces.iter().map(head).collect()
}

fn slices<'a>(heads: &'a [u8], ranges: Vec<Range<usize>>, pieces: &[Piece], frame: &'a Bytes) -> Vec<IoSlice<'a>> {
    let each = ranges.into_iter().zip(pieces);
    each.flat_map(|(head, piece)| [IoSlice::new(&heads[head]), IoSlice::new(&frame[piece.body.clone()])]).collect()
}

/// A packet on a channel (RFC 2326 10.12).
fn interleave(pending: &mut Vec<u8>, channel: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let Ok(length) = u16::try_from(length) else { return };
    pending.extend_from_slice(&[b'$', channel]);
    pending.extend_from_slice(&length.to_be_bytes());
    parts.iter().for_each(|part| pending.extend_from_slice(part));
}
