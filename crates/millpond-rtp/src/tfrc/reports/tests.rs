use super::*;

const MS: Duration = Duration::from_millis(1);
const SIZE: f64 = 1000.0;

/// A flow of 1000 packets a second, and a receiver that knows which ones it lost.
struct Flow {
    reader: ReportReader,
    base: u16,
    sent: u64,
    lost: Vec<u64>,
}

impl Flow {
    fn new(base: u16) -> Self {
        Self { reader: ReportReader::default(), base, sent: 0, lost: Vec::new() }
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let sequence = self.base.wrapping_add(self.sent as u16);
            self.reader.sent(7, sequence, 1, 1000, self.now());
            self.sent += 1;
        }
    }

    fn now(&self) -> Duration {
        MS * self.sent as u32
    }

    fn block(&self) -> ReportBlock {
        let highest = self.base.wrapping_add(self.sent.wrapping_sub(1) as u16);
        ReportBlock {
            ssrc: 7,
            fraction_lost: 0,
            lost: self.lost.iter().filter(|number| **number < self.sent).count() as i32,
            highest: highest.into(),
            jitter: 0,
            last_report: 0,
            delay: 0,
        }
    }

    fn report(&mut self) -> Option<Feedback> {
        self.reader.report(&self.block(), SIZE, self.now())
    }
}

#[test]
fn reports_once_in_a_round_trip_give_what_a_receiver_tells() {
    let mut flow = Flow::new(65_000);
    // One of 200 packets, and a burst in every fifth of those places.
    flow.lost = (1..100).flat_map(|event| 200 * event..200 * event + if event % 5 == 0 { 10 } else { 1 }).collect();
    flow.reader.round_trip = Some(50 * MS);
    let mut last = None;
    for _ in 0..300 {
        flow.send(50);
        last = flow.report();
    }
    let Feedback { loss_event_rate, receive_rate, covers, round_trip, .. } = last.unwrap();
    let receive_rate = receive_rate.unwrap();
    assert!((loss_event_rate * 200.0 - 1.0).abs() < 0.15, "{loss_event_rate}");
    assert!((receive_rate / 1e6 - 1.0).abs() < 0.05, "{receive_rate}");
    assert_eq!((covers, round_trip), (flow.now() - MS, None));
    assert_eq!(flow.reader.loss_events(), 74);
}

#[test]
fn rare_reports_take_losses_to_be_spread() {
    let mut flow = Flow::new(0);
    flow.reader.round_trip = Some(50 * MS);
    flow.lost = (1..100).flat_map(|event| 500 * event..500 * event + 3).collect();
    let mut last = None;
    for _ in 0..8 {
        flow.send(5000);
        last = flow.report();
    }
    let rate = last.unwrap().loss_event_rate;
    // 0.6 % of the packets are lost, in events of a rate of 0.2 %.
    assert!((rate / 0.006 - 1.0).abs() < 0.1, "{rate}");
}

#[test]
fn missing_packets_are_events_at_once_and_count_once() {
    let mut flow = Flow::new(10);
    flow.reader.round_trip = Some(50 * MS);
    flow.send(1000);
    assert!(flow.report().is_some_and(|feedback| feedback.loss_event_rate == 0.0));
    flow.send(500);
    flow.lost = vec![1200, 1201, 1400];
    let missing = |flow: &mut Flow, numbers: &[u16]| {
        flow.reader.missing(7, numbers.iter().map(|number| number + 10), SIZE).is_some()
    };
    assert!(missing(&mut flow, &[1200, 1201]));
    assert!(!missing(&mut flow, &[1200, 1201]), "asked for again");
    assert!(missing(&mut flow, &[1400]));
    assert!(!missing(&mut flow, &[2000, 60_000]), "never sent");
    assert_eq!(flow.reader.loss_events(), 2);
    assert!(flow.report().is_some());
    assert_eq!(flow.reader.loss_events(), 2, "the report has them too");
}

#[test]
fn round_trips_are_those_of_our_own_reports() {
    let mut flow = Flow::new(0);
    flow.send(1000);
    for ntp in 1..10 {
        flow.reader.reported(7, ntp, flow.now());
        flow.send(100);
    }
    let mut sample = |last_report, delay| {
        flow.send(1);
        let block = ReportBlock { last_report, delay, ..flow.block() };
        flow.reader.report(&block, SIZE, MS * 2000).unwrap().round_trip
    };
    // The ninth left at 1.8 s, and was held for 125 ms.
    assert_eq!(sample(9, 8192), Some(75 * MS));
    for (last_report, delay) in [(0, 0), (3, 0), (77, 0), (9, u32::MAX)] {
        assert_eq!(sample(last_report, delay), None, "{last_report} {delay}");
    }
}

#[test]
fn lies_are_bounded_by_what_was_sent() {
    let mut flow = Flow::new(0);
    assert_eq!(flow.report(), None, "nothing was sent");
    flow.send(1000);
    let block = flow.block();
    let mut tell = |block: ReportBlock, now| flow.reader.report(&block, SIZE, now);
    assert_eq!(tell(ReportBlock { highest: 1000, ..block }, MS * 1000), None, "never sent");
    assert_eq!(tell(ReportBlock { ssrc: 8, ..block }, MS * 1000), None);
    let first = tell(ReportBlock { highest: 500, lost: i32::MIN, ..block }, MS * 1000).unwrap();
    assert!(first.receive_rate.is_some_and(|rate| rate <= 1.01e6), "{first:?}");
    assert_eq!(tell(ReportBlock { highest: 500, lost: 0, ..block }, MS * 1000), None, "the same again");
    // At once: half a second of packets in no time.
    let second = tell(ReportBlock { highest: 999, lost: i32::MAX, ..block }, MS * 1000).unwrap();
    assert!(second.receive_rate.is_some_and(|rate| rate <= 1.01e6) && second.loss_event_rate <= 1.0, "{second:?}");
}

#[test]
fn tracks_add_up() {
    let mut reader = ReportReader::default();
    for at in 0..1000_u16 {
        reader.sent(7, at, 1, 1000, MS * at.into());
        reader.sent(8, at.wrapping_mul(2), 2, 200, MS * at.into());
    }
    let block =
        |ssrc, highest| ReportBlock { ssrc, fraction_lost: 0, lost: 0, highest, jitter: 0, last_report: 0, delay: 0 };
    let first = reader.report(&block(7, 999), SIZE, MS * 1000).unwrap();
    assert_eq!(first.receive_rate, None, "nothing is known of the other track");
    let rate = reader.report(&block(8, 1999), SIZE, MS * 1000).unwrap().receive_rate.unwrap();
    assert!((rate / 1.2e6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn intervals_count_all_packets_of_a_report_however_many_are_lost() {
    let mut flow = Flow::new(0);
    flow.reader.round_trip = Some(50 * MS);
    flow.send(1000);
    flow.report();
    // Half of 2000 packets: an event begins with each packet that is lost a round trip of 50 packets after the last event.
    flow.lost = (1000..3000).filter(|number| number % 2 == 0).collect();
    flow.send(2000);
    let rate = flow.report().unwrap().loss_event_rate;
    assert!((rate * 54.0 - 1.0).abs() < 0.15, "{rate}");
    // A report that says that all was lost names a packet that arrived.
    flow.send(100);
    let block = flow.block();
    let told = flow.reader.report(&ReportBlock { lost: i32::MAX, ..block }, SIZE, flow.now());
    assert!(told.and_then(|feedback| feedback.receive_rate).is_some_and(|rate| rate > 0.0));
}
