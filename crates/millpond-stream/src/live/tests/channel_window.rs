//! The window of a channel.

use super::{
    super::{LiveWindow, packaged},
    windows::{formats, picture, sound},
};
use crate::{
    Feed, Format, Frame, Run,
    graph::{LiveMemory, Module, Output, Registry, pipe},
    modules::Segmenter,
};
use millpond_package::live::{CutRules, SegmentNumber, Window, WindowLimits};
use millpond_store::{Holds, Store, StoreOptions};
use std::{sync::Arc, time::Duration};

/// Duration of a block.
const BLOCK: Duration = Duration::from_millis(200);
const RULES: CutRules = CutRules {
    part: Some(Duration::from_millis(334)),
    segment: Duration::from_secs(2),
    target: None,
    is_aligned: false,
};
const LIMITS: WindowLimits =
    WindowLimits { segments: 100, bytes: 1 << 20, age: Duration::from_secs(120), listed: Duration::from_secs(60) };

#[derive(Debug)]
struct Channel(Vec<Option<Format>>);

impl Feed for Channel {
    fn path(&self) -> &str {
        "news"
    }

    fn id(&self) -> u64 {
        7
    }

    fn formats(&self) -> &[Option<Format>] {
        &self.0
    }
}

/// A block of a channel that begins at time 0. B-frames are decoded after their presentation times, and the decoder of sound is
/// primed.
fn block(number: u32) -> Run {
    let start = Duration::from_secs(10);
    let within = |frame: &Frame| (BLOCK * number..BLOCK * (number + 1)).contains(&frame.due);
    let pictures = (number * 5..(number + 1) * 5).map(picture).map(|frame| Frame {
        due: frame.due - start,
        pts: frame.pts - 903_600,
        ..frame
    });
    let sounds = (number * 9..(number + 1) * 10 + 2).map(sound).map(|frame| {
        let pts = frame.pts - 480_000 - 1024;
        Frame { due: Duration::from_nanos(pts.max(0) as u64 * 1_000_000_000 / 48_000), pts, ..frame }
    });
    let mut all: Vec<_> = pictures.chain(sounds).filter(within).collect();
    all.sort_by_key(|frame| frame.due);
    all.into()
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_falls_behind_the_wall_clock_begins_an_epoch() {
    let (registry, channel) = (Registry::default(), Arc::new(Channel(formats())));
    let (from, to) = (registry.add("channel", "news"), registry.add("segmenter", "news"));
    let (writer, reader) = pipe(&registry, from.id(), to.id(), 64);
    let tracks = packaged((0..).zip(channel.formats()).filter_map(|(track, format)| Some((track, format.as_ref()?))));
    let window = Window::new(LIMITS, tracks.iter().map(|track| track.of_window()).collect(), 7);
    let window = Arc::new(LiveWindow::new("0".repeat(16), window, Duration::ZERO, None));
    let store = Store::new(&StoreOptions { memory: 4 << 20, ..StoreOptions::default() }).unwrap();
    let memory = LiveMemory::new(Holds::of(store.memory(), "live"), Arc::default(), 64 << 20);
    let segmenter = Segmenter::new(window.clone(), channel, (tracks, RULES, SegmentNumber(100)), (memory, None));
    let segmenter = tokio::spawn(Box::new(segmenter).run(vec![reader], Output::None));
    for number in 0..80 {
        if number == 40 {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        writer.reserve().await.unwrap().send(block(number));
        tokio::time::sleep(BLOCK).await;
    }
    drop(writer);
    segmenter.await.unwrap().unwrap();
    window.look(|window| {
        let epochs: Vec<_> = window.epochs().collect();
        let [first, second] = epochs[..] else { panic!("{}", epochs.len()) };
        let at = Duration::from_secs(20);
        assert_eq!(second.wall_of(at) - first.wall_of(at), Duration::from_secs(5));
        let segments: Vec<_> = window.segments().map(|segment| (segment.number.0, segment.epoch)).collect();
        assert_eq!(segments, [(100, 0), (101, 0), (102, 0), (103, 0), (104, 1), (105, 1), (106, 1), (107, 1)]);
        for segment in window.segments() {
            let pictures = segment.track(0).unwrap().parts();
            assert!(!pictures.is_empty());
            assert!(pictures.iter().flat_map(|part| &part.rows).all(|row| row.offset >= 0), "{:?}", segment.number);
        }
        let start = window.segments().next().unwrap().start;
        assert_eq!(start, Duration::from_secs(10));
    });
}
