use super::*;
use crate::{
    PackageError, Presentation, dash,
    hls::{self, Container},
    testing::{audio, clips, frames, movie, presentation, reordered, table, video},
};
use millpond_media::{
    Codec, Orientation,
    codec::{Color, Vp9Config},
    movie::{Movie, Track, TrackKind},
};
use std::sync::Arc;

fn filter(query: &str) -> TrackFilter {
    TrackFilter::parse(query).unwrap()
}

fn error(query: &str) -> String {
    TrackFilter::parse(query).unwrap_err().to_string()
}

#[test]
fn a_filter_has_one_canonical_form() {
    for (query, canonical) in [
        ("", ""),
        ("token=x&_HLS_msn=3&CMCD=br%3D1&Video=avc&", ""),
        ("max-height=0720", "max-height=720"),
        (
            "first=1m&text=NONE&audio=ger,en-gb&video=AVC1,hevc,hvc1&min-rate=.5M&max-rate=2.5m&max-height=720",
            "max-height=720&max-rate=2500k&min-rate=500k&video=avc1,hevc&audio=de,en-GB&text=none&first=1M",
        ),
        ("max-rate=1500000001", "max-rate=1500000001"),
        ("max-rate=1000000M", "max-rate=1000G"),
        ("video=avc,avc3,vp09%2Cavc", "video=avc,vp09"),
        ("audio=de-CH%2cde", "audio=de"),
        ("audio=UND,+en_GB", "audio=en-GB,und"),
    ] {
        let filter = filter(query);
        assert_eq!(filter.to_string(), canonical, "{query}");
        assert_eq!(filter.is_empty(), canonical.is_empty(), "{query}");
        assert_eq!(TrackFilter::parse_strictly(canonical).as_ref(), Ok(&filter), "{query}");
    }
}

#[test]
fn bad_values_are_named_with_an_example() {
    let lines = "expected a number of lines, such as max-height=720";
    assert_eq!(error("x=1&max-height=&y"), format!("parameter max-height: found \"\", {lines}"));
    assert_eq!(error("max-height"), format!("parameter max-height: found \"\", {lines}"));
    assert_eq!(error("max-height=720p"), format!("parameter max-height: found \"720p\", {lines}"));
    let twice = "parameter audio: found \"de\" as a second value, expected one value: none, or up to 16";
    assert!(error("audio=en&audio=de").starts_with(twice), "{}", error("audio=en&audio=de"));
    let many = format!("audio={}", ["en"; 17].join(","));
    for query in [
        "max-height=0",
        "max-height=-1",
        "max-height=4294967296",
        "max-rate=fast",
        "max-rate=0",
        "max-rate=1e6",
        "max-rate=M",
        "max-rate=.",
        "max-rate=3 M",
        "min-rate=2000G",
        "min-rate=inf",
        "first=",
        "video=h264",
        "video=none,avc",
        "video=avc,",
        "audio=english",
        "audio=en,,de",
        "audio=*",
        "audio=%ff",
        "text=%4",
        &many,
    ] {
        let (name, _) = query.split_once('=').unwrap();
        let error = error(query);
        assert!(error.starts_with(&format!("parameter {name}: found \"")), "{error}");
        assert!(error.contains(&format!(", such as {name}=")), "{error}");
    }
    let misspelt = TrackFilter::parse_strictly("max_height=720").unwrap_err().to_string();
    let expected = "parameter \"max_height\": found \"720\", expected a parameter of filters (max-height, max-rate, ";
    assert!(misspelt.starts_with(expected), "{misspelt}");
}

#[test]
fn what_two_filters_keep_is_a_filter() {
    for (one, other, both) in [
        ("max-height=720", "", "max-height=720"),
        ("max-height=720&max-rate=3M", "max-height=480&max-rate=4M", "max-height=480&max-rate=3M"),
        ("min-rate=1k", "min-rate=2k", "min-rate=2k"),
        ("video=avc,vp9", "video=avc1,hevc", "video=avc1"),
        ("audio=de,fr-CA", "audio=de-CH,fr", "audio=de-CH,fr-CA"),
        ("audio=de&text=none", "audio=en&text=de", "audio=none&text=none"),
        ("first=1M", "first=2M", "first=1M"),
        ("max-height=720", "first=2M", "max-height=720&first=2M"),
    ] {
        assert_eq!(filter(one).and(&filter(other)).to_string(), both, "{one} and {other}");
        let turned = filter(other).and(&filter(one));
        assert!(turned.to_string() == both || turned.first != filter(both).first, "{other} and {one}: {turned}");
    }
}

/// A film of 10 s in one size. `bytes` are about those of a frame, of 25 a second.
fn rendition(height: u16, bytes: u32, languages: &[&str]) -> Arc<Movie> {
    let (width, orientation, pixel_aspect) = (height / 9 * 16, Orientation::UPRIGHT, (1, 1));
    let kind = TrackKind::Video { width, height, orientation, pixel_aspect };
    let picture = Track { kind, ..video(table(&reordered(250, 25, bytes), 48, 0), 12_800, Vec::new()) };
    let sound = |language: &&str| audio(table(&frames(468), 1 << 24, 0), language, Vec::new());
    movie(std::iter::once(picture).chain(languages.iter().map(sound)).collect())
}

/// A film in three sizes of about 0.2, 0.4 and 0.8 Mbit/s, with sound in English and German.
fn ladder() -> Presentation {
    presentation(vec![rendition(1080, 4000, &["eng", "deu"]), rendition(720, 2000, &[]), rendition(360, 1000, &[])])
}

fn playlist(p: &Presentation, container: Container, query: &str) -> Result<String, PackageError> {
    hls::filtered_multivariant(p, container, &filter(query))
}

/// The tracks that the variants of HLS name.
fn variants(p: &Presentation, query: &str) -> Vec<String> {
    let list = playlist(p, Container::Fmp4, query).unwrap();
    let uris = list.lines().filter(|line| !line.starts_with('#'));
    uris.map(|uri| uri.trim_end_matches("/index.m3u8").to_owned()).collect()
}

/// The tracks that the representations of DASH name.
fn representations(p: &Presentation, query: &str) -> Vec<String> {
    let mpd = dash::filtered_mpd(p, &filter(query)).unwrap();
    let names = mpd.split("<Representation id=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn pictures_are_kept_by_size_and_rate() {
    let p = ladder();
    for (query, video) in [
        ("", &["v1", "v2", "v3"][..]),
        ("max-height=1080", &["v1", "v2", "v3"]),
        ("max-height=1079", &["v1", "v2"]),
        ("max-height=720", &["v1", "v2"]),
        ("max-rate=500k", &["v1", "v2"]),
        ("min-rate=300k", &["v2", "v3"]),
        ("min-rate=300k&max-rate=500k", &["v2"]),
        ("video=avc", &["v1", "v2", "v3"]),
    ] {
        assert_eq!(variants(&p, query), video, "{query}");
        assert_eq!(representations(&p, query), [video, &["a1", "a2"]].concat(), "{query}");
        let in_ts = playlist(&p, Container::Ts, query).unwrap();
        assert_eq!(in_ts.matches("#EXT-X-STREAM-INF").count(), video.len(), "{query}: {in_ts}");
    }
    assert_eq!(dash::filtered_mpd(&p, &filter("max-height=2000")).unwrap(), dash::mpd(&p).unwrap());
}

#[test]
fn hls_begins_with_the_rendition_that_is_named_first() {
    let p = ladder();
    for (query, video) in
        [("first=500k", ["v2", "v1", "v3"]), ("first=1", ["v1", "v2", "v3"]), ("first=1G", ["v3", "v1", "v2"])]
    {
        assert_eq!(variants(&p, query), video, "{query}");
        assert_eq!(representations(&p, query), ["v1", "v2", "v3", "a1", "a2"], "{query}");
    }
    assert_eq!(variants(&p, "first=1G&max-height=720"), ["v2", "v1"]);
}

#[test]
fn sound_is_kept_by_language_and_has_a_default() {
    let p = ladder();
    assert_eq!(representations(&p, "audio=ger"), ["v1", "v2", "v3", "a2"]);
    assert_eq!(representations(&p, "audio=de-CH"), ["v1", "v2", "v3"]);
    assert_eq!(representations(&p, "audio=none"), ["v1", "v2", "v3"]);
    let (list, mpd) = (playlist(&p, Container::Fmp4, "audio=de").unwrap(), dash::filtered_mpd(&p, &filter("audio=de")));
    assert!(list.contains("NAME=\"German\",LANGUAGE=\"de\",DEFAULT=YES"), "{list}");
    assert_eq!(list.matches("TYPE=AUDIO").count(), 1, "{list}");
    assert_eq!(mpd.unwrap().matches("value=\"main\"").count(), 2);
    let silent = playlist(&p, Container::Fmp4, "audio=none").unwrap();
    assert!(!silent.contains("AUDIO") && !silent.contains("mp4a"), "{silent}");
    assert_eq!(variants(&p, "video=none"), ["a1"]);
    assert_eq!(representations(&p, "video=none&audio=en"), ["a1"]);
    assert!(!playlist(&p, Container::Fmp4, "video=none").unwrap().contains("I-FRAME"));
}

#[test]
fn ranges_match_tags_by_basic_filtering() {
    for (range, tag, is_match) in [
        ("de", Some("de"), true),
        ("de", Some("de-CH"), true),
        ("de-CH", Some("de"), false),
        ("de", Some("den"), false),
        ("sl", Some("\u{17f}l"), false),
        ("de", None, false),
        ("und", None, true),
        ("zh-Hant", Some("zh-Hant-TW"), true),
    ] {
        let list: List<LanguageRange> = List::parse(range).unwrap();
        assert_eq!(list.any(|range| range.matches(tag)), is_match, "{range} and {tag:?}");
    }
}

#[test]
fn pictures_are_kept_by_codec() {
    let coded = |mut film: Arc<Movie>, change: fn(&mut Codec)| {
        change(&mut Arc::make_mut(&mut film).tracks[0].codec);
        film
    };
    let to_avc3 = |codec: &mut Codec| {
        if let Codec::Avc(config) = codec {
            config.fourcc = *b"avc3";
        }
    };
    let to_vp9 = |codec: &mut Codec| {
        let (fourcc, color) = (*b"vp09", Color::UNSPECIFIED);
        *codec = Codec::Vp9(Vp9Config { fourcc, profile: 0, level: 31, bit_depth: 8, chroma: 1, color });
    };
    let films = [rendition(360, 1000, &["eng"]), rendition(720, 2000, &[]), rendition(1080, 4000, &[])];
    let [small, medium, large] = films;
    let p = presentation(vec![small, coded(medium, to_avc3), coded(large, to_vp9)]);
    for (query, video) in [
        ("video=avc", &["v1", "v2"][..]),
        ("video=AVC1", &["v1"]),
        ("video=avc3,vp9", &["v2", "v3"]),
        ("video=vp09,hvc1", &["v3"]),
    ] {
        assert_eq!(variants(&p, query), video, "{query}");
    }
    assert_eq!(variants(&p, "video=vp8,hevc"), ["a1"]);
}

#[test]
fn a_filter_that_leaves_nothing_says_why() {
    let p = ladder();
    let expected = "the filter leaves nothing to play: max-height=100 excludes 3 of 3 renditions \
                    (640x360, 1280x720, 1920x1080), audio=fr excludes 2 of 2 sound tracks (en, de); \
                    widen it, or leave the parameter out";
    let query = "max-height=100&audio=fra&text=en";
    for container in [Container::Fmp4, Container::Ts] {
        assert_eq!(playlist(&p, container, query).unwrap_err().to_string(), expected, "{container:?}");
    }
    assert_eq!(dash::filtered_mpd(&p, &filter(query)).unwrap_err().to_string(), expected);
    let error = playlist(&p, Container::Fmp4, "max-height=720&min-rate=500k&video=vp9&audio=none").unwrap_err();
    let text = error.to_string();
    for part in [
        "max-height=720 excludes 1 of 3 renditions (1920x1080), min-rate=500k excludes 2 of the remaining 2 renditions (",
        "audio=none excludes 2 of 2 sound tracks (en, de)",
    ] {
        assert!(text.contains(part) && !text.contains("vp9"), "{text}");
    }
    let sound = presentation(vec![movie(vec![audio(table(&frames(468), 0, 0), "eng", Vec::new())])]);
    assert_eq!(variants(&sound, "max-height=100&video=none&audio=en"), ["a1"]);
    assert!(matches!(playlist(&sound, Container::Fmp4, "audio=de"), Err(PackageError::Filtered { .. })));
}

#[test]
fn joined_filters_that_leave_nothing_say_whose_value_each_was() {
    use crate::FilterSource::{Place, Server, Token, Url};
    let p = ladder();
    let reason = |viewer: &str, token: &str, place: &str| {
        let [viewer, token, place] = [viewer, token, place].map(filter);
        let joined = viewer.and(&token).and(&place);
        let error = hls::filtered_multivariant(&p, Container::Fmp4, &joined).unwrap_err();
        assert_eq!(dash::filtered_mpd(&p, &joined).as_ref(), Err(&error));
        let PackageError::Filtered { excluded } = error else { panic!("{error}") };
        excluded.of_sources(&[(Url, &viewer), (Token, &token), (Place, &place)]).to_string()
    };
    let sizes = "(640x360, 1280x720, 1920x1080)";
    let alone = format!(
        "max-height=100 (URL) excludes 3 of 3 renditions {sizes}, audio=fr (URL) excludes 2 of 2 sound tracks (en, de); \
         widen it, or leave the parameter out"
    );
    assert_eq!(reason("max-height=100&audio=fr", "", ""), alone);
    // The lower bound counts, whoever states it. No source alone excludes all sound.
    let several = format!(
        "max-height=100 (claim of the token, option of the place) excludes 3 of 3 renditions {sizes}, \
         audio=fr (URL) and audio=de (option of the place) exclude 2 of 2 sound tracks (en, de); \
         widen the filter of the URL, or leave it out; or use a token whose claim `filter` is wider; \
         or have the operator widen the option `filter` of the place"
    );
    assert_eq!(reason("max-height=720&audio=fr", "max-height=100", "audio=de&max-height=100"), several);
    let of_operator = reason("text=en", "", "video=none&audio=none");
    let expected = "video=none (option of the place) excludes 3 of 3 renditions (avc1), audio=none (option of the place) \
                    excludes 2 of 2 sound tracks (en, de); have the operator widen the option `filter` of the place";
    assert_eq!(of_operator, expected);
    let error = hls::filtered_multivariant(&p, Container::Fmp4, &filter("video=none&audio=none")).unwrap_err();
    let PackageError::Filtered { excluded } = error else { panic!("{error}") };
    let of_server = excluded.of_sources(&[(Server, &filter("video=none&audio=none"))]).to_string();
    let expected = "video=none (setting of the server) excludes 3 of 3 renditions (avc1), audio=none (setting of the server) \
                    excludes 2 of 2 sound tracks (en, de); have the operator widen the setting `filter` of the server";
    assert_eq!(of_server, expected);
    let one_by_one = reason("min-rate=500k", "audio=none", "max-height=720");
    let expected = "max-height=720 (option of the place) excludes 1 of 3 renditions (1920x1080), \
                    min-rate=500k (URL) excludes 2 of the remaining 2 renditions (";
    assert!(one_by_one.starts_with(expected), "{one_by_one}");
}

#[test]
fn a_filter_that_always_leaves_nothing_says_so() {
    let reason = |query: &str| filter(query).contradiction();
    let none = "video=none and audio=none exclude all pictures and all sound: leave one of them out";
    assert_eq!(reason("audio=none&text=en&video=none").as_deref(), Some(none));
    let rates = "min-rate=3M and max-rate=1M exclude all pictures, and audio=none all sound: lower min-rate";
    assert_eq!(reason("min-rate=3M&max-rate=1M&audio=none").as_deref(), Some(rates));
    for query in ["video=none", "audio=none&text=none", "video=none&audio=en", "audio=none&min-rate=1M&max-rate=1M", ""]
    {
        assert_eq!(reason(query), None, "{query}");
    }
}

#[test]
fn alternative_pictures_are_never_the_film() {
    let picture = |id: u32, count, bytes| Track {
        id,
        ..video(table(&reordered(count, 25, bytes), u64::from(id) << 24, 0), 12_800, Vec::new())
    };
    let p = presentation(vec![movie(vec![picture(1, 250, 4000), picture(3, 50, 1000)])]);
    assert_eq!(representations(&p, ""), ["v1", "v2"]);
    assert_eq!(representations(&p, "min-rate=500k"), ["v1"]);
    assert_eq!(representations(&p, "max-rate=2M"), ["v1", "v2"]);
    assert!(matches!(dash::filtered_mpd(&p, &filter("max-rate=500k")), Err(PackageError::Filtered { .. })));
}

#[test]
fn sound_in_transport_streams_of_pictures_stays() {
    let p = presentation(vec![rendition(360, 1000, &["eng"])]);
    let list = playlist(&p, Container::Ts, "audio=none").unwrap();
    assert!(list.contains("CODECS=\"avc1.64001f,mp4a.40.2\""), "{list}");
    assert!(matches!(playlist(&p, Container::Ts, "video=none"), Err(PackageError::Filtered { .. })));
}

#[test]
fn each_period_lists_the_same_tracks() {
    let p = presentation(vec![clips()]);
    assert_eq!(representations(&p, "audio=none"), ["v1p1", "v1p2"]);
    assert_eq!(representations(&p, "video=none"), ["a1p1", "a1p2"]);
    assert_eq!(dash::filtered_mpd(&p, &filter("audio=en")).unwrap(), dash::mpd(&p).unwrap());
    assert_eq!(variants(&p, "max-height=360"), ["v1"]);
    assert!(matches!(dash::filtered_mpd(&p, &filter("video=none&audio=de")), Err(PackageError::Filtered { .. })));
}
