use super::*;
use crate::live::{
    Cut, CutRules,
    testing::{LIMITS, cut, epoch, film, rules, subtitled, window, with_texts},
};

const VIEW: ManifestView<'static> = ManifestView {
    run: "0a1b",
    clock: "/.millpond/time",
    published: Duration::from_secs(1_795_341_605),
    away: Duration::ZERO,
    extent: Extent::Edge,
};

#[test]
fn a_stream_without_parts() {
    let window = window(LIMITS, cut(CutRules { part: None, ..rules() }, film(5, 50)));
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="dynamic" availabilityStartTime="1970-01-01T00:00:00.000Z" publishTime="2026-11-22T10:00:05.000Z" minimumUpdatePeriod="PT1.5S" timeShiftBufferDepth="PT60S" suggestedPresentationDelay="PT9S" maxSegmentDuration="PT3S" minBufferTime="PT3S">
  <Period id="1795341600000000" start="PT1795341600S">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" maxWidth="640" maxHeight="360" maxFrameRate="25">
      <Label>Video</Label>
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>
      <Representation id="v1" bandwidth="BANDWIDTH" codecs="avc1.64001f" width="640" height="360" frameRate="25" sar="1:1">
        <SegmentTemplate timescale="90000" presentationTimeOffset="900000" initialization="~0a1b/$RepresentationID$/init-0.mp4" media="~0a1b/$RepresentationID$/t$Time$.m4s">
          <SegmentTimeline>
            <S t="900000" d="180000" r="1"/>
          </SegmentTimeline>
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>
"#;
    let mpd = mpd(&window, &VIEW).unwrap();
    let expected = expected.replace("BANDWIDTH", &window.bandwidth(0).peak.to_string());
    assert!(mpd.starts_with(&expected), "{mpd}");
    assert!(mpd.contains("<S t=\"480000\" d=\"95232\"/>") && mpd.contains("<S d=\"96256\"/>"), "{mpd}");
    let clock = "  <UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-iso:2014\" value=\"/.millpond/time\"/>\n</MPD>\n";
    assert!(mpd.ends_with(clock), "{mpd}");
}

#[test]
fn subtitles_are_complete_segments_of_webvtt_in_mp4() {
    let window = subtitled(cut(rules(), film(5, 50)), &[(990_000, b"\0\0\0\x11vttc\0\0\0\x09payla")]);
    let mpd = mpd(&window, &VIEW).unwrap();
    let expected = r#"
    <AdaptationSet id="2" contentType="text" lang="fr" mimeType="application/mp4" segmentAlignment="true" startWithSAP="1">
      <Label>French</Label>
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="subtitle"/>
      <Representation id="text1" bandwidth="BANDWIDTH" codecs="wvtt">
        <SegmentTemplate timescale="90000" presentationTimeOffset="900000" initialization="~0a1b/$RepresentationID$/init-0.mp4" media="~0a1b/$RepresentationID$/t$Time$.m4s">
          <SegmentTimeline>
            <S t="900000" d="180000" r="1"/>
          </SegmentTimeline>
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>
"#;
    assert!(mpd.contains(&expected.replace("BANDWIDTH", &window.bandwidth(2).peak.to_string())), "{mpd}");
    assert!(window.has_begun_texts());
    let mut early = with_texts();
    cut(rules(), film(5, 50)).into_iter().for_each(|cut| early.push(cut));
    assert!(early.is_ready() && !early.has_begun_texts());
    let without = super::mpd(&early, &VIEW).unwrap();
    assert!(!without.contains("text1") && without.contains("a1"), "{without}");
}

#[test]
fn a_stream_with_low_latency_lists_the_unfinished_segment() {
    let window = window(LIMITS, cut(rules(), film(5, 50)));
    let mpd = mpd(&window, &VIEW).unwrap();
    let lines: Vec<_> = mpd.lines().map(str::trim).collect();
    let listed = ["<S t=\"900000\" d=\"180000\" r=\"1\"/>", "<S d=\"178200\"/>"];
    assert!(lines.windows(2).any(|two| two == listed), "the unfinished one is a little shorter: {mpd}");
    assert!(mpd.contains("availabilityTimeOffset=\"1.646\" availabilityTimeComplete=\"false\""), "{mpd}");
    assert!(mpd.contains("suggestedPresentationDelay=\"PT1.502S\""), "{mpd}");
    assert!(mpd.contains("<Latency target=\"1502\" min=\"751\" max=\"9000\"/>"), "{mpd}");
}

#[test]
fn an_unfinished_segment_is_not_stated_below_a_second() {
    let window = window(LIMITS, cut(CutRules { segment: Duration::from_secs(1), ..rules() }, film(5, 25)));
    let mpd = mpd(&window, &VIEW).unwrap();
    assert!(mpd.contains("<S t=\"900000\" d=\"90000\" r=\"4\"/>"), "{mpd}");
}

#[test]
fn players_that_rewind_get_complete_segments_alone() {
    let window = window(LIMITS, cut(rules(), film(5, 50)));
    let mpd = mpd(&window, &ManifestView { extent: Extent::Past, ..VIEW }).unwrap();
    assert!(mpd.contains("<S t=\"900000\" d=\"180000\" r=\"1\"/>"), "{mpd}");
    assert!(!mpd.contains("availabilityTimeOffset") && !mpd.contains("Latency"), "{mpd}");
}

#[test]
fn epochs_are_periods_with_exact_durations() {
    let mut window = window(LIMITS, cut(CutRules { part: None, ..rules() }, film(5, 50)));
    for track in [0, 1] {
        let scale = i64::from(window.tracks()[track].timescale.get());
        window.push(Cut::Closed { track, segment: SegmentNumber(102), start: 14 * scale, duration: scale });
    }
    window.begin(epoch(1, Duration::from_secs(60)));
    let segment = SegmentNumber(103);
    window.push(Cut::Opened { segment, epoch: 1, start: Duration::from_secs(61), is_independent: true });
    window.push(Cut::Closed { track: 0, segment, start: 61 * 90_000, duration: 180_000 });
    let mpd = mpd(&window, &VIEW).unwrap();
    assert!(mpd.contains("<Period id=\"1795341600000000\" start=\"PT1795341600S\" duration=\"PT5S\">"), "{mpd}");
    assert!(mpd.contains("<Period id=\"1795341650000000\" start=\"PT1795341651S\">"), "{mpd}");
    let template = "presentationTimeOffset=\"5490000\" initialization=\"~0a1b/$RepresentationID$/init-1.mp4\" \
        media=\"~0a1b/$RepresentationID$/t$Time$.m4s\"";
    assert!(mpd.contains(template), "{mpd}");
}
