//! Each hostile movie is answered or refused within a second of CPU time, 64 MiB, and the steps that its bytes justify.

mod avi;
mod matroska;
mod measure;
mod ogg;
mod scanned;

use measure::{Outcome, alone, measured};
use millpond_hostile::{
    Fragments, HostileFragment, MovieRecipe, OutputError, SegmentIndex, Sizes, TableRecipe, TrackMedia, TrackRecipe,
};
use millpond_media::{MediaError, Work, WorkError};

/// 1,000 pictures with a key frame every ten.
fn film() -> TableRecipe {
    let sync = (0..100).map(|n| n * 10 + 1).collect();
    TableRecipe { sync: Some(sync), ..TableRecipe::constant(1000, 100, 40) }
}

fn refused_as(outcome: &Outcome, what: &str) {
    let error = match &outcome.result {
        Err(OutputError::Media(error)) => error.to_string(),
        Err(OutputError::Package(error)) => error.to_string(),
        Ok(_) => panic!("answered, expected a refusal that names {what}"),
    };
    assert!(error.contains(what), "{error}");
}

#[test]
fn ten_thousand_edits_over_a_thousand_samples() {
    let _alone = alone();
    for (name, edits) in [
        ("a picture each", (0..10_000).map(|n| (40, n % 1000 * 40)).collect::<Vec<_>>()),
        ("back and forth", (0..10_000).map(|n| (40, if n % 2 == 0 { 0 } else { 39_000 })).collect()),
        ("half of the film each", (0..10_000).map(|n| (20_000, n % 7 * 40)).collect()),
        ("all of the film each", vec![(40_000, 0); 10_000]),
    ] {
        let mut track = TrackRecipe::new(1, TrackMedia::Video, film());
        track.edits = edits;
        let audio = TrackRecipe::new(2, TrackMedia::Audio, TableRecipe::constant(1875, 10, 21));
        measured(name, &MovieRecipe::new(vec![track, audio], 1 << 20).object());
    }
}

#[test]
fn edits_that_multiply_samples_are_refused_with_their_box() {
    let _alone = alone();
    let mut track = TrackRecipe::new(1, TrackMedia::Video, film());
    track.edits = vec![(40_000, 0); 10_000];
    let outcome = measured("all of the film each", &MovieRecipe::new(vec![track], 1 << 20).object());
    refused_as(&outcome, "moov/trak[1]/edts/elst at byte");
    refused_as(&outcome, "samples presented again by edits");
}

#[test]
fn edits_over_composition_times_that_hide_the_order() {
    let _alone = alone();
    let mut tables = TableRecipe::constant(1 << 20, 1, 1);
    tables.composition = vec![(1, i32::MIN), ((1 << 20) - 1, i32::MAX)];
    tables.sync = Some(vec![1, 2]);
    let mut track = TrackRecipe::new(1, TrackMedia::Video, tables);
    track.edits = (0..10_000).map(|n| (1, n * 100)).collect();
    measured("composition", &MovieRecipe::new(vec![track], 16 << 20).object());
}

#[test]
fn sparse_files_of_many_samples_in_few_bytes() {
    let _alone = alone();
    for (media, count, size) in [
        (TrackMedia::Video, 1 << 24, 1),
        (TrackMedia::Audio, 1 << 24, 1),
        (TrackMedia::Pcm, u32::MAX, 2),
        (TrackMedia::Text, 1 << 24, 1),
        (TrackMedia::Video, (1 << 21) - 1, 8),
        (TrackMedia::Audio, (1 << 21) - 1, 8),
        (TrackMedia::Text, (1 << 21) - 1, 8),
    ] {
        for duration in [0, 1, 40, 600, 8000, u32::MAX] {
            let video = TrackRecipe::new(1, TrackMedia::Video, film());
            let tracks = vec![video, TrackRecipe::new(2, media, TableRecipe::constant(count, size, duration))];
            measured(&format!("{media:?} {count} of {duration}"), &MovieRecipe::new(tracks, 16 << 20).object());
        }
        let alone = TrackRecipe::new(1, media, TableRecipe::constant(count, size, 40));
        measured(&format!("{media:?} {count} alone"), &MovieRecipe::new(vec![alone], 16 << 20).object());
    }
}

#[test]
fn samples_that_the_tables_do_not_justify_are_refused_with_their_box() {
    let _alone = alone();
    let track = TrackRecipe::new(1, TrackMedia::Video, TableRecipe::constant(1 << 24, 1, 40));
    let outcome = measured("2^24", &MovieRecipe::new(vec![track], 16 << 20).object());
    refused_as(&outcome, "moov/trak[1]/mdia/minf/stbl at byte");
    refused_as(&outcome, "samples, expected at most 2097696");
}

#[test]
fn renditions_that_are_all_key_frames() {
    let _alone = alone();
    for duration in [1, 500, 4000] {
        let tracks =
            (1..=8).map(|id| TrackRecipe::new(id, TrackMedia::Video, TableRecipe::constant(250_000, 1, duration)));
        measured("renditions", &MovieRecipe::new(tracks.collect(), 16 << 20).object());
    }
}

#[test]
fn ten_thousand_tracks() {
    let _alone = alone();
    for media in [TrackMedia::Video, TrackMedia::Audio, TrackMedia::Text] {
        let mut tracks: Vec<TrackRecipe> =
            (2..=10_000).map(|id| TrackRecipe::new(id, media, TableRecipe::constant(10, 1, 40_000))).collect();
        tracks.insert(0, TrackRecipe::new(1, TrackMedia::Video, film()));
        tracks.iter_mut().for_each(|track| track.name = "the same name".repeat(8));
        let outcome = measured(&format!("{media:?}"), &MovieRecipe::new(tracks, 1 << 20).object());
        assert!(outcome.result.is_ok(), "what is within the budget is answered: {:?}", outcome.result);
    }
}

#[test]
fn fragments_of_samples_without_bytes() {
    let _alone = alone();
    for (runs, claimed, fields) in [(1, u32::MAX, 0), (4000, 1024, 0), (20_000, 1024, 0), (10, u32::MAX, 1000)] {
        for duration in [0, 1, u32::MAX] {
            let fragment = HostileFragment { track: 1, time: Some(0), duration, size: 0, runs, claimed, fields };
            let mut movie = MovieRecipe::new(vec![TrackRecipe::new(1, TrackMedia::Video, TableRecipe::empty())], 0);
            let fragments = Fragments { fragments: vec![fragment; 3], ..Fragments::default() };
            movie.fragments = Some(fragments);
            measured(&format!("{runs} runs of {claimed}, {duration} ticks"), &movie.object());
        }
    }
}

#[test]
fn durations_of_zero() {
    let _alone = alone();
    for media in [TrackMedia::Video, TrackMedia::Audio, TrackMedia::Text] {
        let video = TrackRecipe::new(1, TrackMedia::Video, TableRecipe::constant(200_000, 1, 0));
        let mut mixed = TableRecipe::constant(200_000, 1, 0);
        mixed.times = (0..20_000).map(|n| (10, n % 2 * u32::MAX)).collect();
        for tables in [TableRecipe::constant(200_000, 1, 0), mixed] {
            let tracks = vec![video.clone(), TrackRecipe::new(2, media, tables)];
            measured(&format!("{media:?}"), &MovieRecipe::new(tracks, 1 << 20).object());
        }
    }
}

#[test]
fn indexes_that_lead_to_themselves() {
    let _alone = alone();
    let fragment = HostileFragment { track: 1, time: None, duration: 40, size: 1, runs: 1, claimed: 25, fields: 0 };
    for (indexes, references, size) in [(1, u16::MAX, 0), (300, 1000, 1), (2000, 8, 44), (40, u16::MAX, 8)] {
        for random_access in [None, Some((100_000, 1)), Some((100_000, 8))] {
            let index = SegmentIndex { first: 0, references, size };
            let mut movie = MovieRecipe::new(vec![TrackRecipe::new(1, TrackMedia::Video, TableRecipe::empty())], 0);
            movie.fragments = Some(Fragments {
                indexes: vec![index; indexes],
                fragments: vec![fragment.clone(); 100],
                junk: 1000,
                random_access,
            });
            measured(&format!("{indexes} of {references}, {random_access:?}"), &movie.object());
        }
    }
}

#[test]
fn boxes_that_hold_nothing() {
    let _alone = alone();
    let mut movie = MovieRecipe::new(vec![TrackRecipe::new(1, TrackMedia::Video, film())], 1 << 20);
    (movie.junk, movie.nesting) = (500_000, 10_000);
    let outcome = measured("junk", &movie.object());
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
}

#[test]
fn real_lengths_are_answered() {
    let _alone = alone();
    // 24 hours of video with sound, and five hours of AC-3 frames of one size in one chunk.
    let day = TableRecipe {
        sizes: Sizes::Each(vec![100; 24 * 3600 * 25]),
        sync: Some((0..24 * 3600).map(|n| n * 25 + 1).collect()),
        ..TableRecipe::constant(24 * 3600 * 25, 100, 40)
    };
    let sound = TableRecipe { sizes: Sizes::Each(vec![9; 4_050_000]), ..TableRecipe::constant(4_050_000, 9, 21) };
    let film = MovieRecipe::new(
        vec![TrackRecipe::new(1, TrackMedia::Video, day), TrackRecipe::new(2, TrackMedia::Audio, sound)],
        1 << 33,
    );
    let constant = TrackRecipe::new(1, TrackMedia::Audio, TableRecipe::constant(562_500, 1536, 32));
    let languages = (2..102).map(|id| TrackRecipe::new(id, TrackMedia::Audio, TableRecipe::constant(3000, 9, 21)));
    let dubbed = [TrackRecipe::new(1, TrackMedia::Video, self::film())].into_iter().chain(languages).collect();
    for movie in [film, MovieRecipe::new(vec![constant], 1 << 33), MovieRecipe::new(dubbed, 1 << 20)] {
        let answered = millpond_hostile::outputs::run(&movie.object(), &Work::unlimited(), &mut |_| ());
        assert!(answered.is_ok(), "{answered:?}");
    }
}

#[test]
fn a_cancelled_job_ends_at_its_next_step() {
    let _alone = alone();
    let object = MovieRecipe::new(vec![TrackRecipe::new(1, TrackMedia::Video, film())], 1 << 20).object();
    let work = Work::unlimited();
    work.cancel();
    let refused = millpond_hostile::outputs::run(&object, &work, &mut |_| ()).unwrap_err();
    let is_cancelled = matches!(&refused, OutputError::Media(MediaError::Work { error: WorkError::Cancelled, .. }));
    assert!(is_cancelled, "{refused:?}");
}

mod combinations;
