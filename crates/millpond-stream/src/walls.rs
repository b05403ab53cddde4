//! The order of the modules: each imports only those of later rows.

use millpond_walls::{Rows, Walls};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: Rows = &[
    &["manager"],
    &["streams"],
    &["modules"],
    &["pushing", "remote"],
    &["live", "reception"],
    &["transmission"],
    &["calling_webrtc"],
    &["graph", "resources"],
    &["report", "stored"],
    &["clock", "feed", "fragmenter", "splice"],
    &["cannot_open", "counters", "epoch", "flv_stream", "lead", "notice", "transport_stream"],
    &[
        "admission",
        "broadcast",
        "cues",
        "dropping",
        "format",
        "frame",
        "kind",
        "multicast",
        "outlet",
        "registry",
        "source_health",
        "strain",
        "ticks",
        "web",
    ],
];

fn walls() -> Walls {
    Walls::of(env!("CARGO_MANIFEST_DIR"), ROWS)
}

#[test]
fn modules_import_only_those_of_later_rows() {
    walls().assert_order(300);
    walls().assert_named_from_root();
}

#[test]
fn each_module_stands_in_a_row() {
    walls().assert_complete();
}
