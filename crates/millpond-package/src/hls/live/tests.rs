use super::*;
use crate::live::{
    Cut, CutRules, Directives, Reload, SegmentNumber, live_webvtt,
    testing::{LIMITS, cut, epoch, film, rules, subtitled, window},
};
use proptest::prelude::*;
use std::collections::HashMap;

const VIEW: PlaylistView<'static> =
    PlaylistView { run: "0a1b", container: Container::Fmp4, skip: false, extent: Extent::Edge, query: "" };

#[test]
fn a_stream_without_parts() {
    let whole = CutRules { part: None, ..rules() };
    let window = window(LIMITS, cut(whole, film(5, 50)));
    let expected = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:3\n\
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=18.0\n\
        #EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MAP:URI=\"../~0a1b/v1/init-0.mp4\"\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:00.000Z\n#EXTINF:2.000000,\n../~0a1b/v1/100.m4s\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:02.000Z\n#EXTINF:2.000000,\n../~0a1b/v1/101.m4s\n\
        #EXT-X-RENDITION-REPORT:URI=\"../a1/index.m3u8\",LAST-MSN=101\n";
    assert_eq!(media(&window, 0, &VIEW).unwrap(), expected);
    assert!(media(&window, 2, &VIEW).is_none());
}

#[test]
fn a_stream_with_low_latency() {
    let window = window(LIMITS, cut(rules(), film(3, 50)));
    let list = media(&window, 0, &VIEW).unwrap();
    let expected = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:3\n\
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=18.0,PART-HOLD-BACK=1.002\n\
        #EXT-X-PART-INF:PART-TARGET=0.334\n\
        #EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MAP:URI=\"../~0a1b/v1/init-0.mp4\"\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:00.000Z\n\
        #EXT-X-PART:DURATION=0.320001,URI=\"../~0a1b/v1/100.0.m4s\",INDEPENDENT=YES\n\
        #EXT-X-PART:DURATION=0.320001,URI=\"../~0a1b/v1/100.1.m4s\"\n";
    assert!(list.starts_with(expected), "{list}");
    let expected = "#EXT-X-PART:DURATION=0.080001,URI=\"../~0a1b/v1/100.6.m4s\"\n#EXTINF:2.000000,\n../~0a1b/v1/100.m4s\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:02.000Z\n\
        #EXT-X-PART:DURATION=0.320001,URI=\"../~0a1b/v1/101.0.m4s\",INDEPENDENT=YES\n\
        #EXT-X-PART:DURATION=0.320001,URI=\"../~0a1b/v1/101.1.m4s\"\n\
        #EXT-X-PART:DURATION=0.320001,URI=\"../~0a1b/v1/101.2.m4s\"\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"../~0a1b/v1/101.3.m4s\"\n\
        #EXT-X-RENDITION-REPORT:URI=\"../a1/index.m3u8\",LAST-MSN=101,LAST-PART=2\n";
    assert!(list.ends_with(expected), "{list}");
    let sound = media(&window, 1, &VIEW).unwrap();
    assert!(sound.contains("#EXTINF:1.984001,\n../~0a1b/a1/100.m4s\n"), "{sound}");
    assert!(sound.contains("#EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:01.984Z\n"), "{sound}");
    assert!(sound.ends_with("URI=\"../v1/index.m3u8\",LAST-MSN=101,LAST-PART=2\n"), "{sound}");
}

/// Subtitles from 11 s of the stream to 13 s.
const TEXTS: [(i64, &[u8]); 2] = [(990_000, b"\0\0\0\x11vttc\0\0\0\x09payla"), (1_170_000, b"\0\0\0\x08vtte")];

#[test]
fn subtitles_are_webvtt_beside_any_container() {
    let window = subtitled(cut(rules(), film(5, 50)), &TEXTS);
    let control = "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n";
    for (container, base, control) in [(Container::Fmp4, "0", control), (Container::Ts, "900000", "")] {
        let list = media(&window, 2, &PlaylistView { container, ..VIEW }).unwrap();
        let head = format!("#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:3\n{control}");
        let expected = "#EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
            #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:00.000Z\n#EXTINF:2.000000,\n../~0a1b/text1/100.vtt\n\
            #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:02.000Z\n#EXTINF:2.000000,\n../~0a1b/text1/101.vtt\n";
        assert_eq!(list, format!("{head}{expected}"), "{container:?}");
        let text = |number| live_webvtt(window.text_samples(2, SegmentNumber(number)).unwrap(), container);
        let head = format!("WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:{base},LOCAL:00:00:00.000\n\n");
        assert_eq!(text(100), format!("{head}00:00:11.000 --> 00:00:12.000\na\n"));
        assert_eq!(text(101), format!("{head}00:00:12.000 --> 00:00:13.000\na\n"));
        let master = crate::hls::live_multivariant(&window, container).unwrap();
        let expected = "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=\"French\",LANGUAGE=\"fr\",DEFAULT=NO,AUTOSELECT=YES,\
            FORCED=NO,URI=\"text1/index.m3u8\"\n";
        assert!(master.contains(expected) && master.contains(",SUBTITLES=\"text\""), "{master}");
    }
    let pictures = media(&window, 0, &VIEW).unwrap();
    assert!(!pictures.contains("text1"), "players don't wait for subtitles: {pictures}");
    let wait =
        |segment| Directives { segment: Some(SegmentNumber(segment)), ..Directives::default() }.decide(&window, 2);
    assert_eq!([101, 102, 104].map(wait), [Reload::Now, Reload::Wait, Reload::TooFar]);
    let none = subtitled(cut(rules(), film(1, 50)), &TEXTS);
    assert!(media(&none, 2, &VIEW).is_none(), "no segment is complete");
}

#[test]
fn the_multivariant_playlist_lists_the_tracks_of_the_newest_epoch() {
    let window = window(LIMITS, cut(rules(), film(5, 50)));
    let rate = window.bandwidth(0).with(window.bandwidth(1));
    let expected = format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"a1/index.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360,FRAME-RATE=25.000,AUDIO=\"aac\",CLOSED-CAPTIONS=NONE\n\
        v1/index.m3u8\n",
        rate.peak, rate.average
    );
    assert_eq!(crate::hls::live_multivariant(&window, Container::Fmp4).unwrap(), expected);
}

#[test]
fn epochs_are_discontinuities_with_their_own_init_and_lost_media_are_gaps() {
    let mut window = window(LIMITS, cut(CutRules { part: None, ..rules() }, film(5, 50)));
    let closed = |track, segment| Cut::Closed { track, segment: SegmentNumber(segment), start: 0, duration: 90_000 };
    window.push(closed(0, 102));
    window.begin(epoch(4, Duration::from_secs(60)));
    let segment = SegmentNumber(103);
    window.push(Cut::Opened { segment, epoch: 4, start: Duration::from_secs(61), is_independent: false });
    window.push(Cut::Closed { track: 0, segment, start: 61 * 90_000, duration: 180_000 });
    let list = media(&window, 0, &VIEW).unwrap();
    let expected = "#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"../~0a1b/v1/init-4.mp4\"\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:51.000Z\n#EXT-X-GAP\n#EXTINF:2.000000,\n../~0a1b/v1/103.m4s\n";
    assert!(list.contains(expected), "{list}");
    assert!(!list.contains("INDEPENDENT-SEGMENTS") && list.contains("DISCONTINUITY-SEQUENCE:7\n"), "{list}");
}

#[test]
fn sums_of_part_durations_never_move_back_against_the_media() {
    for group in [50, 48, 31] {
        let window = window(LIMITS, cut(rules(), film(8, group)));
        for (track, scale) in [(0, 90_000.0), (1, 48_000.0)] {
            let list = media(&window, track, &VIEW).unwrap();
            let stated = list.lines().filter_map(|line| line.strip_prefix("#EXT-X-PART:DURATION="));
            let mut stated = stated.map(|line| line.split(',').next().unwrap().parse::<f64>().unwrap());
            let parts: Vec<_> =
                window.segments().filter_map(|segment| segment.track(track)).flat_map(|of| of.parts()).collect();
            let listed = list.matches("#EXT-X-PART:").count();
            let skipped = parts.len() - listed;
            for part in &parts[skipped..] {
                let above = stated.next().unwrap() - part.duration as f64 / scale;
                assert!(above > 1e-9 && above < 1.1e-6, "{above} s");
            }
            assert!(listed > 10);
        }
    }
}

#[test]
fn sound_begins_no_later_than_pictures() {
    let first = |window: &Window, track, extent| {
        let list = media(window, track, &PlaylistView { extent, ..VIEW }).unwrap();
        list.split("MEDIA-SEQUENCE:").nth(1).unwrap()[..3].to_owned()
    };
    let both = |window: &Window, extent| [0, 1].map(|track| first(window, track, extent));
    let listed = crate::live::WindowLimits { listed: Duration::from_secs(10), ..LIMITS };
    let whole = window(listed, cut(rules(), film(20, 50)));
    for (extent, number) in [(Extent::Past, "100"), (Extent::From(SegmentNumber(104)), "104"), (Extent::Edge, "104")] {
        assert_eq!(both(&whole, extent), [number; 2], "{extent:?}");
    }
    for segment in whole.segments().filter(|segment| segment.track(1).is_some_and(|sound| sound.start().is_some())) {
        let [pictures, sound] = [0, 1].map(|track| segment.track(track).unwrap().start().unwrap());
        assert!((0..1024).contains(&(pictures * 48 / 90 - sound)), "{segment:?}");
    }
    // Sound that begins 100 ms after the first picture.
    let late = |seconds| {
        let film = film(seconds, 50).into_iter().filter(|(track, sample)| *track == 0 || sample.dts >= 484_800);
        window(LIMITS, cut(rules(), film.collect()))
    };
    assert_eq!(both(&late(20), Extent::Past), ["101"; 2], "the first segment has no sound at its beginning");
    assert_eq!(both(&late(9), Extent::Past), ["100"; 2], "too few segments follow");
}

/// Merges a delta update into an older playlist, as a client does.
fn merged(old: &str, update: &str) -> HashMap<String, String> {
    let sequence = |list: &str| {
        list.split("MEDIA-SEQUENCE:").nth(1).unwrap().split('\n').next().unwrap().parse::<usize>().unwrap()
    };
    let entries = |list: &str| -> Vec<(String, String)> {
        let mut inf = String::new();
        let mut out = Vec::new();
        for line in list.lines() {
            match line.strip_prefix("#EXTINF:") {
                Some(duration) => inf = duration.to_owned(),
                None if !line.starts_with('#') => out.push((line.to_owned(), inf.clone())),
                None => {}
            }
        }
        out
    };
    let skipped =
        update.split("SKIPPED-SEGMENTS=").nth(1).map_or(0, |rest| rest.split('\n').next().unwrap().parse().unwrap());
    let from = sequence(update) - sequence(old);
    entries(old).into_iter().skip(from).take(skipped).chain(entries(update)).collect()
}

#[test]
fn a_delta_update_and_the_last_playlist_are_the_whole() {
    let cuts = cut(rules(), film(60, 50));
    let mut window = crate::live::Window::new(
        crate::live::WindowLimits { listed: Duration::from_secs(30), ..LIMITS },
        crate::live::testing::tracks(),
        0,
    );
    window.begin(epoch(0, Duration::from_secs(10)));
    let mut last: Option<String> = None;
    let mut skips = 0;
    for cut in cuts {
        window.push(cut);
        let Some(whole) = media(&window, 0, &VIEW) else { continue };
        let delta = media(&window, 0, &PlaylistView { skip: true, ..VIEW }).unwrap();
        if let Some(last) = last.replace(whole.clone()) {
            assert_eq!(merged(&last, &delta), merged(&whole, &whole));
        }
        skips += usize::from(delta.contains("EXT-X-SKIP"));
        assert!(delta.len() <= whole.len() + 40);
    }
    assert!(skips > 100, "{skips}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn parts_add_up_and_hints_come_true(group in 10_i64..120, seconds in 4_i64..16) {
        let mut window = crate::live::Window::new(LIMITS, crate::live::testing::tracks(), 0);
        let mut hinted = None;
        for cut in cut(rules(), film(seconds, group)) {
            window.push(cut.clone());
            if let (Cut::Part(part), Some(hint)) = (&cut, hinted) && part.track == 0 {
                prop_assert_eq!(Edge { segment: part.segment, part: part.index }, hint);
            }
            hinted = window.hint(0);
            let Some(list) = media(&window, 0, &VIEW) else { continue };
            prop_assert!(list.ends_with('\n') && !list.contains("\n\n"));
            let durations = |tag: &str| -> f64 {
                let values = list.lines().filter_map(|line| line.strip_prefix(tag));
                values.map(|line| line.split(',').next().unwrap().parse::<f64>().unwrap()).sum()
            };
            let is_short = window.segments().len() < 4;
            let (whole, parts) = (durations("#EXTINF:"), durations("#EXT-X-PART:DURATION="));
            prop_assert!(!is_short || parts + 1e-3 >= whole || whole > 9.0, "{} {}", whole, parts);
        }
    }
}
