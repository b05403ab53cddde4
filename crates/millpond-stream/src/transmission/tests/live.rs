//! Frames that are due when they arrive.

use super::*;
use crate::{
    Feed, Format,
    epoch::{Epoch, EpochReason},
    registry::NodeId,
};
use std::sync::atomic::AtomicBool;

/// Stream time of the first picture: live streams begin there.
const FROM: Duration = Duration::from_secs(10);

/// A live stream whose wall clock is that of the simulation.
#[derive(Debug)]
struct Stream;

impl Feed for Stream {
    fn path(&self) -> &str {
        "cams/door"
    }

    fn id(&self) -> u64 {
        1
    }

    fn formats(&self) -> &[Option<Format>] {
        &[]
    }

    fn epoch(&self, number: u32) -> Option<Epoch> {
        let (from, wall) = (FROM, Duration::from_secs(1_000_000_000));
        Some(Epoch { number, from, wall, arrival: wall, formats: Arc::default(), reason: EpochReason::Start })
    }
}

fn live(number: u32) -> Frame {
    let frame = picture(number, 100);
    Frame { due: frame.due + FROM, pts: frame.pts + 900_000, ..frame }
}

impl Simulation {
    fn fork(&mut self) -> NodeId {
        self.registry.add("fake", "").id()
    }

    fn play_live(&mut self, fork: NodeId, span: Duration) {
        let mut sender = track(udp());
        sender.begin(0, FROM.as_secs_f64());
        let live = (Arrival::new(fork, span), Epochs::new(Arc::new(Stream)));
        self.play_with(vec![sender], (FROM, Lateness::All), Some(live));
    }

    /// Gives a frame, as a fork does.
    fn arrive(&mut self, fork: NodeId, frame: Frame) {
        self.put(frame);
        let (now, is_told) = (self.now(), Arc::new(AtomicBool::new(true)));
        self.rounds.handle(Command::Arrived(fork, is_told.clone()), now);
        assert!(!is_told.load(Ordering::Relaxed));
        self.round();
    }
}

#[test]
fn frames_leave_when_they_arrive_and_gaps_are_not_late() {
    let mut net = Simulation::new();
    let fork = net.fork();
    net.play_live(fork, Duration::ZERO);
    net.arrive(fork, live(0));
    assert_eq!(net.got.len(), 1, "at once");
    // They arrive unevenly, and once not for a minute.
    for (number, wait) in (1..).zip([1, 90, 7, 60_000, 1, 40]) {
        net.run(wait * MS);
        let before = net.gone;
        net.arrive(fork, live(number));
        assert_eq!((net.got.len(), net.got.last().unwrap().0), (number as usize + 1, before));
    }
    let count = [
        net.count(|c| &c.missed_deadlines),
        net.count(|c| &c.late_frames),
        net.count(|c| &c.lagging_frames),
        net.count(|c| &c.dropped_frames),
    ];
    assert_eq!(count, [0; 4]);
    // Reports go on without frames, and tell the wall clock of the source.
    let told: Vec<_> = net.reports.iter().filter(|(_, item)| matches!(item, RtcpItem::Sender(_))).collect();
    assert!(told.len() >= 12, "{}", told.len());
    net.writer = None;
    net.run(6000 * MS);
    assert!(net.progress.has_ended());
}

#[test]
fn frames_from_before_it_joined_leave_faster_but_not_at_once() {
    let mut net = Simulation::new();
    let fork = net.fork();
    let span = INTERVAL * 24;
    net.play_live(fork, span);
    (0..25).for_each(|number| net.put(live(number)));
    net.arrive(fork, live(25));
    assert_eq!(net.got.len(), 1, "the key frame leaves at once");
    net.run(span / 8);
    assert!((8..=14).contains(&net.got.len()), "{}", net.got.len());
    net.run(span / 8 + ROUND * 3);
    assert_eq!(net.got.len(), 26);
    net.arrive(fork, live(26));
    assert_eq!(net.got.len(), 27);
}

#[test]
fn a_burst_leaves_faster_but_not_at_once() {
    let mut net = Simulation::new();
    let fork = net.fork();
    net.play_live(fork, Duration::ZERO);
    for number in 0..10 {
        net.arrive(fork, live(number));
        net.run(INTERVAL);
    }
    assert_eq!(net.got.len(), 10);
    // The source stood still for 2 s.
    net.run(INTERVAL * 50);
    (10..60).for_each(|number| net.arrive(fork, live(number)));
    assert!((15..=19).contains(&net.got.len()), "{}", net.got.len());
    net.run(INTERVAL * 13);
    assert_eq!(net.got.len(), 60);
    net.arrive(fork, live(60));
    assert_eq!(net.got.len(), 61, "at once again");
}

#[test]
fn jumps_of_due_times_delay_nothing() {
    let mut net = Simulation::new();
    let fork = net.fork();
    net.play_live(fork, INTERVAL);
    net.put(live(0));
    net.put(Frame { due: FROM + Duration::from_secs(3600), epoch: 1, ..live(1) });
    net.arrive(fork, Frame { due: FROM + Duration::from_secs(3600) + INTERVAL, epoch: 1, ..live(2) });
    net.run(300 * MS);
    assert_eq!(net.got.len(), 3);
}

#[test]
fn subscribers_of_other_forks_are_not_visited() {
    let mut net = Simulation::new();
    let (fork, other) = (net.fork(), net.fork());
    net.play_live(fork, Duration::ZERO);
    net.put(live(0));
    let (now, is_told) = (net.now(), Arc::default());
    net.rounds.handle(Command::Arrived(other, is_told), now);
    net.round();
    assert!(net.got.is_empty());
    net.stop();
    net.rounds.handle(Command::Arrived(fork, Arc::default()), now);
    assert!(net.got.is_empty());
}
