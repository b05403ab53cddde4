//! The order of the modules: each imports only those of later rows. So no two of them import each other.

use millpond_walls::{Rows, Walls};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: Rows = &[
    &["stitch"],
    &["index"],
    &["avi_file"],
    &["flv_file", "sound_file", "ts_file"],
    &["matroska", "mp4", "scan"],
    &["flv", "movie", "ts"],
    &["codec"],
    &["protection", "recorded", "teletext"],
    &["budget"],
    &["boxes"],
    &["error", "lost", "window"],
    &["bits", "extensions", "foreign", "programme", "units", "unread", "work"],
];

fn walls() -> Walls {
    Walls::of(env!("CARGO_MANIFEST_DIR"), ROWS)
}

#[test]
fn modules_import_only_those_of_later_rows() {
    walls().assert_order(150);
    walls().assert_named_from_root();
}

#[test]
fn each_module_stands_in_a_row() {
    walls().assert_complete();
}
