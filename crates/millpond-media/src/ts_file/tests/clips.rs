//! Files whose streams change their configuration, coding or PID.

use super::{File, OTHER_SPS, PICTURES, SOUND, SPS, STEP, adts, assert_extracts, edits, joined, scanned, times};
use crate::{Movie, SkippedTrack, Track, TrackKind};

/// Pictures of a group, and frames of sound that last about as long.
const GROUP: u64 = 5 * STEP;

/// Appends some groups of pictures from a time on.
fn pictures(file: &mut File, sps: &str, time: u64, groups: u64) {
    (0..groups).for_each(|group| file.pictures(sps, time + group * GROUP));
}

fn size(track: &Track) -> (u16, u16) {
    match track.kind {
        TrackKind::Video { width, height, .. } => (width, height),
        _ => (0, 0),
    }
}

/// Size, first time of presentation and number of samples of each clip.
fn clips(movie: &Movie) -> Vec<((u16, u16), i64, u32)> {
    let first = |track: &Track| track.samples.iter().map(|sample| sample.pts()).min().unwrap_or(0);
    movie.clips.iter().map(|clip| (size(clip), first(clip), clip.samples.len())).collect()
}

#[test]
fn pictures_of_another_size_are_clips() {
    let mut file = File::new();
    pictures(&mut file, SPS, 0, 7);
    pictures(&mut file, OTHER_SPS, 7 * GROUP, 6);
    pictures(&mut file, SPS, 13 * GROUP, 1);
    file.sound(0);
    let object = file.mux.bytes;
    let found = scanned(&object).unwrap();
    let group = GROUP as i64;
    // The first picture is decoded a picture before it is presented.
    let expected = [((320, 180), 3600, 35), ((322, 182), 3600 + 7 * group, 30), ((320, 180), 3600 + 13 * group, 5)];
    assert_eq!(clips(&found.movie), expected);
    let track = &found.movie.tracks[0];
    assert_eq!((size(track), track.samples.len(), track.descriptions.is_none()), ((320, 180), 40, true));
    assert_eq!(edits(&found.movie, 0), [(0, Some(3600))]);
    assert!(found.movie.clips.iter().all(|clip| clip.id == track.id && clip.enabled));
    let [SkippedTrack { reason, .. }] = &found.movie.skipped[..] else { panic!("{:?}", found.movie.skipped) };
    assert!(reason.contains("30 frames") && reason.contains("322x182"), "{reason}");
    assert!(reason.ends_with("they are played by HLS and DASH, and left out of RTSP"), "{reason}");
    assert_extracts(&object, &found);
}

#[test]
fn clips_begin_with_a_key_frame_and_go_on_over_jumps() {
    let mut file = File::new();
    pictures(&mut file, SPS, 9_000_000, 6);
    // Another recording, of another size and time, which begins within a group of pictures.
    let cut = super::picture(None, 3, 200);
    file.mux.timed(PICTURES, 90_000, 90_000, &cut);
    pictures(&mut file, OTHER_SPS, 90_000 + STEP, 6);
    let found = scanned(&file.mux.bytes).unwrap();
    let clips = clips(&found.movie);
    assert_eq!(
        clips.iter().map(|(size, _, count)| (*size, *count)).collect::<Vec<_>>(),
        [((320, 180), 31), ((322, 182), 30)]
    );
    let mut decoded = found.movie.clips[1].samples.iter().map(|sample| sample.dts);
    assert!(decoded.next().is_some_and(|first| first >= 6 * GROUP as i64), "after the first recording");
}

/// Appends 60 frames of sound with a byte of the header that tells the rate.
fn sound(file: &mut File, rate: u8, step: u64, time: u64) {
    for number in 0..60 {
        let mut frame = adts(number, 60);
        frame[2] = rate;
        file.mux.unit(SOUND, Some(time + u64::from(number) * step), &frame);
    }
}

#[test]
fn sound_of_another_rate_is_a_clip_with_its_own_clock() {
    let mut file = File::new();
    sound(&mut file, 0x4c, 1920, 90_000);
    // 1024 samples of 44,100 Hz last 2090 ticks.
    let second = 90_000 + 60 * 1920;
    sound(&mut file, 0x50, 2090, second);
    let object = file.mux.bytes;
    let found = scanned(&object).unwrap();
    let told: Vec<_> =
        found.movie.clips.iter().map(|c| (c.timescale.get(), c.samples.start_dts(), c.samples.len())).collect();
    // 60 frames of 1024 samples last 1.28 s.
    assert_eq!(told, [(48_000, 0, 60), (44_100, 56_448, 60)]);
    assert_eq!((found.movie.tracks.len(), times(&found.movie, 0).len()), (1, 60));
    assert_extracts(&object, &found);
}

#[test]
fn a_stream_may_change_its_coding() {
    let mut file = File::new();
    sound(&mut file, 0x4c, 1920, 0);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES, &[]), (0x03, SOUND, b"\x0a\x04deu\0")]);
    // 1152 samples of 44,100 Hz, layer III with 128 kbit/s: 417 bytes.
    for number in 0..60_u64 {
        let frame = [&[0xff, 0xfb, 0x90, 0xc4][..], &[number as u8; 413]].concat();
        file.mux.unit(SOUND, Some(60 * 1920 + number * 2351), &frame);
    }
    let object = file.mux.bytes;
    let found = scanned(&object).unwrap();
    let told: Vec<_> = found.movie.clips.iter().map(|clip| (clip.codec.name(), clip.timescale.get())).collect();
    assert_eq!(told.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [48_000, 44_100], "{told:?}");
    assert_eq!(found.movie.tracks.iter().map(|track| track.id).collect::<Vec<_>>(), [u32::from(SOUND)]);
    assert_extracts(&object, &found);
}

#[test]
fn streams_go_on_with_other_pids() {
    let mut file = File::new();
    pictures(&mut file, SPS, 0, 6);
    file.sound(0);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES + 16, &[]), (0x0f, SOUND + 16, b"\x0a\x04deu\0")]);
    let mut second = File::new();
    second.mux.bytes.clear();
    pictures(&mut second, SPS, 6 * GROUP, 6);
    second.sound(10 * 1920);
    // The same packets with other PIDs.
    for packet in second.mux.bytes.chunks_mut(188) {
        packet[2] += 16;
    }
    let joint = file.mux.bytes.len() as u64;
    let object = [file.mux.bytes, second.mux.bytes].concat();
    let movie = joined(&object, &[0, joint]);
    let tracks: Vec<_> = movie.tracks.iter().map(|track| (track.id, track.samples.len())).collect();
    assert_eq!(tracks, [(u32::from(PICTURES), 60), (u32::from(SOUND), 20)]);
    assert_eq!(movie.clips.len(), 0);
    let decoded: Vec<i64> = times(&movie, 0).iter().map(|(dts, _)| *dts).collect();
    assert_eq!(decoded, (0..60).map(|number| number * 3600).collect::<Vec<_>>());
    assert_extracts(&object, &scanned(&object).unwrap());
}

#[test]
fn sound_of_another_language_is_a_track_of_its_own() {
    let mut file = File::new();
    file.sound(0);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES, &[]), (0x0f, SOUND + 16, b"\x0a\x04eng\0")]);
    file.mux.unit(SOUND + 16, Some(10 * 1920), &[adts(1, 50), adts(2, 50)].concat());
    let movie = scanned(&file.mux.bytes).unwrap().movie;
    let told: Vec<_> = movie.tracks.iter().map(|track| (track.id, track.language.as_str(), track.enabled)).collect();
    assert_eq!(told, [(u32::from(SOUND), "deu", true), (u32::from(SOUND) + 16, "eng", false)]);
}
