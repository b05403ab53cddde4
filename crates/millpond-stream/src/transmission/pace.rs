//! The pace of one subscriber: which packets TCP-friendly rate control lets leave (RFC 5348).

#[cfg(not(feature = "tfrc"))]
use super::no_rate_control::RateControl;
use super::{
    TrackSender,
    packets::{Packetizing, Sent, Volume},
};
use crate::{Counters, Frame};
#[cfg(feature = "tfrc")]
use millpond_rtp::tfrc::RateControl;
use millpond_rtp::{feedback::GenericNack, packet::HEADER, rtcp::ReportBlock};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Time that a frame may wait to be sent. Pictures that are later are dropped up to the next one that can be decoded by itself.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same for key frames and sound.
const SYNC_PATIENCE: Duration = PATIENCE.saturating_mul(2);
/// The same for pictures that no other picture refers to.
const DISPOSABLE_PATIENCE: Duration = Duration::from_millis(250);

/// Rule for the rate of RTP over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateRule {
    /// Frames leave when they are due.
    #[default]
    Off,
    /// TCP-friendly rate control.
    Tfrc,
}

impl RateRule {
    /// All rules, in the order of their names.
    const EACH: [Self; 2] = [Self::Off, Self::Tfrc];
    /// Names of the rules.
    pub const NAMES: [&'static str; 2] = ["off", "tfrc"];

    /// Finds a rule by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|rule| rule.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The pace of a new subscriber. `clock` is the moment from which the engine's clock counts.
    #[cfg(feature = "tfrc")]
    pub(crate) fn pace(self, clock: Instant) -> Option<Box<Pace>> {
        let new = || Pace { control: RateControl::new(clock.elapsed()), clock, is_held: false };
        (self == Self::Tfrc).then(|| Box::new(new()))
    }

    /// No pace: the engine was built without the feature `tfrc`.
    #[cfg(not(feature = "tfrc"))]
    pub(crate) fn pace(self, _: Instant) -> Option<Box<Pace>> {
        None
    }
}

/// The pace of one subscriber: rate control, on the engine's clock.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    control: RateControl,
    clock: Instant,
    /// Whether the rate has held a frame back since the last frame in time.
    is_held: bool,
}

/// What may leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// This number of packets, above 0.
    Packets(usize),
    /// Nothing before this moment.
    At(Instant),
}

impl Pace {
    /// What may leave now. The subscriber's receiver was `heard` at this time of the engine's clock, in milliseconds.
    pub(super) fn turn(&mut self, heard: u64, now: Instant) -> Turn {
        let at = self.at(now);
        self.control.refresh(Duration::from_millis(heard), at);
        match self.control.packets() {
            0 => {
                self.limited(now);
                Turn::At(now + self.control.wait().min(SYNC_PATIENCE))
            }
            packets => Turn::Packets(packets),
        }
    }

    /// Notes that the rate holds packets back.
    fn limited(&mut self, now: Instant) {
        self.is_held = true;
        self.control.limited(self.at(now));
    }

    /// Whether the rate has held back a frame that is `late`. Frames that are in time end that.
    pub(super) fn holds(&mut self, late: Duration, in_time: Duration) -> bool {
        self.is_held &= late > in_time;
        self.is_held
    }

    /// Notes packets of a source that were sent. `sequence` is the number of the first one.
    pub(super) fn sent(&mut self, ssrc: u32, sequence: u16, sent: Volume, now: Instant) {
        self.control.sent(ssrc, sequence, sent.packets, sent.bytes, self.at(now));
    }

    /// Number of packets that may be sent again now.
    pub(super) fn repeats(&self) -> usize {
        self.control.repeats()
    }

    /// Notes packets that were sent again.
    pub(super) fn repeated(&mut self, sent: Volume) {
        self.control.repeated(sent.packets, sent.bytes);
    }

    /// Notes a sender report. `ntp` has the middle 32 bits of its time.
    pub(super) fn reported(&mut self, ssrc: u32, ntp: u32, now: Instant) {
        self.control.reported(ssrc, ntp, self.at(now));
    }

    /// Takes a report of the receiver.
    pub(super) fn report(&mut self, report: &ReportBlock, now: Instant, counters: &Counters) {
        let known = self.control.loss_events();
        self.control.report(report, self.at(now));
        counters.loss_events.fetch_add(self.control.loss_events() - known, Ordering::Relaxed);
    }

    /// Takes a request of the receiver for lost packets.
    pub(super) fn miss(&mut self, nack: &GenericNack, now: Instant, counters: &Counters) {
        let known = self.control.loss_events();
        self.control.missing(nack.source, nack.sequences(), self.at(now));
        counters.loss_events.fetch_add(self.control.loss_events() - known, Ordering::Relaxed);
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.clock)
    }
}

impl Packetizing {
    /// Sends packets of a frame from number `sent` on, as far as a pace lets them leave. The receiver was `heard` at this time of
    /// the engine's clock, in milliseconds.
    pub(super) fn paced(
        &mut self,
        track: &mut TrackSender,
        frame: &Frame,
        sent: &mut usize,
        pace: Option<&mut Pace>,
        heard: u64,
        now: Instant,
    ) -> Sent {
        let is_skipped = track.skips && !frame.is_sync;
        let Some(pace) = pace.filter(|_| !is_skipped) else { return self.frame(track, frame, sent, usize::MAX) };
        let most = match pace.turn(heard, now) {
            Turn::Packets(most) => most,
            Turn::At(at) => return Sent::Later(at),
        };
        let (sequence, known, octets) = (track.sequence, track.packets, track.octets);
        let result = self.frame(track, frame, sent, most);
        let packets = (track.packets - known) as usize;
        let bytes = (track.octets - octets) as usize + HEADER * packets;
        pace.sent(track.ssrc, sequence, Volume { packets, bytes }, now);
        if matches!(result, Sent::Part) && packets >= most {
            pace.limited(now);
        }
        result
    }
}

/// Whether a frame that is `late` is dropped, so that those after it are in time. Pictures after it that need it follow it.
pub(super) fn drops(frame: &Frame, track: &mut TrackSender, late: Duration) -> bool {
    let patience = match (frame.is_sync, frame.importance.is_disposable()) {
        (true, _) => SYNC_PATIENCE,
        (false, true) => DISPOSABLE_PATIENCE,
        (false, false) => PATIENCE,
    };
    let is_too_late = late > patience;
    track.skips |= is_too_late && !frame.importance.is_disposable();
    is_too_late || (track.skips && !frame.is_sync)
}
