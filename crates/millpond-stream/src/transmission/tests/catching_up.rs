//! A viewer that catches up with a phase.

use super::*;
use crate::broadcast::{Broadcast, BroadcastPhase, Broadcasts, JOINED};

const SECOND: Duration = Duration::from_secs(1);

/// A simulation, and a phase that is 10 s ahead.
fn phase_ahead() -> (Simulation, impl Drop) {
    let (mut net, broadcasts) = (Simulation::new(), Broadcasts::default());
    let (channel, title): (Arc<str>, _) = ("movie".into(), (7, 100.0));
    let seat = broadcasts.seat(&BroadcastPhase { channel: channel.clone(), number: 1, of: 2 }, title).unwrap();
    seat.begin_lap(Duration::ZERO);
    seat.reach(10 * SECOND, net.start);
    let broadcast: Arc<Broadcast> = broadcasts.find(&channel, title, 2).unwrap();
    net.catch_up = broadcast.catch_up(Duration::ZERO, net.start);
    (net, seat)
}

/// Time of the title that was sent.
fn sent(net: &Simulation) -> Duration {
    INTERVAL * net.got.iter().filter(|got| got.3).count() as u32
}

#[test]
fn it_slows_down_where_the_phase_is() {
    let (mut net, _seat) = phase_ahead();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..1000, 100);
    net.run(4 * SECOND);
    assert!(sent(&net).abs_diff(8 * SECOND) < 2 * INTERVAL, "{:?}", sent(&net));
    net.run(16 * SECOND);
    // The phase has reached 30 s.
    assert!((sent(&net) + JOINED).abs_diff(30 * SECOND) < 3 * INTERVAL, "{:?}", sent(&net));
    let sequences = net.got.windows(2).all(|two| two[1].1 == two[0].1.wrapping_add(1));
    let times = net.got.windows(2).all(|two| two[1].2.wrapping_sub(two[0].2) == 3600);
    assert!(sequences && times, "a picture is missing, or was sent twice");
    assert_eq!(net.count(|counters| &counters.late_frames), 0);
    // Reports tell the clock of the media, as if it had never been sent faster.
    let report = |item: &RtcpItem| match item {
        RtcpItem::Sender(report) => Some((report.ntp, report.timestamp)),
        _ => None,
    };
    let reports: Vec<_> = net.reports.iter().filter_map(|(_, item)| report(item)).collect();
    assert!(reports.len() >= 4, "{reports:?}");
    for two in reports.windows(2) {
        let clock = (two[1].0 - two[0].0) as f64 / 4_294_967_296.0;
        let media = f64::from(two[1].1.wrapping_sub(two[0].1)) / 90_000.0;
        assert!((clock - media).abs() < 0.01, "{clock} {media}");
    }
}

#[test]
fn a_phase_that_stops_leaves_it_at_the_pace_of_playing() {
    let (mut net, seat) = phase_ahead();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..1000, 100);
    net.run(2 * SECOND);
    drop(seat);
    net.run(4 * SECOND);
    assert!(sent(&net).abs_diff(8 * SECOND) < 3 * INTERVAL, "{:?}", sent(&net));
}

#[test]
fn a_receiver_that_takes_less_sets_the_pace() {
    let (mut net, _seat) = phase_ahead();
    let receiver = Arc::new(Receiver { backlog: Mutex::new(Backlog::Low), frames: Mutex::default() });
    net.play(vec![track(receiver.clone())], Duration::ZERO, Lateness::None);
    net.load(0..1000, 100);
    net.run(SECOND);
    let before = receiver.frames.lock().unwrap().len();
    *receiver.backlog.lock().unwrap() = Backlog::High;
    net.run(5 * SECOND);
    *receiver.backlog.lock().unwrap() = Backlog::Low;
    net.run(SECOND);
    let frames = receiver.frames.lock().unwrap();
    let after = frames.len() - before;
    assert!(frames.windows(2).all(|two| two[1] == two[0] + 1), "no frame is dropped: {frames:?}");
    // The viewer is sent frames at twice the pace again. Frames that it did not take meanwhile do not come in a burst.
    assert!((40..60).contains(&after), "{after}");
    assert_eq!(net.count(|counters| &counters.late_frames), 0);
}
