use super::*;
use crate::{
    presentation::captions::CaptionRule,
    testing::{audio, frames, movie, presentation, reordered, table, video},
};
use millpond_media::{
    Orientation,
    movie::{Edit, TrackKind},
};
use std::sync::Arc;

#[test]
fn durations_are_xs_durations() {
    let table = [(0, "PT0S"), (10_000_000, "PT10S"), (120_200_000, "PT120.2S"), (1, "PT0.000001S")];
    for (micros, expected) in table {
        assert_eq!(duration(micros), expected);
    }
}

#[test]
fn two_renditions_share_a_timeline() {
    let film = |size| {
        let edits = vec![Edit { duration: 10_000, media_time: Some(512) }];
        let sound = audio(table(&frames(468), 1 << 24, 0), "eng", vec![Edit { duration: 0, media_time: Some(1024) }]);
        movie(vec![video(table(&reordered(250, 25, size), 48, 0), 12_800, edits), sound])
    };
    let p = presentation(vec![film(1000), film(4000)]);
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static" mediaPresentationDuration="PT10S" maxSegmentDuration="PT5S" minBufferTime="PT2S">
  <Period id="0" start="PT0S">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1" maxWidth="640" maxHeight="360" maxFrameRate="25">
      <Label>H.264</Label>
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>
      <SegmentTemplate timescale="12800" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s" startNumber="1">
        <SegmentTimeline>
          <S t="0" d="51200" r="1"/>
          <S d="25600"/>
        </SegmentTimeline>
      </SegmentTemplate>
      <Representation id="v1" bandwidth="205344" codecs="avc1.64001f" width="640" height="360" frameRate="25" sar="1:1"/>
      <Representation id="v2" bandwidth="805344" codecs="avc1.64001f" width="640" height="360" frameRate="25" sar="1:1"/>
    </AdaptationSet>
    <AdaptationSet id="1" contentType="audio" lang="en" mimeType="audio/mp4" segmentAlignment="true" startWithSAP="1">
      <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="2"/>
      <Label>English</Label>
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>
      <Representation id="a1" bandwidth="116009" codecs="mp4a.40.2" audioSamplingRate="48000">
        <SegmentTemplate timescale="48000" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s" startNumber="1">
          <SegmentTimeline>
            <S t="0" d="192512"/>
            <S d="191488"/>
            <S d="94208"/>
          </SegmentTimeline>
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>
  </Period>
</MPD>
"#;
    assert_eq!(mpd(&p).unwrap(), expected);
}

#[test]
fn captions_within_pictures_are_announced() {
    let film = || {
        let sound = audio(table(&frames(468), 1 << 24, 0), "eng", Vec::new());
        presentation(vec![movie(vec![video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new()), sound])])
    };
    let text = |rule: &str| mpd(&film().with_captions(Arc::new(CaptionRule::parse(rule).unwrap()))).unwrap();
    let of_608 = "<Accessibility schemeIdUri=\"urn:scte:dash:cc:cea-608:2015\" value=\"CC1=eng;CC3=ger\"/>";
    let of_708 = "<Accessibility schemeIdUri=\"urn:scte:dash:cc:cea-708:2015\" value=\"1=lang:eng;2=lang:und\"/>";
    let found = text("CC1=en,SERVICE1=en-GB,CC3=de,SERVICE2");
    // Between label and role, as the schema orders them (23009-1 5.3.3.3).
    let order = ["contentType=\"video\"", "</Label>", of_608, of_708, "<Role ", "contentType=\"audio\""];
    let places: Vec<usize> =
        order.iter().map(|one| found.find(one).unwrap_or_else(|| panic!("{one}: {found}"))).collect();
    assert!(places.is_sorted(), "{places:?}: {found}");
    assert_eq!(found.matches("urn:scte:dash:cc").count(), 2, "{found}");
    for silent in ["auto", "off"] {
        assert!(!text(silent).contains("urn:scte:dash:cc"), "{silent}");
    }
}

#[test]
fn rotated_pictures_are_within_their_limits() {
    let mut picture = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    picture.kind =
        TrackKind::Video { width: 640, height: 360, orientation: Orientation::rotated(90), pixel_aspect: (4, 3) };
    let mpd = mpd(&presentation(vec![movie(vec![picture])])).unwrap();
    assert!(mpd.contains("maxWidth=\"640\" maxHeight=\"360\""), "{mpd}");
    assert!(mpd.contains("width=\"640\" height=\"360\" frameRate=\"25\" sar=\"4:3\""), "{mpd}");
}

#[test]
fn tracks_lie_below_the_base() {
    let sound = |language| audio(table(&frames(468), 1 << 24, 0), language, Vec::new());
    let picture = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    let p = presentation(vec![movie(vec![picture, sound("eng")])]);
    let bare = mpd(&p).unwrap();
    assert_eq!(bare.matches("\"$RepresentationID$/").count(), 4, "{bare}");
    let below = mpd(&p.below("~0a/")).unwrap();
    assert_eq!(below, bare.replace("\"$RepresentationID$/", "\"~0a/$RepresentationID$/"));
}
