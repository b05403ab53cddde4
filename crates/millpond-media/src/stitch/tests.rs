use super::*;
use crate::{
    fixture::{AAC, AVC, HEVC, movie, track},
    movie::{Edit, edits::spans, sample_table::SampleTable},
};
use std::time::Duration;

/// A video of `seconds` at 25 pictures a second, a key frame each second, at offset `offset`.
fn pictures(seconds: u32, offset: u64) -> SampleTable {
    let mut table = SampleTable::builder();
    for number in 0..seconds * 25 {
        table.push(offset + u64::from(number) * 10, 10, 40, 0, number.is_multiple_of(25));
    }
    table.finish()
}

fn film(entry: &str, seconds: u32) -> Arc<Movie> {
    let mut sound = SampleTable::builder();
    for number in 0..seconds * 50 {
        sound.push(1 << 20 | u64::from(number), 1, 20, 0, true);
    }
    let edits = vec![Edit { duration: 0, media_time: Some(0) }];
    let mut video = track(1, AVC, edits.clone(), pictures(seconds, 100));
    if entry == HEVC {
        let hevc = crate::codec::parse_sample_entry(&crate::fixture::hex(HEVC), *b"vide", "stsd", 0).unwrap();
        (video.codec, video.sample_entry) = (hevc.codec, crate::fixture::hex(HEVC));
    }
    Arc::new(movie(vec![video, track(2, AAC, edits, sound.finish())]))
}

fn item(movie: &Arc<Movie>, object: u16, clip: Option<(u64, Option<u64>)>) -> StitchItem {
    let clip = clip.map_or_else(StitchClip::default, |(from, to)| StitchClip {
        from: Duration::from_millis(from),
        to: to.map(Duration::from_millis),
    });
    StitchItem { movie: movie.clone(), object, label: format!("{object}.mp4"), clip, is_stretch: false }
}

fn stitched(items: &[StitchItem]) -> Result<Movie, String> {
    stitch(items, &Work::unlimited()).map_err(|error| error.to_string())
}

#[test]
fn tracks_have_the_samples_of_all_items() {
    let (a, b) = (film(AVC, 4), film(AVC, 10));
    let movie = stitched(&[item(&a, 0, None), item(&b, 1, Some((2480, Some(5000)))), item(&a, 0, Some((3000, None)))]);
    let movie = movie.unwrap();
    assert_eq!(movie.duration, 7_520_000_000);
    let stitched = movie.stitched.clone().unwrap();
    assert_eq!((stitched.objects, stitched.split), (2, None));
    assert_eq!((movie.tracks.len(), movie.clips.len()), (2, 6));
    // The second item is decoded from its key frame at 2 s on.
    let video = &movie.tracks[0];
    assert_eq!(video.samples.len(), 100 + 75 + 25);
    let places: Vec<_> = video.samples.iter().map(|sample| Stitched::place(sample.range)).collect();
    assert_eq!((places[100].0, places[100].1.start), (1, 100 + 50 * 10));
    assert_eq!((places[175].0, places[175].1.start), (0, 100 + 75 * 10));
    let of_video = spans(video, movie.timescale);
    let times: Vec<_> = of_video.iter().map(|span| (span.samples.clone(), span.start, span.end)).collect();
    // The third item follows the second without a gap, as one span.
    assert_eq!(times, [(0..100, 0, 4000), (100..200, 4000, 7520)]);
    let second = &movie.clips[1];
    let of_second = spans(second, movie.timescale);
    assert_eq!((of_second.len(), of_second[0].start, of_second[0].end), (1, 4000, 6520));
    let shown = second.samples.iter().filter(|s| (4000..6520).contains(&(s.pts() + of_second[0].shift))).count();
    assert_eq!(shown, 63);
}

#[test]
fn items_of_other_codecs_are_clips_only() {
    let movie = stitched(&[item(&film(AVC, 4), 0, None), item(&film(HEVC, 4), 1, None)]).unwrap();
    let split = movie.stitched.unwrap().split.unwrap();
    assert!(split.starts_with("item 2 (1.mp4): found hvc1") && split.contains("expected avc1"), "{split}");
    assert_eq!((movie.tracks[0].samples.len(), movie.tracks[1].samples.len()), (100, 400));
    assert_eq!(movie.clips.len(), 4);
}

/// The movie without its sound.
fn silent(movie: &Arc<Movie>) -> Arc<Movie> {
    Arc::new(Movie { tracks: movie.tracks[..1].to_vec(), ..(**movie).clone() })
}

#[test]
fn a_track_pauses_for_as_long_as_an_item_lacks_it() {
    let (film, silent) = (film(AVC, 4), silent(&film(AVC, 4)));
    for lacking in 0..3 {
        let of = |place| if place == lacking { &silent } else { &film };
        let movie = stitched(&[item(of(0), 0, None), item(of(1), 1, None), item(of(2), 2, None)]).unwrap();
        let known = movie.stitched.as_deref().unwrap();
        assert_eq!((known.starts.as_slice(), movie.duration), (&[0, 4_000_000_000, 8_000_000_000][..], 12_000_000_000));
        let items = |id| movie.clips_of(id).map(|place| movie.item_of(place).unwrap()).collect::<Vec<_>>();
        let others: Vec<usize> = (0..3).filter(|place| *place != lacking).collect();
        assert_eq!((items(1), items(2)), (vec![0, 1, 2], others.clone()));
        assert_eq!((movie.item_of(0), movie.item_of(7)), (None, None), "tracks, and places beyond");
        let heard = spans(&movie.tracks[1], movie.timescale);
        let inside = |time: i64| heard.iter().any(|span| (span.start..span.end).contains(&time));
        for place in 0..3_i64 {
            let middle = i64::from(movie.tracks[1].timescale.get()) * (4 * place + 2);
            assert_eq!(
                inside(middle),
                others.contains(&usize::try_from(place).unwrap()),
                "item {place} without sound in {lacking}"
            );
        }
    }
}

#[test]
fn stretches_of_a_stream_begin_with_their_first_frame() {
    let first = film(AVC, 4);
    let mut later = (*first).clone();
    // Ten minutes after the time 0 of the edit lists; the sound 100 ms after the pictures.
    for (track, time) in later.tracks.iter_mut().zip([600_000, 600_100]) {
        let mut table = SampleTable::builder();
        table.set_start_dts(time);
        for sample in &track.samples {
            let size = u32::try_from(sample.range.len()).unwrap();
            table.push(sample.range.start, size, sample.duration, sample.composition, sample.sync);
        }
        track.samples = table.finish();
        track.edits = vec![Edit { duration: 0, media_time: Some(40) }];
    }
    let later = Arc::new(later);
    let stretch = |movie, object| StitchItem { is_stretch: true, ..item(movie, object, None) };
    let movie = stitched(&[stretch(&first, 0), stretch(&later, 1)]).unwrap();
    assert_eq!(movie.duration, 8_000_000_000);
    let begins = |clip: &Track| spans(clip, movie.timescale)[0].start;
    assert_eq!(movie.clips.iter().map(begins).collect::<Vec<_>>(), [0, 4000, 0, 4100]);
    // An empty edit before the media counts too.
    let mut waiting = (*later).clone();
    waiting.tracks[1].edits.insert(0, Edit { duration: 50, media_time: None });
    let movie = stitched(&[stretch(&first, 0), stretch(&Arc::new(waiting), 1)]).unwrap();
    assert_eq!(spans(&movie.clips[3], movie.timescale)[0].start, 4150);
}

#[test]
fn an_item_without_video_is_refused_wherever_it_is() {
    let film = film(AVC, 4);
    let sound = Arc::new(Movie { tracks: film.tracks[1..].to_vec(), ..(*film).clone() });
    for lacking in 0..3_u16 {
        let of = |place| item(if place == lacking { &sound } else { &film }, place, None);
        let error = stitched(&[of(0), of(1), of(2)]).unwrap_err();
        let other = if lacking == 0 { 1 } else { 0 };
        let why = format!(
            "item {} ({lacking}.mp4): found no video, expected video, as item {} ({other}.mp4) has",
            lacking + 1,
            other + 1
        );
        assert_eq!(error, why);
    }
}

#[test]
fn faults_name_the_item() {
    let film = film(AVC, 4);
    let refused = |clip| stitched(&[item(&film, 0, None), item(&film, 1, Some(clip))]).unwrap_err();
    let beyond = "item 2 (1.mp4): found the range 1s-40s, expected one between 0s and 4.000s, where the file ends";
    assert_eq!(refused((1000, Some(40_000))), beyond);
    assert!(refused((5000, None)).contains("5s-"));
    assert!(refused((3500, None)).contains("0.500 s to show, expected at least 1 s"));
    let sound = Arc::new(Movie { tracks: film.tracks[1..].to_vec(), ..(*film).clone() });
    let error = stitched(&[item(&film, 0, None), item(&sound, 1, None)]).unwrap_err();
    assert_eq!(error, "item 2 (1.mp4): found no video, expected video, as item 1 (0.mp4) has");
    assert_eq!(stitched(&[]).unwrap_err(), StitchError::Empty.to_string());
    let bounded = stitch(&vec![item(&film, 0, None); 1000], &Work::new(10_000));
    assert!(matches!(bounded, Err(StitchError::Work(_))));
}

#[test]
fn memory_is_bounded_before_it_is_taken() {
    let film = film(AVC, 400);
    for clip in [None, Some((100_000, Some(300_000)))] {
        let items = [item(&film, 0, clip), item(&film, 0, clip)];
        let movie = stitched(&items).unwrap();
        assert!(movie.heap_bytes() as u64 <= stitched_bytes(&items), "{clip:?}");
    }
}
