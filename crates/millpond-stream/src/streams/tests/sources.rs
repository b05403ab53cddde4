//! Sources that fail, and too many of them.

use super::fake::{Fake, manager, pictures, until};
use crate::{CannotOpen, StreamState, source_health::SourceErrorKind};
use std::time::Duration;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_failure_is_told_at_once_and_remembered_for_a_second() {
    let (manager, fake) = (manager(), Fake::default());
    let stream = manager.live(fake.request("cams/door", Duration::from_secs(60))).unwrap();
    let (told, ()) = tokio::join!(manager.live_feed(&stream, PATIENCE), async {
        until(|| fake.is_open()).await;
        fake.fail();
    });
    assert_eq!(told.unwrap_err().kind, SourceErrorKind::NotFound);
    let again = manager.live_feed(&stream, PATIENCE).await.unwrap_err();
    assert_eq!((again.kind, fake.opened()), (SourceErrorKind::NotFound, 1));
    assert!(matches!(stream.state(), StreamState::Failed { .. }));
    until(|| !fake.is_open()).await;
    drop(stream);
    until(|| manager.streams().is_empty()).await;
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let (told, ()) = tokio::join!(manager.live_feed(&stream, PATIENCE), async {
        until(|| fake.opened() == 2).await;
        fake.begin(0, vec![pictures(*b"vp08")]);
    });
    assert!(told.is_ok());
}

#[tokio::test(start_paused = true)]
async fn viewers_before_the_turn_of_a_phase_are_told_when_it_begins_and_find_it_then() {
    let (manager, fake) = (manager(), Fake::default());
    let stream = manager.live(fake.request("movie/phase-2", Duration::ZERO)).unwrap();
    let begins = (Instant::now() + Duration::from_secs(75)).into_std();
    let (told, ()) = tokio::join!(manager.live_feed(&stream, PATIENCE), async {
        until(|| fake.is_open()).await;
        fake.reporter().scheduled(begins);
    });
    let told = told.unwrap_err();
    assert_eq!(told.kind, SourceErrorKind::NotBegun { begins });
    assert_eq!(stream.state().name(), "waiting");
    // Another viewer is told the time that is left.
    tokio::time::sleep_until((begins - Duration::from_secs(10)).into()).await;
    let again = manager.live_feed(&stream, PATIENCE).await.unwrap_err();
    assert!(again.words.ends_with("begins in 10 s"), "{again}");
    // One who comes just before waits.
    tokio::time::sleep_until((begins - Duration::from_secs(1)).into()).await;
    let (feed, ()) = tokio::join!(manager.live_feed(&stream, PATIENCE), async {
        tokio::time::sleep_until(begins.into()).await;
        fake.begin(0, vec![pictures(*b"vp08")]);
    });
    drop(feed.unwrap());
    assert_eq!((fake.opened(), fake.is_open()), (1, true), "viewers who were told may still come");
    tokio::time::sleep_until((begins + Duration::from_secs(60)).into()).await;
    until(|| !fake.is_open()).await;
}

#[tokio::test]
async fn a_source_that_ends_is_an_error() {
    let (manager, fake) = (manager(), Fake::default());
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let (told, ()) = tokio::join!(manager.live_feed(&stream, PATIENCE), async {
        until(|| fake.is_open()).await;
        fake.end();
    });
    assert_eq!(told.unwrap_err().kind, SourceErrorKind::NoMedia);
}

#[tokio::test]
async fn streams_are_bounded_and_idle_ones_make_room() {
    let (manager, fake) = (manager(), Fake::default());
    let request = |path: &str| fake.request(path, Duration::ZERO);
    let held = manager.live(request("a")).unwrap();
    let other = manager.live(request("b")).unwrap();
    assert_eq!(manager.live(request("c")).unwrap_err(), CannotOpen::Streams);
    drop(other);
    let third = manager.live(request("c")).unwrap();
    let another = Fake::default();
    let replaced = manager.live(another.request("c", Duration::ZERO)).unwrap_err();
    assert_eq!(replaced, CannotOpen::Streams, "both are held");
    drop(third);
    assert_eq!(manager.live(another.request("c", Duration::ZERO)).unwrap().path(), "c");
    drop(held);
}
