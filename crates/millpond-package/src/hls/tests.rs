use super::*;
use crate::{
    Options, PackageError, Presentation, Sidecar, Source,
    testing::{audio, frames, movie, presentation, reordered, table, video},
    text::Cue,
};
use millpond_media::{
    Codec, Work,
    codec::{Ac3Config, ByteOrder, PcmCoding, PcmConfig},
    movie::{Edit, Movie, TrackKind},
};
use std::sync::Arc;

fn film(size: u32, languages: &[&str]) -> Arc<Movie> {
    let edits = vec![Edit { duration: 10_000, media_time: Some(512) }];
    let mut tracks = vec![video(table(&reordered(250, 25, size), 48, 0), 12_800, edits)];
    let sound = |l: &&str| audio(table(&frames(468), 1 << 24, 0), l, Vec::new());
    tracks.extend(languages.iter().map(sound));
    movie(tracks)
}

#[test]
fn one_film() {
    let p = presentation(vec![film(1000, &["eng"])]);
    let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"a1/index.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=321507,AVERAGE-BANDWIDTH=321257,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360,FRAME-RATE=25.000,AUDIO=\"aac\"\n\
        v1/index.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9056,AVERAGE-BANDWIDTH=9056,CODECS=\"avc1.64001f\",RESOLUTION=640x360,URI=\"v1/iframes.m3u8\"\n";
    assert_eq!(multivariant(&p, Container::Fmp4).unwrap(), expected);
    let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-PLAYLIST-TYPE:VOD\n\
        #EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4.000000,\n1.m4s\n#EXTINF:4.000000,\n2.m4s\n\
        #EXTINF:2.000000,\n3.m4s\n#EXT-X-ENDLIST\n";
    assert_eq!(media(&p, p.track("v1").unwrap(), Container::Fmp4).unwrap(), expected);
    let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-PLAYLIST-TYPE:VOD\n\
        #EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4.010667,\n1.m4s\n#EXTINF:3.989333,\n2.m4s\n\
        #EXTINF:1.984000,\n3.m4s\n#EXT-X-ENDLIST\n";
    assert_eq!(media(&p, p.track("a1").unwrap(), Container::Fmp4).unwrap(), expected);
    let pictures = iframes(&p, p.track("v1").unwrap(), Container::Fmp4).unwrap();
    assert!(pictures.contains("#EXT-X-I-FRAMES-ONLY\n"));
    assert!(pictures.ends_with("#EXTINF:1.000000,\ni10.m4s\n#EXT-X-ENDLIST\n"));
    assert!(iframes(&p, p.track("a1").unwrap(), Container::Fmp4).is_none());
}

#[test]
fn one_audio_track_is_in_the_transport_streams_of_the_video() {
    let p = presentation(vec![film(1000, &["eng"])]);
    let list = multivariant(&p, Container::Ts).unwrap();
    assert!(!list.contains("EXT-X-MEDIA:") && !list.contains("I-FRAME"), "{list}");
    assert!(list.contains("CODECS=\"avc1.64001f,mp4a.40.2\"") && list.ends_with("\nv1/index.m3u8\n"), "{list}");
    assert!(media(&p, p.track("a1").unwrap(), Container::Ts).is_none());
    let list = media(&p, p.track("v1").unwrap(), Container::Ts).unwrap();
    assert!(list.contains("#EXT-X-VERSION:3\n") && list.contains("\n3.ts\n") && !list.contains("EXT-X-MAP"), "{list}");
}

#[test]
fn several_audio_tracks_have_transport_streams_of_their_own() {
    let p = presentation(vec![film(1000, &["eng", "deu"])]);
    let list = multivariant(&p, Container::Ts).unwrap();
    assert!(list.contains("NAME=\"German\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES"), "{list}");
    assert!(media(&p, p.track("a2").unwrap(), Container::Ts).is_some());
}

#[test]
fn renditions_share_audio_and_go_by_bandwidth() {
    let p = presentation(vec![film(4000, &["eng"]), film(1000, &["eng"])]);
    assert!(p.is_aligned() && p.warnings().is_empty());
    assert_eq!(p.tracks().iter().map(|t| t.name()).collect::<Vec<_>>(), ["v1", "v2", "a1"]);
    assert_eq!(p.track("v1").unwrap().object().unwrap().0, 1);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert_eq!(list.matches("#EXT-X-STREAM-INF").count(), 2);
}

#[test]
fn same_language_twice_in_one_file_is_kept_and_named_apart() {
    let p = presentation(vec![film(1000, &["eng", "eng"]), film(2000, &["eng", "eng"])]);
    let labels: Vec<&str> = p.of_kind(crate::Kind::Audio).map(|t| t.label()).collect();
    assert_eq!(labels, ["English", "English (2)"]);
}

#[test]
fn each_codec_is_a_group() {
    let mut tracks = film(1000, &["eng", "eng"]).tracks.clone();
    tracks[2].codec = Codec::Ac3(Ac3Config { channels: 6, sample_rate: 48_000, service: 0 });
    tracks[2].kind = TrackKind::Audio { channels: 6, sample_rate: 48_000 };
    let p = presentation(vec![movie(tracks)]);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert_eq!(list.matches("#EXT-X-STREAM-INF").count(), 2, "{list}");
    assert!(list.contains("GROUP-ID=\"ac3\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES"), "{list}");
    assert!(list.contains("CODECS=\"avc1.64001f,ac-3\"") && list.contains("CHANNELS=\"6\""), "{list}");
}

#[test]
fn audio_alone_is_a_variant() {
    let p = presentation(vec![movie(vec![audio(table(&frames(468), 48, 0), "eng", Vec::new())])]);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert!(list.ends_with(",CODECS=\"mp4a.40.2\"\na1/index.m3u8\n") && !list.contains("EXT-X-MEDIA:"), "{list}");
    let p = presentation(vec![movie(vec![
        audio(table(&frames(468), 48, 0), "eng", Vec::new()),
        audio(table(&frames(468), 1 << 20, 0), "fra", Vec::new()),
    ])]);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert_eq!(list.matches("#EXT-X-MEDIA:").count(), 2, "{list}");
    assert!(list.ends_with(",CODECS=\"mp4a.40.2\",AUDIO=\"aac\"\na1/index.m3u8\n"), "{list}");
}

#[test]
fn a_codec_that_transport_streams_lack_is_an_error_only_when_nothing_is_left() {
    let mut tracks = film(1000, &["eng"]).tracks.clone();
    tracks[1].codec = Codec::Tx3g;
    let p = presentation(vec![movie(tracks.clone())]);
    assert!(multivariant(&p, Container::Ts).unwrap().contains("CODECS=\"avc1.64001f\""));
    tracks.remove(0);
    let p = presentation(vec![movie(tracks)]);
    assert!(matches!(multivariant(&p, Container::Ts), Err(PackageError::Container { .. })));
}

#[test]
fn pcm_is_presented_and_not_packaged() {
    let mut tracks = film(1000, &["eng", "eng"]).tracks.clone();
    let coding = PcmCoding::Signed16(ByteOrder::Little);
    tracks[1].codec = Codec::Pcm(PcmConfig { fourcc: *b"sowt", coding, channels: 2, sample_rate: 48_000 });
    let p = presentation(vec![movie(tracks.clone())]);
    assert_eq!(p.tracks().iter().map(|t| t.name()).collect::<Vec<_>>(), ["v1", "a1", "a2"]);
    let warning = "film.mp4: track 2: 'sowt' (PCM) is sent by RTSP only: HLS and DASH can't carry it";
    assert_eq!(p.warnings(), [warning]);
    for container in [Container::Fmp4, Container::Ts] {
        let list = multivariant(&p, container).unwrap();
        assert!(!list.contains("a1/") && !list.contains("sowt") && list.contains("mp4a.40.2"), "{list}");
    }
    let mpd = crate::dash::mpd(&p).unwrap();
    assert!(!mpd.contains("\"a1\"") && mpd.contains("\"a2\""), "{mpd}");
    let pcm = p.track("a1").unwrap();
    assert!(media(&p, pcm, Container::Fmp4).is_none() && media(&p, pcm, Container::Ts).is_none());
    assert!(crate::fmp4::init(&p, pcm).is_empty() && crate::fmp4::segment(&p, pcm, 1).is_none());
    assert!(crate::transport::segment(&p, pcm, 1).unwrap().is_none());
    let alone = presentation(vec![movie(vec![tracks.remove(1)])]);
    let error = multivariant(&alone, Container::Fmp4).unwrap_err().to_string();
    assert_eq!(error, "HLS can carry none of the tracks: found sowt, expected video, or audio other than PCM");
    assert!(crate::dash::mpd(&alone).unwrap_err().to_string().starts_with("DASH can carry none"));
}

#[test]
fn sidecars_are_subtitles_of_both_containers() {
    let cue = Cue { start: 3500, end: 4500, text: "Hello".into(), ..Cue::default() };
    let sidecar = |language: &str, forced: bool| Sidecar {
        language: language.into(),
        name: String::new(),
        cues: Arc::new(vec![cue.clone()]),
        default: !forced,
        forced,
    };
    let source = Source::new(film(1000, &["eng"]), "film.mp4".into());
    let sidecars = vec![sidecar("ger", false), sidecar("de", false), sidecar("ger", true)];
    let p = Presentation::build(vec![source], sidecars, &Options::default(), &Work::unlimited()).unwrap();
    let list = multivariant(&p, Container::Ts).unwrap();
    let expected = "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=\"German\",LANGUAGE=\"de\",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,URI=\"s1/index.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=\"German (forced)\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI=\"s2/index.m3u8\"\n";
    assert!(list.contains(expected), "{list}");
    assert_eq!(p.of_kind(crate::Kind::Text).count(), 2, "the same language twice is one");
    let s = p.track("s1").unwrap();
    let text = media(&p, s, Container::Fmp4).unwrap();
    assert!(text.contains("#EXT-X-VERSION:3\n") && text.contains("#EXTINF:2.000000,\n3.vtt\n"), "{text}");
    for (number, shown) in [(1, true), (2, true), (3, false)] {
        let plan = crate::delivery::segment(&p, s, number, Container::Ts).unwrap().unwrap();
        let text = String::from_utf8(crate::testing::bytes(plan)).unwrap();
        assert_eq!(text.contains("Hello"), shown, "segment {number}: {text}");
    }
}

#[test]
fn renditions_without_common_key_frames_are_cut_apart() {
    let odd = |gop| movie(vec![video(table(&reordered(2500, gop, 900 + gop), 48, 0), 12_800, Vec::new())]);
    let p = presentation(vec![odd(97), odd(101)]);
    assert!(!p.is_aligned());
    assert_eq!(p.warnings().len(), 1);
    assert_eq!(p.track("v1").unwrap().segment_count(), 26);
    assert_eq!(p.track("v2").unwrap().segment_count(), 25);
}

#[test]
fn no_track_is_an_error() {
    let source = Source::new(movie(Vec::new()), "film.mp4".into());
    let found = Presentation::build(vec![source], Vec::new(), &Options::default(), &Work::unlimited()).unwrap_err();
    assert!(matches!(found, PackageError::NoTracks { .. }));
    let source = Source::new(film(1, &[]), "film.mp4".into());
    let options = Options { target_duration: f64::NAN };
    assert!(matches!(
        Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()),
        Err(PackageError::Option { .. })
    ));
}
