//! What viewers of a stream know of its frames before those have shown it.

use super::fake::{Fake, manager, picture, pictures, until};
use crate::{Format, Frame, Tempo, live::Program, manager::Manager};
use millpond_media::codec::{AvcConfig, Codec};
use std::{sync::Arc, time::Duration};

/// x264, High, at most two reordered frames, 25 frames a second.
const TWO: &str = "6764000cacd941419f9f011000000300100000030320f1429960";
/// x264, Baseline, no reordered frames, 25 frames a second.
const NONE: &str = "6742c00dd901419f9f0e1000000300100000030320f142a480";
/// A camera: order type 2, without a frame rate.
const NO_RATE: &str = "674d001e95a8280f64";
/// Main, order type 0, without usability information.
const UNSTATED: &str = "674d001ef40a0fc8";

const INTERVAL: Duration = Duration::from_millis(40);

fn bytes(digits: &str) -> Vec<u8> {
    digits.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// A format of H.264 with a sequence parameter set.
fn h264(sps: &str) -> Option<Format> {
    let (sps, pps, color) = (vec![bytes(sps)], Vec::new(), None);
    let (profile, compatibility, level, nal_length_size) = (77, 0, 30, 4);
    let config = AvcConfig { fourcc: *b"avc1", profile, compatibility, level, nal_length_size, sps, pps, color };
    let mut format = pictures(*b"vp09").unwrap();
    format.track.codec = Codec::Avc(config);
    Some(format)
}

fn expected(format: Option<Format>) -> Option<Tempo> {
    Tempo::stated(0, &format.unwrap())
}

/// What a viewer knows who joins a stream behind `frames`, which is opened for him. Nobody else plays.
async fn joined(manager: &Arc<Manager>, fake: &Fake, format: Option<Format>, frames: u32) -> Option<Tempo> {
    let opened = fake.opened();
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let feed = {
        let (manager, stream) = (manager.clone(), stream.clone());
        tokio::spawn(async move { manager.live_feed(&stream, Duration::from_secs(30)).await })
    };
    until(|| fake.opened() > opened && fake.is_open()).await;
    fake.begin(0, vec![format]);
    let feed = feed.await.unwrap().unwrap();
    (0..frames).for_each(|number| fake.put(picture(number)));
    until(|| manager.streams()[0].frames == u64::from(frames)).await;
    let tempo = manager.branch(&Program::live(&feed), "a").await.unwrap().tempo();
    drop(feed);
    until(|| !fake.is_open()).await;
    tempo
}

#[test]
fn parameter_sets_state_the_order_of_pictures() {
    let tempo = |interval, reorder| Some(Tempo { track: 0, interval, reorder });
    assert_eq!(expected(h264(NONE)), tempo(Some(INTERVAL), 0));
    assert_eq!(expected(h264(TWO)), tempo(Some(INTERVAL), 2 * 3600));
    assert_eq!(expected(h264(NO_RATE)), tempo(None, 0));
    assert_eq!(expected(h264(UNSTATED)), None, "any order is allowed");
    assert_eq!(expected(h264("67")), None, "it can't be read");
    assert_eq!(expected(pictures(*b"vp09")), tempo(None, 0), "there is one order alone");
}

#[test]
fn what_a_source_claims_is_bounded() {
    // Up to 16 reordered frames of up to a second, and rates from one frame in a second to a thousand.
    for at in 4..bytes(TWO).len() {
        for value in 0..=255 {
            let mut set = bytes(TWO);
            set[at] = value;
            let digits: String = set.iter().map(|byte| format!("{byte:02x}")).collect();
            let Some(Tempo { interval, reorder, .. }) = expected(h264(&digits)) else { continue };
            assert!((0..=16 * 90_000).contains(&reorder), "{digits}");
            let is_credible = |interval| interval >= Duration::from_millis(1) && interval <= Duration::from_millis(100);
            assert!(interval.is_none_or(is_credible), "{digits}");
        }
    }
}

#[tokio::test]
async fn the_first_picture_is_enough_where_the_order_is_stated() {
    let (manager, fake) = (manager(), Fake::default());
    let tempo = joined(&manager, &fake, h264(NONE), 1).await;
    assert_eq!(tempo, Some(Tempo { track: 0, interval: Some(INTERVAL), reorder: 0 }));
    let two = joined(&manager, &fake, h264(TWO), 11).await;
    assert_eq!(two, Some(Tempo { track: 0, interval: Some(INTERVAL), reorder: 0 }), "a group of pictures has shown it");
}

#[tokio::test]
async fn the_last_run_tells_what_the_parameter_sets_do_not() {
    let (manager, fake) = (manager(), Fake::default());
    assert_eq!(joined(&manager, &fake, h264(UNSTATED), 1).await, None);
    let shown = Some(Tempo { track: 0, interval: Some(INTERVAL), reorder: 0 });
    assert_eq!(joined(&manager, &fake, h264(UNSTATED), 11).await, shown);
    assert_eq!(joined(&manager, &fake, h264(UNSTATED), 1).await, shown);
    assert_eq!(joined(&manager, &fake, h264(NO_RATE), 1).await.unwrap().interval, None, "of other parameter sets");
}

#[tokio::test]
async fn frames_that_contradict_the_statement_are_believed() {
    let (manager, fake) = (manager(), Fake::default());
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let feed = {
        let (manager, stream) = (manager.clone(), stream.clone());
        tokio::spawn(async move { manager.live_feed(&stream, Duration::from_secs(30)).await })
    };
    until(|| fake.is_open()).await;
    fake.begin(0, vec![h264(NONE)]);
    let feed = feed.await.unwrap().unwrap();
    fake.put(picture(0));
    let due = picture(0).due + INTERVAL / 2;
    fake.put(Frame { due, pts: picture(0).pts + 800, ..picture(1) });
    until(|| manager.streams()[0].frames == 2).await;
    let tempo = manager.branch(&Program::live(&feed), "a").await.unwrap().tempo();
    assert_eq!(tempo, Some(Tempo { track: 0, interval: Some(INTERVAL / 2), reorder: 1000 }));
}
