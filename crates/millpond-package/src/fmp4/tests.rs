use super::*;
use crate::{
    plan::Plan,
    presentation::{Presentation, track::PresentedTrack},
    testing::{self, Made, frames, movie, presentation, reordered, table},
};
use millpond_media::{
    Orientation, Work, index_bytes,
    movie::{Edit, Movie, TrackKind},
};
use proptest::prelude::*;

/// Reads back the init segment and all segments of a track.
fn read_back(p: &Presentation, t: &PresentedTrack) -> Movie {
    let mut file = init(p, t).to_vec();
    for n in 1..=t.segment_count() {
        file.extend(testing::bytes(segment(p, t, n).unwrap()));
    }
    index_bytes(&file).unwrap()
}

/// Checks that the samples read back are those presented.
fn assert_same(p: &Presentation, t: &PresentedTrack) {
    let back = read_back(p, t);
    let [track] = &back.tracks[..] else { panic!("{} tracks", back.tracks.len()) };
    let early = track.edits.first().map_or(0, |e| e.media_time.unwrap());
    let clock = clock::Clock::of(t.media().unwrap());
    let expected: Vec<_> = t.all_samples().collect();
    assert_eq!(track.samples.len() as usize, expected.len());
    // Preroll that kept its time gets a finer clock when it is read.
    let finer = i64::from(track.timescale.get() / clock.timescale().get());
    assert_eq!(i64::from(track.timescale.get()), finer * i64::from(clock.timescale().get()));
    for (found, expected) in track.samples.iter().zip(&expected) {
        assert_eq!(found.pts() - early, finer * clock.at(expected.pts), "sample {}", expected.ordinal);
        assert_eq!(
            found.dts - early,
            finer * (clock.at(expected.dts) - clock.reorder()),
            "sample {}",
            expected.ordinal
        );
        assert_eq!(found.range.len(), expected.sample.range.len());
        assert_eq!(found.sync, expected.sample.sync, "sample {}", expected.ordinal);
        assert!(found.composition >= 0);
    }
    assert_eq!(track.codec, *t.codec().unwrap());
    assert_eq!(track.kind, t.source_track().unwrap().kind);
}

fn edit(duration: u64, media_time: i64) -> Edit {
    Edit { duration, media_time: Some(media_time) }
}

#[test]
fn reordered_video_comes_back_with_its_times() {
    let film = movie(vec![testing::video(table(&reordered(250, 25, 1000), 48, 0), 12_800, vec![edit(10_000, 512)])]);
    let p = presentation(vec![film]);
    let v = p.track("v1").unwrap();
    assert_eq!(v.segment_count(), 3, "4 s, 4 s, 2 s");
    assert_eq!(v.all_samples().map(|t| t.pts).min(), Some(0));
    assert_same(&p, v);
}

#[test]
fn hidden_pictures_are_a_nanosecond_apart() {
    for start in [30, 110] {
        let edits = vec![edit(0, 512 * start)];
        let film = movie(vec![testing::video(table(&reordered(250, 25, 1000), 48, 0), 12_800, edits)]);
        let p = presentation(vec![film]);
        let v = p.track("v1").unwrap();
        assert_same(&p, v);
        let [squeezed] = v.media().unwrap().timeline.squeezed().collect::<Vec<_>>()[..] else { panic!("no preroll") };
        let track = &read_back(&p, v).tracks[0];
        assert_eq!(track.timescale.get(), 1_000_000_000);
        let start = squeezed.window.0 * 78_125 + track.edits[0].media_time.unwrap();
        let mut times: Vec<i64> = track.samples.iter().map(|s| s.pts() - start).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), track.samples.len() as usize, "times differ");
        let hidden = squeezed.window.1 - squeezed.window.0;
        assert!(hidden > 3);
        let near: Vec<i64> = times.into_iter().filter(|time| (0..1000).contains(time)).collect();
        assert_eq!(near, (0..=hidden).collect::<Vec<_>>(), "the first picture is within a microsecond");
    }
}

#[test]
fn hidden_pictures_of_later_edits_are_a_nanosecond_apart() {
    let edits = vec![edit(2000, 512), edit(2000, 512 * 110)];
    let film = movie(vec![testing::video(table(&reordered(250, 25, 1000), 48, 0), 12_800, edits)]);
    let p = presentation(vec![film]);
    let v = p.track("v1").unwrap();
    assert_same(&p, v);
    let track = &read_back(&p, v).tracks[0];
    assert_eq!(track.timescale.get(), 1_000_000_000);
    let start = 2_000_000_000 + track.edits[0].media_time.unwrap();
    let near = track.samples.iter().filter(|sample| (0..1000).contains(&(sample.pts() - start))).count();
    assert_eq!(near, 10, "nine hidden pictures and the first of the edit");
}

#[test]
fn priming_is_taken_off_by_an_edit_list() {
    let p = presentation(vec![movie(vec![testing::audio(table(&frames(500), 48, 100), "eng", vec![edit(0, 2112)])])]);
    let a = p.track("a1").unwrap();
    assert_eq!(a.all_samples().next().unwrap().pts, -2112);
    assert_eq!(a.segment(1).unwrap().start, 0);
    assert_same(&p, a);
    let back = read_back(&p, a);
    assert_eq!(back.tracks[0].edits[0].media_time, Some(2112));
    assert_eq!(back.tracks[0].language, "eng");
}

#[test]
fn rotation_and_pixel_aspect_come_back() {
    for orientation in
        [0, 90, 180, 270].map(Orientation::rotated).into_iter().flat_map(|turned| [turned, turned.mirrored()])
    {
        let mut track = testing::video(table(&reordered(25, 25, 100), 48, 0), 12_800, Vec::new());
        track.kind = TrackKind::Video { width: 640, height: 360, orientation, pixel_aspect: (1, 1) };
        let p = presentation(vec![movie(vec![track])]);
        assert_same(&p, p.track("v1").unwrap());
    }
}

#[test]
fn adjacent_samples_are_one_range() {
    let apart = |gap| {
        let p = presentation(vec![movie(vec![testing::audio(table(&frames(100), 48, gap), "eng", Vec::new())])]);
        let Some(Plan::Items(parts)) = segment(&p, p.track("a1").unwrap(), 1) else { panic!("no parts") };
        parts.len()
    };
    assert_eq!(apart(0), 2, "head and one range");
    assert_eq!(apart(1), 101, "head and one range a frame");
}

#[test]
fn columns_that_do_not_vary_are_left_out() {
    let same = [Made { size: 400, duration: 1024, composition: 0, sync: true }; 100];
    let p = presentation(vec![movie(vec![testing::audio(table(&same, 0, 0), "eng", Vec::new())])]);
    let Some(Plan::Items(parts)) = segment(&p, p.track("a1").unwrap(), 1) else { panic!("no parts") };
    assert_eq!(parts[0].len(), 132, "no row takes a byte");
}

#[test]
fn no_segment_beyond_the_ends() {
    let p = presentation(vec![movie(vec![testing::audio(table(&frames(100), 48, 0), "eng", Vec::new())])]);
    let a = p.track("a1").unwrap();
    assert!(segment(&p, a, 0).is_none() && segment(&p, a, 2).is_none() && segment(&p, a, u32::MAX).is_none());
    assert!(iframe(&p, a, 0).is_none());
}

#[test]
fn parameter_sets_precede_key_frames_of_joined_clips() {
    let track = testing::video(table(&reordered(100, 25, 900), 48, 0), 12_800, Vec::new());
    let p = presentation(vec![movie(vec![testing::joined(track, 25, 60)])]);
    let v = p.track("v1").unwrap();
    let (first, second) = (4 + 4 + 4 + 2, 4 + 4 + 4 + 9);
    let mut sizes = Vec::new();
    for n in 1..=v.segment_count() {
        let mut file = init(&p, v).to_vec();
        file.extend(testing::bytes(segment(&p, v, n).unwrap()));
        sizes.extend(index_bytes(&file).unwrap().tracks[0].samples.iter().map(|sample| sample.range.len()));
    }
    let own: Vec<u64> = v.source_track().unwrap().samples.iter().map(|sample| sample.range.len()).collect();
    let added = (0..).zip(sizes.iter().zip(&own)).map(|(n, (size, own))| (n, size - own));
    let added: Vec<_> = added.filter(|(_, added)| *added > 0).collect();
    assert_eq!(added, [(0, first), (25, second), (50, second), (60, first), (75, first)]);
    for (n, added) in [(1, first), (2, second), (3, second), (4, first)] {
        let mut file = init(&p, v).to_vec();
        file.extend(testing::bytes(iframe(&p, v, n).unwrap()));
        for file in [file, testing::bytes(still(&p, v, n).unwrap())] {
            let track = &index_bytes(&file).unwrap().tracks[0];
            assert_eq!(track.samples.total_bytes(), 900 + added, "{n}");
        }
    }
}

#[test]
fn pictures_for_trick_play_are_single_sync_samples() {
    let p = presentation(vec![movie(vec![testing::video(table(&reordered(100, 25, 900), 48, 0), 12_800, Vec::new())])]);
    let v = p.track("v1").unwrap();
    for n in 1..=4 {
        let mut file = init(&p, v).to_vec();
        file.extend(testing::bytes(iframe(&p, v, n).unwrap()));
        let back = index_bytes(&file).unwrap();
        let samples: Vec<_> = back.tracks[0].samples.iter().collect();
        assert_eq!((samples.len(), samples[0].sync, samples[0].range.len()), (1, true, 900));
        assert_eq!(samples[0].duration, 12_800);
    }
    assert!(iframe(&p, v, 5).is_none());
}

#[test]
fn a_still_is_a_file_of_one_sample_at_time_0() {
    let p = presentation(vec![
        movie(vec![testing::video(table(&reordered(100, 25, 900), 48, 0), 12_800, vec![edit(10_000, 512)])]),
        movie(vec![testing::audio(table(&frames(100), 48, 0), "eng", Vec::new())]),
    ]);
    let v = p.track("v1").unwrap();
    for n in 1..=4 {
        let back = index_bytes(&testing::bytes(still(&p, v, n).unwrap())).unwrap();
        let [track] = &back.tracks[..] else { panic!("{} tracks", back.tracks.len()) };
        let samples: Vec<_> = track.samples.iter().collect();
        assert_eq!((samples.len(), samples[0].sync, samples[0].range.len()), (1, true, 900));
        assert_eq!((samples[0].pts(), track.edits.len(), track.codec == *v.codec().unwrap()), (0, 0, true));
    }
    assert!(still(&p, v, 0).is_none() && still(&p, v, 5).is_none());
    assert!(still(&p, p.track("a1").unwrap(), 1).is_none());
}

#[test]
fn a_segment_beyond_4_gib_has_a_large_mdat() {
    let huge = [Made { size: u32::MAX, duration: 1024, composition: 0, sync: true }; 2];
    let p = presentation(vec![movie(vec![testing::audio(table(&huge, 0, 0), "eng", Vec::new())])]);
    let Some(Plan::Items(parts)) = segment(&p, p.track("a1").unwrap(), 1) else { panic!("no parts") };
    let crate::plan::PlanItem::Bytes(head) = &parts[0] else { panic!("no head") };
    let mdat = &head[head.len() - 16..];
    assert_eq!(mdat[..8], *b"\0\0\0\x01mdat");
    assert_eq!(mdat[8..], (2 * u64::from(u32::MAX) + 16).to_be_bytes());
}

fn made() -> impl Strategy<Value = Made> {
    (1..2000_u32, 1..4000_u32, -3000..9000_i32, prop::bool::weighted(0.2))
        .prop_map(|(size, duration, composition, sync)| Made { size, duration, composition, sync })
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let one = (0..20_000_u64, prop::option::weighted(0.8, 0..200_000_i64));
    prop::collection::vec(one.prop_map(|(duration, media_time)| Edit { duration, media_time }), 0..4)
}

proptest! {
    #[test]
    fn any_track_comes_back(
        video in prop::collection::vec(made(), 1..300),
        sound in prop::collection::vec((1..500_u32, 1..3000_u32), 1..300),
        edits in (edits(), edits()),
        timescale in prop::sample::select(vec![1_u32, 25, 1000, 12_800, 90_000, 10_000_000]),
    ) {
        let mut video = video;
        video[0].sync = true;
        let sound: Vec<Made> =
            sound.into_iter().map(|(size, duration)| Made { size, duration, composition: 0, sync: true }).collect();
        let film = movie(vec![
            testing::video(table(&video, 48, 3), timescale, edits.0),
            testing::audio(table(&sound, 1 << 20, 0), "deu", edits.1),
        ]);
        let source = crate::SourceObject::new(film, "film.mp4".into());
        let Ok(p) = Presentation::build(vec![source], Vec::new(), &crate::PresentationOptions::default(), &Work::unlimited()) else { return Ok(()) };
        for t in p.tracks() {
            let times: Vec<i64> = t.all_samples().map(|s| s.dts).collect();
            prop_assert!(times.windows(2).all(|w| w[0] < w[1]), "decode times rise");
            prop_assert!(t.segments().times().windows(2).all(|w| w[0] < w[1]), "boundaries rise");
            let mut next = 0;
            for s in t.segments().iter() {
                prop_assert_eq!(s.samples.start, next);
                prop_assert!(s.samples.end > next, "no empty segment");
                next = s.samples.end;
            }
            prop_assert_eq!(next as usize, times.len());
            assert_same(&p, t);
        }
    }
}
