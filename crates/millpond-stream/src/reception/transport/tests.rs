//! Programmes from bytes that tests make, and a reception on the loopback.

mod mux;

use super::*;
use crate::{
    Frame,
    epoch::EpochReason,
    graph::{PipeReader, pipe},
    registry::Registry,
    report::StreamState,
};
use bytes::Bytes;
use millpond_media::Timescale;
use mux::{ASSOCIATION, CUES, MAP, Mux, PICTURES, PRIVATE, SOUND, TEXT};
use std::net::UdpSocket;

/// A programme, and the assembly that takes its frames.
struct Bench {
    programme: ProgrammeFrames,
    assembly: Assembly,
    faults: Faults,
    reporter: Reporter,
}

impl Bench {
    fn new(wanted: Option<u16>) -> Self {
        let reporter = Reporter::default();
        Self {
            programme: ProgrammeFrames::new(wanted, Duration::from_secs(10)),
            assembly: Assembly::of_transport(reporter.clone(), Duration::from_secs(1000)),
            faults: Faults::default(),
            reporter,
        }
    }

    fn give(&mut self, mux: &mut Mux, milliseconds: u64) -> Vec<Frame> {
        let now = Duration::from_millis(milliseconds);
        self.programme.push(&Bytes::from(mux.take()), now, &mut self.assembly, &mut self.faults);
        self.programme.tick(now, &mut self.assembly);
        self.assembly.take_run().map(|run| run.to_vec()).unwrap_or_default()
    }

    fn epochs(&self) -> Vec<(u32, EpochReason, usize)> {
        let epochs = self.reporter.epochs();
        let known = |epoch: &crate::Epoch| epoch.formats.iter().flatten().count();
        epochs.borrow().iter().map(|epoch| (epoch.number, epoch.reason, known(epoch))).collect()
    }
}

/// Number, presentation time and decode time in milliseconds after the first of 10 s.
fn times(frames: &[Frame], track: u16, rate: i64) -> Vec<(u32, i64, i64)> {
    let of_track = frames.iter().filter(|frame| frame.track == track);
    of_track
        .map(|frame| (frame.number, frame.pts * 1000 / rate - 10_000, frame.due.as_millis() as i64 - 10_000))
        .collect()
}

#[test]
fn frames_have_the_times_of_the_stream() {
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.tables(&[(0x1b, PICTURES), (0x0f, SOUND)]);
    // Near the wrap of the clock. A picture ends where the packet after it does, so the sound leaves first.
    let base = (1 << 33) - 9000;
    mux.picture(true, base + 7200, base);
    mux.sound(base + 3600);
    mux.picture(false, base + 18_000, base + 3600);
    mux.picture(false, base + 10_800, base + 7200);
    let first = bench.give(&mut mux, 0);
    assert_eq!(times(&first, 0, 90_000), [(0, 40, -40)]);
    assert_eq!(times(&first, 1, 48_000), [(0, 0, 0)]);
    mux.picture(false, base + 14_400, base + 10_800);
    mux.picture(false, base + 32_400, base + 14_400);
    let next = bench.give(&mut mux, 120);
    assert_eq!(times(&next, 0, 90_000), [(1, 160, 0), (2, 80, 40)]);
    assert!(first.iter().all(|frame| frame.is_sync) && !next[0].is_sync);
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 2)]);
    let formats = bench.assembly.declared();
    let names: Vec<_> =
        formats.iter().flatten().map(|f| (f.name.as_str(), f.timescale(), f.language.clone())).collect();
    assert_eq!(names, [("v1", 90_000, Some("de".into())), ("a1", 48_000, Some("de".into()))]);
}

#[test]
fn maps_change_within_a_stream() {
    let (mut bench, mut mux) = (Bench::new(Some(1)), Mux::new(1));
    mux.tables(&[(0x1b, PICTURES), (0x0f, SOUND)]);
    mux.picture(true, 0, 0);
    mux.sound(0);
    mux.picture(false, 3600, 3600);
    mux.picture(false, 7200, 7200);
    assert_eq!(bench.give(&mut mux, 0).len(), 2);
    // The sound moves to another PID; its format is equal.
    mux.tables(&[(0x1b, PICTURES), (0x0f, SOUND + 1), (0x02, SOUND + 2)]);
    mux.picture(false, 10_800, 10_800);
    mux.sound_at(SOUND + 1, 7200);
    let frames = bench.give(&mut mux, 80);
    assert_eq!((times(&frames, 0, 90_000), times(&frames, 1, 48_000)), (vec![(1, 40, 40)], vec![(1, 80, 80)]));
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 2)]);
    // The sound ends.
    mux.tables(&[(0x1b, PICTURES)]);
    mux.picture(false, 14_400, 14_400);
    assert_eq!(bench.give(&mut mux, 120).len(), 1);
    assert_eq!(bench.epochs()[1..], [(1, EpochReason::Formats, 1)]);
}

#[test]
fn streams_without_media_are_not_waited_for_long() {
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.tables(&[(0x1b, PICTURES), (0x0f, SOUND)]);
    let mut give = |bench: &mut Bench, number: u64, has_sound: bool| {
        mux.picture(number.is_multiple_of(30), 3600 * number, 3600 * number);
        if has_sound {
            mux.sound(3600 * number);
        }
        bench.give(&mut mux, 40 * number)
    };
    // A picture leaves with the next one, so the format is known after 80 ms.
    (0..27).for_each(|number| assert_eq!(give(&mut bench, number, false), [], "{number}"));
    assert_eq!(bench.programme.wake(), Some(Duration::from_millis(1080)));
    assert_eq!(times(&give(&mut bench, 27, false), 0, 90_000).len(), 27);
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 1)]);
    let frames: Vec<Frame> = (28..31).flat_map(|number| give(&mut bench, number, true)).collect();
    assert_eq!(times(&frames, 1, 48_000), [], "sound joins with a key frame");
    let frames = give(&mut bench, 31, true);
    assert_eq!(bench.epochs()[1..], [(1, EpochReason::Formats, 2)]);
    assert_eq!(times(&frames, 1, 48_000).len(), 1);
}

#[test]
fn nobody_waits_for_subtitles() {
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.tables(&[(PRIVATE, TEXT), (0x1b, PICTURES), (0x0f, SOUND)]);
    mux.text(0);
    mux.picture(true, 3600, 3600);
    mux.sound(3600);
    mux.picture(false, 7200, 7200);
    mux.picture(false, 10_800, 10_800);
    let first = bench.give(&mut mux, 0);
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 3)]);
    let formats = bench.assembly.declared();
    let names: Vec<_> = formats.iter().flatten().map(|f| (f.name.as_str(), f.language.clone())).collect();
    assert_eq!(names, ["v1", "a1", "t1"].map(|name| (name, Some("de".into()))));
    assert_eq!(times(&first, 2, 90_000), [], "nothing was shown yet");
    // They are due with the frames beside them, whatever their time.
    mux.picture(false, 14_400, 14_400);
    mux.text(36_000);
    mux.picture(false, 18_000, 18_000);
    let next = bench.give(&mut mux, 120);
    assert_eq!(times(&next, 2, 90_000).iter().map(|text| (text.0, text.1)).collect::<Vec<_>>(), [(0, 360)]);
    assert!(next.is_sorted_by_key(|frame| frame.due) && next.len() == 3, "{next:?}");
    // An hour away.
    mux.text(3600 * 90_000);
    (5..200).for_each(|number| mux.picture(false, 3600 * (number + 1), 3600 * (number + 1)));
    let later = bench.give(&mut mux, 8000);
    assert!(later.iter().all(|frame| frame.track != 2) && later.len() > 150, "{}", later.len());
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 3)], "they are silent for long");
}

#[test]
fn sound_that_a_later_map_adds_joins() {
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.tables(&[(0x1b, PICTURES)]);
    mux.picture(true, 0, 0);
    mux.picture(false, 3600, 3600);
    mux.picture(false, 7200, 7200);
    bench.give(&mut mux, 0);
    assert_eq!(bench.epochs(), [(0, EpochReason::Start, 1)]);
    mux.tables(&[(0x1b, PICTURES), (0x0f, SOUND)]);
    mux.sound(10_800);
    mux.picture(true, 14_400, 14_400);
    mux.picture(false, 18_000, 18_000);
    mux.picture(false, 21_600, 21_600);
    mux.sound(14_400);
    let frames = bench.give(&mut mux, 200);
    assert_eq!(bench.epochs()[1..], [(1, EpochReason::Formats, 2)]);
    assert_eq!(times(&frames, 1, 48_000).len(), 1);
}

#[test]
fn programmes_are_chosen_by_number() {
    for (wanted, kind) in [(Some(9), Some(SourceErrorKind::NotFound)), (Some(1), None), (None, None)] {
        let (mut bench, mut mux) = (Bench::new(wanted), Mux::new(1));
        mux.tables(&[(0x1b, PICTURES)]);
        bench.give(&mut mux, 0);
        assert_eq!(bench.programme.problem().map(|(kind, _)| *kind), kind, "{wanted:?}");
    }
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.association(&[(1, MAP), (2, MAP + 1)]);
    mux.association(&[]);
    assert_eq!(ASSOCIATION, 0);
    bench.give(&mut mux, 0);
    assert!(bench.programme.problem().is_some());
}

/// A reception that runs, and a test that takes its frames.
struct Viewer {
    frames: PipeReader,
    reporter: Reporter,
    _nodes: Vec<crate::registry::NodeGuard>,
}

fn listen(source: TransportSource) -> Viewer {
    let (registry, reporter) = (Registry::default(), Reporter::default());
    let nodes = vec![registry.add("transport", "tv"), registry.add("transmission", "viewer")];
    let (writer, frames) = pipe(&registry, nodes[0].id(), nodes[1].id(), 1000);
    let module = Box::new(TransportReception::new(source, reporter.clone()));
    tokio::spawn(module.run(Vec::new(), Output::Pipe(writer)));
    Viewer { frames, reporter, _nodes: nodes }
}

#[tokio::test]
async fn receptions_of_one_address_share_its_socket() {
    // The port is free again when the probe is dropped.
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let source = TransportSource::new(&format!("udp://{at}")).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut viewers = [listen(source.programme(1)), listen(source)];
    tokio::task::yield_now().await;
    let mut mux = Mux::new(1);
    mux.tables(&[(0x1b, PICTURES)]);
    (0..3).for_each(|number| mux.picture(number == 0, number * 3600, number * 3600));
    for datagram in mux.take().chunks(1000) {
        sender.send_to(datagram, at).unwrap();
    }
    for viewer in &mut viewers {
        let run = viewer.frames.next().await.unwrap();
        assert!(run[0].is_sync && run[0].number == 0);
        assert!(matches!(*viewer.reporter.state().borrow(), StreamState::Running { .. }));
    }
}

#[test]
fn cues_have_the_time_of_the_frames() {
    let (mut bench, mut mux) = (Bench::new(None), Mux::new(1));
    mux.tables(&[(0x1b, PICTURES), (0x86, CUES)]);
    // Near the wrap of the clock. A cue may come before the first frame, and be repeated.
    let base = (1 << 33) - 90_000;
    let pictures = |mux: &mut Mux, base: u64, numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| mux.picture(number % 25 == 0, base + number * 3600, base + number * 3600));
    };
    mux.cue(CUES, 1, Some(4 * 90_000));
    mux.cue(CUES + 1, 9, Some(0));
    pictures(&mut mux, base, 0..4);
    let last = bench.give(&mut mux, 0).len();
    let cues = bench.reporter.cues();
    let seconds = |from| cues.borrow().since(from).iter().map(|cue| cue.at.as_secs_f64()).collect::<Vec<_>>();
    assert_eq!(seconds(0), [15.0], "those of other PIDs are others'");
    mux.cue(CUES, 1, Some(4 * 90_000));
    // At once: with the last frame.
    mux.cue(CUES, 2, None);
    assert_eq!(bench.give(&mut mux, 100).len(), 0);
    assert!((seconds(1)[0] - 10.0 - (last - 1) as f64 * 0.04).abs() < 1e-3, "{:?}, {last} frames", seconds(1));
    // Another clock: the cue waits for its first frame.
    let formats = bench.assembly.declared().clone();
    bench.assembly.adopt(&[("video", Timescale::MPEG)]);
    bench.assembly.begin(formats);
    mux.cue(CUES, 3, Some(95_000));
    bench.give(&mut mux, 200);
    assert_eq!(cues.borrow().count(), 2);
    pictures(&mut mux, 5000, 25..30);
    bench.give(&mut mux, 2000);
    let began = bench.reporter.epochs().borrow().last().unwrap().from.as_secs_f64();
    assert_eq!(seconds(2).len(), 1);
    assert!((seconds(2)[0] - began).abs() < 0.2, "{:?} after {began}", seconds(2));
}
