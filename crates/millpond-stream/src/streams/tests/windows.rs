//! Windows of a source: what players would fetch.

use super::fake::{Fake, manager, until};
use crate::{
    CannotOpen, Feed, Format, FoundPart, FoundSegment, Frame, LiveFeed, LiveWindow, WindowOptions, live::Program,
    manager::Manager, streams::LiveStream,
};
use bytes::Bytes;
use millpond_media::{
    Importance, SampleTable,
    fragment_stream::{FragmentEvent, FragmentStream},
    index_bytes,
    movie::{Track, TrackKind},
    units::Timescale,
};
use millpond_package::{
    MediaKind,
    hls::Container,
    live::{Directives, Extent, Reload, SegmentNumber},
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// Stream time of the first frame.
const START: u64 = 10;
pub(super) const VIDEO: u16 = 0;
pub(super) const AUDIO: u16 = 1;

/// Two tracks of the bundled sample: pictures and sound.
pub(super) fn formats() -> Vec<Option<Format>> {
    let movie = index_bytes(include_bytes!("../../../../../assets/sample/360p.mp4")).unwrap();
    let format = |track: &Track| {
        let (name, kind, clock) = match track.kind {
            TrackKind::Video { .. } => ("v1", MediaKind::Video, 90_000),
            _ => ("a1", MediaKind::Audio, 48_000),
        };
        let timescale = Timescale::new(clock).unwrap();
        let track = Track { timescale, edits: Vec::new(), samples: SampleTable::default(), ..track.clone() };
        let (is_default, is_alternative, bandwidth, is_encrypted) = (true, false, 1000, false);
        Format { name: name.into(), kind, language: None, is_default, is_alternative, bandwidth, is_encrypted, track }
    };
    let mut formats: Vec<_> = movie.tracks.iter().map(format).collect();
    formats.sort_by_key(|format| format.kind);
    formats.truncate(2);
    formats.into_iter().map(Some).collect()
}

/// Picture `number` in decode order: 25 a second, key frames each second, one B-frame between two others.
pub(super) fn picture(number: u32) -> Frame {
    let shown = match number % 25 {
        0 => number,
        odd if odd % 2 == 1 => number + 1,
        _ => number - 1,
    };
    Frame {
        track: VIDEO,
        number,
        due: Duration::from_secs(START) + Duration::from_millis(40) * number,
        pts: 90_000 * START as i64 + 3600 * i64::from(shown + 1),
        epoch: 0,
        is_sync: number.is_multiple_of(25),
        importance: Importance::BASE,
        data: Bytes::from(format!("picture {number}")),
    }
}

/// Frame of sound: 1024 samples.
pub(super) fn sound(number: u32) -> Frame {
    let pts = 48_000 * START as i64 + 1024 * i64::from(number);
    Frame {
        track: AUDIO,
        number,
        due: Duration::from_nanos(pts as u64 * 1_000_000_000 / 48_000),
        pts,
        epoch: 0,
        is_sync: true,
        importance: Importance::BASE,
        data: Bytes::from(format!("sound {number}")),
    }
}

/// Frames of some seconds, by their due times.
pub(super) fn film(seconds: Range<u32>) -> Vec<Frame> {
    let pictures = (seconds.start * 25..seconds.end * 25).map(picture);
    let sounds = ((seconds.start * 48_000).div_ceil(1024)..(seconds.end * 48_000).div_ceil(1024)).map(sound);
    let mut all: Vec<_> = pictures.chain(sounds).collect();
    all.sort_by_key(|frame| frame.due);
    all
}

/// A stream, its source and an engine.
pub(super) struct Stage {
    pub(super) manager: Arc<Manager>,
    pub(super) fake: Fake,
    stream: Arc<LiveStream>,
}

impl Stage {
    /// Opens the stream and begins its first epoch.
    pub(super) async fn open(linger: Duration) -> (Self, Arc<LiveFeed>) {
        let (manager, fake) = (manager(), Fake::default());
        let stream = manager.live(fake.request("cams/door", linger)).unwrap();
        let stage = Self { manager, fake, stream };
        let feed = stage.feed().await;
        (stage, feed)
    }

    async fn feed(&self) -> Arc<LiveFeed> {
        let (manager, stream) = (self.manager.clone(), self.stream.clone());
        let feed = tokio::spawn(async move { manager.live_feed(&stream, PATIENCE).await });
        until(|| self.fake.is_open()).await;
        if self.fake.reporter().epochs().borrow().is_empty() {
            self.fake.begin(0, formats());
        }
        feed.await.unwrap().unwrap()
    }

    pub(super) fn window(&self, feed: &Arc<LiveFeed>) -> Arc<LiveWindow> {
        self.manager.window(&Program::live(feed), WindowOptions::default()).unwrap()
    }

    /// Gives frames and waits until they were taken: the clock of the runtime moves when all else waits.
    pub(super) async fn put(&self, frames: impl IntoIterator<Item = Frame>) {
        for (number, frame) in frames.into_iter().enumerate() {
            self.fake.put(frame);
            if number % 50 == 49 {
                tokio::time::sleep(Duration::from_micros(1)).await;
            }
        }
        tokio::time::sleep(Duration::from_micros(1)).await;
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.manager.registry().snapshot().modules.into_iter().map(|node| node.kind).collect()
    }
}

fn playlist(window: &LiveWindow, track: usize) -> String {
    String::from_utf8(window.media(Container::Fmp4, track, false).unwrap().bytes.to_vec()).unwrap()
}

/// The values between `before` and `after` in a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

/// Numbers of the segments that a playlist lists.
fn listed(playlist: &str, window: &LiveWindow, track: &str) -> Vec<SegmentNumber> {
    let prefix = format!("../~{}/{track}/", window.run());
    let uris = playlist.lines().filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix(".m4s"));
    uris.map(|number| SegmentNumber(number.parse().unwrap())).collect()
}

fn joined(parts: &[crate::PartBytes]) -> Vec<u8> {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.iter()).flatten().copied().collect();
    assert_eq!(bytes.len() as u64, parts.iter().map(|part| part.len).sum::<u64>());
    bytes
}

/// Decode time, presentation time, key and bytes of the samples in segments of a track.
fn samples(window: &LiveWindow, track: usize, epoch: u32, segments: &[SegmentNumber]) -> Vec<(i64, i64, bool, Bytes)> {
    let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
    stream.push(&window.init(track, epoch).unwrap(), &mut events).unwrap();
    for number in segments {
        let FoundSegment::Begun { parts, .. } = window.segment(track, *number) else { panic!("{number:?}") };
        stream.push(&joined(&parts), &mut events).unwrap();
    }
    let sample = |event| match event {
        FragmentEvent::Sample(sample) => Some((sample.dts, sample.pts, sample.is_sync, sample.data)),
        FragmentEvent::Tracks { tracks, skipped } => {
            assert_eq!((tracks.len(), skipped.len()), (1, 0));
            None
        }
        FragmentEvent::Fault(fault) => panic!("{fault}"),
    };
    events.into_iter().filter_map(sample).collect()
}

/// Samples that frames must become, from the first picture on. Sound begins with the frame that lasts over that.
fn expected<'a>(frames: impl IntoIterator<Item = &'a Frame>, track: u16) -> Vec<(i64, i64, bool, Bytes)> {
    let mut frames = frames.into_iter().peekable();
    // The first picture is shown a frame after its due time.
    let from = frames.peek().map_or(0, |first| first.due.as_millis() as i64 + 40) * 48;
    let of_track = frames.filter(|frame| frame.track == track && (track == VIDEO || frame.pts + 1024 > from));
    let sample = |frame: &Frame| {
        let dts = if track == VIDEO { frame.due.as_millis() as i64 * 90 } else { frame.pts };
        (dts, frame.pts, frame.is_sync, frame.data.clone())
    };
    of_track.map(sample).collect()
}

#[tokio::test(start_paused = true)]
async fn playlists_list_what_was_put_in() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    assert!(
        window.media(Container::Fmp4, 0, false).is_none()
            && window.multivariant(Container::Fmp4, "").is_none()
            && window.mpd("/time", Extent::Edge).is_none()
    );
    let frames = film(0..9);
    stage.put(frames.clone()).await;
    assert!(window.ready(PATIENCE).await);
    let tracks = [("v1", VIDEO), ("a1", AUDIO)];
    for (track, (name, of_feed)) in tracks.into_iter().enumerate() {
        assert_eq!(window.track(name), Some(track));
        let text = playlist(&window, track);
        let numbers = listed(&text, &window, name);
        assert_eq!(numbers.len(), 4, "{text}");
        let given = samples(&window, track, 0, &numbers);
        assert_eq!(given, expected(&frames, of_feed)[..given.len()]);
        assert_eq!(given.len(), if track == 0 { 200 } else { 375 });
        let next = numbers.last().unwrap().next();
        assert_eq!(between(&text, "#EXT-X-MEDIA-SEQUENCE:", "\n"), [numbers[0].0.to_string()]);
        let part = |uri: &&str| {
            let (segment, part) = uri.split_once('.')?;
            Some((SegmentNumber(segment.parse().ok()?), part.parse::<u16>().ok()?))
        };
        let uri = format!("URI=\"../~{}/{name}/", window.run());
        let parts: Vec<_> = between(&text, &uri, ".m4s\"").iter().filter_map(part).collect();
        let (hint, parts) = parts.split_last().unwrap();
        assert!(parts.len() > 10 && hint.0 == next);
        assert!(parts.iter().all(|(s, p)| matches!(window.part(track, *s, *p), FoundPart::Complete(_))));
        assert_eq!(window.part(track, hint.0, hint.1), FoundPart::Next);
        assert_eq!(window.part(track, hint.0, hint.1 + 1), FoundPart::Unknown);
        assert!(matches!(window.segment(track, next), FoundSegment::Begun { is_closed: false, .. }));
        assert_eq!(window.segment(track, next.next()), FoundSegment::Next);
        assert_eq!(window.segment(track, next.next().next()), FoundSegment::Unknown);
        let asked = |part| Directives { segment: Some(hint.0), part: Some(part), skip: false };
        let decided = [hint.1 - 1, hint.1, 99].map(|part| window.decide(&asked(part.into()), track));
        assert_eq!(decided, [Reload::Now, Reload::Wait, Reload::TooFar]);
    }
    assert_eq!(
        window.media(Container::Fmp4, 0, false).unwrap().bytes.as_ptr(),
        window.media(Container::Fmp4, 0, false).unwrap().bytes.as_ptr(),
        "rendered once"
    );
    let multivariant = String::from_utf8(window.multivariant(Container::Fmp4, "").unwrap().bytes.to_vec()).unwrap();
    assert!(multivariant.contains("v1/index.m3u8") && multivariant.contains("a1/index.m3u8"), "{multivariant}");
    let mpd = String::from_utf8(window.mpd("/time", Extent::Edge).unwrap().bytes.to_vec()).unwrap();
    assert!(mpd.contains("value=\"/time\"") && mpd.contains("availabilityStartTime=\"1970-01-01T00:00:00"), "{mpd}");
    let mut versions = window.version();
    versions.mark_unchanged();
    stage.put(film(9..10)).await;
    assert!(versions.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_one_track_is_not_woken_by_others() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    stage.put(film(0..5)).await;
    let looks: [Arc<AtomicUsize>; 2] = Default::default();
    for (track, looks) in looks.iter().cloned().enumerate() {
        let window = window.clone();
        let count = move |_: &_| (looks.fetch_add(1, Ordering::Relaxed) > 1000).then_some(());
        tokio::spawn(async move { window.when_track(track, PATIENCE, count).await });
    }
    tokio::task::yield_now().await;
    let counts = || looks.each_ref().map(|looks| looks.load(Ordering::Relaxed));
    assert_eq!(counts(), [1, 1]);
    stage.put(film(5..6).into_iter().filter(|frame| frame.track == VIDEO)).await;
    assert!(counts()[0] > 1 && counts()[1] == 1, "{:?}", counts());
}

#[tokio::test(start_paused = true)]
async fn all_requests_share_one_window() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let other = stage.feed().await;
    let (first, second) = (stage.window(&feed), stage.window(&other));
    assert!(Arc::ptr_eq(&first, &second) && first.run().len() == 16);
    stage.put(film(0..4)).await;
    assert_eq!(stage.kinds(), ["fake", "segmenter"]);
    assert!(Arc::ptr_eq(&first, &stage.window(&feed)));
    let plain = vec![None, None];
    stage.fake.begin_at(1, Duration::from_secs(20), plain);
    let nothing = stage.manager.live_feed(&stage.stream, PATIENCE).await.unwrap();
    drop((feed, other, first, second));
    stage.put([Frame { epoch: 1, ..picture(300) }]).await;
    let refused = stage.manager.window(&Program::live(&nothing), WindowOptions::default());
    assert_eq!(refused.unwrap_err(), CannotOpen::NoTracks);
}

#[tokio::test(start_paused = true)]
async fn the_graph_is_released_after_the_lease() {
    for (linger, term) in [(0, 9), (30, 30)] {
        let (stage, feed) = Stage::open(Duration::from_secs(linger)).await;
        let window = stage.window(&feed);
        drop(feed);
        stage.put(film(0..8)).await;
        assert!(window.ready(PATIENCE).await);
        let known = || stage.manager.window_of_stream(stage.stream.path());
        tokio::time::sleep(Duration::from_secs(12)).await;
        // It renews the lease.
        assert!(known().is_some_and(|known| Arc::ptr_eq(&known, &window)));
        tokio::time::sleep(Duration::from_secs(term) - Duration::from_millis(10)).await;
        assert!(!window.is_over() && stage.fake.is_open());
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(window.is_over() && !stage.fake.is_open() && !window.renew() && known().is_none());
        assert!(stage.kinds().is_empty());
        let asked = window.when(PATIENCE, |_| None::<()>);
        assert!(tokio::time::timeout(Duration::from_millis(1), asked).await.unwrap().is_none(), "nobody waits for it");
        let last = window.look(|window| window.segments().next_back().map(|segment| segment.number)).unwrap();
        let feed = stage.feed().await;
        let next = stage.window(&feed);
        assert!(next.run() != window.run() && next.is_over() != window.is_over());
        assert!(known().is_some_and(|known| Arc::ptr_eq(&known, &next)));
        stage.put(film(0..1)).await;
        // The target duration is known from before, so nothing is measured.
        let first = next.look(|window| window.segments().next().map(|segment| segment.number)).unwrap();
        assert!(first > last, "{first:?} {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_epoch_is_a_discontinuity() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    let before = film(0..5);
    stage.put(before.clone()).await;
    let from = Duration::from_secs(START + 20);
    stage.fake.begin_at(1, from, formats());
    let after: Vec<_> = film(20..25).into_iter().map(|frame| Frame { epoch: 1, ..frame }).collect();
    stage.put(after.clone()).await;
    for (track, (name, of_feed)) in [("v1", VIDEO), ("a1", AUDIO)].into_iter().enumerate() {
        let text = playlist(&window, track);
        let (old, new) = text.split_once("#EXT-X-DISCONTINUITY\n").unwrap();
        assert_eq!(text.matches("#EXT-X-DISCONTINUITY\n").count(), 1);
        let init = |epoch| format!("#EXT-X-MAP:URI=\"../~{}/{name}/init-{epoch}.mp4\"", window.run());
        assert!(old.contains(&init(0)) && new.contains(&init(1)), "{text}");
        let of = |text| samples(&window, track, 0, &listed(text, &window, name));
        let (old, given) = (of(old), of(new));
        let whole = expected(&before, of_feed);
        assert_eq!(old, whole, "nothing of the old epoch is lost");
        assert!(!given.is_empty());
        assert_eq!(given, expected(&after, of_feed)[..given.len()]);
        assert!(new.contains("#EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:40"), "{new}");
    }
    let mpd = String::from_utf8(window.mpd("/time", Extent::Edge).unwrap().bytes.to_vec()).unwrap();
    assert_eq!(mpd.matches("<Period ").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_epoch_with_other_tracks_ends_the_window() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    let before = film(0..5);
    stage.put(before.clone()).await;
    let waiting = {
        let window = window.clone();
        tokio::spawn(async move { window.when(PATIENCE * 10, |_| None::<()>).await })
    };
    let mut pictures = formats();
    pictures[1] = None;
    stage.fake.begin_at(1, Duration::from_secs(START + 5), pictures);
    let pictures = film(5..12).into_iter().filter(|frame| frame.track == VIDEO);
    let pictures: Vec<_> = pictures.map(|frame| Frame { epoch: 1, ..frame }).collect();
    stage.put(pictures[..1].to_vec()).await;
    assert!(window.is_over() && waiting.await.unwrap().is_none());
    // Viewers get all of it, for a while.
    let text = playlist(&window, 0);
    assert_eq!(samples(&window, 0, 0, &listed(&text, &window, "v1")), expected(&before, VIDEO));
    let run = window.run().to_owned();
    let is_found = |stage: &Stage| stage.manager.window_of_run(stage.stream.path(), &run).is_some();
    assert!(is_found(&stage));
    let feed = stage.feed().await;
    let next = stage.window(&feed);
    stage.put(pictures[1..].to_vec()).await;
    assert!(next.ready(PATIENCE).await, "{next:?} {:?} {:?}", stage.kinds(), stage.manager.streams());
    assert!(next.track("a1").is_none());
    assert_eq!((stage.fake.opened(), stage.kinds()), (1, vec!["fake", "segmenter"]));
    let text = playlist(&next, 0);
    let number = |window: &LiveWindow| window.look(|window| window.last_closed(0)).unwrap();
    assert!(listed(&text, &next, "v1")[0] > number(&window));
    drop(feed);
    drop(window);
    until(|| !is_found(&stage)).await;
    stage.fake.end();
    until(|| next.is_over()).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_and_a_silent_track_stop_nobody() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    stage.put(film(0..5)).await;
    let versions = window.version();
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(window.renew() && !window.is_over());
    let found = window.when(Duration::from_secs(1), |window| (window.version() > 1_000_000).then_some(()));
    assert!(found.await.is_none(), "patience ends");
    drop(versions);
    // Sound ends, and pictures stop just after a boundary: the check gives the sound up.
    stage.put(film(5..8).into_iter().filter(|frame| frame.track == VIDEO)).await;
    stage.put([picture(200)]).await;
    let closed = |track| window.look(|window| window.last_closed(track)).unwrap();
    assert!(closed(1) < closed(0));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(closed(1), closed(0));
    assert!(playlist(&window, 1).contains("#EXT-X-GAP\n"));
    stage.put(film(9..14)).await;
    let text = playlist(&window, 1);
    let numbers = listed(&text, &window, "a1");
    let last = samples(&window, 1, 0, &numbers[numbers.len() - 1..]);
    assert!(!last.is_empty());
    let mut again = expected(&film(9..14), AUDIO);
    again.retain(|sample| sample.1 >= last[0].1);
    assert_eq!(last, again[..last.len()], "sound goes on");
}

#[tokio::test(start_paused = true)]
async fn old_segments_give_way_where_memory_is_short() {
    let (stage, feed) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&feed);
    // 100 KiB a second; half of 4 MiB is for live frames.
    for second in 0..40 {
        let large =
            |frame: Frame| Frame { data: vec![0; if frame.track == VIDEO { 4 << 10 } else { 64 }].into(), ..frame };
        stage.put(film(second..second + 1).into_iter().map(large)).await;
    }
    assert_eq!(stage.manager.streams()[0].lost, 0);
    let (segments, bytes) = window.look(|window| (window.segments().len(), window.heap_bytes()));
    assert!((4..12).contains(&segments) && bytes < 2 << 20, "{segments} {bytes}");
    assert!(feed.epochs().borrow().len() == 1 && feed.path() == "cams/door");
}
