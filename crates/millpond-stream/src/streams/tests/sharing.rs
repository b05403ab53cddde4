//! Many viewers of one source.

use super::fake::{Fake, Recorder, manager, picture, pictures, until};
use crate::{
    Feed, Format, LiveFeed, StreamState,
    live::Program,
    manager::{Manager, Playing, Request, Subscriber},
    streams::LiveStream,
};
use std::{sync::Arc, time::Duration};

const PATIENCE: Duration = Duration::from_secs(30);

fn vp8() -> Vec<Option<Format>> {
    vec![pictures(*b"vp08")]
}

/// Opens a stream and begins its first epoch.
pub(super) async fn open(manager: &Arc<Manager>, fake: &Fake, linger: Duration) -> (Arc<LiveStream>, Arc<LiveFeed>) {
    let stream = manager.live(fake.request("cams/door", linger)).unwrap();
    let feed = {
        let (manager, stream) = (manager.clone(), stream.clone());
        tokio::spawn(async move { manager.live_feed(&stream, PATIENCE).await })
    };
    until(|| fake.is_open()).await;
    fake.begin(0, vp8());
    (stream, feed.await.unwrap().unwrap())
}

/// Plays all tracks to a recorder.
async fn play(manager: &Manager, feed: &Arc<LiveFeed>) -> (Arc<Recorder>, Subscriber, Playing) {
    let recorder = Arc::new(Recorder::default());
    let mut subscriber = manager.subscribe(|_| None);
    let described = feed.formats()[0].as_ref().unwrap().described(0).unwrap();
    subscriber.set_up(0, &described, recorder.clone(), (7, None));
    let opened = manager.open(&mut subscriber, Request::Channel(Program::live(feed))).await.unwrap();
    (recorder, subscriber, opened.start())
}

#[tokio::test]
async fn all_viewers_share_one_source_which_ends_with_the_last_one() {
    let (manager, fake) = (manager(), Fake::default());
    let (stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    (0..15).for_each(|number| fake.put(picture(number)));
    let again = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    assert!(Arc::ptr_eq(&stream, &again));
    let other = manager.live_feed(&again, PATIENCE).await.unwrap();
    assert_eq!((fake.opened(), feed.id()), (1, other.id()));
    until(|| manager.streams()[0].frames == 15).await;
    let mut first = manager.branch(&Program::live(&feed), "a").await.unwrap();
    let (recorder, _subscriber, playing) = play(&manager, &other).await;
    fake.put(picture(15));
    until(|| recorder.numbers().last() == Some(&15)).await;
    assert_eq!(recorder.numbers(), [10, 11, 12, 13, 14, 15]);
    for number in 10..16 {
        assert_eq!(first.next().await.unwrap()[0].number, number, "from the last key frame on");
    }
    let report = &manager.streams()[0];
    assert_eq!((report.branches, report.frames, report.run), (2, 16, Some(feed.id())));
    assert!(matches!(report.state, StreamState::Running { .. }) && &*report.path == "cams/door");
    let kinds = manager.registry().snapshot().modules.into_iter().map(|node| node.kind);
    assert_eq!(kinds.collect::<Vec<_>>(), ["fake", "viewing", "transmission"]);
    drop((first, feed, other));
    fake.put(picture(16));
    until(|| recorder.numbers().last() == Some(&16)).await;
    drop(playing);
    until(|| !fake.is_open() && manager.registry().snapshot().modules.is_empty()).await;
    assert!(manager.registry().snapshot().pipes.is_empty());
    assert!(matches!(stream.state(), StreamState::Waiting));
    assert!(stream.is_known());
    let told = fake.forget_reporter();
    until(|| told.upgrade().is_none()).await;
}

#[tokio::test]
async fn a_stream_lingers_and_the_next_viewer_finds_it() {
    let (manager, fake) = (manager(), Fake::default());
    let (stream, feed) = open(&manager, &fake, Duration::from_millis(300)).await;
    let run = feed.id();
    drop(feed);
    let feed = manager.live_feed(&stream, PATIENCE).await.unwrap();
    assert_eq!((fake.opened(), feed.id()), (1, run));
    drop(feed);
    until(|| !fake.is_open()).await;
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let late = manager.live_feed(&stream, Duration::from_millis(20)).await.unwrap_err();
    assert!(fake.opened() == 2 && late.words.contains("20ms"), "{late}");
    until(|| !fake.is_open()).await;
}

#[tokio::test]
async fn rtp_goes_on_over_epochs_and_pauses_while_the_codec_is_another_one() {
    let (manager, fake) = (manager(), Fake::default());
    let (_, feed) = open(&manager, &fake, Duration::ZERO).await;
    fake.put(picture(0));
    let (recorder, _subscriber, _playing) = play(&manager, &feed).await;
    until(|| recorder.numbers() == [0]).await;
    fake.begin(1, vp8());
    for number in 10..12 {
        fake.put(crate::Frame { epoch: 1, ..picture(number) });
    }
    until(|| recorder.numbers() == [0, 10, 11]).await;
    let headers: Vec<[u8; 12]> = recorder.frames.lock().unwrap().iter().map(|(_, header)| *header).collect();
    let sequence = |header: &[u8; 12]| u16::from_be_bytes([header[2], header[3]]);
    let time = |header: &[u8; 12]| u32::from_be_bytes(header[4..8].try_into().unwrap());
    assert_eq!(sequence(&headers[2]), sequence(&headers[0]).wrapping_add(2));
    assert_eq!(time(&headers[2]), time(&headers[0]).wrapping_add(11 * 3600));
    let reports = recorder.reports.lock().unwrap().len();
    fake.begin(2, vec![pictures(*b"vp09")]);
    for number in 20..22 {
        fake.put(crate::Frame { epoch: 2, ..picture(number) });
    }
    until(|| recorder.reports.lock().unwrap().len() > reports).await;
    let last = recorder.reports.lock().unwrap().last().unwrap().clone();
    assert!(last.windows(18).any(|text| text == b"the format changed"));
    assert_eq!(recorder.numbers(), [0, 10, 11]);
    fake.begin(3, vp8());
    fake.put(crate::Frame { epoch: 3, ..picture(30) });
    until(|| recorder.numbers() == [0, 10, 11, 30]).await;
}

#[tokio::test]
async fn a_lost_source_begins_no_viewer_with_old_frames() {
    let (manager, fake) = (manager(), Fake::default());
    let (stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    fake.put(picture(0));
    until(|| manager.streams()[0].frames == 1).await;
    let error = crate::source_health::SourceError {
        kind: crate::source_health::SourceErrorKind::TimedOut,
        address: "fake".into(),
        words: "silent".into(),
    };
    fake.reporter().lost(Arc::new(error));
    assert!(matches!(stream.state(), StreamState::Lost { .. }));
    let program = Program::live(&feed);
    let mut waiting = Box::pin(manager.branch(&program, "a"));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut waiting).await.is_err());
    fake.begin(1, vp8());
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut waiting).await.is_err());
    fake.put(crate::Frame { epoch: 1, ..picture(10) });
    assert_eq!(waiting.await.unwrap().next().await.unwrap()[0].number, 10);
}

#[tokio::test]
async fn frames_are_counted_and_lost_where_there_is_no_memory() {
    let (manager, fake) = (manager(), Fake::default());
    let (_, feed) = open(&manager, &fake, Duration::ZERO).await;
    // Half of 4 MiB is for live frames.
    let large = |number| crate::Frame { data: vec![0; 600 << 10].into(), ..picture(number) };
    fake.put(large(0));
    until(|| manager.streams()[0].frames == 1).await;
    let mut reader = manager.branch(&Program::live(&feed), "slow").await.unwrap();
    (1..10).for_each(|number| fake.put(large(number)));
    until(|| manager.streams()[0].frames == 10).await;
    assert_eq!(manager.streams()[0].lost, 7);
    for number in 0..3 {
        assert_eq!(reader.next().await.unwrap()[0].number, number);
    }
    (9..11).for_each(|number| fake.put(large(number)));
    assert_eq!(reader.next().await.unwrap()[0].number, 10, "the next key frame");
}
