use super::*;
use bytes::Bytes;
use millpond_media::{
    Importance, SampleTable,
    codec::make,
    flv::{FlvCodec, FlvContent, FlvTag},
    index_bytes,
    movie::Track,
};

/// The tracks of the bundled sample, pictures and sound, and a second track of sound: Opus.
fn formats() -> Vec<Option<Format>> {
    let movie = index_bytes(include_bytes!("../../../../assets/sample/360p.mp4")).unwrap();
    let mut tracks: Vec<Track> = movie.tracks.iter().filter(|track| track.kind != TrackKind::Text).cloned().collect();
    tracks.sort_by_key(|track| !matches!(track.kind, TrackKind::Video { .. }));
    tracks.truncate(2);
    tracks.push(Track::live(9, make::opus(2).unwrap(), Timescale::new(48_000).unwrap(), "und"));
    let format = |track: &Track| {
        let is_video = matches!(track.kind, TrackKind::Video { .. });
        let kind = if is_video { MediaKind::Video } else { MediaKind::Audio };
        let timescale = Timescale::new(if is_video { 90_000 } else { 48_000 }).unwrap();
        let track = Track { edits: Vec::new(), samples: SampleTable::default(), timescale, ..track.clone() };
        let (name, language) = (format!("t{}", track.id), Some("de".to_owned()));
        let (is_default, is_alternative, bandwidth, is_encrypted) = (track.id != 9, false, 1000, false);
        Some(Format { name, kind, language, is_default, is_alternative, bandwidth, is_encrypted, track })
    };
    tracks.iter().map(format).collect()
}

fn stream(formats: &[Option<Format>], reads_tracks: bool) -> FlvStream {
    let tracks = (0..).zip(formats).filter_map(|(track, format)| Some((track, format.as_ref()?)));
    FlvStream::new(tracks, 0, reads_tracks).unwrap()
}

/// A frame at a time in milliseconds, presented `later` milliseconds afterwards.
fn frame(track: u16, at: u64, later: u64, is_sync: bool) -> Frame {
    let rate = if track == 0 { 90 } else { 48 };
    Frame {
        track,
        number: 0,
        due: Duration::from_millis(at),
        pts: ((at + later) * rate) as i64,
        epoch: 0,
        is_sync,
        importance: Importance::BASE,
        data: Bytes::from(format!("{track} {at}")),
    }
}

/// The tags of messages, as a reader sees them, and the metadata.
fn read(messages: &[FlvMessage]) -> (Vec<FlvTag>, Vec<u8>) {
    let (mut tags, mut metadata) = (Vec::new(), Vec::new());
    for FlvMessage { kind, timestamp, head, data } in messages {
        let [upper, time @ ..] = timestamp.to_be_bytes();
        let tag = [&[*kind, 0, 0, 0][..], &time, &[upper, 0, 0, 0], head, data].concat();
        tags.extend(FlvTag::read(&tag.into()).unwrap());
        if *kind == 18 {
            metadata.clone_from(head);
        }
    }
    (tags, metadata)
}

fn summary(messages: &[FlvMessage]) -> Vec<(u32, u8, FlvCodec, String)> {
    let words = |content: &FlvContent| match content {
        FlvContent::Configuration(_) => "configuration".to_owned(),
        FlvContent::Frame { composition, is_key, data } => {
            format!("{} +{composition} {is_key}", String::from_utf8_lossy(data))
        }
    };
    read(messages).0.iter().map(|tag| (tag.timestamp, tag.track, tag.codec, words(&tag.content))).collect()
}

#[test]
fn a_stream_begins_with_a_key_frame_at_time_0() {
    let formats = formats();
    let (mut stream, mut out) = (stream(&formats, false), Vec::new());
    for frame in [
        frame(1, 90_000, 0, true),
        frame(0, 90_010, 0, false),
        frame(0, 90_020, 40, true),
        frame(1, 90_015, 0, true),
        frame(1, 90_030, 0, true),
        frame(2, 90_031, 0, true),
        frame(0, 90_060, 80, false),
    ] {
        stream.push(&frame, &mut out);
    }
    let (configuration, words) = ("configuration".to_owned(), |text: &str| text.to_owned());
    assert_eq!(
        summary(&out),
        [
            (0, 0, FlvCodec::Avc, configuration.clone()),
            (0, 0, FlvCodec::Aac, configuration),
            (0, 0, FlvCodec::Avc, words("0 90020 +40 true")),
            (10, 0, FlvCodec::Aac, words("1 90030 +0 true")),
            (40, 0, FlvCodec::Avc, words("0 90060 +80 false")),
        ]
    );
    let metadata = read(&out).1;
    let has = |word: &str| metadata.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(has("onMetaData") && has("width") && has("audiosamplerate") && !has("audioTrackIdInfoMap"));
}

#[test]
fn all_sound_is_sent_to_those_who_read_several_tracks() {
    let formats = formats();
    let (mut stream, mut out) = (stream(&formats, true), Vec::new());
    [frame(0, 0, 0, true), frame(1, 1, 0, true), frame(2, 2, 0, true)].iter().for_each(|f| stream.push(f, &mut out));
    let tracks: Vec<_> = summary(&out).into_iter().map(|(time, track, codec, _)| (time, track, codec)).collect();
    let (avc, aac, opus) = (FlvCodec::Avc, FlvCodec::Aac, FlvCodec::Opus);
    assert_eq!(tracks, [(0, 0, avc), (0, 0, aac), (0, 1, opus), (0, 0, avc), (1, 0, aac), (2, 1, opus)]);
    let metadata = read(&out).1;
    assert!(metadata.windows(19).any(|part| part == b"audioTrackIdInfoMap"));
}

#[test]
fn an_epoch_with_other_formats_is_configured_anew() {
    let formats = formats();
    let (mut stream, mut out) = (stream(&formats, false), Vec::new());
    assert!(stream.enter(&formats));
    stream.push(&frame(0, 1000, 0, true), &mut out);
    // The same formats, and then sound of another configuration.
    out.clear();
    assert!(stream.enter(&formats));
    stream.push(&frame(1, 1020, 0, true), &mut out);
    assert_eq!(summary(&out).len(), 1);
    let mut others = formats.clone();
    if let Some(sound) = &mut others[1] {
        sound.track = Track::live(2, make::aac_lc(1, 48_000).unwrap(), sound.track.timescale, "und");
    }
    out.clear();
    assert!(stream.enter(&others));
    // Times never go back.
    stream.push(&frame(1, 1010, 0, true), &mut out);
    let found: Vec<_> = summary(&out).into_iter().map(|(time, .., words)| (time, words)).collect();
    assert_eq!(found, [(20, "configuration".to_owned()), (20, "1 1010 +0 true".to_owned())]);
    others[1] = formats[2].clone();
    assert!(!stream.enter(&others), "another codec");
    others[0] = None;
    assert!(!stream.enter(&others), "no pictures");
}

#[test]
fn tracks_without_a_form_are_left_out() {
    let mut formats = formats();
    if let Some(pictures) = &mut formats[0] {
        pictures.is_encrypted = true;
    }
    let tracks = || (0..).zip(&formats).filter_map(|(track, format)| Some((track, format.as_ref()?)));
    assert!(FlvStream::new(tracks(), 0, false).is_none());
    let mut sound = FlvStream::new(tracks(), 1, false).unwrap();
    let mut out = Vec::new();
    sound.push(&frame(1, 5, 0, true), &mut out);
    assert_eq!(summary(&out).len(), 2);
}
