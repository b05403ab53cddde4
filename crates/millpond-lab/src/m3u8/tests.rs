use super::*;

fn media(text: &str) -> MediaPlaylist {
    match parse(text) {
        Ok(Playlist::Media(media)) => media,
        other => panic!("expected a media playlist, got {other:?}"),
    }
}

fn multivariant(text: &str) -> Multivariant {
    match parse(text) {
        Ok(Playlist::Multivariant(multivariant)) => multivariant,
        other => panic!("expected a multivariant playlist, got {other:?}"),
    }
}

fn span(start: u64, length: u64) -> Option<ByteSpan> {
    ByteSpan::new(start, length)
}

#[test]
fn multivariant_with_audio_group() {
    let list = multivariant(concat!(
        "#EXTM3U\r\n#EXT-X-VERSION:7\r\n\r\n",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"English, main\",DEFAULT=YES,URI=\"a1/index.m3u8\"\r\n",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"mux\",NAME=\"In the video\"\r\n",
        "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"x\",URI=\"s1/index.m3u8\"\r\n",
        "#EXT-X-STREAM-INF:BANDWIDTH=1200000,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360,AUDIO=\"aac\"\r\n",
        "# a comment\r\n",
        "v1/index.m3u8\r\n",
        "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100,URI=\"v1/iframes.m3u8\"\r\n",
        "#EXT-X-STREAM-INF:BANDWIDTH=64000\r\n",
        "http://other/a.m3u8?x=1\r\n",
    ));
    let variant = |uri: &str, bandwidth, audio: Option<&str>, has_resolution| Variant {
        pathway: None,
        uri: uri.to_owned(),
        bandwidth,
        audio: audio.map(str::to_owned),
        has_resolution,
    };
    assert_eq!(
        list.variants,
        [
            variant("v1/index.m3u8", 1_200_000, Some("aac"), true),
            variant("http://other/a.m3u8?x=1", 64_000, None, false),
        ]
    );
    let audio = |group: &str, uri: Option<&str>, default| AudioRendition {
        group: group.to_owned(),
        uri: uri.map(str::to_owned),
        default,
    };
    assert_eq!(list.audio, [audio("aac", Some("a1/index.m3u8"), true), audio("mux", None, false)]);
}

#[test]
fn media_with_maps_and_ranges() {
    let list = media(concat!(
        "\u{feff}#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXT-X-MAP:URI=\"f.mp4\",BYTERANGE=\"100@0\"\n",
        "#EXTINF:4.004,title, with comma\n#EXT-X-BYTERANGE:1000@100\nf.mp4\n",
        "#EXTINF:4,\n#EXT-X-BYTERANGE:500\nf.mp4\n",
        "#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"g.mp4\"\n#EXTINF:1.5\ng1.m4s\n",
        "#EXT-X-MAP:URI=\"f.mp4\",BYTERANGE=\"100@0\"\n#EXTINF:2,\nh.m4s\n#EXT-X-ENDLIST\n",
    ));
    assert!(list.ended);
    assert_eq!(
        list.maps,
        [Part { uri: "f.mp4".to_owned(), range: span(0, 100) }, Part { uri: "g.mp4".to_owned(), range: None },]
    );
    let found: Vec<_> = list.segments.iter().map(|s| (s.part.uri.as_str(), s.part.range, s.duration, s.map)).collect();
    assert_eq!(
        found,
        [
            ("f.mp4", span(100, 1000), 4.004, Some(0)),
            ("f.mp4", span(1100, 500), 4.0, Some(0)),
            ("g1.m4s", None, 1.5, Some(1)),
            ("h.m4s", None, 2.0, Some(0)),
        ]
    );
}

#[test]
fn without_endlist_it_has_not_ended() {
    let list = media("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n");
    assert!(!list.ended);
    assert_eq!(list.segments[0].map, None);
}

#[test]
fn errors_name_the_line() {
    let table = [
        ("", 1, "#EXTM3U"),
        ("<html>", 1, "#EXTM3U"),
        ("#EXTM3U\n", 1, "neither"),
        ("#EXTM3U\nsegment.ts\n", 2, "follows neither"),
        ("#EXTM3U\n#EXTINF:four,\n1.ts\n", 2, "\"four\""),
        ("#EXTM3U\n#EXTINF:-1,\n1.ts\n", 2, "seconds from 0"),
        ("#EXTM3U\n#EXTINF:NaN,\n1.ts\n", 2, "seconds from 0"),
        ("#EXTM3U\n#EXTINF:4,\n", 2, "without a URI"),
        ("#EXTM3U\n#EXTINF:4,\n#EXT-X-BYTERANGE:10\n1.ts\n", 4, "without an offset"),
        ("#EXTM3U\n#EXTINF:4,\n#EXT-X-BYTERANGE:ten@1\n1.ts\n", 3, "length[@offset]"),
        ("#EXTM3U\n#EXTINF:4,\n#EXT-X-BYTERANGE:10@18446744073709551615\n1.ts\n", 4, "too far"),
        ("#EXTM3U\n#EXTINF:4,\n#EXT-X-BYTERANGE:0@5\n1.ts\n", 4, "empty"),
        ("#EXTM3U\n#EXT-X-MAP:BYTERANGE=\"1@0\"\n", 2, "needs URI"),
        ("#EXTM3U\n\n#EXT-X-STREAM-INF:RESOLUTION=1x1\na\n", 3, "needs BANDWIDTH"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=-4\na\n", 2, "needs BANDWIDTH"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=4\n", 2, "without a URI"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=4,AUDIO=\"x\na\n", 2, "not closed"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH\na\n", 2, "NAME=value"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=4\na\n#EXTINF:4,\nb\n", 5, "together"),
    ];
    for (text, line, word) in table {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(error.what.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn an_offset_is_not_carried_to_another_resource() {
    let text = "#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:10@0\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:10\nb\n";
    assert_eq!(parse(text).expect_err("no offset").line, 7);
}
