//! The media of one session: its tracks, and what happens to them as a whole. Pure: packets and times in, events out.
//!
//! All times are those since the run began.

use super::{
    figures::MediaFigures,
    schedule::{Schedule, Timing},
};
use millpond_rtp::{
    reception::{Arrival, SourceStatistics},
    rtcp::{self, RtcpItem},
    tfrc::Receiver,
};
use std::time::Duration;

/// Name of the receivers in their reports (CNAME).
const NAME: &str = "millpond-load";
/// Bytes of an RTP header that matter here.
pub(crate) const HEAD: usize = 12;

/// An event for the task that plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet after a PLAY arrived at this time.
    First(Duration),
    /// Every track said that it ended (RTCP BYE).
    Ended,
    /// No packet arrived for long. With the time of the last one since the PLAY, if any.
    Silent(Option<Duration>),
}

/// The tracks of a session.
#[derive(Debug)]
pub(crate) struct Media {
    tracks: Vec<Track>,
    /// How long the first packet may take, and any other one behind the last.
    patience: (Duration, Duration),
    state: State,
    /// When the last PLAY was sent.
    since: Duration,
    /// Of what plays now.
    first: Option<Duration>,
    last: Option<Duration>,
    event: Option<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No packets are expected.
    Idle,
    /// Packets are expected.
    Playing,
    /// It was told already that it ended or fell silent.
    Over,
}

/// Reports as feedback of rate control: their interval, and what finds loss events, after which one is sent at once.
#[derive(Debug)]
struct Feedback {
    interval: Duration,
    receiver: Receiver,
}

#[derive(Debug)]
struct Track {
    clock_rate: u32,
    ssrc: Option<u32>,
    source: SourceStatistics,
    schedule: Schedule,
    /// How far the latest packet was behind the schedule.
    most_behind: Duration,
    /// Packets from this time on are of another PLAY.
    anew: Option<Duration>,
    ended: bool,
    /// `None` where reports leave every few seconds.
    feedback: Option<Feedback>,
}

impl Media {
    /// Tracks by the clock rates of their timestamps. `patience` is how long the first packet may take, and any other
    /// one behind the last; `reports` the interval
    /// of reports that are feedback of rate control.
    pub(crate) fn new(clock_rates: &[u32], patience: (Duration, Duration), reports: Option<Duration>) -> Self {
        let tracks = clock_rates.iter().map(|rate| Track::new(*rate, reports)).collect();
        Self { tracks, patience, state: State::Idle, since: Duration::ZERO, first: None, last: None, event: None }
    }

    /// PLAY is being sent: packets from now on have a schedule of their own.
    pub(crate) fn play(&mut self, now: Duration) {
        (self.state, self.since) = (State::Playing, now);
        (self.first, self.last, self.event) = (None, None, None);
        for track in &mut self.tracks {
            track.anew = Some(now);
            track.ended = false;
        }
    }

    /// PAUSE was answered: silence is no wonder.
    pub(crate) fn pause(&mut self) {
        self.state = State::Idle;
        self.event = None;
    }

    /// The first bytes of an RTP packet, [`HEAD`] or more, and the length of the whole.
    pub(crate) fn rtp(
        &mut self,
        track: usize,
        head: &[u8],
        length: usize,
        arrival: Duration,
        figures: &mut MediaFigures,
    ) {
        let Some(track) = self.tracks.get_mut(track) else { return };
        let [flags, _, high, low, t0, t1, t2, t3, s0, s1, s2, s3, ..] = *head else {
            return figures.packet(Arrival::Refused, Timing::default(), length);
        };
        if flags >> 6 != 2 {
            return figures.packet(Arrival::Refused, Timing::default(), length);
        }
        let (sequence, timestamp) = (u16::from_be_bytes([high, low]), u32::from_be_bytes([t0, t1, t2, t3]));
        let is_new = track.packet(u32::from_be_bytes([s0, s1, s2, s3]), sequence, timestamp, length, arrival, figures);
        if self.state == State::Playing && arrival >= self.since {
            if is_new && self.first.is_none() {
                self.first = Some(arrival);
                self.event = Some(Event::First(arrival));
            }
            self.last = self.last.max(Some(arrival));
        }
    }

    /// An RTCP packet of a track.
    pub(crate) fn rtcp(&mut self, track: usize, bytes: &[u8], arrival: Duration) {
        // What can't be read says nothing; it is no media.
        let Ok(reports) = rtcp::parse(bytes) else { return };
        let Some(track) = self.tracks.get_mut(track) else { return };
        if self.state != State::Playing || arrival < self.since {
            return;
        }
        for report in &reports {
            match report {
                RtcpItem::Sender(report) => track.source.sender_report(report, arrival),
                RtcpItem::Bye(_) => track.ended = true,
                RtcpItem::Reception(_) | RtcpItem::Nack(_) | RtcpItem::KeyFrame => {}
            }
        }
        if self.tracks.iter().all(|track| track.ended) {
            self.state = State::Over;
            // An event that was not taken yet is of no use any more, but for the first packet.
            self.event = self.event.or(Some(Event::Ended));
        }
    }

    /// To be called each second or so: whether packets stopped coming.
    pub(crate) fn check(&mut self, now: Duration) {
        if self.state != State::Playing {
            return;
        }
        let (last, patience) = match self.last {
            Some(last) => (last, self.patience.1),
            None => (self.since, self.patience.0),
        };
        if now.saturating_sub(last) > patience {
            self.state = State::Over;
            self.event = Some(Event::Silent(self.last));
        }
    }

    /// Returns what happened, once; with the time of the PLAY that it is about.
    pub(crate) fn event(&mut self) -> Option<(Duration, Event)> {
        let event = self.event.take()?;
        // Both within one look: the end is told after the first packet.
        if matches!(event, Event::First(_)) && self.state == State::Over {
            self.event = Some(Event::Ended);
        }
        Some((self.since, event))
    }

    /// Whether a report is due as feedback.
    pub(crate) fn is_feedback_due(&mut self, track: usize, now: Duration) -> bool {
        let feedback = self.tracks.get_mut(track).and_then(|track| track.feedback.as_mut());
        let Some(Feedback { receiver, .. }) = feedback else { return false };
        let is_due = receiver.feedback_at().is_some_and(|at| at <= now);
        if is_due {
            receiver.feedback(now);
        }
        is_due
    }

    /// A receiver report for a track, where there is something to report.
    pub(crate) fn report(&mut self, track: usize, now: Duration) -> Option<Vec<u8>> {
        let track = self.tracks.get_mut(track)?;
        let ssrc = track.ssrc?;
        Some(rtcp::receiver_report(ssrc.wrapping_add(1), &[track.source.report(ssrc, now)], NAME))
    }

    /// The last thing: notes what is known of each track at its end.
    pub(crate) fn finish(&mut self, figures: &mut MediaFigures) {
        for track in &mut self.tracks {
            track.finish(figures);
        }
        self.tracks.clear();
        self.state = State::Over;
        self.event = None;
    }
}

impl Track {
    fn new(clock_rate: u32, reports: Option<Duration>) -> Self {
        Self {
            clock_rate,
            feedback: reports.map(|interval| Feedback { interval, receiver: Receiver::default() }),
            ssrc: None,
            source: SourceStatistics::announced(clock_rate),
            schedule: Schedule::new(clock_rate),
            most_behind: Duration::ZERO,
            anew: None,
            ended: false,
        }
    }

    /// Counts a packet; says whether it is one of what plays now.
    fn packet(
        &mut self,
        ssrc: u32,
        sequence: u16,
        timestamp: u32,
        length: usize,
        arrival: Duration,
        figures: &mut MediaFigures,
    ) -> bool {
        if self.anew.is_some_and(|since| arrival >= since) || self.ssrc.is_some_and(|known| known != ssrc) {
            self.finish(figures);
            *self = Self::new(self.clock_rate, self.feedback.as_ref().map(|feedback| feedback.interval));
        }
        self.ssrc = Some(ssrc);
        let place = self.source.packet(sequence, timestamp, arrival);
        if let (Some(Feedback { interval, receiver }), Arrival::Next { .. }) = (&mut self.feedback, place) {
            // A receiver of RTP does not know the round trip: the interval stands for it.
            if receiver.packet(self.source.highest().into(), length, *interval, arrival) {
                receiver.hasten(arrival);
            }
        }
        let timing = match place {
            Arrival::Next { .. } => self.schedule.next(timestamp, arrival),
            Arrival::Restart => {
                self.schedule = Schedule::new(self.clock_rate);
                self.schedule.next(timestamp, arrival)
            }
            Arrival::Late | Arrival::Duplicate => {
                Timing { behind: self.schedule.behind(timestamp, arrival), since_frame: None }
            }
            Arrival::Refused => Timing::default(),
        };
        figures.packet(place, timing, length);
        self.most_behind = self.most_behind.max(timing.behind);
        self.anew.is_none()
    }

    fn finish(&mut self, figures: &mut MediaFigures) {
        if self.source.received() > 1 {
            figures.jitter.record(self.source.jitter());
            figures.buffer.record(self.most_behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{packet::Header, rtcp::SenderReport};

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    struct Play {
        media: Media,
        figures: MediaFigures,
    }

    impl Play {
        fn new(tracks: usize) -> Self {
            Self {
                media: Media::new(&vec![90_000; tracks], (millis(10_000), millis(4_000)), None),
                figures: MediaFigures::default(),
            }
        }

        fn packet(&mut self, track: usize, sequence: u16, timestamp: u32, at: u64) -> Option<Event> {
            let header = Header { sequence, timestamp, ssrc: 7, ..Header::default() };
            self.media.rtp(track, &header.to_bytes(), 1000, millis(at), &mut self.figures);
            self.event()
        }

        fn event(&mut self) -> Option<Event> {
            self.media.event().map(|(_, event)| event)
        }

        fn bye(&mut self, track: usize, at: u64) -> Option<Event> {
            let last = SenderReport { ssrc: 7, ntp: 0, timestamp: 0, packets: 0, octets: 0 };
            self.media.rtcp(track, &rtcp::bye(&last, "a", ""), millis(at));
            self.event()
        }

        fn check(&mut self, at: u64) -> Option<Event> {
            self.media.check(millis(at));
            self.event()
        }
    }

    #[test]
    fn the_first_packet_and_the_end_are_told_once() {
        let mut play = Play::new(2);
        play.media.play(millis(10));
        assert_eq!(play.packet(0, 5, 0, 20), Some(Event::First(millis(20))));
        assert_eq!(play.packet(1, 9, 0, 25), None);
        assert_eq!((play.bye(0, 30), play.bye(1, 31)), (None, Some(Event::Ended)));
        assert_eq!((play.bye(1, 32), play.check(60_000)), (None, None));
    }

    #[test]
    fn silence_is_told_but_not_in_a_pause() {
        let mut play = Play::new(1);
        play.media.play(millis(0));
        assert_eq!(play.check(10_000), None);
        assert_eq!(play.check(10_001), Some(Event::Silent(None)));
        let mut play = Play::new(1);
        play.media.play(millis(0));
        play.packet(0, 5, 0, 100);
        assert_eq!((play.check(4_100), play.check(4_101)), (None, Some(Event::Silent(Some(millis(100))))));
        let mut play = Play::new(1);
        play.media.play(millis(0));
        play.packet(0, 5, 0, 100);
        play.media.pause();
        assert_eq!(play.check(60_000), None);
    }

    #[test]
    fn each_play_has_a_schedule_of_its_own() {
        let mut play = Play::new(1);
        play.media.play(millis(0));
        play.packet(0, 5, 0, 100);
        play.packet(0, 6, 3600, 140);
        play.media.pause();
        play.media.play(millis(5_000));
        // One that was on its way before does not count as the first.
        assert_eq!(play.packet(0, 7, 7200, 4_999), None);
        assert_eq!(play.packet(0, 90, 900_000, 5_100), Some(Event::First(millis(5_100))));
        play.packet(0, 91, 903_600, 5_140);
        assert_eq!((play.figures.counts.late, play.figures.counts.lost), (1, 0), "only the one before");
        assert_eq!(play.bye(0, 4_000), None, "of what played before");
        play.media.finish(&mut play.figures);
        assert_eq!(play.figures.jitter.count(), 2);
        assert_eq!((play.figures.buffer.count(), play.figures.buffer.max()), (2, millis(4_819)), "of the one before");
    }

    #[test]
    fn what_is_no_rtp_is_counted_apart() {
        let mut play = Play::new(1);
        play.media.play(millis(0));
        play.media.rtp(0, &[0x80; 5], 5, millis(1), &mut play.figures);
        play.media.rtp(0, &[0; 12], 12, millis(1), &mut play.figures);
        play.media.rtp(3, &[0x80; 12], 12, millis(1), &mut play.figures);
        assert_eq!((play.figures.counts.foreign, play.media.event()), (2, None));
        play.media.rtcp(0, &[1, 2, 3], millis(1));
        assert_eq!(play.media.report(0, millis(2)), None, "nothing to report");
    }

    #[test]
    fn feedback_is_due_once_in_an_interval_and_after_a_loss() {
        let mut media = Media::new(&[90_000], (millis(10_000), millis(4_000)), Some(millis(100)));
        let mut figures = MediaFigures::default();
        media.play(millis(0));
        let mut due = Vec::new();
        for at in 1..500_u16 {
            let header = Header { sequence: at + u16::from(at > 350), ssrc: 7, ..Header::default() };
            media.rtp(0, &header.to_bytes(), 1000, millis(at.into()), &mut figures);
            if media.is_feedback_due(0, millis(at.into())) {
                due.push(at);
            }
        }
        assert_eq!(due.len(), 6, "{due:?}");
        assert!(due.contains(&353), "three packets after the loss: {due:?}");
    }

    #[test]
    fn reports_say_what_came() {
        let mut play = Play::new(1);
        play.media.play(millis(0));
        play.packet(0, 5, 0, 100);
        play.packet(0, 7, 3600, 140);
        let bytes = play.media.report(0, millis(200)).unwrap();
        let reports = rtcp::parse(&bytes).unwrap();
        let Some(RtcpItem::Reception(reception)) = reports.first() else { panic!("{reports:?}") };
        assert_eq!((reception.ssrc, reception.lost, reception.highest), (7, 1, 7));
    }
}
