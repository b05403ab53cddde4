//! The addresses that one stream of RTP arrives at, with the same packets each (SMPTE ST 2022-7).

use super::senders::{Admission, Senders};
use std::{net::SocketAddr, time::Duration};

/// Silence of one leg, beside another that is heard, after which that is told.
const SILENCE: Duration = Duration::from_secs(5);
/// Silence of the present stream on all legs after which another one takes its place: longer than one leg is behind another.
const CHANGE: Duration = Duration::from_millis(500);
/// Silence of a leg after which nobody waits for its packets.
const AWAITED: Duration = Duration::from_secs(1);

/// The legs of a stream. Only the packets of one RTP source are taken of them.
#[derive(Debug)]
pub(super) struct Legs {
    legs: Vec<Leg>,
    /// RTP source of the stream, and the arrival of its last packet on any leg.
    source: Option<(u32, Duration)>,
}

#[derive(Debug, Default)]
struct Leg {
    senders: Senders,
    /// Arrival of the last packet of the stream.
    heard: Option<Duration>,
    /// Arrival of the last packet of another RTP source.
    other: Option<Duration>,
    told: Option<Turn>,
}

/// A change of the state of a leg, to be logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing arrives, while another leg has packets.
    Silent,
    /// Packets of another RTP source arrive.
    Other,
    /// Its packets arrive again.
    Heard,
}

/// Whether an RTP packet belongs to the stream, by its SSRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belongs {
    /// It is of the stream.
    Same,
    /// It is the first one of another stream of the same senders.
    Anew,
    /// It is of a stream that is not taken.
    No,
}

impl Legs {
    pub(super) fn new(count: usize) -> Self {
        Self { legs: (0..count.max(1)).map(|_| Leg::default()).collect(), source: None }
    }

    pub(super) fn are_several(&self) -> bool {
        self.legs.len() > 1
    }

    /// Decides on the sender of a datagram, as [`Senders::admit`] does. Another sender on one of several legs may have the same
    /// stream.
    pub(super) fn admit(&mut self, leg: usize, from: Option<SocketAddr>, is_stream: bool, now: Duration) -> Admission {
        match self.legs[leg].senders.admit(from, is_stream, now) {
            Admission::Anew if self.are_several() => Admission::Same,
            admission => admission,
        }
    }

    /// Decides on a packet by its RTP source. On a single leg another source takes its place at once.
    pub(super) fn take(&mut self, leg: usize, ssrc: u32, now: Duration) -> Belongs {
        let are_several = self.are_several();
        let leg = &mut self.legs[leg];
        let belongs = match self.source {
            None => Belongs::Same,
            Some((known, _)) if known == ssrc => Belongs::Same,
            Some((_, heard)) if are_several && now < heard + CHANGE => {
                leg.other = Some(now);
                return Belongs::No;
            }
            Some(_) => Belongs::Anew,
        };
        self.source = Some((ssrc, now));
        leg.heard = Some(now);
        belongs
    }

    /// Forgets the RTP source.
    pub(super) fn forget(&mut self) {
        self.source = None;
    }

    /// Whether packets that are missing may still arrive on another leg.
    pub(super) fn are_awaited(&self, now: Duration) -> bool {
        let heard = self.legs.iter().filter(|leg| leg.heard.is_some_and(|heard| now < heard + AWAITED));
        heard.count() > 1
    }

    /// Returns what is new of a leg.
    pub(super) fn turn(&mut self, leg: usize, now: Duration) -> Option<Turn> {
        if !self.are_several() {
            return None;
        }
        let is_recent = |heard: Option<Duration>| heard.is_some_and(|heard| now < heard + SILENCE);
        let first = self.legs.iter().filter_map(|leg| leg.heard).max()?;
        let leg = &mut self.legs[leg];
        let turn = if is_recent(leg.heard) {
            leg.told.map(|_| Turn::Heard)
        } else if is_recent(leg.other) {
            Some(Turn::Other)
        } else {
            // A leg that never was heard has had the time since the first packet of another.
            (is_recent(Some(first)) && now >= SILENCE).then_some(Turn::Silent)
        };
        if turn == leg.told {
            return None;
        }
        leg.told = turn.filter(|turn| *turn != Turn::Heard);
        turn
    }

    /// Returns the present sender of a leg, and one whose datagrams are dropped; once for each present sender.
    pub(super) fn stranger(&mut self, leg: usize) -> Option<(SocketAddr, SocketAddr)> {
        self.legs[leg].senders.stranger()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn one_stream_is_taken_until_it_is_silent() {
        let mut legs = Legs::new(2);
        assert_eq!(legs.take(0, 1, at(0)), Belongs::Same);
        assert_eq!(legs.take(1, 1, at(10)), Belongs::Same);
        // The faster leg has a new stream already.
        assert_eq!(legs.take(0, 2, at(20)), Belongs::No);
        assert_eq!(legs.take(1, 1, at(30)), Belongs::Same);
        assert_eq!(legs.take(0, 2, at(529)), Belongs::No);
        assert_eq!(legs.take(0, 2, at(530)), Belongs::Anew);
        assert_eq!(legs.take(1, 2, at(540)), Belongs::Same);
        let mut single = Legs::new(1);
        assert_eq!((single.take(0, 1, at(0)), single.take(0, 2, at(1))), (Belongs::Same, Belongs::Anew));
    }

    #[test]
    fn silence_of_one_leg_is_told_once() {
        let mut legs = Legs::new(2);
        for now in [0, 4_000, 8_000] {
            legs.take(0, 1, at(now));
        }
        assert!(!legs.are_awaited(at(8_000)));
        assert_eq!((legs.turn(0, at(8_000)), legs.turn(1, at(8_000))), (None, Some(Turn::Silent)));
        assert_eq!(legs.turn(1, at(8_100)), None);
        legs.take(1, 2, at(8_200));
        assert_eq!((legs.turn(1, at(8_200)), legs.turn(1, at(8_300))), (Some(Turn::Other), None));
        legs.take(1, 1, at(8_400));
        assert!(legs.are_awaited(at(8_400)));
        assert_eq!((legs.turn(1, at(8_400)), legs.turn(1, at(8_500))), (Some(Turn::Heard), None));
        // Where nothing arrives at all, no single leg is the reason.
        assert_eq!((legs.turn(0, at(20_000)), legs.turn(1, at(20_000))), (None, None));
    }
}
