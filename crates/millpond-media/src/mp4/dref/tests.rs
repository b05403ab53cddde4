use super::*;
use crate::{
    codec::orientation::Orientation,
    fixture::{AAC, AVC, PCM, movie, track},
    index::indexer::index_bytes,
    movie::sample_table::SampleTable,
};
use proptest::prelude::*;

fn table(rows: &[(u64, u32, u32, i32, bool)]) -> SampleTable {
    let mut builder = SampleTable::builder();
    for &(offset, size, duration, composition, sync) in rows {
        builder.push(offset, size, duration, composition, sync);
    }
    builder.finish()
}

fn small() -> SampleTable {
    table(&[(9000, 10, 40, 40, true), (9010, 7, 40, -40, false), (9100, 7, 40, 0, true)])
}

#[test]
fn what_is_written_reads_the_same() {
    let mut first = track(3, AVC, vec![Edit { duration: 80, media_time: Some(40) }], small());
    first.language = "deu".to_owned();
    first.enabled = false;
    first.name = Some("Angle 2".to_owned());
    first.kind = TrackKind::Video {
        width: 320,
        height: 180,
        orientation: Orientation::rotated(270).mirrored(),
        pixel_aspect: (1, 1),
    };
    let mut second = track(4, AAC, Vec::new(), table(&[(1 << 40, 5, 20, 0, true)]));
    second.language = "pt-BR".to_owned();
    let mut before = movie(vec![first, second]);
    before.duration = 120;
    let bytes = write(&before, "https://example.com/film.mp4").unwrap();
    let after = index_bytes(&bytes).unwrap();
    before.external_media = Some("https://example.com/film.mp4".to_owned());
    assert_eq!(after, before);
}

#[test]
fn aliases_read_the_same() {
    let before = movie(vec![track(1, AVC, Vec::new(), small())]);
    let after = index_bytes(&write_alias(&before, "/media/film.mp4").unwrap()).unwrap();
    assert_eq!(after.external_media.as_deref(), Some("/media/film.mp4"));
    assert_eq!(after.tracks, before.tracks);
    assert!(write_alias(&before, &"x".repeat(70_000)).is_err());
}

#[test]
fn units_of_pcm_are_not_grouped_again() {
    let rows = [(0, 1200, 600, 0, true), (1200, 400, 200, 0, true), (1600, 1000, 500, 0, true), (5000, 2, 1, 0, true)];
    for rows in [&rows[..], &rows[..1], &rows[1..]] {
        let before = movie(vec![track(1, PCM, Vec::new(), table(rows))]);
        let after = index_bytes(&write(&before, "film.mov").unwrap()).unwrap();
        assert_eq!(after.tracks, before.tracks);
    }
}

#[test]
fn a_late_first_fragment_becomes_an_empty_edit() {
    let mut builder = SampleTable::builder();
    builder.set_start_dts(5000);
    builder.push(0, 10, 40, 0, true);
    builder.push(10, 10, 40, 0, true);
    let samples = builder.finish();
    let rewritten = |edits: &[Edit]| {
        let movie = movie(vec![track(1, AAC, edits.to_vec(), samples.clone())]);
        let spans = crate::movie::edits::spans(&movie.tracks[0], movie.timescale);
        let after = index_bytes(&write(&movie, "film.mp4").unwrap()).unwrap();
        let now = crate::movie::edits::spans(&after.tracks[0], after.timescale);
        assert_eq!(now.len(), spans.len());
        for (now, then) in now.iter().zip(&spans) {
            assert_eq!((&now.samples, now.shift), (&then.samples, then.shift + 5000));
        }
        after.tracks[0].edits.clone()
    };
    let wait = Edit { duration: 5000, media_time: None };
    assert_eq!(rewritten(&[]), [wait, Edit { duration: 80, media_time: Some(0) }]);
    assert_eq!(
        rewritten(&[Edit { duration: 0, media_time: Some(5010) }]),
        [Edit { duration: 70, media_time: Some(10) }]
    );
}

#[test]
fn a_sample_entry_that_is_none_is_an_error() {
    let mut broken = track(1, AAC, Vec::new(), small());
    broken.sample_entry.truncate(10);
    assert_eq!(write(&movie(vec![broken]), "x").unwrap_err().path(), "moov/trak[1]");
}

#[test]
fn tracks_without_a_sample_entry_are_left_out() {
    let mut text = track(2, AAC, Vec::new(), small());
    text.sample_entry.clear();
    let both = movie(vec![track(1, AAC, Vec::new(), small()), text.clone()]);
    let left: Vec<u32> = left_out(&both).iter().map(|track| track.id).collect();
    assert_eq!(left, [2]);
    assert_eq!(index_bytes(&write(&both, "x").unwrap()).unwrap().tracks.len(), 1);
    let error = write(&movie(vec![text]), "x").unwrap_err().to_string();
    assert!(error.contains("found 1 tracks without a sample entry"), "{error}");
}

proptest! {
    #[test]
    fn any_table_reads_the_same(rows in proptest::collection::vec(
        (0_u64..1 << 33, 0_u32..3000, 0_u32..0x7fff_ffff, any::<i32>(), any::<bool>()), 1..200,
    ), chained in any::<bool>()) {
        let mut rows = rows;
        let mut end = 0;
        for row in &mut rows {
            if chained {
                row.0 = end;
            }
            end = row.0 + u64::from(row.1);
        }
        // For an empty sync table the first sample counts as a sync sample.
        rows[0].4 = true;
        let before = movie(vec![track(1, AVC, Vec::new(), table(&rows))]);
        let after = index_bytes(&write(&before, "film.mp4").unwrap()).unwrap();
        prop_assert_eq!(&after.tracks[0].samples, &before.tracks[0].samples);
    }
}
