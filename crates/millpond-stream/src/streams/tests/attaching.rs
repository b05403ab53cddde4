//! Modules that operators attach.

use super::{
    fake::{Fake, manager, picture, until},
    sharing::open,
};
use crate::{
    Attached, AttachmentEnd, CannotAttach, Feed, Frame, Linger, LiveFeed, LiveRequest, ModuleOptions, Options,
    PublishRefused, Source, live::Program, manager::Manager,
};
use std::{sync::Arc, time::Duration};

const PATIENCE: Duration = Duration::from_secs(30);

fn published(path: &str) -> LiveRequest {
    let linger = Linger::For(Duration::ZERO);
    LiveRequest { path: path.into(), source: Source::Published, relayed: None, linger, shift: None }
}

/// Publishes a stream under another name.
async fn tee(manager: &Manager, feed: &Arc<LiveFeed>, to: &str) -> Result<Attached, CannotAttach> {
    let (kind, program) = (manager.attachable_kinds().remove(0), Program::live(feed));
    let options = ModuleOptions::of([("to".to_owned(), to.to_owned())]);
    let made = kind.make(&program, &options, 1).await.unwrap();
    manager.attach(&program, made.module, &made.label, Some(published(to))).await
}

async fn published_feed(manager: &Manager, path: &str) -> Arc<LiveFeed> {
    let stream = manager.live(published(path)).unwrap();
    manager.live_feed(&stream, PATIENCE).await.unwrap()
}

fn memory(manager: &Manager, path: &str) -> u64 {
    manager.streams().iter().find(|report| &*report.path == path).map_or(0, |report| report.memory)
}

#[tokio::test]
async fn a_tee_publishes_the_same_frames_and_disturbs_no_viewer() {
    let (manager, fake) = (manager(), Fake::default());
    let (_stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    (0..15).for_each(|number| fake.put(picture(number)));
    let mut viewer = manager.branch(&Program::live(&feed), "before").await.unwrap();
    let attached = tee(&manager, &feed, "live/copy").await.unwrap();
    let copy = published_feed(&manager, "live/copy").await;
    assert_eq!(copy.formats().len(), feed.formats().len());
    let mut copied = manager.branch(&Program::live(&copy), "copied").await.unwrap();
    (15..40).for_each(|number| fake.put(picture(number)));
    let mut seen: Vec<Frame> = Vec::new();
    while seen.last().is_none_or(|frame| frame.number < 39) {
        seen.extend(viewer.next().await.unwrap().iter().cloned());
    }
    let mut there: Vec<Frame> = Vec::new();
    while there.last().is_none_or(|frame| frame.data != seen.last().unwrap().data) {
        there.extend(copied.next().await.unwrap().iter().cloned());
    }
    assert!(seen.windows(2).all(|pair| pair[1].number == pair[0].number + 1), "the viewer lost a frame");
    let same = &seen[seen.len() - there.len()..];
    assert!(there.len() >= 30, "{}", there.len());
    for (number, (frame, original)) in (0..).zip(there.iter().zip(same)) {
        assert_eq!((frame.number, &frame.data, frame.is_sync), (number, &original.data, original.is_sync));
        assert_eq!(frame.pts - there[0].pts, original.pts - same[0].pts);
        assert_eq!(frame.due - there[0].due, original.due - same[0].due);
    }
    let snapshot = manager.registry().snapshot();
    let id = |kind: &str| snapshot.modules.iter().find(|node| node.kind == kind).unwrap().id;
    let pipes: Vec<_> = snapshot.pipes.iter().map(|pipe| (pipe.from, pipe.to)).collect();
    assert!(pipes.contains(&(id("fake"), id("tee"))) && pipes.contains(&(id("tee"), id("publication"))), "{pipes:?}");
    drop(attached);
    fake.put(picture(40));
    while seen.last().is_none_or(|frame| frame.number < 40) {
        seen.extend(viewer.next().await.unwrap().iter().cloned());
    }
    until(|| manager.registry().snapshot().modules.iter().all(|node| node.kind != "tee")).await;
}

#[tokio::test]
async fn frames_that_viewers_of_a_tee_hold_take_no_memory_of_its_source() {
    let (manager, fake) = (manager(), Fake::default());
    let (_stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    (0..11).for_each(|number| fake.put(picture(number)));
    let _attached = tee(&manager, &feed, "live/copy").await.unwrap();
    let copy = published_feed(&manager, "live/copy").await;
    let slow = manager.branch(&Program::live(&copy), "slow").await.unwrap();
    (11..200).for_each(|number| fake.put(picture(number)));
    until(|| manager.streams().iter().all(|report| report.frames >= 190)).await;
    let (source, copied) = (memory(&manager, "cams/door"), memory(&manager, "live/copy"));
    assert!(copied > source * 10, "{source} at the source, {copied} at the copy");
    drop(slow);
}

#[tokio::test]
async fn outputs_that_have_a_publisher_or_lead_back_are_refused() {
    let (manager, fake) = (manager(), Fake::default());
    manager.reconfigure(Options { max_streams: 8, ..(*manager.options()).clone() }, []);
    let (_stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    (0..11).for_each(|number| fake.put(picture(number)));
    let first = tee(&manager, &feed, "live/a").await.unwrap();
    let a = published_feed(&manager, "live/a").await;
    let refused = tee(&manager, &feed, "live/a").await.unwrap_err();
    assert!(matches!(refused, CannotAttach::Publish(PublishRefused::Taken)), "{refused}");
    let second = tee(&manager, &a, "live/b").await.unwrap();
    let b = published_feed(&manager, "live/b").await;
    for to in ["live/a", "live/b"] {
        let refused = tee(&manager, &b, to).await.unwrap_err();
        assert!(matches!(refused, CannotAttach::Circle(_)), "{to}: {refused}");
    }
    // A stream that is ended tells its modules.
    assert!(manager.end_publication("live/b"));
    let mut end = second.end();
    let end = end.wait_for(Option::is_some).await.unwrap().clone();
    assert_eq!(end, Some(AttachmentEnd::Output("the stream is closed".to_owned())));
    assert!(first.end().borrow().is_none());
}
