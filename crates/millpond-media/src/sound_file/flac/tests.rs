use crate::{
    Movie,
    index::indexer::index_bytes,
    sound_file::{
        flac_crc::crc16,
        tests::{flac_frames, flac_head},
    },
};

fn movie(frames: &[Vec<u8>]) -> Movie {
    index_bytes(&[flac_head(), frames.concat()].concat()).unwrap()
}

fn sizes(movie: &Movie) -> Vec<(u64, i64)> {
    movie.tracks[0].samples.iter().map(|s| (s.range.len(), s.dts)).collect()
}

#[test]
fn frames_end_where_the_next_ones_begin() {
    let frames = flac_frames(4);
    let movie = movie(&frames);
    assert_eq!(sizes(&movie), [(208, 0), (209, 4096), (210, 8192), (211, 12_288)]);
    assert_eq!(movie.tracks[0].samples.get(0).unwrap().range.start, flac_head().len() as u64);
    assert_eq!((movie.timescale.get(), movie.duration, movie.cut_short), (44_100, 16_384, false));
}

#[test]
fn headers_in_frames_are_no_ends() {
    let mut frames = flac_frames(4);
    // The header of the next frame within a frame, but no checksum before it.
    let next = frames[2][..6].to_vec();
    frames[1][50..56].copy_from_slice(&next);
    let length = frames[1].len() - 2;
    let sum = crc16(0, &frames[1][..length]);
    frames[1][length..].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(sizes(&movie(&frames)).iter().map(|(size, _)| *size).collect::<Vec<_>>(), [208, 209, 210, 211]);
}

#[test]
fn damaged_frames_keep_their_place_or_leave_a_gap() {
    let mut frames = flac_frames(6);
    frames[2][100] ^= 1;
    let whole = [208, 209, 210, 211, 212, 213];
    assert_eq!(sizes(&movie(&frames)).iter().map(|(size, _)| *size).collect::<Vec<_>>(), whole, "a wrong checksum");
    // A header that is lost.
    frames[3][3] ^= 0xff;
    let found = sizes(&movie(&frames));
    let times: Vec<i64> = found.iter().map(|(_, dts)| dts / 4096).collect();
    assert_eq!(times, [0, 1, 4, 5], "{found:?}");
    let missing = [&frames[..2], &frames[4..]].concat();
    assert_eq!(sizes(&movie(&missing)).iter().map(|(_, dts)| dts / 4096).collect::<Vec<_>>(), [0, 4, 5]);
}

#[test]
fn the_last_frame_ends_with_the_file_or_before_a_tag() {
    let tagged = [flac_frames(3), vec![[&b"TAG"[..], &[0; 125]].concat()]].concat();
    assert_eq!(sizes(&movie(&tagged)).last(), Some(&(210, 8192)));
    let mut cut = flac_frames(3);
    cut[2].truncate(100);
    let movie = movie(&cut);
    assert!(movie.cut_short && movie.tracks[0].samples.len() == 2);
}

#[test]
fn heads_are_checked() {
    let words = |object: &[u8]| index_bytes(object).unwrap_err().to_string();
    assert!(words(&flac_head()).contains("no frames behind the metadata blocks"));
    assert!(words(&flac_head()[..60]).contains("cut short"), "{}", words(&flac_head()[..60]));
    assert!(words(b"fLaC\0\0\0").contains("cut short"));
    let mut no_rate = flac_head();
    no_rate[18..21].fill(0);
    assert!(words(&no_rate).contains("a sampling rate"), "{}", words(&no_rate));
    let mut other = flac_head();
    other[4] = 4;
    assert!(words(&other).contains("STREAMINFO"), "{}", words(&other));
}
