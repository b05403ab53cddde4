//! Files made of packets: their tracks, and what is extracted of them.

mod clips;
mod programmes;
mod so_far;
mod strangers;
mod texts;

use super::{
    Extractor,
    packets::find_packets,
    scan::{Scan, Scanned},
    survey::Survey,
};
use crate::{
    Codec, Extraction, Indexer, MediaError, Medium, Movie, SkippedTrack, Step, UnreadCodec, Work, fixture::hex,
    index_bytes, ts::mux::Mux, units::ByteRange,
};
use bytes::Bytes;
use proptest::prelude::*;

/// Parameter sets of 320x180 and of 322x182.
const SPS: &str = "6764000cacd941419f9f011000000300100000030320f1429960";
const OTHER_SPS: &str = "6764000dacd941519e226c0440000003004000000c83c50a6580";
/// PIDs of pictures and sound.
const PICTURES: u16 = 0x100;
const SOUND: u16 = 0x101;
/// Ticks of 90 kHz from a picture to the next one, and from a frame of sound to the next one.
const STEP: u64 = 3600;
const SOUND_STEP: u64 = 1920;
const WRAP: u64 = 1 << 33;

/// Scans an object, and returns the extracted object too.
fn scanned(object: &[u8]) -> Result<Scanned, MediaError> {
    let (form, start) = find_packets(object, object.len() as u64).expect("packets");
    let bytes = Bytes::copy_from_slice(&object[start as usize..]);
    let choice = Survey::of(form, start, std::slice::from_ref(&bytes)).choose(None)?;
    let mut scan = Scan::new(form, start, choice, Work::unlimited());
    scan.push(&bytes)?;
    scan.finish(object.len() as u64)
}

fn extracted(object: &[u8], extraction: &Extraction, range: ByteRange, piece: usize) -> Result<Bytes, MediaError> {
    let mut extractor = Extractor::new(extraction, range)?;
    let source = extractor.source();
    assert_eq!(extraction.source(range)?, source);
    let bytes = &object[source.start as usize..source.end as usize];
    bytes.chunks(piece).for_each(|piece| extractor.supply(piece));
    extractor.finish()
}

fn nal(bytes: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 1], bytes].concat()
}

/// A picture in the byte stream: a delimiter, sets before a key frame, and two slices of some bytes.
fn picture(sps: Option<&str>, fill: u8, len: usize) -> Vec<u8> {
    let mut bytes = nal(&[9, 0xf0]);
    if let Some(sps) = sps {
        bytes.extend([nal(&hex(sps)), nal(&[0x68, 0b1100_0000])].concat());
    }
    let kind = if sps.is_some() { 0x65 } else { 0x41 };
    let slice = |first: u8| [&[kind, first][..], &vec![fill | 1; len]].concat();
    [bytes, nal(&slice(0x88)), nal(&slice(0x48))].concat()
}

/// An ADTS frame of AAC-LC, 48 kHz, stereo.
fn adts(fill: u8, len: usize) -> Vec<u8> {
    let size = len + 7;
    let mut frame =
        vec![0xff, 0xf1, 0x4c, 0x80 | (size >> 11) as u8, (size >> 3) as u8, (size << 5) as u8 | 0x1f, 0xfc];
    frame.resize(size, fill);
    frame
}

/// A writer of files with one programme.
#[derive(Clone)]
struct File {
    mux: Mux,
    fill: u8,
}

impl File {
    fn new() -> Self {
        let mut mux = Mux::default();
        mux.association(0, &[(1, 0x1000)]);
        mux.map(0x1000, 1, 0, &[(0x1b, PICTURES, &[]), (0x0f, SOUND, b"\x0a\x04deu\0"), (0x86, 0x1f0, &[])]);
        Self { mux, fill: 0 }
    }

    /// Appends a group of five pictures that are presented from `time` on, and decoded a picture earlier.
    fn pictures(&mut self, sps: &str, time: u64) {
        for (number, shown) in [0, 3, 1, 2, 4].into_iter().enumerate() {
            self.fill = self.fill.wrapping_add(2);
            let (pts, dts) = (time + shown * STEP, time + number as u64 * STEP + WRAP - STEP);
            let bytes = picture(Some(sps).filter(|_| number == 0), self.fill, 150 + usize::from(self.fill));
            self.mux.timed(PICTURES, pts % WRAP, dts % WRAP, &bytes);
        }
    }

    /// Appends PES packets with ten frames of sound in all, of which one is cut by their border.
    fn sound(&mut self, time: u64) {
        let frames: Vec<u8> = (0..10).flat_map(|fill| adts(fill, 40 + usize::from(fill))).collect();
        let (first, second) = frames.split_at(250);
        self.mux.unit(SOUND, Some(time % WRAP), first);
        self.mux.unit(SOUND, Some((time + 5 * SOUND_STEP) % WRAP), second);
    }

    /// The file with packets of another size.
    fn in_form(&self, before: usize, behind: usize) -> Vec<u8> {
        let packets = self.mux.bytes.chunks(188);
        packets.flat_map(|packet| [&vec![0x46; before][..], packet, &vec![3; behind]].concat()).collect()
    }
}

/// Two groups of pictures with sound, which begins later.
fn usual() -> File {
    let mut file = File::new();
    file.pictures(SPS, 90_000);
    file.sound(93_600);
    file.pictures(SPS, 90_000 + 5 * STEP);
    file
}

/// Times of decoding and presentation of each sample of a track.
fn times(movie: &Movie, track: usize) -> Vec<(i64, i64)> {
    movie.tracks[track].samples.iter().map(|sample| (sample.dts, sample.pts())).collect()
}

fn edits(movie: &Movie, track: usize) -> Vec<(u64, Option<i64>)> {
    movie.tracks[track].edits.iter().map(|edit| (edit.duration, edit.media_time)).collect()
}

/// Asserts that ranges of all sizes are extracted as they were scanned.
fn assert_extracts(object: &[u8], found: &Scanned) {
    let extraction = found.movie.extraction.as_deref().expect("an extraction");
    let len = found.extracted.len() as u64;
    assert_eq!(extraction.len(), len);
    assert_ranges(object, found, 97);
}

/// Asserts that some hundred ranges are extracted as they were scanned.
fn assert_sampled(object: &[u8], found: &Scanned) {
    assert_ranges(object, found, (found.extracted.len() / 100).max(1));
}

fn assert_ranges(object: &[u8], found: &Scanned, step: usize) {
    let extraction = found.movie.extraction.as_deref().expect("an extraction");
    let len = found.extracted.len() as u64;
    for (start, size) in (0..len).step_by(step).zip([1, 2, 50, 333, 2000, 256 << 10].into_iter().cycle()) {
        let range = ByteRange::new(start, (start + size).min(len));
        let bytes = extracted(object, extraction, range, 1000).unwrap();
        assert!(bytes == found.extracted[start as usize..range.end as usize], "{range}");
    }
    for sample in found.movie.tracks.iter().flat_map(|track| &track.samples) {
        assert!(sample.range.end <= len);
    }
}

/// Indexes an object that consists of files, each of which begins at one of `joints`.
fn joined(object: &[u8], joints: &[u64]) -> Movie {
    let mut indexer = Indexer::new(object.len() as u64).joined_at(joints);
    loop {
        match indexer.poll().unwrap() {
            Step::Done(movie) => return movie,
            Step::Need(ranges) => ranges.into_iter().for_each(|range| {
                indexer.supply(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
            }),
        }
    }
}

#[test]
fn counters_begin_anew_where_files_are_joined() {
    let mut second = File::new();
    second.pictures(SPS, 90_000 + 5 * STEP);
    let mut first = File::new();
    first.pictures(SPS, 90_000);
    let joint = first.mux.bytes.len() as u64;
    let object = [first.mux.bytes, second.mux.bytes].concat();
    let movie = joined(&object, &[0, joint]);
    let shown = [0, 3, 1, 2, 4].map(|shown| (shown + 1) * 3600);
    let expected: Vec<_> =
        (0..10).map(|number| (number * 3600, shown[number as usize % 5] + number / 5 * 18_000)).collect();
    assert_eq!(times(&movie, 0), expected);
    // Without the joint, the last picture of the first file seems to lack packets.
    assert!(joined(&object, &[]).tracks[0].samples.len() < 10);
}

#[test]
fn missing_packets_and_bytes_between_packets_are_named() {
    let whole = usual().mux.bytes;
    let packets: Vec<&[u8]> = whole.chunks(188).collect();
    let is_picture = |place: &usize| u16::from_be_bytes([packets[*place][1] & 0x1f, packets[*place][2]]) == PICTURES;
    let pictures: Vec<usize> = (0..packets.len()).filter(is_picture).collect();
    let (garbage, missing, next) = (pictures[5], pictures[pictures.len() - 3], pictures[pictures.len() - 2]);
    let mut object = Vec::new();
    for (place, packet) in packets.iter().enumerate() {
        if place == garbage {
            object.extend([0x11; 100]);
        }
        if place != missing {
            object.extend_from_slice(packet);
        }
    }
    let skipped = scanned(&object).unwrap().movie.skipped;
    let found: Vec<_> = skipped.iter().map(|skipped| (skipped.id, &skipped.reason[..])).collect();
    let [passed, lost] = [
        format!("the transport stream: 100 bytes that are no packets were passed in 1 place: byte {}", garbage * 188),
        format!("PID 0x0100: packets are missing in 1 place: byte {}", (next - 1) * 188 + 100),
    ];
    assert_eq!(found, [(0, &passed[..]), (u32::from(PICTURES), &lost[..])]);
}

#[test]
fn frames_are_samples_of_the_extracted_object() {
    let object = usual().mux.bytes;
    let found = scanned(&object).unwrap();
    let movie = &found.movie;
    assert_eq!(movie.skipped, []);
    let shown: Vec<i64> = [0, 3, 1, 2, 4].map(|shown| (shown + 1) * 3600).to_vec();
    let expected: Vec<_> =
        (0..10).map(|number| (number * 3600, shown[number as usize % 5] + number / 5 * 18_000)).collect();
    assert_eq!(times(movie, 0), expected);
    assert_eq!(times(movie, 1), (0..10).map(|number| (number * 1024, number * 1024)).collect::<Vec<_>>());
    assert_eq!(edits(movie, 0), [(0, Some(3600))]);
    assert_eq!(edits(movie, 1), [(3600, None), (0, Some(0))]);
    let track = &movie.tracks[1];
    assert_eq!((track.id, &track.language[..], track.timescale.get()), (u32::from(SOUND), "deu", 48_000));
    assert_eq!(movie.tracks[0].samples.sync_samples().collect::<Vec<_>>(), [0, 5]);
    // The first picture: its slices after their lengths, no sets.
    let first = movie.tracks[0].samples.get(0).unwrap().range;
    let slice = |first: u8| [&[0x65, first][..], &[3; 152]].concat();
    let sized = |bytes: Vec<u8>| [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat();
    let expected = [sized(slice(0x88)), sized(slice(0x48))].concat();
    assert_eq!(&found.extracted[first.start as usize..first.end as usize], expected);
    assert_extracts(&object, &found);
}

#[test]
fn captions_within_pictures_are_found() {
    let message = |pair: [u8; 2]| {
        let captions = [&[6, 4, 14, 0xb5, 0, 0x31][..], b"GA94", &[3, 0xc1, 0xff, 0xfc], &pair, &[0xff, 0x80]].concat();
        nal(&captions)
    };
    let found = |pair: Option<[u8; 2]>| {
        let mut file = File::new();
        for number in 0..5_u64 {
            let mut bytes = picture(Some(SPS).filter(|_| number == 0), 9, 150);
            // Behind the delimiter.
            bytes.splice(6..6, pair.filter(|_| number == 3).map(message).unwrap_or_default());
            let time = 90_000 + number * STEP;
            file.mux.timed(PICTURES, time, time, &bytes);
        }
        file.sound(90_000);
        let movie = index_bytes(&file.mux.bytes).unwrap();
        assert_eq!(movie.tracks[1].captions, None, "sound has none");
        let channels = movie.tracks[0].captions?;
        Some(channels.iter().map(|channel| channel.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(found(None), Some(Vec::new()));
    assert_eq!(found(Some([0x80, 0x80])), Some(Vec::new()), "padding");
    assert_eq!(found(Some([0x94, 0x20])), Some(vec!["CC1".to_owned()]));
    assert_eq!(found(Some([0xc8, 0xe9])), None, "letters, of which no channel is known");
}

#[test]
fn all_forms_of_packets_give_the_same_movie() {
    let file = usual();
    let plain = scanned(&file.mux.bytes).unwrap();
    for (before, behind) in [(4, 0), (0, 16)] {
        let object = [&[0; 50][..], &file.in_form(before, behind)].concat();
        let found = scanned(&object).unwrap();
        assert_eq!((&found.movie.tracks, &found.extracted), (&plain.movie.tracks, &plain.extracted));
        assert_extracts(&object, &found);
    }
}

#[test]
fn the_indexer_reads_all_of_it() {
    let object = usual().mux.bytes;
    let expected = scanned(&object).unwrap().movie;
    assert_eq!(index_bytes(&object).unwrap(), expected);
    let mut indexer = Indexer::new(object.len() as u64).outlining();
    let mut ranges = Vec::new();
    let movie = loop {
        match indexer.poll().unwrap() {
            Step::Done(movie) => break movie,
            Step::Need(needed) => {
                ranges.push(needed.clone());
                for range in needed.into_iter().rev() {
                    indexer.supply(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
                }
            }
        }
        assert!(indexer.is_scanning() || ranges.len() == 1);
    };
    assert_eq!(movie, expected);
    assert!(movie.heap_bytes() > movie.extraction.as_ref().unwrap().heap_bytes());
    assert_eq!(ranges.last().unwrap()[..], [ByteRange::new(0, object.len() as u64)]);
}

#[test]
fn times_go_on_over_wraps_and_jumps() {
    let mut file = File::new();
    let late = WRAP - 2 * STEP;
    file.pictures(SPS, late);
    file.sound(late);
    // Another time base, where the sound begins two frames later than the pictures.
    file.pictures(SPS, 9_000_000);
    file.sound(9_000_000 + 2 * SOUND_STEP);
    let object = file.mux.bytes;
    let found = scanned(&object).unwrap();
    let pictures: Vec<i64> = times(&found.movie, 0).iter().map(|(dts, _)| *dts).collect();
    // The sound of the first base lasts longer than the pictures by 1200 ticks; its second part begins 3840 ticks later.
    assert_eq!(pictures, (0..10).map(|number| number * 3600).collect::<Vec<_>>());
    let sound: Vec<i64> = times(&found.movie, 1).iter().map(|(dts, _)| *dts).collect();
    let later = (18_000 + 3840) * 48_000 / 90_000;
    assert_eq!(sound, (0..10).map(|n| n * 1024).chain((0..10).map(|n| later + n * 1024)).collect::<Vec<_>>());
    assert_extracts(&object, &found);
}

#[test]
fn a_stated_jump_of_the_clock_joins_short_jumps() {
    let mut file = File::new();
    file.mux.clock(PICTURES, 80_000, false);
    file.pictures(SPS, 90_000);
    file.mux.clock(PICTURES, 390_000, true);
    file.pictures(SPS, 400_000);
    let found = scanned(&file.mux.bytes).unwrap();
    let decoded: Vec<i64> = times(&found.movie, 0).iter().map(|(dts, _)| *dts).collect();
    assert_eq!(decoded, (0..10).map(|number| number * 3600).collect::<Vec<_>>());
}

#[test]
fn lost_packets_cost_their_frames_and_leave_a_gap() {
    let whole = usual().mux.bytes;
    let expected = scanned(&whole).unwrap().movie;
    for lost in 2..whole.len() / 188 {
        let mut object = whole.clone();
        object.drain(lost * 188..(lost + 1) * 188);
        let found = scanned(&object).unwrap();
        for (track, all) in found.movie.tracks.iter().zip(&expected.tracks) {
            assert!(track.samples.len() + 10 >= all.samples.len(), "packet {lost}");
        }
        assert_extracts(&object, &found);
    }
}

#[test]
fn pictures_before_the_first_key_frame_are_left_out() {
    let mut file = File::new();
    for time in 0..3 {
        file.mux.unit(PICTURES, Some(time * STEP), &picture(None, 1, 100));
    }
    file.pictures(SPS, 3 * STEP);
    file.sound(0);
    let found = scanned(&file.mux.bytes).unwrap();
    assert_eq!(found.movie.tracks[0].samples.len(), 5);
    assert_eq!((edits(&found.movie, 0)[0], edits(&found.movie, 1)[0]), ((10_800, None), (0, Some(0))));
}

#[test]
fn parameter_sets_may_change_and_short_clips_of_another_size_are_left_out() {
    let same_size = SPS.replace("6764000c", "67640015");
    let mut file = File::new();
    file.pictures(SPS, 0);
    file.pictures(&same_size, 5 * STEP);
    file.pictures(SPS, 10 * STEP);
    file.pictures(OTHER_SPS, 15 * STEP);
    file.pictures(SPS, 20 * STEP);
    file.sound(0);
    let object = file.mux.bytes;
    let found = scanned(&object).unwrap();
    let track = &found.movie.tracks[0];
    assert_eq!((track.samples.len(), found.movie.clips.len()), (20, 0));
    let descriptions = track.descriptions.as_deref().expect("descriptions");
    let places: Vec<_> = [0, 4, 5, 9, 10, 19].into_iter().map(|index| descriptions.place(index)).collect();
    assert_eq!((descriptions.entries().len(), places), (2, vec![0, 0, 1, 1, 0, 0]));
    let [SkippedTrack { id, reason, .. }] = &found.movie.skipped[..] else { panic!("{:?}", found.movie.skipped) };
    assert_eq!(*id, u32::from(PICTURES));
    assert!(reason.contains("left out") && reason.contains("320x180"), "{reason}");
    assert_extracts(&object, &found);
}

#[test]
fn the_first_programme_with_pictures_is_read_and_others_are_named() {
    let mut mux = Mux::default();
    mux.association(0, &[(7, 0x1000), (8, 0x1001), (9, 0x1002)]);
    mux.map(0x1000, 7, 0, &[(0x02, 0x200, &[]), (0x0f, 0x201, &[])]);
    mux.map(0x1001, 8, 0, &[(0x1b, PICTURES, &[]), (0x06, 0x301, &[0x56, 0]), (0x11, 0x302, &[]), (0x0f, SOUND, &[])]);
    let mut file = File { mux, fill: 0 };
    file.mux.unit(0x201, Some(0), &[adts(1, 50), adts(2, 50)].concat());
    file.pictures(SPS, 0);
    let object = file.mux.bytes;
    let movie = scanned(&object).unwrap().movie;
    let reasons: Vec<_> = movie.skipped.iter().map(|skipped| (skipped.id, &skipped.reason[..])).collect();
    let expected = [
        (0x1002, "programme 3 of 3, number 9: without a map"),
        (0x301, "PID 0x0301: teletext without pages of subtitles"),
        (0x302, "PID 0x0302: the stream at byte 0: found no frames, expected frames that can be played"),
        (0x101, "PID 0x0101: the stream at byte 0: found no frames, expected frames that can be played"),
    ];
    assert_eq!(movie.tracks.len(), 1);
    let sorted = |mut all: Vec<(u32, String)>| {
        all.sort();
        all
    };
    let owned = |all: &[(u32, &str)]| sorted(all.iter().map(|(id, reason)| (*id, (*reason).to_owned())).collect());
    assert_eq!(owned(&reasons), owned(&expected));
    let codec = |id: u32| movie.skipped.iter().find(|skipped| skipped.id == id).unwrap().codec.as_ref();
    assert_eq!((codec(0x301), codec(0x101), codec(0x1002)), (None, None, None), "their codecs can be read");
}

#[test]
fn a_form_of_a_codec_that_is_not_read_is_named() {
    let mut file = File::new();
    file.pictures(SPS, 90_000);
    let unnumbered = |fill: u8| {
        let mut frame = adts(fill, 40);
        frame[3] &= 0x3f;
        frame
    };
    file.mux.unit(SOUND, Some(90_000), &(0..10).flat_map(unnumbered).collect::<Vec<u8>>());
    let skipped = scanned(&file.mux.bytes).unwrap().movie.skipped;
    let name = "AAC in ADTS (ADTS without a channel configuration)".to_owned();
    let codecs: Vec<_> = skipped.iter().map(|skipped| (skipped.id, skipped.codec.clone())).collect();
    assert_eq!(codecs, [(u32::from(SOUND), Some(UnreadCodec { medium: Medium::Audio, name }))]);
}

/// An element of LATM with LOAS sync. With `config`, it has `StreamMuxConfig` of AAC-LC, 48 kHz, stereo: the six bytes that ffmpeg
/// writes, of which 44 bits count.
fn latm(config: Option<[u8; 6]>, frames: &[&[u8]]) -> Vec<u8> {
    let bits_of = |byte: u8| (0..8).rev().map(move |bit| byte >> bit & 1 == 1);
    let mut bits = vec![config.is_none()];
    bits.extend(config.iter().flatten().copied().flat_map(bits_of).take(44));
    for frame in frames {
        bits.extend([&[frame.len() as u8][..], frame].concat().into_iter().flat_map(bits_of));
    }
    let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |all, (place, bit)| all | u8::from(*bit) << (7 - place));
    let element: Vec<u8> = bits.chunks(8).map(byte).collect();
    [&[0x56, 0xe0 | (element.len() >> 8) as u8, element.len() as u8][..], &element].concat()
}

/// A file with one stream of LATM, of elements that each hold `frames`.
fn latm_file(config: [u8; 6], frames: &[&[u8]]) -> Vec<u8> {
    let mut mux = Mux::default();
    mux.association(0, &[(1, 0x1000)]);
    mux.map(0x1000, 1, 0, &[(0x11, SOUND, &[])]);
    // Each fourth element has the configuration. The border of PES packets cuts the seventh one.
    let elements = (0..12).flat_map(|number| latm(Some(config).filter(|_| number % 4 == 0), frames));
    let elements: Vec<u8> = elements.collect();
    let (first, second) = elements.split_at(elements.len() / 2 + 30);
    mux.unit(SOUND, Some(90_000), first);
    mux.unit(SOUND, Some(90_000 + 7 * SOUND_STEP), second);
    mux.bytes
}

const LATM: [u8; 6] = [0x40, 0x00, 0x23, 0x20, 0x3f, 0xc0];

#[test]
fn frames_of_latm_need_no_other_element_to_be_extracted() {
    let object = latm_file(LATM, &[&[7; 90]]);
    let found = scanned(&object).unwrap();
    assert_eq!(found.movie.skipped, []);
    let Codec::Aac(config) = &found.movie.tracks[0].codec else { panic!("{:?}", found.movie.tracks[0].codec) };
    assert_eq!(config.audio_specific_config[..2], [0x11, 0x90]);
    let decoded: Vec<i64> = times(&found.movie, 0).iter().map(|(dts, _)| *dts).collect();
    assert_eq!(decoded, (0..12).map(|number| number * 1024).collect::<Vec<_>>());
    assert!(found.extracted == [7; 90 * 12]);
    assert_extracts(&object, &found);
}

#[test]
fn elements_of_latm_with_several_frames_are_named() {
    let error =
        scanned(&latm_file([0x41, 0x00, 0x23, 0x20, 0x3f, 0xc0], &[&[7; 30], &[8; 20]])).unwrap_err().to_string();
    assert!(error.contains("an element of LATM with several frames is not supported"), "{error}");
}

#[test]
fn files_without_media_are_refused() {
    let mut mux = Mux::default();
    mux.association(0, &[(1, 0x1000)]);
    mux.map(0x1000, 1, 0, &[(0x02, 0x100, &[])]);
    let error = index_bytes(&mux.bytes).unwrap_err();
    assert!(error.to_string().contains("MPEG-2 video"), "{error}");
    let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0; 184]].concat();
    let error = index_bytes(&null.repeat(10)).unwrap_err();
    assert!(error.to_string().contains("no programme association table"), "{error}");
    let limited = Indexer::new(1880).with_work(Work::new(0)).poll();
    assert!(limited.is_err());
}

#[test]
fn ranges_have_limits() {
    let mut file = usual();
    let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0; 184]].concat();
    let near = scanned(&file.mux.bytes).unwrap().movie.extraction.unwrap();
    assert!(extracted(&file.mux.bytes, &near, ByteRange::new(5, 5), 1).unwrap().is_empty());
    let beyond = Extractor::new(&near, ByteRange::new(0, near.len() + 1)).unwrap_err();
    assert!(matches!(beyond, MediaError::Truncated { .. }));
    // Packets of another file.
    let other = vec![0x47; file.mux.bytes.len()];
    assert!(extracted(&other, &near, ByteRange::new(0, 9), 1000).is_err());
    file.mux.bytes.extend(null.repeat((64 << 20) / 188));
    file.pictures(SPS, 90_000 + 10 * STEP);
    let far = scanned(&file.mux.bytes).unwrap().movie.extraction.unwrap();
    let error = Extractor::new(&far, ByteRange::new(0, far.len())).unwrap_err();
    assert!(matches!(error, MediaError::TooLarge { .. }), "{error}");
    assert!(Extractor::new(&far, ByteRange::new(far.len() - 1, far.len())).is_ok());
    let whole = Extractor::new(&near, ByteRange::new(0, near.len())).unwrap();
    let (packets, made) = (whole.source().len(), near.len());
    assert!((packets + made..=2 * packets + made).contains(&whole.memory()), "{}", whole.memory());
    assert_eq!(Extractor::new(&near, ByteRange::new(5, 5)).unwrap().memory(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_extracted_as_they_were_scanned(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        form in 0..3_usize,
    ) {
        let (before, behind) = [(0, 0), (4, 0), (0, 16)][form];
        let mut object = usual().in_form(before, behind);
        for (place, value) in damage {
            let place = place.index(object.len());
            object[place] = value;
        }
        for place in lost {
            object.remove(place.index(object.len()));
        }
        if find_packets(&object, object.len() as u64).is_some()
            && let Ok(found) = scanned(&object)
        {
            assert_extracts(&object, &found);
        }
    }
}
