//! Copies of windows at another engine, which goes on in them with its own source.

use super::windows::{Stage, film};
use crate::{
    WindowOptions,
    live::{CannotCopy, LiveWindow, WindowCopy},
};
use bytes::Bytes;
use millpond_package::{
    hls::Container,
    live::{CopyCursor, CopyRecord, SegmentNumber, Window},
};
use std::time::Duration;

const LINGER: Duration = Duration::from_secs(30);

/// Sends a copy what it lacks of a window.
fn send(window: &LiveWindow, cursor: &mut CopyCursor, copy: &mut WindowCopy) -> Result<bool, CannotCopy> {
    let (mut records, mut bytes): (_, Vec<Bytes>) = Default::default();
    while window.look(|of| cursor.advance(of, window.run(), &mut records)) {}
    records.iter().for_each(|record| record.write(&mut bytes));
    copy.push(&bytes.concat())
}

fn playlist(window: &LiveWindow, track: usize) -> String {
    String::from_utf8(window.media(Container::Fmp4, track, false).unwrap().bytes.to_vec()).unwrap()
}

fn line<'a>(playlist: &'a str, tag: &str) -> &'a str {
    playlist.lines().find_map(|line| line.strip_prefix(tag)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn another_engine_goes_on_in_a_copy() {
    let (owner, feed) = Stage::open(LINGER).await;
    let window = owner.window(&feed);
    owner.put(film(0..7)).await;

    let (next, next_feed) = Stage::open(LINGER).await;
    let mut copy = next.manager.copy_window("cams/door", WindowOptions::default(), LINGER);
    let mut cursor = CopyCursor::default();
    assert_eq!(send(&window, &mut cursor, &mut copy), Ok(false));
    let copied = copy.window().unwrap().clone();
    for track in [0, 1] {
        assert_eq!(playlist(&copied, track), playlist(&window, track));
        assert_eq!(copied.init(track, 0), window.init(track, 0));
    }
    // Players of this engine get it, and engines that copy do not.
    let of_run = next.manager.window_of_run("cams/door", window.run()).unwrap();
    assert!(std::ptr::eq(&*of_run, &*copied));
    assert!(next.manager.window_of_stream("cams/door").is_some());
    assert!(next.manager.window_to_copy("cams/door").is_none());
    assert!(owner.manager.window_to_copy("cams/door").is_some());

    // The owner is gone: the stream of this engine goes on in it.
    owner.put(film(7..8)).await;
    assert_eq!(send(&window, &mut cursor, &mut copy), Ok(false));
    let before = playlist(&copied, 0);
    let waiting = copied.clone();
    let last = copied.look(|window| window.segments().next_back().unwrap().number);
    let has_begun = move |window: &Window| {
        let of_track = window.segment(last.next()).and_then(|segment| segment.track(0));
        of_track.filter(|of_track| !of_track.parts().is_empty()).map(drop)
    };
    let next_segment = tokio::spawn(async move { waiting.when(LINGER, has_begun).await });
    copy.leave();
    let own = next.window(&next_feed);
    assert!(std::ptr::eq(&*own, &*copied), "the same window");
    next.put(film(0..5)).await;
    assert_eq!(next_segment.await.unwrap(), Some(()), "those who wait get it");
    let after = playlist(&own, 0);
    for tag in
        ["#EXT-X-TARGETDURATION:", "#EXT-X-PART-INF:", "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-DISCONTINUITY-SEQUENCE:"]
    {
        assert_eq!(line(&before, tag), line(&after, tag), "{after}");
    }
    assert_eq!(after.matches("#EXT-X-DISCONTINUITY\n").count(), 1, "{after}");
    let begins = format!("#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"../~{}/v1/init-1.mp4\"", window.run());
    assert!(after.contains(&begins), "{after}");
    // Times never go back.
    own.look(|window| {
        let starts: Vec<_> = window.segments().filter_map(|segment| segment.track(0)?.start()).collect();
        assert!(starts.is_sorted() && starts.len() > 5, "{starts:?}");
        let numbers: Vec<_> = window.segments().map(|segment| segment.number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0].next() == pair[1]), "{numbers:?}");
        assert!(numbers.contains(&SegmentNumber(last.0 + 2)));
    });
    // Engines that copy get all of it from here now.
    assert!(next.manager.window_to_copy("cams/door").is_some_and(|window| window.run() == own.run()));
}

#[tokio::test(start_paused = true)]
async fn a_window_gives_way_to_the_copy_of_its_own_run() {
    let (owner, feed) = Stage::open(LINGER).await;
    let window = owner.window(&feed);
    owner.put(film(0..7)).await;
    let (next, next_feed) = Stage::open(LINGER).await;
    let mut copy = next.manager.copy_window("cams/door", WindowOptions::default(), LINGER);
    assert_eq!(send(&window, &mut CopyCursor::default(), &mut copy), Ok(false));
    assert!(copy.window().unwrap().is_of_another() && !window.is_of_another());
    copy.leave();
    let taken = next.window(&next_feed);
    next.put(film(0..5)).await;
    assert!(taken.is_of_another() && !taken.is_copy());

    // The owner had only paused. It goes on in the window of the other one.
    let mut back = owner.manager.copy_window("cams/door", WindowOptions::default(), LINGER);
    assert_eq!(send(&taken, &mut CopyCursor::default(), &mut back), Ok(false));
    assert!(window.is_over() && window.is_displaced() && !taken.is_over());
    let copied = back.window().unwrap().clone();
    assert_eq!(playlist(&copied, 0), playlist(&taken, 0));
    // The end of the window of before forgets nothing of the new one.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let of_run = owner.manager.window_of_run("cams/door", window.run()).unwrap();
    let of_stream = owner.manager.window_of_stream("cams/door").unwrap();
    assert!(std::ptr::eq(&*of_run, &*copied) && std::ptr::eq(&*of_stream, &*copied));
    assert!(owner.manager.window_to_copy("cams/door").is_none());
    assert!(owner.manager.copy_of_stream("cams/door").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_copy_ends_with_its_owner_and_where_no_source_follows() {
    let (owner, feed) = Stage::open(LINGER).await;
    let window = owner.window(&feed);
    owner.put(film(0..7)).await;
    // An engine that runs the stream needs no copy.
    let (other, other_feed) = Stage::open(LINGER).await;
    let of_other = other.window(&other_feed);
    other.put(film(0..7)).await;
    let mut refused = owner.manager.copy_window("cams/door", WindowOptions::default(), LINGER);
    assert_eq!(send(&of_other, &mut CopyCursor::default(), &mut refused), Err(CannotCopy::Running));
    assert!(owner.manager.window_to_copy("cams/door").is_some());

    let (next, _) = Stage::open(LINGER).await;
    let run = || next.manager.window_of_run("cams/door", window.run());
    let begin = || {
        let mut copy = next.manager.copy_window("cams/door", WindowOptions::default(), LINGER);
        assert_eq!(send(&window, &mut CopyCursor::default(), &mut copy), Ok(false));
        copy
    };
    let mut copy = begin();
    let mut ended = Vec::new();
    CopyRecord::Ended.write(&mut ended);
    assert_eq!(copy.push(&ended.concat()), Ok(true));
    assert!(run().is_some());
    drop(copy);
    assert!(run().is_none());
    begin().leave();
    assert!(run().is_some());
    tokio::time::sleep(LINGER * 2).await;
    assert!(run().is_none() && next.manager.window_of_stream("cams/door").is_none());
}
