//! The order of the modules: each imports only those of later rows. So no two of them import each other.

use millpond_walls::{Rows, Walls};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: Rows = &[
    &["dash", "hls"],
    &["live"],
    &["manifest"],
    &["delivery", "fmp4"],
    &["presentation"],
    &["timeline"],
    &["text"],
    &["ts"],
    &["dash_manifest", "hls_playlist", "plan", "smil"],
    &["error", "pcm"],
    &["flac", "language", "object", "writing"],
];

fn walls() -> Walls {
    Walls::of(env!("CARGO_MANIFEST_DIR"), ROWS).with_tests(&["testing", "robustness"])
}

#[test]
fn modules_import_only_those_of_later_rows() {
    walls().assert_order(120);
    walls().assert_named_from_root();
}

#[test]
fn each_module_stands_in_a_row() {
    walls().assert_complete();
}
