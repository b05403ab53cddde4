use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A playlist of whole segments of 2 s, from number `first` on.
fn plain(first: u64, count: u64) -> String {
    let head = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    (first..first + count).fold(head, |text, number| format!("{text}#EXTINF:2.0,\n{number}.ts\n"))
}

fn read(text: &str) -> LivePlaylist {
    LivePlaylist::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn piece(follower: &Follower) -> Piece {
    match follower.next() {
        Next::Piece(piece) => piece,
        other => panic!("{other:?}"),
    }
}

/// Takes all pieces; returns their URIs with their stretches.
fn drain(follower: &mut Follower) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    while let Next::Piece(piece) = follower.next() {
        all.push((piece.range.uri, piece.stretch));
        follower.taken();
    }
    all
}

fn uris(follower: &mut Follower) -> Vec<String> {
    drain(follower).into_iter().map(|(uri, _)| uri).collect()
}

#[test]
fn tags_of_segments() {
    let text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n\
        #EXT-X-MAP:URI=\"i.mp4\",BYTERANGE=\"10@5\"\n#EXT-X-PROGRAM-DATE-TIME:2026-11-22T10:00:00.500+0100\n\
        #EXTINF:3.5,a title\n#EXT-X-BYTERANGE:100@20\na.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:50\na.mp4\n\
        #EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x1F\n#EXT-X-GAP\n#EXTINF:4,\nb.mp4\n";
    let playlist = read(text);
    let bytes: Vec<_> = playlist.segments.iter().map(|s| s.whole.as_ref().unwrap().range.bytes).collect();
    let range = |start, end| Some(millpond_media::ByteRange::new(start, end));
    assert_eq!(bytes, [range(20, 120), range(120, 170), None]);
    let [first, second, third] = &playlist.segments[..] else { panic!() };
    assert_eq!((first.number, first.discontinuities, first.begins), (7, 3, false));
    assert_eq!(first.map.as_ref().unwrap().bytes, range(5, 15));
    assert_eq!(first.date, millpond_utc::parse("2026-11-22T09:00:00.500Z"));
    assert_eq!((second.date, &second.key), (None, &None));
    assert_eq!((third.number, third.discontinuities, third.begins), (9, 4, true));
    assert!(third.whole.as_ref().unwrap().is_gap);
    assert_eq!(third.key.as_ref().unwrap().iv.unwrap()[15], 0x1f);
    assert!(!playlist.has_ended && playlist.target == 4 * SECOND);
}

#[test]
fn numbers_count_from_the_media_sequence_wherever_it_stands() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:2,\nb.ts\n";
    let numbers: Vec<u64> = read(text).segments.iter().map(|segment| segment.number).collect();
    assert_eq!(numbers, [7, 8]);
}

#[test]
fn errors_name_the_line() {
    for (text, expected) in [
        ("<html>", "line 1: found \"<html>\", expected #EXTM3U"),
        ("#EXTM3U\n#EXTINF:2,\na.ts", "EXT-X-TARGETDURATION"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\na.ts", "#EXTINF"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:NaN", "line 2"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-BYTERANGE:5\n#EXTINF:2,\na.ts", "EXT-X-BYTERANGE"),
        ("#EXTM3U\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"", "AES-128"),
        ("#EXTM3U\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3", "all of its segments"),
        ("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:99999999999999999999", "a whole number"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", "a media playlist"),
    ] {
        let error = LivePlaylist::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn playback_begins_three_target_durations_before_the_end() {
    let mut follower = Follower::default();
    assert_eq!(follower.next(), Next::Playlist(PlaylistRequest { at: Duration::ZERO, awaits: None }));
    assert_eq!(follower.take(read(&plain(10, 8)), SECOND, SECOND), Turn::Follows);
    assert_eq!(uris(&mut follower), ["15.ts", "16.ts", "17.ts"]);
    let reload = |at: Duration| Next::Playlist(PlaylistRequest { at, awaits: None });
    assert_eq!(follower.next(), reload(3 * SECOND), "a target duration after the request for a playlist with news");
    follower.take(read(&plain(10, 8)), 3 * SECOND, 3 * SECOND);
    assert_eq!(follower.next(), reload(4 * SECOND), "half of it without news");
    follower.take(read(&plain(11, 8)), 4 * SECOND, 4 * SECOND);
    assert_eq!(uris(&mut follower), ["18.ts"]);
    let mut short = Follower::default();
    short.take(read(&plain(0, 1)), SECOND, SECOND);
    assert_eq!(uris(&mut short), ["0.ts"]);
}

#[test]
fn stretches_are_counted_with_discontinuities() {
    let mut follower = Follower::default();
    let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:5\n#EXT-X-DISCONTINUITY-SEQUENCE:2\n#EXT-X-DISCONTINUITY\n";
    let text = format!("{head}#EXTINF:2,\n5.ts\n#EXTINF:2,\n6.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\n7.ts\n");
    follower.take(read(&text), SECOND, SECOND);
    let expected = [("5.ts", 3), ("6.ts", 3), ("7.ts", 4)].map(|(uri, stretch)| (uri.to_owned(), stretch));
    assert_eq!(drain(&mut follower), expected);
    // A server that counts no discontinuities changes nothing.
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:2,\n7.ts\n#EXTINF:2,\n8.ts\n";
    follower.take(read(text), 3 * SECOND, 3 * SECOND);
    assert_eq!(drain(&mut follower), [("8.ts".to_owned(), 4)]);
}

#[test]
fn init_stretches_are_requested_when_they_change() {
    let mut follower = Follower::default();
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"a\"\n#EXTINF:2,\n0\n#EXTINF:2,\n1\n#EXT-X-MAP:URI=\"b\"\n#EXTINF:2,\n2\n\
        #EXT-X-DISCONTINUITY\n#EXTINF:2,\n3\n";
    follower.take(read(&format!("{text}#EXT-X-ENDLIST\n")), SECOND, SECOND);
    let mut inits = Vec::new();
    // The first piece is missing, so that the init section is requested with the next one.
    follower.missed();
    while let Next::Piece(piece) = follower.next() {
        inits.push((piece.range.uri, piece.init.map(|init| init.uri.clone()), piece.is_torn));
        follower.taken();
    }
    let expected = [("2", Some("b"), true), ("3", Some("b"), false)];
    assert_eq!(inits, expected.map(|(uri, init, torn)| (uri.to_owned(), init.map(str::to_owned), torn)));
    assert_eq!(follower.next(), Next::Ended);
}

const PARTS: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n\
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:4\n#EXTINF:2,\n4.mp4\n";

fn part(uri: &str, is_independent: bool) -> String {
    let key = if is_independent { ",INDEPENDENT=YES" } else { "" };
    format!("#EXT-X-PART:DURATION=0.5,URI=\"{uri}\"{key}\n")
}

#[test]
fn parts_are_taken_as_they_appear() {
    let mut follower = Follower::default();
    let five = [part("5a", true), part("5b", false), part("5c", false), part("5d", false)].concat();
    let first = format!("{PARTS}{five}#EXTINF:2,\n5.mp4\n{}", part("6a", true));
    follower.take(read(&first), SECOND, SECOND);
    assert_eq!(uris(&mut follower), ["5.mp4", "6a"], "the last independent part that is far enough from the end");
    let awaits = |number, part| Next::Playlist(PlaylistRequest { at: SECOND, awaits: Some((number, Some(part))) });
    assert_eq!(follower.next(), awaits(6, 1));
    let six = [part("6a", true), part("6b", false), part("6c", false), part("6d", false)].concat();
    let second = format!("{PARTS}{five}#EXTINF:2,\n5.mp4\n{six}#EXTINF:2,\n6.mp4\n");
    follower.take(read(&second), SECOND, SECOND);
    assert_eq!(uris(&mut follower), ["6b", "6c", "6d"]);
    assert_eq!(follower.next(), awaits(7, 0));
    // A server that answers at once, and has nothing new, is not asked to wait again.
    follower.take(read(&second), SECOND, SECOND);
    let at = SECOND + SECOND / 4;
    assert_eq!(follower.next(), Next::Playlist(PlaylistRequest { at, awaits: None }));
}

#[test]
fn segments_that_left_are_skipped() {
    let mut follower = Follower::default();
    follower.take(read(&plain(0, 3)), SECOND, SECOND);
    drain(&mut follower);
    assert_eq!(follower.take(read(&plain(5, 4)), 2 * SECOND, 2 * SECOND), Turn::Skipped(2));
    assert!(piece(&follower).is_torn);
    assert_eq!(uris(&mut follower), ["5.ts", "6.ts", "7.ts", "8.ts"]);
    // Far behind the end it begins at the live edge again.
    assert_eq!(follower.take(read(&plain(9, 100)), 2 * SECOND, 2 * SECOND), Turn::Skipped(97));
    assert_eq!(uris(&mut follower), ["106.ts", "107.ts", "108.ts"]);
}

#[test]
fn another_stream_is_a_stretch() {
    let mut follower = Follower::default();
    follower.take(read(&plain(100, 3)), SECOND, SECOND);
    drain(&mut follower);
    assert_eq!(follower.take(read(&plain(98, 3)), SECOND, SECOND), Turn::Follows, "a cache has an older reading");
    assert_eq!(drain(&mut follower), []);
    assert_eq!(follower.take(read(&plain(0, 4)), SECOND, SECOND), Turn::Anew { expected: 103, end: 4 });
    assert_eq!(drain(&mut follower), [1, 2, 3].map(|number| (format!("{number}.ts"), 1)));
    let renamed = plain(1, 4).replace("3.ts", "again.ts");
    assert_eq!(follower.take(read(&renamed), SECOND, SECOND), Turn::Anew { expected: 4, end: 5 });
}

#[test]
fn a_source_that_is_opened_again_goes_on() {
    let mut follower = Follower::default();
    follower.take(read(&plain(0, 3)), SECOND, SECOND);
    drain(&mut follower);
    let mut follower = follower.reopened();
    assert_eq!(follower.next(), Next::Playlist(PlaylistRequest { at: Duration::ZERO, awaits: None }));
    assert_eq!(follower.take(read(&plain(1, 4)), SECOND, SECOND), Turn::Follows);
    assert_eq!(drain(&mut follower), [3, 4].map(|number| (format!("{number}.ts"), 1)));
}

#[test]
fn a_playlist_stands_still() {
    let mut follower = Follower::default();
    follower.take(read(&plain(0, 3)), SECOND, SECOND);
    assert_eq!(follower.stands_still(60 * SECOND), None, "there are pieces");
    drain(&mut follower);
    follower.take(read(&plain(0, 3)), 7 * SECOND, 7 * SECOND);
    assert_eq!(follower.stands_still(7 * SECOND), None);
    assert_eq!(follower.stands_still(8 * SECOND), Some(7 * SECOND));
}
