use super::*;

fn location() -> Url {
    Url::parse("http://h/films/a.mpd").unwrap()
}

/// An MPD of 10 s with this in its only representation `v1` of 800 kbit/s.
fn with(inside: &str) -> Result<Mpd, MpdError> {
    let text = format!(
        "<MPD mediaPresentationDuration=\"PT10S\">\n<Period>\n<AdaptationSet contentType=\"video\">\n\
         <Representation id=\"v1\" bandwidth=\"800000\">{inside}</Representation></AdaptationSet></Period></MPD>"
    );
    parse(&text, &location())
}

fn only(mpd: &Mpd) -> &Representation {
    &mpd.periods[0].sets[0].representations[0]
}

/// The paths below `/films/`, with ranges, and the durations.
fn listed(representation: &Representation) -> Vec<(String, f64)> {
    representation.segments.iter().map(|s| (shown(&s.resource), s.duration)).collect()
}

fn shown(resource: &Resource) -> String {
    let path = resource.url.as_str().trim_start_matches("http://h/films/").to_owned();
    match resource.range {
        Some(range) => format!("{path} {range}"),
        None => path,
    }
}

fn rows(expected: &[(&str, f64)]) -> Vec<(String, f64)> {
    expected.iter().map(|&(path, duration)| (path.to_owned(), duration)).collect()
}

#[test]
fn base_urls_are_servers_of_one_presentation() {
    let text = "<MPD mediaPresentationDuration=\"PT8S\"><BaseURL>./</BaseURL><BaseURL>http://i/b/</BaseURL><Period>\
        <AdaptationSet contentType=\"video\"><SegmentTemplate duration=\"4\" media=\"$Number$\"/>\
        <Representation id=\"1\" bandwidth=\"1\"/></AdaptationSet></Period></MPD>";
    let mpd = parse(text, &location()).unwrap();
    assert_eq!(listed(only(&mpd)), rows(&[("1", 4.0), ("2", 4.0)]));
    assert_eq!(mpd.others.len(), 1);
    assert_eq!(listed(only(&mpd.others[0])), rows(&[("http://i/b/1", 4.0), ("http://i/b/2", 4.0)]));
}

#[test]
fn addressing_forms() {
    type Row<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, f64)]);
    let table: [Row<'_>; 8] = [
        (
            "<SegmentTemplate media=\"$RepresentationID$/$Number$.m4s\" initialization=\"$RepresentationID$/init.mp4\" duration=\"4\"/>",
            Some("v1/init.mp4"),
            &[("v1/1.m4s", 4.0), ("v1/2.m4s", 4.0), ("v1/3.m4s", 2.0)],
        ),
        (
            "<SegmentTemplate media=\"$Bandwidth$-$Number%05d$.m4s\" startNumber=\"0\" timescale=\"1000\" duration=\"5000\"/>",
            None,
            &[("800000-00000.m4s", 5.0), ("800000-00001.m4s", 5.0)],
        ),
        (
            "<SegmentTemplate media=\"t$Time$$$.m4s\" timescale=\"10\"><SegmentTimeline>\
             <S t=\"50\" d=\"40\" r=\"1\"/><S d=\"20\"/></SegmentTimeline></SegmentTemplate>",
            None,
            &[("t50$.m4s", 4.0), ("t90$.m4s", 4.0), ("t130$.m4s", 2.0)],
        ),
        (
            "<SegmentTemplate media=\"$Number$\" timescale=\"10\" presentationTimeOffset=\"50\" startNumber=\"7\">\
             <SegmentTimeline><S t=\"50\" d=\"40\" r=\"-1\"/></SegmentTimeline></SegmentTemplate>",
            None,
            &[("7", 4.0), ("8", 4.0), ("9", 4.0)],
        ),
        (
            "<SegmentTemplate media=\"$Number$\"><SegmentTimeline><S t=\"0\" d=\"2\" r=\"-1\"/><S t=\"6\" d=\"1\"/>\
             </SegmentTimeline></SegmentTemplate>",
            None,
            &[("1", 2.0), ("2", 2.0), ("3", 2.0), ("4", 1.0)],
        ),
        ("<SegmentTemplate media=\"$Number$\" duration=\"1\" endNumber=\"2\"/>", None, &[("1", 1.0), ("2", 1.0)]),
        (
            "<BaseURL>v/f.mp4</BaseURL><SegmentList duration=\"5\"><Initialization range=\"0-99\"/>\
             <SegmentURL mediaRange=\"100-199\"/><SegmentURL media=\"g.mp4\"/></SegmentList>",
            Some("v/f.mp4 0-99"),
            &[("v/f.mp4 100-199", 5.0), ("v/g.mp4", 5.0)],
        ),
        ("<BaseURL>whole.mp4</BaseURL>", None, &[("whole.mp4", 10.0)]),
    ];
    for (inside, init, segments) in table {
        let mpd = with(inside).unwrap_or_else(|error| panic!("{inside}: {error}"));
        let representation = only(&mpd);
        assert_eq!(representation.init.as_ref().map(shown).as_deref(), init, "{inside}");
        assert_eq!(listed(representation), rows(segments), "{inside}");
        assert_eq!(representation.bandwidth, 800_000);
    }
}

#[test]
fn attributes_are_inherited_and_bases_nested() {
    let text = "<MPD mediaPresentationDuration=\"PT8S\"><BaseURL>cdn/</BaseURL><Period>\
        <SegmentTemplate timescale=\"10\" initialization=\"i.mp4\"/>\
        <AdaptationSet mimeType=\"audio/mp4\"><BaseURL>a/</BaseURL><SegmentTemplate duration=\"40\" media=\"x\"/>\
        <Representation id=\"1\" bandwidth=\"1\"><BaseURL>one/</BaseURL><SegmentTemplate media=\"$Number$\"/></Representation>\
        </AdaptationSet></Period></MPD>";
    let mpd = parse(text, &location()).expect("sound");
    let representation = only(&mpd);
    assert_eq!(representation.init.as_ref().map(shown).as_deref(), Some("cdn/a/one/i.mp4"));
    assert_eq!(listed(representation), rows(&[("cdn/a/one/1", 4.0), ("cdn/a/one/2", 4.0)]));
    assert_eq!(mpd.periods[0].sets[0].kind, ContentType::Audio);
}

#[test]
fn kinds_of_sets() {
    let table = [
        ("contentType=\"video\"", "", "", ContentType::Video),
        ("", "", "mimeType=\"audio/mp4\"", ContentType::Audio),
        ("contentType=\"text\" mimeType=\"application/mp4\"", "", "", ContentType::Other),
        ("", "", "", ContentType::Other),
        (
            "contentType=\"video\"",
            "<EssentialProperty schemeIdUri=\"http://dashif.org/guidelines/trickmode\"/>",
            "",
            ContentType::Other,
        ),
    ];
    for (set, property, representation, kind) in table {
        let text = format!(
            "<MPD mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet {set}>{property}\
             <Representation bandwidth=\"1\" {representation}><BaseURL>f</BaseURL></Representation></AdaptationSet></Period></MPD>"
        );
        assert_eq!(parse(&text, &location()).expect(&text).periods[0].sets[0].kind, kind, "{text}");
    }
}

#[test]
fn period_durations() {
    let of = |total: &str, periods: &str| {
        let text = format!("<MPD {total}>{periods}</MPD>");
        parse(&text, &location()).map(|mpd| mpd.periods.iter().map(|p| p.duration).collect::<Vec<_>>())
    };
    let total = "mediaPresentationDuration=\"PT1M\"";
    assert_eq!(of(total, "<Period/>"), Ok(vec![60.0]));
    assert_eq!(of(total, "<Period/><Period start=\"PT20S\"/>"), Ok(vec![20.0, 40.0]));
    assert_eq!(of(total, "<Period duration=\"PT15S\"/><Period/>"), Ok(vec![15.0, 45.0]));
    assert_eq!(of("", "<Period duration=\"PT15S\"/>"), Ok(vec![15.0]));
    assert!(of("", "<Period/>").is_err());
    assert!(of(total, "").is_err());
}

#[test]
fn iso_durations() {
    let table = [
        ("PT10S", Some(10.0)),
        ("PT0H9M56.46S", Some(596.46)),
        ("P1DT1H", Some(90_000.0)),
        ("P2D", Some(172_800.0)),
        ("PT0S", Some(0.0)),
        ("P", None),
        ("PT", None),
        ("10", None),
        ("PT10", None),
        ("PT1S2M", None),
        ("PT-1S", None),
        ("PTnanS", None),
        ("PTinfS", None),
        ("PT1e9S", None),
        ("P1Y", None),
        ("P99999999D", None),
    ];
    for (text, seconds) in table {
        assert_eq!(iso_duration(text), seconds, "{text}");
    }
}

#[test]
fn errors_name_the_line() {
    let table = [
        ("\n<SegmentTemplate duration=\"4\"/>", 5, "media"),
        ("<SegmentTemplate media=\"$Nr$\" duration=\"4\"/>", 4, "not known"),
        ("<SegmentTemplate media=\"$Number\" duration=\"4\"/>", 4, "not closed"),
        ("<SegmentTemplate media=\"$Number%99999d$\" duration=\"4\"/>", 4, "not known"),
        ("\n\n<SegmentTemplate media=\"a\"/>", 6, "SegmentTimeline or a duration"),
        ("<SegmentTemplate media=\"a\" duration=\"x\"/>", 4, "expected an integer"),
        ("<SegmentTemplate media=\"a\" duration=\"1\" timescale=\"0\"/>", 4, "timescale"),
        ("<SegmentTemplate media=\"a\" duration=\"1\" timescale=\"1000000000\"/>", 4, "more than"),
        ("<SegmentTemplate media=\"a\"><SegmentTimeline>\n<S/></SegmentTimeline></SegmentTemplate>", 5, "d above 0"),
        (
            "<SegmentTemplate media=\"a\"><SegmentTimeline><S d=\"1\" r=\"9223372036854775807\"/></SegmentTimeline></SegmentTemplate>",
            4,
            "more than",
        ),
        (
            "<SegmentTemplate media=\"a\"><SegmentTimeline><S d=\"1\" r=\"-1\"/><S d=\"1\"/></SegmentTimeline></SegmentTemplate>",
            4,
            "needs t",
        ),
        (
            "<SegmentTemplate media=\"a\"><SegmentTimeline><S t=\"18446744073709551615\" d=\"1\"/></SegmentTimeline></SegmentTemplate>",
            4,
            "beyond",
        ),
        ("<SegmentList duration=\"1\"><SegmentURL mediaRange=\"9-1\"/></SegmentList>", 4, "first-last"),
        ("<SegmentBase indexRange=\"0-9\"/>", 4, "not played"),
        ("<BaseURL>http://[</BaseURL>", 4, "URL"),
        ("", 4, "expected SegmentTemplate"),
    ];
    for (inside, line, word) in table {
        let error = with(inside).expect_err(inside);
        assert_eq!(error.line, line, "{inside}: {error}");
        assert!(error.what.contains(word), "{inside}: {error}");
    }
    let live = parse("<MPD type=\"dynamic\"/>", &location()).expect_err("live");
    assert!(live.what.contains("live"), "{live}");
    assert!(parse("<RSS/>", &location()).expect_err("no MPD").what.contains("root"));
}
