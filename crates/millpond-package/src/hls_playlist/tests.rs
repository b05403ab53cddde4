use super::*;

/// A line, the file that it names, and the first byte and the end of its range.
type Found = (u32, String, Option<(u64, u64)>);

fn ranges(text: &str) -> Vec<Found> {
    let StoredPlaylist::Media(ranges) = parse(text).unwrap() else { panic!("a multivariant playlist") };
    ranges.into_iter().map(|found| (found.line, found.uri, found.bytes.map(|bytes| (bytes.start, bytes.end)))).collect()
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
fn a_multivariant_playlist_names_its_playlists() {
    let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a,b\",NAME=\"x=y\",URI=\"sound.m3u8\"\n#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"avc1.4d401f,mp4a.40.2\"\nlow/v.m3u8\n";
    let StoredPlaylist::Multivariant(names) = parse(text).unwrap() else { panic!("a media playlist") };
    assert_eq!(names, ["sound.m3u8", "low/v.m3u8"]);
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
            media("1.ts\n#EXT-X-DISCONTINUITY\n2.ts"),
            "line 4: found \"#EXT-X-DISCONTINUITY\", expected segments of one encoding",
        ),
        (media("#EXT-X-MAP:URI=\"a\"\n1.ts\n#EXT-X-MAP:URI=\"b\""), "line 5: found another EXT-X-MAP"),
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
