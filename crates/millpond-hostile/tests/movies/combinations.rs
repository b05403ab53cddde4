//! Hundreds of movies whose tables, edits, tracks and fragments are any combination of bad values.

use crate::measure::{alone, measured};
use millpond_hostile::{
    Fragments, HostileFragment, MovieRecipe, SegmentIndex, Sizes, TableRecipe, TrackMedia, TrackRecipe,
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(30), Just(1000), Just(100_000), Just(1 << 21), Just(1 << 24), Just(u32::MAX)]
}

fn ticks() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(40), Just(512), Just(4000), Just(90_000), Just(u32::MAX / 2), Just(u32::MAX)]
}

fn timescale() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), Just(1000), Just(90_000), Just(u32::MAX)]
}

fn media() -> impl Strategy<Value = TrackMedia> {
    prop_oneof![3 => Just(TrackMedia::Video), 2 => Just(TrackMedia::Audio), 1 => Just(TrackMedia::Pcm), 1 => Just(TrackMedia::Text)]
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let size = || prop_oneof![Just(0), Just(1), Just(2), Just(400), Just(1 << 20), Just(u32::MAX)];
    prop_oneof![
        6 => (size(), count()).prop_map(|(size, count)| Sizes::Constant { size, count }),
        3 => (size(), 0_usize..3000).prop_map(|(size, count)| Sizes::Each(vec![size; count])),
        1 => Just(Sizes::None),
    ]
}

fn sync() -> impl Strategy<Value = Option<Vec<u32>>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(vec![])),
        1 => Just(Some(vec![1])),
        1 => (1_u32..100).prop_map(|step| Some((0..1000).map(|n| n * step + 1).collect())),
        1 => vec(any::<u32>(), 0..100).prop_map(Some),
    ]
}

fn offset() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), Just(40), Just(i32::MIN), Just(i32::MAX), -1000_i32..1000]
}

fn tables() -> impl Strategy<Value = TableRecipe> {
    let runs = vec((0_u32..1000, count(), 0_u32..3), 0..8);
    let chunks = vec(prop_oneof![Just(0), Just(1 << 20), Just(u64::MAX)], 0..50);
    let columns = (vec((count(), ticks()), 0..60), vec((count(), offset()), 0..20), sync());
    (sizes(), columns, runs, chunks, option::weighted(0.2, count()), any::<bool>()).prop_map(
        |(sizes, (times, composition, sync), runs, chunks, claimed, regular)| {
            let count = match &sizes {
                Sizes::Constant { count, .. } => *count,
                Sizes::Each(sizes) => sizes.len() as u32,
                Sizes::None => 0,
            };
            let tables = TableRecipe { sizes, times, composition, sync, runs, chunks, claimed };
            // Contradictions end most tables early, so half of the movies get a chunk map that holds all samples.
            if regular {
                TableRecipe { runs: vec![(1, count, 1)], chunks: vec![0], claimed: None, ..tables }
            } else {
                tables
            }
        },
    )
}

fn edits() -> impl Strategy<Value = Vec<(u32, i32)>> {
    let edit = || (ticks(), prop_oneof![Just(-1), Just(0), Just(i32::MAX), 0_i32..100_000]);
    prop_oneof![
        3 => Just(Vec::new()),
        2 => vec(edit(), 1..40),
        1 => (vec(edit(), 1..5), 1_usize..3000).prop_map(|(edits, times)| edits.repeat(times)),
    ]
}

fn track() -> impl Strategy<Value = TrackRecipe> {
    let name = prop_oneof![Just(String::new()), Just("x".to_owned()), Just("n".repeat(5000))];
    (1_u32..5, media(), timescale(), edits(), name, tables()).prop_map(|(id, media, timescale, edits, name, tables)| {
        TrackRecipe { id, media, timescale, edits, name, tables }
    })
}

fn fragments() -> impl Strategy<Value = Fragments> {
    let time = option::of(prop_oneof![Just(0), Just(1 << 32), Just(u64::MAX >> 1), Just(u64::MAX)]);
    let size = prop_oneof![Just(0), Just(1), Just(1000), Just(u32::MAX)];
    let fragment = (1_u32..5, time, ticks(), size, 0_u32..100, count(), 0_u32..200).prop_map(
        |(track, time, duration, size, runs, claimed, fields)| HostileFragment {
            track,
            time,
            duration,
            size,
            runs,
            claimed,
            fields,
        },
    );
    let index = (prop_oneof![Just(0), Just(u32::MAX), 0_u32..1000], 0_u16..2000, 0_u32..100)
        .prop_map(|(first, references, size)| SegmentIndex { first, references, size });
    (vec(index, 0..10), vec(fragment, 0..20), 0_usize..1000, option::of((0_u32..10_000, 0_u32..100)))
        .prop_map(|(indexes, fragments, junk, random_access)| Fragments { indexes, fragments, junk, random_access })
}

fn movie() -> impl Strategy<Value = MovieRecipe> {
    let tracks = (vec(track(), 1..5), prop_oneof![16 => Just(1_usize), 3 => Just(100), 1 => Just(3000)]).prop_map(
        |(tracks, times)| {
            let mut all: Vec<TrackRecipe> = std::iter::repeat_n(tracks, times).flatten().collect();
            if times > 1 {
                all.iter_mut().zip(1..).for_each(|(track, id)| track.id = id);
                all.iter_mut().skip(100).for_each(|track| track.edits.truncate(10));
            }
            all
        },
    );
    let len = prop_oneof![Just(0), Just(1 << 20), Just(16 << 20), Just(1 << 40)];
    let junk = (prop_oneof![Just(0_usize), Just(10_000)], prop_oneof![Just(0_usize), Just(2000)]);
    (timescale(), tracks, junk, option::of(fragments()), len).prop_map(
        |(timescale, tracks, (junk, nesting), fragments, len)| MovieRecipe {
            timescale,
            tracks,
            junk,
            nesting,
            fragments,
            len,
        },
    )
}

#[test]
fn every_combination_is_answered_or_refused_in_bounds() {
    let _alone = alone();
    let config = ProptestConfig { cases: 256, max_shrink_iters: 30, failure_persistence: None, ..Default::default() };
    let measure = |movie: MovieRecipe| {
        measured("combination", &movie.object());
        Ok(())
    };
    // Each run makes the same combinations; the fuzz target `movie` searches for others.
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, random).run(&movie(), measure).unwrap();
}
