//! A sending thread's state machine beside a simulated network, on a virtual clock.

mod catching_up;
mod live;
#[cfg(feature = "tfrc")]
mod paced;
mod repeats;

use super::{rounds::Rounds, sending::ROUND, transmitter::Command, *};
use crate::{
    Counters, Frame, Run,
    broadcast::CatchUp,
    graph::{PipeWriter, pipe},
    outlet::{Backlog, Datagrams, Outlet, Packets},
    registry::Registry,
};
use bytes::Bytes;
use millpond_media::{
    Importance, Orientation, SampleTable,
    codec::Codec,
    movie::{Track, TrackKind},
    units::Timescale,
};
use millpond_rtp::{
    packet,
    payload::Packetizer,
    rtcp::{self, ReportBlock, RtcpItem},
    sdp_writer::Described,
};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::oneshot;

const MS: Duration = Duration::from_millis(1);
/// Pictures 40 ms apart, every 25th of which is a key frame.
const INTERVAL: Duration = Duration::from_millis(40);
const KEYS: u32 = 25;
const SSRC: u32 = 7;

/// A packet as its receiver gets it: time, sequence number, timestamp, marker.
type Got = (Duration, u16, u32, bool);

/// An outlet that records the frames that are sent, to a receiver whose backlog is set.
#[derive(Debug)]
struct Receiver {
    backlog: Mutex<Backlog>,
    frames: Mutex<Vec<u32>>,
}

impl Outlet for Receiver {
    fn backlog(&self) -> Backlog {
        *self.backlog.lock().unwrap()
    }

    fn send(&self, _: &mut Datagrams, packets: &Packets<'_>) {
        // The first four bytes of a frame are its number.
        let number = packets.frame[..4].try_into().unwrap();
        self.frames.lock().unwrap().push(u32::from_be_bytes(number));
    }

    fn send_whole(&self, _: &mut Datagrams, _: &[u8]) {}

    fn send_reports(&self, _: &mut Datagrams, _: &[u8]) {}
}

/// One subscriber on one sending thread.
struct Simulation {
    rounds: Rounds,
    counters: Arc<Counters>,
    registry: Registry,
    start: Instant,
    wall: SystemTime,
    gone: Duration,
    pace: Option<Box<Pace>>,
    /// The phase that the next transmission catches up with, at twice the pace.
    catch_up: Option<CatchUp>,
    progress: Arc<Progress>,
    writer: Option<PipeWriter>,
    got: Vec<Got>,
    reports: Vec<(Duration, RtcpItem)>,
}

impl Simulation {
    fn new() -> Self {
        Self::with_rounds(ROUND)
    }

    fn with_rounds(round: Duration) -> Self {
        let (counters, start) = (Arc::new(Counters::default()), Instant::now());
        Self {
            rounds: Rounds::new(counters.clone(), round, start, start),
            counters,
            registry: Registry::default(),
            start,
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            gone: Duration::ZERO,
            pace: None,
            catch_up: None,
            progress: Arc::default(),
            writer: None,
            got: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { at: self.start + self.gone, wall: self.wall + self.gone }
    }

    /// Begins to play tracks from a due time on.
    fn play(&mut self, tracks: Vec<TrackSender>, position: Duration, lateness: Lateness) {
        self.play_with(tracks, (position, lateness), None);
    }

    fn play_with(
        &mut self,
        tracks: Vec<TrackSender>,
        (position, lateness): (Duration, Lateness),
        live: Option<(Arrival, Epochs)>,
    ) {
        let (from, node) = (self.registry.add("loader", ""), self.registry.add("transmission", ""));
        let (writer, frames) = pipe(&self.registry, from.id(), node.id(), 10_000);
        self.writer = Some(writer);
        let (arrival, epochs) = live.unzip();
        let transmission = Transmission {
            id: 1,
            tracks,
            pace: self.pace.take(),
            frames,
            position,
            to: Duration::MAX,
            speed: if self.catch_up.is_some() { 2.0 } else { 1.0 },
            catch_up: self.catch_up.take(),
            lateness,
            origin: None,
            arrival,
            epochs,
            progress: self.progress.clone(),
            _node: node,
        };
        let now = self.now();
        self.rounds.handle(Command::Play(Box::new(transmission)), now);
    }

    /// Loads pictures by their numbers, each in a run of its own.
    fn load(&self, numbers: impl IntoIterator<Item = u32>, size: usize) {
        for number in numbers {
            self.put(picture(number, size));
        }
    }

    fn put(&self, frame: Frame) {
        let run: Run = [frame].into();
        self.writer.as_ref().unwrap().try_reserve().unwrap().unwrap().send(run);
    }

    /// Lets a time go by.
    fn run(&mut self, time: Duration) {
        let until = self.gone + time;
        while let Some(next) = self.rounds.next().map(|next| next - self.start).filter(|next| *next < until) {
            self.gone = self.gone.max(next + Duration::from_nanos(100));
            self.round();
        }
        self.gone = until;
        self.round();
    }

    fn round(&mut self) {
        let (now, gone) = (self.now(), self.gone);
        let Self { rounds, got, reports, .. } = self;
        rounds.run(now, |datagrams, _| {
            for (_, bytes) in datagrams.rtp.take() {
                let (header, _) = packet::parse(&bytes).unwrap();
                got.push((gone, header.sequence, header.timestamp, header.marker));
            }
            for (_, bytes) in datagrams.rtcp.take() {
                reports.extend(rtcp::parse(&bytes).unwrap().into_iter().map(|report| (gone, report)));
            }
        });
    }

    fn stop(&mut self) -> Stopped {
        let (reply, mut stopped) = oneshot::channel();
        let now = self.now();
        self.rounds.handle(Command::Stop(1, reply), now);
        stopped.try_recv().unwrap()
    }

    fn count(&self, counter: fn(&Counters) -> &AtomicU64) -> u64 {
        counter(&self.counters).load(Ordering::Relaxed)
    }
}

fn picture(number: u32, size: usize) -> Frame {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(size.max(4), 0);
    Frame {
        track: 0,
        number,
        due: INTERVAL * number,
        pts: i64::from(number) * 3600,
        epoch: 0,
        is_sync: number.is_multiple_of(KEYS),
        importance: Importance::BASE,
        data: Bytes::from(data),
    }
}

fn track(outlet: Arc<dyn Outlet>) -> TrackSender {
    let kind = TrackKind::Video { width: 16, height: 16, orientation: Orientation::UPRIGHT, pixel_aspect: (1, 1) };
    let track = Track {
        id: 1,
        kind,
        timescale: Timescale::MPEG,
        language: String::new(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: Default::default(),
        captions: None,
        // Without parameter sets.
        codec: Codec::Tx3g,
        sample_entry: Vec::new(),
        edits: Vec::new(),
        samples: SampleTable::default(),
        descriptions: None,
        protection: None,
    };
    let packetizer = Packetizer::Vp8;
    let described =
        Described { name: "v1", track: &track, packetizer, bandwidth: 0, payload_type: 96, keys: None, repeats: None };
    TrackSender::new(0, &described, outlet, (SSRC, None))
}

fn udp() -> Arc<dyn Outlet> {
    let [rtp, rtcp] = [5000, 5001].map(receiver_at);
    Arc::new(Udp { rtp, rtcp })
}

fn receiver_at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

#[test]
fn pictures_leave_when_they_are_due_and_large_ones_are_spread() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    // The first one has some 100 packets.
    net.load([0], 140_000);
    net.load(1..50, 1000);
    net.run(3000 * MS);
    let first = net.got[0].2;
    let of = |number: u32| net.got.iter().filter(move |got| got.2.wrapping_sub(first) == number * 3600);
    assert!(of(0).count() > 100);
    let mut times: Vec<Duration> = of(0).map(|got| got.0).collect();
    let last = *times.last().unwrap();
    times.dedup();
    assert!(times.len() >= 6, "{times:?}");
    // Its parts leave in successive rounds.
    assert!(last - times[0] <= ROUND * times.len() as u32, "{times:?}");
    // The next one is due before all parts of the first have left.
    for number in 2..50 {
        let sent: Vec<_> = of(number).collect();
        let late = sent[0].0 - net.got[0].0 - INTERVAL * number;
        assert!(sent.len() == 1 && sent[0].3 && late <= ROUND + MS, "{number}: {late:?}");
    }
    assert_eq!((net.count(|c| &c.late_frames), net.count(|c| &c.frames)), (0, 50));
}

#[test]
fn long_rounds_send_more_at_once() {
    let round = 30 * MS;
    let mut net = Simulation::with_rounds(round);
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    // The first one has some 100 packets.
    net.load([0], 140_000);
    net.load(1..50, 1000);
    net.run(3000 * MS);
    let first = net.got[0];
    let sent_of = |number: u32| net.got.iter().filter(move |got| got.2.wrapping_sub(first.2) == number * 3600);
    assert!(sent_of(0).count() > 90 && sent_of(0).all(|got| got.0 == first.0), "six bursts in one round");
    for number in 1..50 {
        let sent: Vec<_> = sent_of(number).collect();
        let late = sent[0].0 - first.0 - INTERVAL * number;
        assert!(sent.len() == 1 && late <= round + MS, "{number}: {late:?}");
    }
    assert_eq!((net.count(|c| &c.late_frames), net.count(|c| &c.frames)), (0, 50));
}

#[test]
fn sequence_numbers_and_frame_numbers_wrap() {
    let mut net = Simulation::new();
    let mut sender = track(udp());
    sender.sequence = u16::MAX - 2;
    sender.begin(u32::MAX - 3, 0.0);
    net.play(vec![sender], Duration::ZERO, Lateness::None);
    for place in 0..8_u32 {
        let number = (u32::MAX - 3).wrapping_add(place);
        net.put(Frame { number, is_sync: true, ..picture(place, 100) });
    }
    net.run(1000 * MS);
    assert_eq!(net.got.len(), 8);
    for pair in net.got.windows(2) {
        assert_eq!(pair[1].1, pair[0].1.wrapping_add(1));
        assert_eq!(pair[1].2.wrapping_sub(pair[0].2), 3600);
    }
    assert_eq!(net.count(|c| &c.dropped_frames), 0);
}

#[test]
fn timestamps_and_sequence_numbers_go_on_after_a_seek() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..100, 100);
    net.run(1000 * MS);
    let before = *net.got.last().unwrap();
    let Stopped { mut tracks, position, .. } = net.stop();
    assert_eq!(position, INTERVAL * net.got.len() as u32, "the next picture");
    net.run(60_000 * MS);
    assert_eq!(before, *net.got.last().unwrap(), "nothing is sent while it is paused");
    // Picture 50 shows at 2 s.
    tracks.iter_mut().for_each(|track| track.begin(50, 2.0));
    net.play(tracks, INTERVAL * 50, Lateness::None);
    net.load(50..60, 100);
    let begun = net.got.len();
    net.run(1000 * MS);
    let after = net.got[begun];
    assert_eq!(after.1, before.1.wrapping_add(1));
    assert_eq!(after.2.wrapping_sub(before.2), 9000, "a tenth of a second later");
    assert!(after.0 < 61_000 * MS + ROUND * 3, "at once: {:?}", after.0);
}

#[test]
fn lost_packets_are_counted_from_the_receivers_reports() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..1000, 100);
    for (second, lost) in [(1, 3), (2, 3), (3, 10)] {
        net.run(1000 * MS);
        let reception = ReportBlock {
            ssrc: SSRC,
            fraction_lost: 0,
            lost,
            highest: 0,
            jitter: 90,
            last_report: (ntp(net.now().wall - 80 * MS) >> 16) as u32,
            delay: 0,
        };
        let mut bytes = rtcp::receiver_report(99, &[reception], "viewer");
        let now = net.now();
        let stranger: SocketAddr = ([192, 0, 2, 2], 5001).into();
        net.rounds.hear(&mut bytes.clone(), stranger, now);
        assert_eq!(net.count(|c| &c.reports), second - 1, "a stranger's");
        net.rounds.hear(&mut bytes, receiver_at(5001), now);
        assert_eq!((net.count(|c| &c.reports), net.progress.heard()), (second, second * 1000));
    }
    assert_eq!(net.count(|c| &c.lost_packets), 10);
}

#[test]
fn sender_reports_leave_every_five_seconds_and_a_bye_at_the_end() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..300, 100);
    net.writer = None;
    net.run(20_000 * MS);
    let is_sender = |report: &&(Duration, RtcpItem)| matches!(report.1, RtcpItem::Sender(_));
    let sent: Vec<u64> = net.reports.iter().filter(is_sender).map(|(at, _)| at.as_secs()).collect();
    assert_eq!(sent, [0, 5, 10, 12]);
    let bye = net.reports.iter().find(|(_, report)| matches!(report, RtcpItem::Bye(_))).unwrap();
    let last = net.got.last().unwrap().0;
    assert!(bye.0 >= last + 500 * MS && bye.0 < last + 600 * MS, "{last:?} {:?}", bye.0);
    assert!(net.progress.has_ended() && net.rounds.next().is_none());
    assert_eq!(net.count(|c| &c.playing), 0);
}

#[test]
fn a_slow_receiver_loses_pictures_up_to_a_key_frame_and_a_stuck_one_its_transmission() {
    let mut net = Simulation::new();
    let receiver = Arc::new(Receiver { backlog: Mutex::new(Backlog::Low), frames: Mutex::default() });
    net.play(vec![track(receiver.clone())], Duration::ZERO, Lateness::None);
    net.load(0..1000, 100);
    let set = |backlog| *receiver.backlog.lock().unwrap() = backlog;
    net.run(200 * MS);
    set(Backlog::High);
    net.run(200 * MS);
    set(Backlog::Low);
    net.run(1600 * MS);
    let frames = std::mem::take(&mut *receiver.frames.lock().unwrap());
    assert!(frames.starts_with(&[0, 1, 2, 3]) && frames.len() < 35, "{frames:?}");
    let gap = frames.windows(2).find(|pair| pair[1] != pair[0] + 1).unwrap();
    assert_eq!(gap[1], KEYS);
    assert_eq!(net.count(|c| &c.dropped_frames), u64::from(KEYS - gap[0] - 1));
    set(Backlog::Stuck);
    net.run(200 * MS);
    assert!(net.progress.is_stuck() && net.progress.has_ended());
}

#[test]
fn frames_that_are_loaded_late_move_the_deadlines_after_them_by_the_policy() {
    for (lateness, catches_up) in [(Lateness::None, true), (Lateness::All, false)] {
        let mut net = Simulation::new();
        net.play(vec![track(udp())], Duration::ZERO, lateness);
        net.load(0..10, 100);
        // Pictures from 10 on are due from 400 ms on, and arrive after a second.
        net.run(1000 * MS);
        net.load(10..100, 100);
        net.run(4500 * MS);
        let first = net.got[0].2;
        let found = net.got.iter().find(|got| got.2.wrapping_sub(first) == 90 * 3600).unwrap();
        let delay = found.0 - INTERVAL * 90;
        assert_eq!(delay < 50 * MS, catches_up, "{lateness:?}: {delay:?}");
        assert_eq!(net.count(|c| &c.missed_deadlines), 1);
        assert_eq!(net.count(|c| &c.lagging_frames), 0, "the thread was in time");
    }
}

#[test]
fn a_branch_that_lost_runs_goes_on_with_a_key_frame() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::All);
    net.load((0..10).chain(20..60), 100);
    net.run(3000 * MS);
    let first = net.got[0].2;
    let numbers: Vec<u32> = net.got.iter().map(|got| got.2.wrapping_sub(first) / 3600).collect();
    let expected: Vec<u32> = (0..10).chain(KEYS..60).collect();
    assert_eq!(numbers, expected);
}
