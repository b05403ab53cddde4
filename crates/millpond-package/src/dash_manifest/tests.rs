use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// Beginning of the presentations.
const BEGINS: &str = "2026-11-22T10:00:00Z";

fn begins() -> Duration {
    millpond_utc::parse(BEGINS).unwrap()
}

fn at(seconds: f64) -> Duration {
    begins() + Duration::from_secs_f64(seconds)
}

/// A manifest with attributes of the MPD and Periods.
fn mpd(attributes: &str, periods: &str) -> String {
    format!("<MPD type=\"dynamic\" availabilityStartTime=\"{BEGINS}\" {attributes}>\n{periods}\n</MPD>")
}

/// A Period of pictures with a template.
fn period(attributes: &str, template: &str) -> String {
    format!(
        "<Period {attributes}><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"v\" bandwidth=\"9\">{template}\
         </Representation></AdaptationSet></Period>"
    )
}

/// Segments of 2 s by the clock.
const STEADY: &str = "<SegmentTemplate timescale=\"1000\" duration=\"2000\" media=\"$Number$\" initialization=\"i\"/>";

fn listed(entries: &str) -> String {
    format!(
        "<SegmentTemplate timescale=\"10\" media=\"$Time$\" initialization=\"i\"><SegmentTimeline>{entries}</SegmentTimeline></SegmentTemplate>"
    )
}

fn read(text: &str) -> LiveManifest {
    LiveManifest::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn presentation(text: &str, now: Duration) -> Presentation {
    let mut presentation = Presentation::new(None);
    presentation.take(&read(text), now, now).unwrap_or_else(|error| panic!("{error}\n{text}"));
    presentation
}

fn leading(presentation: &Presentation) -> Follower {
    Follower::new(presentation.roles().remove(0))
}

fn piece(follower: &Follower, presentation: &Presentation, now: Duration) -> Piece {
    match follower.next(presentation, now) {
        Next::Piece(piece) => piece,
        other => panic!("{other:?}"),
    }
}

/// Takes all pieces; returns their URIs with their stretches.
fn drain(follower: &mut Follower, presentation: &Presentation, now: Duration) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    while let Next::Piece(piece) = follower.next(presentation, now) {
        follower.taken(&piece);
        all.push((piece.uri, piece.stretch));
        assert!(all.len() < 1000, "{all:?}");
    }
    all
}

fn uris(follower: &mut Follower, presentation: &Presentation, now: Duration) -> Vec<String> {
    drain(follower, presentation, now).into_iter().map(|(uri, _)| uri).collect()
}

#[test]
fn segments_by_the_clock() {
    let presentation = presentation(&mpd("", &period("start=\"PT10S\"", STEADY)), at(31.0));
    let mut follower = leading(&presentation);
    let first = piece(&follower, &presentation, at(31.0));
    // Segments end at 20 s of the Period; three of them before that it begins.
    assert_eq!((first.uri.as_str(), first.time, first.wall), ("8", 14_000, at(10.0)));
    assert_eq!(first.init.as_ref().map(|init| init.uri.as_str()), Some("i"));
    assert_eq!(uris(&mut follower, &presentation, at(31.0)), ["8", "9", "10"]);
    assert_eq!(follower.next(&presentation, at(31.0)), Next::Wait { until: at(32.0) });
    assert_eq!(follower.next(&presentation, at(31.9)), Next::Wait { until: at(32.0) });
    assert_eq!(piece(&follower, &presentation, at(32.0)).uri, "11");
    assert_eq!(presentation.reload(false), None, "nothing says that it changes");
    assert_eq!(presentation.reload(true), Some(at(33.0)), "a segment was missing");
    assert_eq!(presentation.stands_still(at(500.0)), None);
}

#[test]
fn segments_in_a_timeline() {
    let text = |entries: &str| {
        mpd("minimumUpdatePeriod=\"PT1S\" suggestedPresentationDelay=\"PT3S\"", &period("", &listed(entries)))
    };
    let mut presentation = presentation(&text("<S t=\"100\" d=\"20\" r=\"2\"/><S d=\"10\"/>"), at(500.0));
    let mut follower = leading(&presentation);
    assert_eq!(
        uris(&mut follower, &presentation, at(500.0)),
        ["140", "160"],
        "what is listed exists whatever the clock says"
    );
    assert_eq!(presentation.reload(false), Some(at(501.0)));
    // The last one was stated a little shorter than it became.
    presentation.take(&read(&text("<S t=\"140\" d=\"20\"/><S d=\"18\"/><S d=\"20\"/>")), at(501.0), at(501.0)).unwrap();
    let next = piece(&follower, &presentation, at(501.0));
    assert_eq!((next.uri.as_str(), next.is_torn, next.init), ("178", false, None));
    follower.taken(&piece(&follower, &presentation, at(501.0)));
    // Segments have left the manifest.
    presentation.take(&read(&text("<S t=\"240\" d=\"20\"/>")), at(502.0), at(502.0)).unwrap();
    assert!(piece(&follower, &presentation, at(502.0)).is_torn);
    drain(&mut follower, &presentation, at(502.0));
    assert_eq!(presentation.stands_still(at(509.0)), None);
    assert_eq!(presentation.stands_still(at(509.5)), Some(Duration::from_millis(7500)));
    // Far behind the end it begins at the live edge again.
    presentation.take(&read(&text("<S t=\"260\" d=\"20\" r=\"99\"/>")), at(503.0), at(503.0)).unwrap();
    assert_eq!(uris(&mut follower, &presentation, at(503.0)), ["2220", "2240"]);
}

#[test]
fn a_timeline_may_go_on_with_time() {
    let text = mpd("", &period("", &listed("<S t=\"0\" d=\"20\" r=\"-1\"/><S t=\"50\" d=\"10\" r=\"-1\"/>")));
    let presentation = presentation(&text, at(9.5));
    let mut follower = leading(&presentation);
    assert_eq!(uris(&mut follower, &presentation, at(9.5)), ["60", "70", "80"]);
    let numbers = text.replace("$Time$", "$Number$");
    let presentation = super::tests::presentation(&numbers, at(9.5));
    assert_eq!(uris(&mut leading(&presentation), &presentation, at(9.5)), ["5", "6", "7"]);
}

#[test]
fn levels_inherit() {
    let text = mpd(
        "",
        "<BaseURL>https://a.example/x&amp;y/</BaseURL>\
         <Period><BaseURL> p/ </BaseURL><BaseURL>other/</BaseURL><SegmentTemplate timescale=\"1000\" duration=\"2000\" startNumber=\"0\"/>\
         <AdaptationSet contentType=\"video\"><SegmentTemplate initialization=\"$RepresentationID$-i\" presentationTimeOffset=\"5000\"/>\
         <Representation id=\"lo\" mimeType=\"video/mp4\" bandwidth=\"100\"><SegmentTemplate media=\"no\"/></Representation>\
         <Representation id=\"hi\" mimeType=\"video/mp4\" bandwidth=\"200\"><BaseURL>hi/</BaseURL>\
         <SegmentTemplate media=\"$Bandwidth$-$Number%03d$\"/></Representation></AdaptationSet></Period>",
    );
    let presentation = presentation(&text, at(100.0));
    let first = piece(&leading(&presentation), &presentation, at(100.0));
    let bases: Vec<&str> = first.bases.iter().map(|base| &**base).collect();
    assert_eq!(bases, ["https://a.example/x&y/", "p/", "hi/"]);
    assert_eq!((first.uri.as_str(), first.offset, first.time), ("200-047", 5 * SECOND, 99_000));
    assert_eq!(first.init.unwrap().uri, "hi-i");
}

#[test]
fn pictures_within_the_bandwidth_and_sound_in_each_language() {
    let representation = |id: &str, bandwidth: u32| format!("<Representation id=\"{id}\" bandwidth=\"{bandwidth}\"/>");
    let set = |attributes: &str, within: &str| format!("<AdaptationSet {attributes}>{within}</AdaptationSet>");
    let role = "<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"commentary\"/>";
    let trick = "<EssentialProperty schemeIdUri=\"http://dashif.org/guidelines/trickmode\" value=\"1\"/>";
    let sets = [
        set("mimeType=\"video/mp4\"", &format!("{trick}{}", representation("trick", 9000))),
        set(
            "mimeType=\"video/mp4\"",
            &[representation("lo", 100), representation("hi", 900), representation("twin", 900)].concat(),
        ),
        set("mimeType=\"audio/mp4\" lang=\"en\"", &format!("{role}{}", representation("comment", 900))),
        set("mimeType=\"audio/mp4\" lang=\"en\"", &[representation("e1", 10), representation("e2", 20)].concat()),
        set("mimeType=\"audio/mp4\" lang=\"fr\"", &representation("f", 10)),
        set("mimeType=\"application/mp4\" codecs=\"wvtt\"", &representation("t", 1)),
    ];
    let template = "<SegmentTemplate duration=\"2\" media=\"$RepresentationID$-$Number$\" initialization=\"i\"/>";
    let text = mpd("", &format!("<Period>{template}{}</Period>", sets.concat()));
    for (most, expected) in [(None, "hi"), (Some(900), "hi"), (Some(899), "lo"), (Some(1), "lo")] {
        let mut presentation = Presentation::new(most);
        presentation.take(&read(&text), at(100.0), at(100.0)).unwrap();
        let uri = |role: TrackRole| piece(&Follower::new(role), &presentation, at(100.0)).uri;
        let uris: Vec<String> = presentation.roles().into_iter().map(uri).collect();
        assert_eq!(uris, [format!("{expected}-48"), "e2-48".to_owned(), "f-48".to_owned()], "{most:?}");
    }
}

#[test]
fn what_is_not_received_is_named() {
    let of = |attributes: &str, within: &str| {
        mpd("", &format!("<Period>\n<AdaptationSet {attributes}>\n{within}</AdaptationSet></Period>"))
    };
    let representation = |within: &str| format!("<Representation id=\"v1\">{within}</Representation>");
    let protection = "<ContentProtection schemeIdUri=\"urn:mpeg:dash:mp4protection:2011\" value=\"cenc\"/>";
    for (text, expected) in [
        (
            of("mimeType=\"video/webm\"", &representation(STEADY)),
            "line 4: found the Representation \"v1\" of the type video/webm",
        ),
        (of("mimeType=\"video/mp2t\"", &representation(STEADY)), "expected fragmented MP4"),
        (
            of("mimeType=\"video/mp4\"", &format!("{protection}{}", representation(STEADY))),
            "encrypted (ContentProtection cenc)",
        ),
        (
            of("mimeType=\"video/mp4\"", &representation("<SegmentList/>")),
            "in a SegmentList, expected a SegmentTemplate",
        ),
        (of("mimeType=\"video/mp4\"", &representation("<BaseURL>a.mp4</BaseURL>")), "in a BaseURL"),
        (of("mimeType=\"video/mp4\"", &representation(&STEADY.replace("$Number$", "x"))), "$Number$ or $Time$"),
        (of("mimeType=\"video/mp4\"", &representation(&STEADY.replace("$Number$", "$Number$$Sub$"))), "$Sub$"),
        (of("mimeType=\"video/mp4\"", &representation(&STEADY.replace("2000", "2"))), "at least 20 ms"),
        (of("contentType=\"text\"", &representation(STEADY)), "without pictures and sound"),
        (mpd("", ""), "no Period"),
    ] {
        let mut presentation = Presentation::new(None);
        let error = presentation.take(&read(&text), at(9.0), at(9.0)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (text, expected) in [
        ("<html>".to_owned(), "line 1: found <html>, expected <MPD>"),
        ("{}".to_owned(), "no element"),
        ("<MPD type=\"dynamic\"/>".to_owned(), "availabilityStartTime"),
        ("<MPD type=\"live\"/>".to_owned(), "dynamic or static"),
        ("<MPD minBufferTime=\"2s\"/>".to_owned(), "minBufferTime=\"2s\", expected a duration"),
        ("<!DOCTYPE MPD><MPD/>".to_owned(), "document type definition"),
        ("<MPD>\n<Period>".to_owned(), "line 2: found the end of the file in <Period>"),
        (mpd("", &period("", &listed("<S t=\"0\"/>"))), "attribute d"),
        (mpd("", &period("", &listed("<S t=\"5\" d=\"1\"/><S t=\"5\" d=\"1\"/>"))), "times that grow"),
        (mpd("", &period("", &listed("<S d=\"1\" r=\"-1\"/><S d=\"1\"/>"))), "an attribute t"),
    ] {
        let error = LiveManifest::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn sizes_are_bounded() {
    let many = |element: &str, count: usize| element.repeat(count);
    for (text, expected) in [
        (" ".repeat(MOST_BYTES + 1), "4 MiB"),
        (mpd("", &many("<Period/>", MOST_PERIODS + 1)), "512 Periods"),
        (mpd("", &format!("<Period>{}</Period>", many("<AdaptationSet/>", MOST_REPRESENTATIONS + 1))), "4096"),
        (mpd("", &period("", &listed(&many("<S d=\"1\"/>", MOST_RUNS + 1)))), "S elements"),
        (mpd("", &many("<a>", 40)), "elements in one another"),
        (mpd("", &format!("<BaseURL>{}</BaseURL>", "x".repeat(MOST_TEXT + 1))), "BaseURL"),
    ] {
        let error = LiveManifest::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn periods_are_stretches() {
    let second = period("id=\"b\" start=\"PT10S\"", &STEADY.replace("$Number$", "b$Number$"));
    let both = [period("id=\"a\"", STEADY), second.clone()].concat();
    let mut presentation = presentation(&mpd("", &both), at(13.0));
    let mut follower = leading(&presentation);
    let expected = [("4", 0), ("5", 0), ("b1", 1)].map(|(uri, stretch)| (uri.to_owned(), stretch));
    assert_eq!(drain(&mut follower, &presentation, at(13.0)), expected, "5 ends with its Period");
    // The first Period leaves the manifest.
    assert_eq!(presentation.take(&read(&mpd("", &second)), at(15.0), at(15.0)).unwrap(), Turn::Follows);
    let next = piece(&follower, &presentation, at(15.0));
    assert_eq!((next.uri.as_str(), next.stretch, next.init), ("b2", 1, None));
    // Another presentation begins.
    let anew = mpd("", &second).replace(BEGINS, "2026-11-22T10:00:30Z");
    assert_eq!(presentation.take(&read(&anew), at(46.0), at(46.0)).unwrap(), Turn::Anew);
    assert_eq!(drain(&mut follower, &presentation, at(46.0)), [1, 2, 3].map(|number| (format!("b{number}"), 2)));
}

#[test]
fn a_segment_that_is_not_there_is_requested_again() {
    let presentation = presentation(&mpd("timeShiftBufferDepth=\"PT60S\"", &period("", STEADY)), at(31.0));
    let mut follower = leading(&presentation);
    drain(&mut follower, &presentation, at(31.0));
    let missing = piece(&follower, &presentation, at(32.0));
    assert_eq!(follower.failed(&missing, &presentation, at(32.0), false), Failed::Again);
    assert_eq!(follower.next(&presentation, at(32.1)), Next::Wait { until: at(32.5) });
    assert_eq!(piece(&follower, &presentation, at(32.5)), missing);
    assert_eq!(follower.failed(&missing, &presentation, at(37.9), false), Failed::Again);
    assert_eq!(
        follower.failed(&missing, &presentation, at(38.0), false),
        Failed::Missed,
        "frames behind it would be due"
    );
    let next = piece(&follower, &presentation, at(38.0));
    assert_eq!((next.number, next.is_torn), (missing.number + 1, true));
    assert_eq!(follower.failed(&next, &presentation, at(38.0), true), Failed::Missed, "another request would fail too");
    // It has left the window.
    let short = mpd("timeShiftBufferDepth=\"PT4S\"", &period("", STEADY));
    let presentation = super::tests::presentation(&short, at(50.0));
    assert_eq!(piece(&follower, &presentation, at(50.0)).uri, "23");
}

#[test]
fn segments_may_exist_before_they_are_complete() {
    let early = STEADY.replace("/>", " availabilityTimeOffset=\"1.5\"/>");
    let text = mpd("suggestedPresentationDelay=\"PT1S\"", &period("", &early));
    let presentation = presentation(&text, at(31.0));
    let mut follower = leading(&presentation);
    let unfinished = piece(&follower, &presentation, at(31.0));
    assert_eq!((unfinished.uri.as_str(), unfinished.time), ("16", 30_000), "it ends at 32 s");
    // The server has whole segments only.
    assert_eq!(follower.failed(&unfinished, &presentation, at(31.0), false), Failed::Again);
    follower.taken(&piece(&follower, &presentation, at(32.0)));
    assert_eq!(follower.next(&presentation, at(33.5)), Next::Wait { until: at(34.0) });
}

#[test]
fn a_source_that_is_opened_again_goes_on() {
    let text = mpd("", &period("", STEADY));
    let first = presentation(&text, at(31.0));
    let mut before = leading(&first);
    drain(&mut before, &first, at(31.0));
    let second = presentation(&text, at(45.0));
    let mut follower = leading(&second).following(&before);
    assert_eq!(uris(&mut follower, &second, at(45.0)), ["16", "17", "18", "19", "20", "21", "22"]);
    let late = presentation(&text, at(145.0));
    let mut follower = leading(&late).following(&before);
    assert_eq!(uris(&mut follower, &late, at(145.0)), ["70", "71", "72"], "at the live edge");
}

#[test]
fn a_presentation_ends() {
    let text = |kind: &str| {
        let text = mpd("mediaPresentationDuration=\"PT9S\"", &period("", STEADY));
        text.replace("dynamic", kind)
    };
    let mut presentation = presentation(&text("dynamic"), at(7.0));
    let mut follower = leading(&presentation);
    assert_eq!(uris(&mut follower, &presentation, at(7.0)), ["1", "2", "3"]);
    assert!(!read(&text("static")).is_dynamic);
    presentation.take(&read(&text("static")), at(8.0), at(8.0)).unwrap();
    assert_eq!(uris(&mut follower, &presentation, at(8.0)), ["4", "5"]);
    assert_eq!(follower.next(&presentation, at(8.0)), Next::Ended);
}

#[test]
fn clocks() {
    let clock = |scheme: &str, value: &str| {
        format!("<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:{scheme}\" value=\"{value}\"/>")
    };
    let clocks = [
        clock("ntp:2014", "pool.example"),
        clock("http-iso:2014", "https://a.example/?iso https://b.example/"),
        clock("http-head:2014", "/time"),
        clock("http-xsdate:2012", "/now"),
        clock("direct:2014", BEGINS),
    ];
    let expected = [
        ClockSource::Body("https://a.example/?iso".into()),
        ClockSource::Head("/time".into()),
        ClockSource::Body("/now".into()),
        ClockSource::Direct(begins()),
    ];
    assert_eq!(read(&mpd("", &clocks.concat())).clocks, expected);
}
