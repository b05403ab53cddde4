use crate::{
    codec::TrackKind,
    fixture::{AAC, AVC, PCM, bx, fields, joined_trak, mvhd, trak},
    index_bytes,
    movie::{Edit, Movie, Track, edits::clip_spans},
    mp4::dref,
    units::Timescale,
};

/// An `avc1` sample entry with a higher level in its configuration and its sequence parameter set.
fn other_avc() -> String {
    AVC.replace("0164000cffe1001a6764000c", "0164001fffe1001a6764001f")
}

/// An `mp4a` sample entry for 44.1 kHz.
fn other_aac() -> String {
    AAC.replace("118856e500", "120856e500")
}

/// An `mp4a` sample entry with another bit rate.
fn denser_aac() -> String {
    AAC.replace("00000177f4000177f40580", "00000277f4000277f40580")
}

/// Tables of samples of 100 bytes and 40 ticks, in chunks with these counts and sample descriptions. Every second sample
/// is a sync sample.
fn tables(chunks: &[(u32, u32)]) -> Vec<Vec<u8>> {
    let count = chunks.iter().map(|(count, _)| count).sum();
    let shapes = (1_u32..).zip(chunks).flat_map(|(number, (count, description))| [number, *count, *description]);
    let offsets = chunks.iter().scan(10_000, |next, (count, _)| {
        let offset = *next;
        *next += 100 * count;
        Some(offset)
    });
    let sync: Vec<u32> = (1..=count).step_by(2).collect();
    let table =
        |kind: &[u8; 4], entries: usize, words: Vec<u32>| fields(kind, &[vec![0, entries as u32], words].concat());
    vec![
        fields(b"stts", &[0, 1, count, 40]),
        fields(b"stsz", &[0, 100, count]),
        table(b"stsc", chunks.len(), shapes.collect()),
        table(b"stco", chunks.len(), offsets.collect()),
        table(b"stss", sync.len(), sync),
    ]
}

/// Returns the index of a file with one track.
fn index(handler: &[u8; 4], entries: &[&str], chunks: &[(u32, u32)]) -> Movie {
    let moov = bx(b"moov", &[&mvhd(), &joined_trak(1, handler, entries, &tables(chunks))]);
    index_bytes(&[moov, bx(b"mdat", &[&[0; 20_000]])].concat()).unwrap()
}

/// Returns the decoding times, and the level in the sequence parameter set before each sample.
fn levels(track: &Track) -> Vec<(i64, Option<u8>)> {
    let level = |sample| track.sets_of(&sample).get(7).copied();
    track.samples.iter().map(|sample| (sample.dts / 40, level(sample))).collect()
}

#[test]
fn sets_of_each_entry_precede_its_key_frames() {
    let movie = index(b"vide", &[AVC, &other_avc()], &[(3, 1), (2, 2), (1, 1)]);
    assert!(movie.skipped.is_empty(), "{:?}", movie.skipped);
    let track = &movie.tracks[0];
    // The first sample of an entry has sets even where it is no sync sample.
    let expected = [(0, Some(12)), (1, None), (2, Some(12)), (3, Some(31)), (4, Some(31)), (5, Some(12))];
    assert_eq!(levels(track), expected);
    assert_eq!(
        (track.codec_of(0).parameter(), track.codec_of(4).parameter()),
        ("avc1.64000c".into(), "avc1.64001f".into())
    );
    // The entry for players has the highest level.
    assert_eq!((track.codec.parameter().as_str(), &track.sample_entry[4..8]), ("avc3.64001f", &b"avc3"[..]));
    let configuration = track.sample_entry.windows(4).position(|kind| kind == b"avcC").unwrap() + 4;
    assert_eq!(track.sample_entry[configuration..configuration + 4], [1, 0x64, 0, 31]);
    let back = crate::codec::parse_sample_entry(&track.sample_entry, *b"vide", "stsd", 0).unwrap();
    assert_eq!(back.codec, track.codec);
}

#[test]
fn entries_that_need_no_change_stay_one() {
    for (handler, entries, parameter) in [
        (b"vide", [AVC, AVC], "avc1.64000c"),
        (b"soun", [AAC, &denser_aac()], "mp4a.40.2"),
        (b"soun", [PCM, PCM], "ipcm"),
    ] {
        let movie = index(handler, &entries, &[(3, 1), (2, 2)]);
        assert!(movie.skipped.is_empty(), "{:?}", movie.skipped);
        assert_eq!((movie.tracks[0].codec.parameter().as_str(), &movie.tracks[0].descriptions), (parameter, &None));
        assert_eq!(movie.tracks[0].samples.end_dts(), 200, "{parameter}");
    }
}

#[test]
fn samples_that_cannot_follow_are_left_out_and_named() {
    let other = other_aac();
    let movie = index(b"soun", &[AAC, &other], &[(1, 2), (3, 1), (2, 2), (1, 1)]);
    let times: Vec<_> = movie.tracks[0].samples.iter().map(|s| (s.dts / 40, s.range.start)).collect();
    assert_eq!(times, [(1, 10_100), (2, 10_200), (3, 10_300), (6, 10_600)], "the others keep their times");
    let [skipped] = &movie.skipped[..] else { panic!("{:?}", movie.skipped) };
    assert_eq!(
        skipped.reason.split_once(": ").unwrap().1,
        "found 3 samples of sample entry 2 (mp4a.40.2, 44100 Hz, 1 channels), expected entries whose samples can follow \
         those of entry 1 (mp4a.40.2, 48000 Hz, 1 channels): they are played by HLS and DASH, and left out of RTSP"
    );
    let movie = index(b"vide", &[AVC, &AVC.replace("61766331", "6a706567")], &[(3, 1), (2, 2)]);
    assert_eq!((movie.tracks[0].samples.len(), movie.tracks[0].codec.parameter()), (3, "avc1.64000c".into()));
    assert!(movie.skipped[0].reason.contains("found 2 samples of sample entry 2 (moov"), "{:?}", movie.skipped);
}

#[test]
fn samples_that_need_another_decoder_are_clips() {
    let (other, again) = (other_aac(), denser_aac());
    let movie = index(b"soun", &[AAC, &other, &again], &[(1, 2), (3, 1), (1, 3), (2, 2), (1, 1)]);
    let rate = |track: &Track| match track.kind {
        TrackKind::Audio { sample_rate, .. } => sample_rate,
        _ => 0,
    };
    let clips = movie.clips.iter().map(|clip| (clip.id, rate(clip), clip.samples.start_dts() / 40, clip.samples.len()));
    assert_eq!(clips.collect::<Vec<_>>(), [(1, 44_100, 0, 1), (1, 48_000, 1, 4), (1, 44_100, 5, 2), (1, 48_000, 7, 1)]);
    assert_eq!(movie.tracks[0].samples.len(), 5);
    assert_eq!(movie.clips_of(1).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(movie.track(2), Some(&movie.clips[1]));
    // Entries with other parameter sets are one clip.
    let other = other_avc();
    let hevc = AVC.replace("61766331", "61763031").replace("61766343", "61763143");
    let movie = index(b"vide", &[AVC, &other, &hevc], &[(2, 1), (2, 2)]);
    assert!(movie.clips.is_empty() && movie.tracks[0].descriptions.is_some());
    // A stranger's file changes its entry as often as it likes.
    let movie = index(b"soun", &[AAC, &other_aac()], &[[(1, 1), (1, 2)]; 40].concat());
    assert_eq!((movie.clips.len(), movie.tracks[0].samples.len()), (0, 40));
    assert!(movie.skipped[0].reason.ends_with("they are left out"), "{:?}", movie.skipped);
}

#[test]
fn clips_have_the_edit_list_of_their_track() {
    let movie = index(b"soun", &[AAC, &other_aac()], &[(3, 1), (3, 2), (3, 1)]);
    let spans = |edits: Vec<Edit>| {
        let clips: Vec<Track> = movie.clips.iter().map(|clip| Track { edits: edits.clone(), ..clip.clone() }).collect();
        let spans = clip_spans(&clips.iter().collect::<Vec<_>>(), Timescale::MILLIS);
        spans.into_iter().map(|span| span.map(|span| (span.samples, span.start))).collect::<Vec<_>>()
    };
    let scale = i64::from(movie.tracks[0].timescale.get());
    let at = |samples: std::ops::Range<u32>, start: i64| Some((samples, start));
    assert_eq!(spans(Vec::new()), [at(0..3, 0), at(0..3, 120), at(0..3, 240)]);
    let edit = |duration, media_time| Edit { duration, media_time };
    let delay = scale / 1000 * 500;
    let found = spans(vec![edit(500, None), edit(0, Some(40))]);
    assert_eq!(found, [at(0..3, delay), at(0..3, delay + 80), at(0..3, delay + 200)], "priming is kept");
    let found = spans(vec![edit(0, Some(160))]);
    assert_eq!(found[0], None, "the first clip is over");
    assert_eq!((found[1].as_ref().unwrap().1, found[2].as_ref().unwrap().1), (0, 80));
}

#[test]
fn the_entry_of_most_samples_decides() {
    let other = other_aac();
    let movie = index(b"soun", &[&other, AAC], &[(2, 1), (3, 2)]);
    assert_eq!((movie.tracks[0].samples.len(), movie.tracks[0].samples.start_dts()), (3, 80));
}

#[test]
fn fragments_change_their_entry() {
    const MOOF_BASE: u32 = 0x2_0000;
    let trex = |id| fields(b"trex", &[0, id, 1, 40, 10, 0]);
    let (avc, aac) = (other_avc(), other_aac());
    let tracks = [joined_trak(1, b"vide", &[AVC, &avc], &[]), joined_trak(2, b"soun", &[AAC, &aac], &[])].concat();
    let moov = bx(b"moov", &[&mvhd(), &tracks, &bx(b"mvex", &[&trex(1), &trex(2)])]);
    let traf = |track: u32, entry: u32, time: u32| {
        let tfhd = fields(b"tfhd", &[MOOF_BASE | 2, track, entry]);
        bx(b"traf", &[&tfhd, &fields(b"tfdt", &[0, time]), &fields(b"trun", &[1, 2, 300])])
    };
    let moof = |entry: u32, time: u32| {
        let moof = bx(b"moof", &[&fields(b"mfhd", &[0, 1]), &traf(1, entry, time), &traf(2, entry, time)]);
        [moof, bx(b"mdat", &[&[0; 300]])].concat()
    };
    let movie = index_bytes(&[moov, moof(1, 0), moof(2, 80), moof(1, 160)].concat()).unwrap();
    let expected = [12, 12, 31, 31, 12, 12].map(Some);
    assert_eq!(levels(&movie.tracks[0]), (0..).zip(expected).collect::<Vec<_>>());
    let times: Vec<_> = movie.tracks[1].samples.iter().map(|sample| sample.dts).collect();
    assert_eq!(times, [0, 40, 160, 200]);
    assert_eq!(movie.skipped.len(), 1);
    assert!(movie.skipped[0].reason.contains("found 2 samples of sample entry 2"), "{:?}", movie.skipped);
}

#[test]
fn an_index_file_has_all_entries() {
    let movie = index(b"vide", &[AVC, &other_avc()], &[(3, 1), (2, 2), (1, 1)]);
    let file = dref::write(&movie, "film.mp4").unwrap();
    let back = index_bytes(&file).unwrap();
    let (a, b) = (&movie.tracks[0], &back.tracks[0]);
    assert_eq!((levels(a), &a.codec, &a.sample_entry), (levels(b), &b.codec, &b.sample_entry));
}

#[test]
fn samples_of_pcm_do_not_change() {
    let other = PCM.replace("bb80", "ac44");
    let sound = joined_trak(1, b"soun", &[PCM, &other], &tables(&[(3, 1), (2, 2)]));
    let moov = bx(b"moov", &[&mvhd(), &sound, &trak(2, b"vide", AVC, &tables(&[(3, 1)]))]);
    let movie = index_bytes(&[moov, bx(b"mdat", &[&[0; 20_000]])].concat()).unwrap();
    assert_eq!(movie.tracks.len(), 1);
    assert!(movie.skipped[0].reason.contains("a change from sample entry 1 to 2"), "{:?}", movie.skipped);
}

#[test]
fn forms_of_one_configuration_need_one_decoder() {
    // Without the extension that states that there is no SBR.
    let plain = AAC.replace("118856e500", "1188000000");
    let movie = index(b"soun", &[AAC, &plain], &[(3, 1), (3, 2)]);
    assert!(movie.clips.is_empty() && movie.tracks[0].descriptions.is_none(), "{:?}", movie.skipped);
    assert_eq!(movie.tracks[0].samples.len(), 6);
}
