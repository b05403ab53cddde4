use super::*;
use crate::{
    CaptionRule, NamedTrack, PackageError, Presentation, PresentationOptions, Sidecar, SourceObject, TrackFilter,
    testing::{Made, audio, frames, movie, presentation, reordered, table, video},
    text::Cue,
};
use millpond_media::{
    CaptionChannel, Codec, Purpose, Work,
    codec::{Ac3Config, Av1Config, ByteOrder, Color, DolbyVision, Eac3Config, MpegAudioConfig, PcmCoding, PcmConfig},
    movie::{Edit, Movie, Track, TrackKind},
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
        #EXT-X-STREAM-INF:BANDWIDTH=320834,AVERAGE-BANDWIDTH=320577,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360,FRAME-RATE=25.000,AUDIO=\"aac\"\n\
        v1/index.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9088,AVERAGE-BANDWIDTH=9088,CODECS=\"avc1.64001f\",RESOLUTION=640x360,URI=\"v1/iframes.m3u8\"\n";
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
fn kinds_of_tracks_are_said() {
    let mut tracks = film(1000, &["eng", "eng", "eng"]).tracks.clone();
    tracks[1].purposes = [Purpose::Description].into_iter().collect();
    tracks[2].purposes = [Purpose::Commentary].into_iter().collect();
    tracks.extend(["eng", "deu"].map(|language| Track {
        codec: Codec::Tx3g,
        kind: TrackKind::Text,
        ..audio(table(&frames(468), 1 << 24, 0), language, Vec::new())
    }));
    tracks[4].purposes = [Purpose::Captions].into_iter().collect();
    tracks[5].purposes = [Purpose::Forced].into_iter().collect();
    let p = presentation(vec![movie(tracks)]);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    let line = |name: &str| list.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {list}"));
    assert!(
        line("\"a1/").contains("DEFAULT=NO,AUTOSELECT=YES,CHARACTERISTICS=\"public.accessibility.describes-video\"")
    );
    assert!(line("\"a2/").contains("DEFAULT=NO,AUTOSELECT=NO"), "{list}");
    assert!(line("\"a3/").contains("DEFAULT=YES,AUTOSELECT=YES"), "{list}");
    assert!(
        line("\"s1/").contains("FORCED=NO,CHARACTERISTICS=\"public.accessibility.transcribes-spoken-dialog,"),
        "{list}"
    );
    assert!(line("\"s2/").contains("FORCED=YES"), "{list}");
    let mpd = crate::dash::mpd(&p).unwrap();
    for role in ["description", "commentary", "main", "caption", "forced-subtitle"] {
        assert_eq!(
            mpd.matches(&format!("<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"{role}\"/>")).count(),
            if role == "main" { 2 } else { 1 },
            "{role}: {mpd}"
        );
    }
    for need in ["description", "caption"] {
        assert!(
            mpd.contains(&format!("<Accessibility schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"{need}\"/>")),
            "{mpd}"
        );
    }
}

/// A film in two renditions, whose captions are known or not, in the presentation of a rule.
fn captioned(known: [Option<&[CaptionChannel]>; 2], rule: &str) -> Presentation {
    let rendition = |(size, channels): (u32, Option<&[CaptionChannel]>)| {
        let mut tracks = film(size, &["eng"]).tracks.clone();
        tracks[0].captions = channels.map(|channels| channels.iter().copied().collect());
        movie(tracks)
    };
    let rule = Arc::new(CaptionRule::parse(rule).unwrap());
    presentation([1000, 4000].into_iter().zip(known).map(rendition).collect()).with_captions(rule)
}

#[test]
fn captions_within_pictures_are_announced() {
    use CaptionChannel::{Cea608, Cea708};
    let media = |name: &str, language: &str, channel: &str| {
        format!(
            "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",NAME=\"{name}\"{language},DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID=\"{channel}\"\n"
        )
    };
    let (english, spanish) = (",LANGUAGE=\"en\"", ",LANGUAGE=\"es\"");
    let stated = [media("English", english, "CC1"), media("Spanish", spanish, "CC3")].concat();
    let twice = [media("English", english, "CC1"), media("English (SERVICE1)", english, "SERVICE1")].concat();
    let unnamed = [media("CC1", "", "CC1"), media("SERVICE2", "", "SERVICE2")].concat();
    let (first, second, both) = ([Cea608(1)], [Cea708(2)], [Cea708(2), Cea608(1)]);
    let none: Option<&[CaptionChannel]> = Some(&[]);
    for (known, rule, expected) in [
        ([None, None], "CC1=en,CC3=es", &stated),
        ([none, none], "CC1=en,CC3=es", &stated),
        ([None, None], "CC1=en,SERVICE1=en", &twice),
        ([Some(&first[..]), Some(&second[..])], "auto", &unnamed),
        ([Some(&both[..]), None], "auto", &unnamed),
    ] {
        let p = captioned(known, rule);
        for container in [Container::Fmp4, Container::Ts] {
            let list = multivariant(&p, container).unwrap();
            assert!(list.contains(expected.as_str()), "{rule}: {list}");
            assert_eq!(list.matches("TYPE=CLOSED-CAPTIONS").count(), 2, "{rule}: {list}");
            assert_eq!(list.matches(",CLOSED-CAPTIONS=\"cc\"\n").count(), 2, "each variant, {rule}: {list}");
            // RFC 8216 7: services need version 7.
            let is_old = container == Container::Ts && !expected.contains("SERVICE");
            assert!(list.contains(if is_old { "#EXT-X-VERSION:4\n" } else { "#EXT-X-VERSION:7\n" }), "{rule}: {list}");
        }
    }
}

#[test]
fn none_is_said_only_where_it_is_known() {
    let (none, some): (Option<&[CaptionChannel]>, _) = (Some(&[]), [CaptionChannel::Cea608(1)]);
    for (known, rule, count) in [
        ([None, None], "auto", 0),
        ([none, None], "auto", 0),
        ([none, none], "auto", 2),
        ([Some(&some[..]), None], "off", 2),
    ] {
        let list = multivariant(&captioned(known, rule), Container::Fmp4).unwrap();
        assert_eq!(list.matches(",CLOSED-CAPTIONS=NONE\n").count(), count, "{rule}: {list}");
        assert_eq!(list.matches("CLOSED-CAPTIONS").count(), count, "{rule}: {list}");
    }
    // Without pictures there is nothing to say, and nothing within pictures that carry none.
    let stated = || Arc::new(CaptionRule::parse("CC1=en").unwrap());
    let sound = audio(table(&frames(468), 1 << 24, 0), "eng", Vec::new());
    let alone = presentation(vec![movie(vec![sound])]).with_captions(stated());
    assert!(!multivariant(&alone, Container::Fmp4).unwrap().contains("CLOSED-CAPTIONS"));
    let sound_only = TrackFilter::parse("video=none").unwrap();
    let filtered = filtered_multivariant(&captioned([None, None], "CC1=en"), Container::Fmp4, &sound_only).unwrap();
    assert!(filtered.contains("mp4a.40.2") && !filtered.contains("CLOSED-CAPTIONS"), "{filtered}");
}

#[test]
fn players_start_with_the_first_picture_of_the_edit() {
    let edits = vec![Edit { duration: 5_000, media_time: Some(512 * 30) }];
    let sound = audio(table(&frames(234), 1 << 24, 0), "eng", Vec::new());
    let p = presentation(vec![movie(vec![video(table(&reordered(250, 25, 1000), 48, 0), 12_800, edits), sound])]);
    let start = "#EXT-X-START:TIME-OFFSET=0.039000,PRECISE=YES\n";
    for container in [Container::Fmp4, Container::Ts] {
        assert!(!multivariant(&p, container).unwrap().contains("EXT-X-START"));
        assert_eq!(media(&p, p.track("v1").unwrap(), container).unwrap().matches(start).count(), 1);
    }
    let mpd = crate::dash::mpd(&p).unwrap();
    assert!(mpd.contains("<S t=\"500\"") && mpd.contains("<S t=\"1872\"") && !mpd.contains("t=\"0\""), "{mpd}");
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
    assert!(p.aligned && p.warnings().is_empty());
    assert_eq!(p.tracks().iter().map(|t| t.name()).collect::<Vec<_>>(), ["v1", "v2", "a1"]);
    assert_eq!(p.track("v1").unwrap().object().unwrap().0, 1);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert_eq!(list.matches("#EXT-X-STREAM-INF").count(), 2);
}

#[test]
fn same_language_twice_in_one_file_is_kept_and_named_apart() {
    let p = presentation(vec![film(1000, &["eng", "eng"]), film(2000, &["eng", "eng"])]);
    let labels: Vec<&str> = p.of_kind(crate::MediaKind::Audio).map(|t| t.label()).collect();
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
fn channels_of_one_language_are_groups() {
    let sound = |language, channels| Track {
        kind: TrackKind::Audio { channels, sample_rate: 48_000 },
        ..audio(table(&frames(468), 1 << 24, 0), language, Vec::new())
    };
    let loud = |language| Track {
        kind: TrackKind::Audio { channels: 6, sample_rate: 48_000 },
        ..audio(
            table(&vec![Made { size: 2000, duration: 1024, composition: 0, sync: true }; 468], 0, 0),
            language,
            Vec::new(),
        )
    };
    let picture = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    let p = presentation(vec![movie(vec![picture, sound("eng", 2), loud("eng"), sound("deu", 2)])]);
    let list = multivariant(&p, Container::Fmp4).unwrap();
    let of = |group: &str| -> Vec<&str> {
        let id = format!("#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{group}\"");
        list.lines().filter(|line| line.starts_with(&id)).collect()
    };
    let (stereo, surround) = (of("aac-2"), of("aac-6"));
    assert_eq!((stereo.len(), surround.len()), (2, 2), "{list}");
    assert!(stereo[0].contains("LANGUAGE=\"en\",DEFAULT=YES") && stereo[0].contains("CHANNELS=\"2\""), "{list}");
    assert!(surround[0].contains("LANGUAGE=\"en\",DEFAULT=YES") && surround[0].contains("CHANNELS=\"6\""), "{list}");
    assert!(surround[1].contains("LANGUAGE=\"de\",DEFAULT=NO") && surround[1].contains("CHANNELS=\"2\""), "{list}");
    let rates: Vec<u64> = list
        .lines()
        .filter_map(|line| line.strip_prefix("#EXT-X-STREAM-INF:BANDWIDTH=")?.split(',').next()?.parse().ok())
        .collect();
    assert_eq!(rates.len(), 2, "{list}");
    assert!(rates[1] > rates[0] + 500_000, "{list}");
    // Languages that differ in channels remain one group.
    let picture = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    let p = presentation(vec![movie(vec![picture, sound("eng", 6), sound("deu", 2)])]);
    assert!(multivariant(&p, Container::Fmp4).unwrap().contains("GROUP-ID=\"aac\""));
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

/// Tracks of a film with a track of PCM before its audio.
fn with_pcm(fourcc: [u8; 4], coding: PcmCoding) -> Vec<Track> {
    let mut tracks = film(1000, &["eng", "eng"]).tracks.clone();
    tracks[1].codec = Codec::Pcm(PcmConfig { fourcc, coding, channels: 2, sample_rate: 48_000 });
    tracks
}

#[test]
fn g711_beside_other_sound_is_presented_and_not_packaged() {
    let mut tracks = with_pcm(*b"ulaw", PcmCoding::MuLaw);
    let p = presentation(vec![movie(tracks.clone())]);
    assert_eq!(p.tracks().iter().map(|t| t.name()).collect::<Vec<_>>(), ["v1", "a1", "a2"]);
    let warning = "film.mp4: track 2: 'ulaw' (G.711 μ-law) is not listed in HLS with fMP4 and DASH: \
                   it becomes FLAC for them only where all sound of the title is PCM or G.711";
    assert_eq!(p.warnings(), [warning]);
    for container in [Container::Fmp4, Container::Ts] {
        let list = multivariant(&p, container).unwrap();
        assert!(!list.contains("a1/") && !list.contains("ulaw") && list.contains("mp4a.40.2"), "{list}");
    }
    let told = p.coding(p.track("a1").unwrap());
    assert_eq!((&*told.parameter, told.becomes_flac, told.is_listed), ("ulaw", false, false));
    let mpd = crate::dash::mpd(&p).unwrap();
    assert!(!mpd.contains("\"a1\"") && mpd.contains("\"a2\""), "{mpd}");
    let pcm = p.track("a1").unwrap();
    assert!(media(&p, pcm, Container::Fmp4).is_none() && media(&p, pcm, Container::Ts).is_none());
    assert!(crate::fmp4::init(&p, pcm).is_empty() && crate::fmp4::segment(&p, pcm, 1).is_none());
    assert!(crate::delivery::transport::segment(&p, pcm, 1).unwrap().is_none());
    let mut alone = tracks.remove(1);
    let Codec::Pcm(config) = &mut alone.codec else { panic!("{:?}", alone.codec) };
    // FLAC has eight at most.
    config.channels = 9;
    let alone = presentation(vec![movie(vec![alone])]);
    let error = multivariant(&alone, Container::Fmp4).unwrap_err().to_string();
    let reason = "found ulaw, expected video, or audio other than G.711 and PCM of 8 bits";
    assert_eq!(error, format!("HLS can carry none of the tracks: {reason}"));
    assert!(crate::dash::mpd(&alone).unwrap_err().to_string().starts_with("DASH can carry none"));
}

#[test]
fn sound_that_is_all_pcm_becomes_flac() {
    for (fourcc, coding) in [
        (*b"sowt", PcmCoding::Signed16(ByteOrder::Little)),
        (*b"in24", PcmCoding::Signed24(ByteOrder::Big)),
        (*b"raw ", PcmCoding::Unsigned8),
        (*b"ulaw", PcmCoding::MuLaw),
        (*b"alaw", PcmCoding::ALaw),
    ] {
        let mut tracks = with_pcm(fourcc, coding);
        tracks.truncate(2);
        let film = presentation(vec![movie(tracks.clone())]);
        let sound = presentation(vec![movie(tracks.split_off(1))]);
        for p in [&film, &sound] {
            assert!(p.warnings().is_empty(), "{:?}", p.warnings());
            let track = p.track("a1").unwrap();
            let told = p.coding(track);
            assert_eq!((&*told.parameter, told.becomes_flac, told.is_listed), ("fLaC", true, true));
            assert_eq!((told.stored.starts_with("fLaC"), told.name), (false, Some(pcm_name(coding))));
            assert_eq!((&*track.codec_parameter(), track.codec().unwrap().name()), ("fLaC", pcm_name(coding)));
            assert!(track.is_packaged());
            let list = multivariant(p, Container::Fmp4).unwrap();
            assert!(list.contains("fLaC\"") && !list.contains("pcm"), "{list}");
            let mpd = crate::dash::mpd(p).unwrap();
            assert!(mpd.contains("codecs=\"fLaC\" audioSamplingRate=\"48000\"") && !mpd.contains("pcm"), "{mpd}");
            assert!(mpd.contains("audio_channel_configuration:2011\" value=\"2\""), "{mpd}");
            assert!(media(p, track, Container::Fmp4).unwrap().contains("\n1.m4s\n"));
            let init = crate::fmp4::init(p, track);
            assert!([b"fLaC", b"dfLa"].iter().all(|kind| init.windows(4).any(|four| four == *kind)));
            assert!(
                crate::fmp4::segment(p, track, 1).is_some()
                    && crate::delivery::transport::segment(p, track, 1).unwrap().is_none()
            );
        }
        assert!(
            multivariant(&film, Container::Fmp4).unwrap().contains("TYPE=AUDIO,GROUP-ID=\"flac\",NAME=\"English\"")
        );
        assert!(multivariant(&film, Container::Ts).unwrap().contains("CODECS=\"avc1.64001f\""));
        let error = multivariant(&sound, Container::Ts).unwrap_err().to_string();
        assert!(
            error.starts_with("MPEG-2 TS can carry none of the tracks: found ") && !error.contains("fLaC"),
            "{error}"
        );
    }
}

/// The name of a codec of PCM.
fn pcm_name(coding: PcmCoding) -> &'static str {
    match coding {
        PcmCoding::MuLaw => "G.711 μ-law",
        PcmCoding::ALaw => "G.711 A-law",
        _ => "PCM",
    }
}

#[test]
fn pcm_of_more_than_24_bits_is_said_to_be_rounded() {
    for (fourcc, coding, parameter) in [
        (*b"in32", PcmCoding::Signed32(ByteOrder::Big), "ipcm"),
        (*b"fl32", PcmCoding::Float32(ByteOrder::Little), "fpcm"),
        (*b"fl64", PcmCoding::Float64(ByteOrder::Big), "fpcm"),
    ] {
        let mut tracks = with_pcm(fourcc, coding);
        tracks.truncate(2);
        let film = presentation(vec![movie(tracks)]);
        let reason = "is rounded to 24 bits in HLS and DASH: browsers decode no more";
        assert_eq!(film.warnings(), [format!("film.mp4: track 2: '{parameter}' (PCM) {reason}")]);
        assert!(multivariant(&film, Container::Fmp4).unwrap().contains("fLaC\""));
    }
}

#[test]
fn pcm_that_flac_lacks_stays_as_it_is() {
    let mut tracks = with_pcm(*b"fl32", PcmCoding::Float32(ByteOrder::Little));
    tracks.truncate(2);
    let Codec::Pcm(config) = &mut tracks[1].codec else { panic!("{:?}", tracks[1].codec) };
    // FLAC has eight at most.
    config.channels = 9;
    let film = presentation(vec![movie(tracks.clone())]);
    let reason = "is not listed in HLS with fMP4 and DASH: FLAC, which it would become, has at most 8 channels and no encryption";
    assert_eq!(film.warnings(), [format!("film.mp4: track 2: 'fpcm' (PCM) {reason}")]);
    assert!(!multivariant(&film, Container::Fmp4).unwrap().contains("TYPE=AUDIO"));
    let sound = presentation(vec![movie(tracks.split_off(1))]);
    assert!(multivariant(&sound, Container::Fmp4).unwrap().contains("CODECS=\"fpcm\""));
}

#[test]
fn pcm_beside_other_sound_is_packaged_and_listed_where_there_are_no_pictures() {
    let tracks = with_pcm(*b"sowt", PcmCoding::Signed16(ByteOrder::Little));
    let film = presentation(vec![movie(tracks.clone())]);
    let reason = "is not listed in HLS with fMP4 and DASH: it becomes FLAC for them only where all sound of the title is PCM or G.711";
    assert_eq!(film.warnings(), [format!("film.mp4: track 2: 'ipcm' (PCM) {reason}")]);
    for text in [multivariant(&film, Container::Fmp4).unwrap(), crate::dash::mpd(&film).unwrap()] {
        assert!(!text.contains("ipcm") && text.contains("mp4a.40.2"), "{text}");
    }
    assert!(media(&film, film.track("a1").unwrap(), Container::Fmp4).is_some(), "for players that know it");
    let sound = presentation(vec![movie(tracks[1..].to_vec())]);
    assert!(sound.warnings().is_empty(), "{:?}", sound.warnings());
    for text in [multivariant(&sound, Container::Fmp4).unwrap(), crate::dash::mpd(&sound).unwrap()] {
        assert!(text.contains("\"ipcm\"") && text.contains("mp4a.40.2"), "{text}");
    }
    assert!(!multivariant(&sound, Container::Ts).unwrap().contains("ipcm"));
}

#[test]
fn mpeg_audio_has_a_name_for_each_container() {
    let film_with = |layer| {
        let mut tracks = film(1000, &["eng"]).tracks.clone();
        tracks[1].codec = Codec::MpegAudio(MpegAudioConfig { layer, channels: 1, sample_rate: 48_000 });
        presentation(vec![movie(tracks)])
    };
    assert!(multivariant(&film_with(3), Container::Fmp4).unwrap().contains(",mp4a.6B\""));
    assert!(multivariant(&film_with(3), Container::Ts).unwrap().contains(",mp4a.40.34\""));
    // Browsers decode no layer II: beside pictures it is in transport streams only.
    let layer_2 = film_with(2);
    assert!(!multivariant(&layer_2, Container::Fmp4).unwrap().contains("mp4a"));
    assert!(multivariant(&layer_2, Container::Ts).unwrap().contains(",mp4a.40.33\""));
}

#[test]
fn subtitles_alone_are_an_asset() {
    let mut tracks = film(1000, &["eng", "eng"]).tracks.clone();
    tracks.remove(0);
    for track in &mut tracks {
        (track.codec, track.kind) = (Codec::Tx3g, TrackKind::Text);
    }
    let p = presentation(vec![movie(tracks)]);
    assert!(p.duration() > 9.0, "{}", p.duration());
    for container in [Container::Fmp4, Container::Ts] {
        let list = multivariant(&p, container).unwrap();
        assert_eq!(list.matches("TYPE=SUBTITLES").count(), 2, "{list}");
        assert!(list.contains("CODECS=\"wvtt\",SUBTITLES=\"text\"\ns1/index.m3u8\n"), "{list}");
        let segments = media(&p, p.track("s1").unwrap(), container).unwrap();
        assert_eq!(segments.matches(".vtt").count(), 2, "{segments}");
    }
    let mpd = crate::dash::mpd(&p).unwrap();
    assert!(mpd.contains("mimeType=\"text/vtt\"") && mpd.contains("s2/all.vtt"), "{mpd}");
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
    let source = SourceObject::new(film(1000, &["eng"]), "film.mp4".into());
    let sidecars = vec![sidecar("ger", false), sidecar("de", false), sidecar("ger", true)];
    let p = Presentation::build(vec![source], sidecars, &PresentationOptions::default(), &Work::unlimited()).unwrap();
    let list = multivariant(&p, Container::Ts).unwrap();
    let expected = "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=\"German\",LANGUAGE=\"de\",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,URI=\"s1/index.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=\"German (forced)\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI=\"s2/index.m3u8\"\n";
    assert!(list.contains(expected), "{list}");
    assert_eq!(p.of_kind(crate::MediaKind::Text).count(), 2, "the same language twice is one");
    let s = p.track("s1").unwrap();
    let text = media(&p, s, Container::Fmp4).unwrap();
    assert!(text.contains("#EXT-X-VERSION:3\n") && text.contains("#EXTINF:2.000000,\n3.vtt\n"), "{text}");
    for (number, shown) in [(1, true), (2, true), (3, false)] {
        let plan = crate::delivery::text_track::segment(&p, s, number, Container::Ts).unwrap().unwrap();
        let text = String::from_utf8(crate::testing::bytes(plan)).unwrap();
        assert_eq!(text.contains("Hello"), shown, "segment {number}: {text}");
    }
}

#[test]
fn renditions_without_common_key_frames_are_cut_apart() {
    let odd = |gop| movie(vec![video(table(&reordered(2500, gop, 900 + gop), 48, 0), 12_800, Vec::new())]);
    let p = presentation(vec![odd(97), odd(101)]);
    assert!(!p.aligned);
    assert_eq!(p.warnings().len(), 1);
    assert_eq!(p.track("v1").unwrap().segment_count(), 26);
    assert_eq!(p.track("v2").unwrap().segment_count(), 25);
}

#[test]
fn a_still_beside_the_film_is_an_alternative_and_no_variant() {
    // As in motion photos of phones: the still first, larger, with two samples in all.
    let one = |duration| Made { size: 90_000, duration, composition: 0, sync: true };
    let still = Track { id: 3, ..video(table(&[one(64_000), one(64_000)], 1 << 25, 0), 12_800, Vec::new()) };
    let film = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    let sound = audio(table(&frames(468), 1 << 24, 0), "eng", Vec::new());
    let p = presentation(vec![movie(vec![still, film, sound])]);
    assert_eq!(p.track("v1").unwrap().source_track().unwrap().id, 1, "the film is the main picture");
    assert!(p.track("v2").unwrap().is_alternative() && !p.track("v1").unwrap().is_alternative());
    assert_eq!(p.track("v1").unwrap().segment_count(), 3, "it is cut as if it were alone");
    for container in [Container::Fmp4, Container::Ts] {
        let list = multivariant(&p, container).unwrap();
        assert!(list.matches("STREAM-INF").count() <= 2 && !list.contains("v2/"), "{list}");
    }
    assert!(media(&p, p.track("v2").unwrap(), Container::Fmp4).unwrap().contains("2.m4s"), "it plays by its own URL");
    assert_eq!(p.warnings().len(), 1, "{:?}", p.warnings());
    let mpd = crate::dash::mpd(&p).unwrap();
    assert_eq!(mpd.matches("contentType=\"video\"").count(), 2, "{mpd}");
    let roles: Vec<&str> = mpd.lines().filter_map(|l| l.trim().split("value=\"").nth(1)).collect();
    assert!(mpd.find("id=\"v1\"") < mpd.find("value=\"alternate\""), "{roles:?}");

    // The audio of the film is not muxed into the still's segments, whose boundaries differ.
    let still = p.track("v2").unwrap();
    assert!(still.muxed_stretch(&p, 1).is_none() && p.track("v1").unwrap().muxed_stretch(&p, 1).is_some());
}

#[test]
fn a_second_camera_is_an_alternative_and_a_disabled_one_is_absent() {
    let camera =
        |id, enabled| Track { id, enabled, ..video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new()) };
    let p = presentation(vec![movie(vec![camera(1, true), camera(2, true)])]);
    assert!(p.track("v2").unwrap().is_alternative());
    let list = multivariant(&p, Container::Fmp4).unwrap();
    assert!(list.contains("v1/index.m3u8") && !list.contains("v2/"), "{list}");
    let mpd = crate::dash::mpd(&p).unwrap();
    assert!(mpd.contains("value=\"main\"") && mpd.contains("value=\"alternate\""), "{mpd}");
    let p = presentation(vec![movie(vec![camera(1, true), camera(2, false)])]);
    assert_eq!(p.tracks().len(), 1);
    assert_eq!(p.warnings(), ["film.mp4: track 2: its header disables it"]);
    let only = presentation(vec![movie(vec![camera(2, false)])]);
    assert_eq!((only.tracks().len(), only.warnings().len()), (1, 0));
}

#[test]
fn atmos_and_dolby_vision_are_told() {
    let mut tracks = film(1000, &["eng"]).tracks.clone();
    let joc_complexity = Some(16);
    let config = Eac3Config { channels: 6, sample_rate: 48_000, service: 0, data_rate: 768, joc_complexity };
    tracks[1].codec = Codec::Eac3(config);
    let list = multivariant(&presentation(vec![movie(tracks.clone())]), Container::Fmp4).unwrap();
    assert!(list.contains(",CHANNELS=\"16/JOC\","), "{list}");
    let mpd = crate::dash::mpd(&presentation(vec![movie(tracks.clone())])).unwrap();
    for (scheme, value) in [("EC3_ExtensionType:2018", "JOC"), ("EC3_ExtensionComplexityIndex:2018", "16")] {
        assert!(mpd.contains(&format!("schemeIdUri=\"tag:dolby.com,2018:dash:{scheme}\" value=\"{value}\"")), "{mpd}");
    }
    let mut vision = DolbyVision { profile: 8, level: 7, has_base: true, has_enhancement: false, compatibility: 4 };
    let color = Some(Color { primaries: 9, transfer: 18, matrix: 9, full_range: false });
    let of = |vision: DolbyVision| {
        let mut tracks = tracks.clone();
        let dolby_vision = Some(vision);
        let (profile, level, high_tier, bit_depth, monochrome) = (0, 4, false, 10, false);
        let chroma = (true, true, 0);
        let config = Av1Config { profile, level, high_tier, bit_depth, monochrome, chroma, color, dolby_vision };
        tracks[0].codec = Codec::Av1(config);
        let film = presentation(vec![movie(tracks)]);
        (multivariant(&film, Container::Fmp4).unwrap(), crate::dash::mpd(&film).unwrap())
    };
    vision.profile = 10;
    let (list, mpd) = of(vision);
    let stated = "scte214:supplementalCodecs=\"dav1.10.07\" scte214:supplementalProfiles=\"db4h\"";
    assert!(mpd.contains(stated) && mpd.contains("xmlns:scte214=\"urn:scte:dash:scte214-extensions\""), "{mpd}");
    assert_eq!(list.matches(",SUPPLEMENTAL-CODECS=\"dav1.10.07/db4h\"").count(), 2, "{list}");
    assert!(list.contains("CODECS=\"av01.") && list.contains("VIDEO-RANGE=HLG"), "{list}");
    vision.compatibility = 0;
    let (list, mpd) = of(vision);
    assert!(list.contains("CODECS=\"dav1.10.07,ec-3\"") && list.contains("VIDEO-RANGE=PQ"), "{list}");
    assert!(!list.contains("SUPPLEMENTAL") && !mpd.contains("scte214"), "{list}{mpd}");
}

#[test]
fn tracks_that_a_manifest_names_are_one_ladder() {
    let one = |duration| Made { size: 90_000, duration, composition: 0, sync: true };
    let still = Track { id: 3, ..video(table(&[one(64_000), one(64_000)], 1 << 25, 0), 12_800, Vec::new()) };
    let film = video(table(&reordered(250, 25, 1000), 48, 0), 12_800, Vec::new());
    let named = [1, 3].map(|id| NamedTrack { id, language: None }).to_vec();
    let source = SourceObject { named, ..SourceObject::new(movie(vec![still, film]), "film.mp4".into()) };
    let p = Presentation::build(vec![source], Vec::new(), &PresentationOptions::default(), &Work::unlimited()).unwrap();
    assert!(p.tracks().iter().all(|track| !track.is_alternative()));
}

#[test]
fn no_track_is_an_error() {
    let source = SourceObject::new(movie(Vec::new()), "film.mp4".into());
    let found =
        Presentation::build(vec![source], Vec::new(), &PresentationOptions::default(), &Work::unlimited()).unwrap_err();
    assert!(matches!(found, PackageError::NoTracks { .. }));
    let source = SourceObject::new(film(1, &[]), "film.mp4".into());
    let options = PresentationOptions { target_duration: f64::NAN };
    assert!(matches!(
        Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()),
        Err(PackageError::Option { .. })
    ));
}

#[test]
fn tracks_lie_below_the_base_in_multivariant_playlists_alone() {
    let bare = presentation(vec![film(1000, &["eng"])]);
    let lists = |p: &Presentation| [Container::Fmp4, Container::Ts].map(|c| multivariant(p, c).unwrap());
    let [fmp4, ts] = lists(&bare);
    let own = media(&bare, bare.track("v1").unwrap(), Container::Fmp4);
    let below = bare.below("~0a/");
    let [fmp4_below, ts_below] = lists(&below);
    let moved = |list: &str| {
        let uris = list.replace("URI=\"", "URI=\"~0a/");
        let line = |line: &str| if line.starts_with('#') { line.to_owned() } else { format!("~0a/{line}") };
        uris.lines().map(|l| line(l) + "\n").collect::<String>()
    };
    assert_eq!((fmp4_below, ts_below), (moved(&fmp4), moved(&ts)));
    assert_eq!(media(&below, below.track("v1").unwrap(), Container::Fmp4), own);
}
