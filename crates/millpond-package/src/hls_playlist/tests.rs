use super::*;

/// A line, the file that it names, and the first byte and the end of its range.
type Found = (u32, String, Option<(u64, u64)>);

/// Returns the stretches of a media playlist: the ranges of each, that of its init section first.
fn stretches(text: &str) -> Vec<Vec<Found>> {
    let StoredPlaylist::Media(stretches) = parse(text).unwrap() else { panic!("a multivariant playlist") };
    let found = |found: SegmentRange| (found.line, found.uri, found.bytes.map(|bytes| (bytes.start, bytes.end)));
    let of = |Stretch { map, segments }: Stretch| map.into_iter().chain(segments).map(found).collect();
    stretches.into_iter().map(of).collect()
}

fn ranges(text: &str) -> Vec<Found> {
    let mut all = stretches(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn multivariant(text: &str) -> StoredMultivariant {
    let StoredPlaylist::Multivariant(found) = parse(text).unwrap() else { panic!("a media playlist") };
    found
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn whole_files_and_an_init_section() {
    let text = "\u{feff}#EXTM3U\r\n#EXT-X-VERSION:7\r\n#EXT-X-TARGETDURATION:4\r\n\r\n#EXT-X-MAP:URI=\"a,b/init.mp4\"\r\n# hello\r\n\
        #EXT-X-DISCONTINUITY\r\n#EXTINF:4.0,\r\na 1.m4s\r\n#EXT-X-MAP:URI=\"a,b/init.mp4\"\r\n#EXTINF:1.5,title\r\na2.m4s \r\n\
        #EXT-X-ENDLIST\r\n";
    let found = ranges(text);
    let expected = [(5, "a,b/init.mp4"), (9, "a 1.m4s"), (12, "a2.m4s")];
    assert_eq!(found, expected.map(|(line, uri)| (line, uri.to_owned(), None)));
}

#[test]
fn byte_ranges_follow_one_another_in_their_file() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:BYTERANGE=\"800@0\",URI=\"s.mp4\"\n#EXT-X-BYTERANGE:100@800\n#EXTINF:1,\ns.mp4\n\
        #EXTINF:1,\n#EXT-X-BYTERANGE:50\ns.mp4\n#EXT-X-BYTERANGE:7@0\nt.mp4\n#EXT-X-ENDLIST";
    let found: Vec<_> = ranges(text).into_iter().map(|(_, uri, bytes)| (uri, bytes.unwrap())).collect();
    let expected = [("s.mp4", (0, 800)), ("s.mp4", (800, 900)), ("s.mp4", (900, 950)), ("t.mp4", (0, 7))];
    assert_eq!(found, expected.map(|(uri, range)| (uri.to_owned(), range)));
}

#[test]
fn a_discontinuity_and_another_init_section_begin_a_stretch() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"a\"\n1\n2\n#EXT-X-DISCONTINUITY\n\
        #EXT-X-MAP:URI=\"b\"\n3\n#EXT-X-MAP:URI=\"a\"\n4\n#EXT-X-MAP:URI=\"a\"\n5\n#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY\n6\n\
        #EXT-X-DISCONTINUITY\n#EXT-X-ENDLIST";
    let names: Vec<Vec<_>> =
        stretches(text).into_iter().map(|all| all.into_iter().map(|found| found.1).collect()).collect();
    assert_eq!(names, [&["a", "1", "2"][..], &["b", "3"], &["a", "4", "5"], &["a", "6"]]);
    // A range without offset follows the one before it in the same stretch or another.
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-BYTERANGE:9@1\n1\n#EXT-X-DISCONTINUITY\n#EXT-X-BYTERANGE:5\n1\n#EXT-X-ENDLIST";
    assert_eq!(stretches(text)[1], [(7, "1".to_owned(), Some((10, 15)))]);
}

#[test]
fn a_multivariant_playlist_names_its_playlists() {
    let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a,b\",NAME=\"x=y\",URI=\"sound.m3u8\",LANGUAGE=\"en\",DEFAULT=YES\n\
        #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"c\",INSTREAM-ID=\"CC1\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"n\",URI=\"t.m3u8\",FORCED=YES\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9,URI=\"i.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"avc1.4d401f,mp4a.40.2\",AUDIO=\"a,b\"\nlow/v.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"mp4a.40.2\"\nsound.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=x\nv.m3u8\n";
    let StoredMultivariant { variants, renditions } = multivariant(text);
    let found: Vec<_> =
        variants.iter().map(|v| (v.line, v.uri.as_str(), v.bandwidth, v.audio.as_deref(), v.has_pictures)).collect();
    let expected =
        [(7, "low/v.m3u8", 1, Some("a,b"), true), (9, "sound.m3u8", 2, None, false), (11, "v.m3u8", 0, None, true)];
    assert_eq!(found, expected);
    let sound = Rendition {
        line: 2,
        kind: RenditionKind::Audio,
        group: "a,b".to_owned(),
        uri: Some("sound.m3u8".to_owned()),
        language: Some("en".to_owned()),
        name: "x=y".to_owned(),
        is_default: true,
        is_forced: false,
    };
    assert_eq!((renditions.len(), &renditions[0]), (2, &sound));
    assert_eq!((renditions[1].kind, renditions[1].is_forced), (RenditionKind::Subtitles, true));
    assert!(is_multivariant(text) && !is_multivariant("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:1\n"));
}

#[test]
fn other_playlists_are_refused_with_the_line_and_the_cure() {
    let media = |lines: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{lines}\n");
    let cases = [
        (String::new(), "line 1: found the end of the playlist, expected #EXT-X-TARGETDURATION"),
        ("film.mp4\n".to_owned(), "line 1: found \"film.mp4\", expected #EXTM3U"),
        ("#EXTM3U\nsong.mp3\n".to_owned(), "line 2: found the end of the playlist, expected #EXT-X-TARGETDURATION"),
        (media("1.ts"), "line 3: found the end of the playlist, expected #EXT-X-ENDLIST: live playlists are not read"),
        (media("#EXT-X-ENDLIST"), "line 3: found the end of the playlist, expected a segment"),
        (
            media("#EXT-X-KEY:METHOD=AES-128,URI=\"k\""),
            "line 3: found encryption with \"AES-128\", expected segments that",
        ),
        (media("#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\""), "line 3: found encryption with \"SAMPLE-AES\""),
        (media("#EXT-X-KEY:URI=\"k\""), "line 3: found \"#EXT-X-KEY\", expected the attribute METHOD"),
        (
            media("#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8"),
            "line 3: found encryption with \"SAMPLE-AES\", expected segments that",
        ),
        (
            media("#EXT-X-STREAM-INF:BANDWIDTH=1\n1.m3u8\n2.m3u8"),
            "line 5: found \"2.m3u8\", expected #EXT-X-STREAM-INF",
        ),
        (media("1.ts\n#EXT-X-STREAM-INF:BANDWIDTH=1\n1.m3u8"), "line 5: found segments and variants"),
        (
            media("#EXT-X-I-FRAME-STREAM-INF:URI=\"i\""),
            "line 3: found the end of the playlist, expected #EXT-X-STREAM-INF",
        ),
        (media("#EXT-X-MEDIA:TYPE=SMELL,GROUP-ID=\"a\""), "line 3: found EXT-X-MEDIA with the TYPE \"SMELL\""),
        (media("#EXT-X-MEDIA:TYPE=AUDIO"), "line 3: found \"#EXT-X-MEDIA\", expected the attribute GROUP-ID"),
        (media("#EXT-X-MAP:URI=\"a"), "line 3: found \"URI=\\\"a\", expected the attribute URI"),
        (media("#EXT-X-GAP\n1.ts"), "line 3: found \"#EXT-X-GAP\", expected a segment that is there"),
        (media("#EXT-X-I-FRAMES-ONLY"), "line 3: found \"#EXT-X-I-FRAMES-ONLY\""),
        (media("#EXT-X-SKIP:SKIPPED-SEGMENTS=3"), "line 3: found \"#EXT-X-SKIP\""),
        (media("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\""), "line 3: found \"#EXT-X-DEFINE\""),
        (media("#EXT-X-BYTERANGE:5\n1.ts"), "line 4: found EXT-X-BYTERANGE \"5\", expected a number of bytes above 0"),
        (media("#EXT-X-BYTERANGE:0@5\n1.ts"), "line 4: found EXT-X-BYTERANGE \"0\""),
        (
            media("#EXT-X-BYTERANGE:18446744073709551615@1\n1.ts"),
            "line 4: found EXT-X-BYTERANGE \"18446744073709551615\"",
        ),
        (media("#EXT-X-BYTERANGE:99999999999999999999@1"), "line 3: found EXT-X-BYTERANGE \"99999999999999999999@1\""),
        (media("#EXT-X-MAP:URI=\"a\",BYTERANGE=\"-1@0\""), "line 3: found EXT-X-BYTERANGE \"-1@0\""),
        (media(&"1.ts\n".repeat(MOST_SEGMENTS + 1)), "found more than 65536 segments, expected at most that"),
        (" ".repeat(MOST_BYTES + 1), "line 1: found 4194305 bytes, expected at most 4 MiB"),
    ];
    for (text, expected) in cases {
        let found = error(&text);
        assert!(found.starts_with("HLS playlist, line ") && found.contains(expected), "{found}, not {expected}");
    }
}

#[test]
fn keys_of_no_method_change_nothing() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=NONE\n1.ts\n#EXT-X-ENDLIST\n";
    assert_eq!(ranges(text), [(4, "1.ts".to_owned(), None)]);
}
