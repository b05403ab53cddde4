//! Hostile movies by name: some once stopped the server, the others claim as much as the limits admit.

use crate::{
    Fragments, HostileFragment, MovieRecipe, SegmentIndex, TableRecipe, TrackMedia, TrackRecipe, movie::SparseObject,
};
use std::{
    io::{self, Write as _},
    path::Path,
};

const MILLIONS: u32 = 1 << 24;

/// A file name and the function that describes the movie under it.
pub type Named = (&'static str, fn() -> MovieRecipe);

/// The whole catalogue. The names end with `.mp4`.
pub const ALL: [Named; 13] = [
    ("edits.mp4", || edits(1, 10_000)),
    ("constant_sizes.mp4", || constant(MILLIONS, 40)),
    ("tracks.mp4", || edits(10_000, 0)),
    ("empty_samples.mp4", empty_samples),
    ("zero_durations.mp4", || constant(MILLIONS, 0)),
    ("alternating_durations.mp4", alternating_durations),
    ("nested_sidx.mp4", nested_sidx),
    ("most_samples.mp4", || constant(2_000_000, 40)),
    ("most_short_samples.mp4", || constant(2_000_000, 0)),
    ("most_segments.mp4", || constant(2_000_000, 5000)),
    ("most_edits.mp4", || edits(1, 1000)),
    ("most_tracks.mp4", || edits(250, 4)),
    ("many_fragments.mp4", many_fragments),
];

/// Writes the whole catalogue into `folder`, as sparse files.
///
/// # Errors
/// The system can't create or write a file.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the only function of this crate that writes files"
)]
pub fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, movie) in ALL {
        let SparseObject { head, len } = movie().object();
        let mut file = std::fs::File::create(folder.join(name))?;
        file.write_all(&head)?;
        file.set_len(len)?;
    }
    Ok(())
}

/// One track of `count` samples of one byte and `duration` ms each: tables of a hundred bytes in a sparse file.
fn constant(count: u32, duration: u32) -> MovieRecipe {
    MovieRecipe::new(
        vec![TrackRecipe::new(1, TrackMedia::Video, TableRecipe::constant(count, 1, duration))],
        u64::from(count) + 4096,
    )
}

/// Tracks of 1,000 samples. Each has `edits` edits, which jump back and forth.
fn edits(tracks: u32, edits: u32) -> MovieRecipe {
    let track = |id| {
        let edits = (0..edits).map(|n| (40_000, (n % 7 * 40) as i32)).collect();
        TrackRecipe { edits, ..TrackRecipe::new(id, TrackMedia::Video, TableRecipe::constant(1000, 1, 40)) }
    };
    MovieRecipe::new((1..=tracks).map(track).collect(), 1 << 20)
}

/// Durations of zero ticks and of weeks in turn.
fn alternating_durations() -> MovieRecipe {
    let times = (0..100_000).map(|n| (1, n % 2 * 0x7fff_ffff)).collect();
    let tables = TableRecipe { times, ..TableRecipe::constant(100_000, 1, 0) };
    MovieRecipe::new(vec![TrackRecipe::new(1, TrackMedia::Video, tables)], 1 << 20)
}

fn fragmented(fragments: Fragments) -> MovieRecipe {
    let tracks = vec![TrackRecipe::new(1, TrackMedia::Video, TableRecipe::empty())];
    MovieRecipe { fragments: Some(fragments), ..MovieRecipe::new(tracks, 1 << 20) }
}

/// Runs that claim samples of zero bytes.
fn empty_samples() -> MovieRecipe {
    let fragment =
        HostileFragment { track: 1, time: Some(0), duration: 1, size: 0, runs: 1, claimed: MILLIONS, fields: 0 };
    fragmented(Fragments { fragments: vec![fragment; 100], ..Fragments::default() })
}

/// Fragments of one sample of a second each, without an index of the fragments.
fn many_fragments() -> MovieRecipe {
    let fragment = |number: u64| HostileFragment {
        track: 1,
        time: Some(number * 1000),
        duration: 1000,
        size: 1,
        runs: 1,
        claimed: 1,
        fields: 0,
    };
    fragmented(Fragments { fragments: (0..20_000).map(fragment).collect(), ..Fragments::default() })
}

/// Segment indexes that refer to further segment indexes.
fn nested_sidx() -> MovieRecipe {
    let index = SegmentIndex { first: 0, references: 2, size: 56 };
    fragmented(Fragments { indexes: vec![index; 20_000], ..Fragments::default() })
}
