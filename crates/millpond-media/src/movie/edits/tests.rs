use super::*;
use crate::{
    codec::{AlacConfig, Codec, MpegAudioConfig, OpusConfig},
    fixture::{AAC, AVC, track},
};

/// Groups of 12 pictures I B B P ... of 40 ticks, with the composition shift that B pictures need.
fn video(edits: &[Edit]) -> Track {
    let mut table = SampleTable::builder();
    for i in 0..48_u32 {
        // Decoding order I P B B: presented at 0, 3, 1, 2.
        let composition = [40, 120, 0, 0][i as usize % 4];
        table.push(u64::from(i) * 10, 10, 40, composition, i.is_multiple_of(12));
    }
    track(1, AVC, edits.to_vec(), table.finish())
}

fn sound(edits: &[Edit]) -> Track {
    let mut table = SampleTable::builder();
    for i in 0..500_u32 {
        table.push(u64::from(i) * 10, 10, 20, 0, true);
    }
    track(2, AAC, edits.to_vec(), table.finish())
}

fn edit(duration: u64, media_time: i64) -> Edit {
    Edit { duration, media_time: (media_time >= 0).then_some(media_time) }
}

fn of(track: &Track) -> Vec<(Range<u32>, i64, i64, i64)> {
    spans(track, Timescale::MILLIS).into_iter().map(|s| (s.samples, s.shift, s.start, s.end)).collect()
}

#[test]
fn no_list_is_one_span_of_everything() {
    assert_eq!(of(&sound(&[])), [(0..500, 0, 0, 10_000)]);
    // The first picture is presented at 40. The last one decoded is not the last one presented.
    assert_eq!(of(&video(&[])), [(0..48, 0, 40, 1960)]);
    assert_eq!(of(&track(1, AAC, Vec::new(), SampleTable::default())), []);
}

#[test]
fn the_usual_list_takes_the_reordering_delay_off() {
    assert_eq!(of(&video(&[edit(1920, 40)])), [(0..48, -40, 0, 1920)]);
    assert_eq!(of(&video(&[edit(0, 40)])), [(0..48, -40, 0, 1920)], "0 is to the end");
    assert_eq!(of(&video(&[edit(5000, 40)])), [(0..48, -40, 0, 1920)], "so is more than there is");
}

#[test]
fn a_list_that_forgets_the_reordering_delay_loses_no_picture() {
    assert_eq!(of(&video(&[edit(1920, 0)])), [(0..48, -40, 0, 1920)]);
    assert_eq!(of(&video(&[edit(400, 0)])), of(&video(&[edit(400, 40)])));
}

#[test]
fn empty_edits_shift() {
    assert_eq!(of(&sound(&[edit(300, -1), edit(10_000, 0)])), [(0..500, 300, 300, 10_300)]);
}

#[test]
fn pictures_begin_at_the_sync_sample_before() {
    // The second group begins with sample 12, presented at 520. The first picture at or after 700 is at 720: it moves
    // to where the edit begins.
    assert_eq!(of(&video(&[edit(400, 700)])), [(12..28, -720, 0, 380)]);
    assert_eq!(of(&video(&[edit(400, 520)]))[0].0.start, 12);
    assert_eq!(of(&video(&[edit(400, 519)]))[0].0.start, 0);
}

#[test]
fn a_picture_that_begins_before_the_end_shows() {
    // The last four samples, 44 to 47 in decoding order, are presented at 1800, 1920, 1840 and 1880.
    let last = |duration| of(&video(&[edit(duration, 40)]))[0].0.end;
    assert_eq!(last(1880), 48);
    assert_eq!(last(1841), 48, "sample 45 shows too late, but 47 is decoded with it");
    assert_eq!(last(1840), 47);
    assert_eq!(last(1761), 45);
    assert_eq!(last(1760), 44);
}

#[test]
fn priming_is_kept_and_what_is_cut_leaves_one_sample() {
    assert_eq!(of(&sound(&[edit(0, 50)])), [(0..500, -50, 0, 9950)], "the encoder's delay");
    // The edit removes 0.6 s, of which the decoder needs one frame.
    assert_eq!(of(&sound(&[edit(0, 600)])), [(29..500, -600, 0, 9400)]);
    assert_eq!(of(&sound(&[edit(0, 4010)]))[0].0, 199..500);
}

#[test]
fn preroll_is_what_a_codec_needs() {
    let first = |codec: Codec| {
        let mut track = sound(&[edit(0, 4010)]);
        track.codec = codec;
        of(&track)[0].0.start
    };
    assert_eq!(
        first(Codec::MpegAudio(MpegAudioConfig { layer: 3, channels: 2, sample_rate: 44_100 })),
        175,
        "24 frames of 10 bytes, and one"
    );
    let opus = OpusConfig {
        channels: 2,
        pre_skip: 312,
        input_sample_rate: 48_000,
        output_gain: 0,
        mapping_family: 0,
        mapping: Vec::new(),
    };
    assert_eq!(first(Codec::Opus(opus)), 196, "80 ms");
    let alac = AlacConfig { frame_length: 4096, bit_depth: 16, channels: 2, average_bitrate: 0, sample_rate: 48_000 };
    assert_eq!(first(Codec::Alac(alac)), 200, "none");
}

#[test]
fn several_edits_follow_each_other() {
    let list = [edit(100, 2000), edit(50, -1), edit(200, 6000)];
    assert_eq!(of(&sound(&list)), [(99..105, -2000, 0, 100), (299..310, -5850, 150, 350)]);
}

#[test]
fn edits_that_go_on_are_one() {
    assert_eq!(of(&sound(&[edit(100, 2000), edit(300, 2100)])), [(99..120, -2000, 0, 400)]);
    assert_eq!(of(&sound(&[edit(100, 2000), edit(300, 2101)])).len(), 1, "a tick of rounding");
    assert_eq!(of(&sound(&[edit(100, 2000), edit(300, 2110)])).len(), 2);
}

#[test]
fn a_list_that_shows_nothing_is_passed_over() {
    let all = [(0..500, 0, 0, 10_000)];
    assert_eq!(of(&sound(&[edit(100, 10_000)])), all);
    assert_eq!(of(&sound(&[edit(100, -1)])), all);
    assert_eq!(of(&sound(&[edit(0, 5), edit(0, -1)])), all);
    assert_eq!(of(&sound(&[edit(u64::MAX, -1), edit(0, i64::MAX)])), all);
}

#[test]
fn the_rounding_of_a_movie_tick_drops_no_picture() {
    // 30,000 ticks per second, 1001 per picture: 31 pictures take 1034.366 ms, the file states 1034.
    let mut table = SampleTable::builder();
    for i in 0..31 {
        table.push(i * 10, 10, 1001, 0, i == 0);
    }
    let mut track = track(1, AVC, vec![edit(1034, 0)], table.finish());
    track.timescale = Timescale::new(30_000).unwrap();
    assert_eq!(of(&track), [(0..31, 0, 0, 31_020)]);
}

#[test]
fn times_of_hostile_lists_do_no_harm() {
    let values = [0, 1, 50, i64::MAX as u64, u64::MAX];
    for a in values {
        for b in values {
            let list = [edit(a, (b >> 1) as i64), edit(b, -1), edit(b, (a >> 1) as i64)];
            let _ = (of(&sound(&list)), of(&video(&list)));
        }
    }
}
