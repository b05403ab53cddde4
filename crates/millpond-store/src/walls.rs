//! The order of the modules: each imports only those of later rows. So no two of them import each other.

use millpond_walls::{Rows, Walls, compact, production};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: Rows = &[
    &["build", "contents", "derived", "joined", "scattered"],
    &["store", "stripe", "uploading"],
    &["reading"],
    &["named_origin"],
    &["stats"],
    &["slices"],
    &["disk", "striping"],
    &["intervals", "origin", "purge_log"],
    &["error", "layout", "location", "scheduler", "selection"],
    &["memory"],
    &[
        "due",
        "freshness",
        "glob",
        "lookups",
        "path",
        "policy",
        "schedule",
        "single_flight",
        "slice",
        "speculation",
        "tags",
        "trace",
    ],
    &["url_text", "version", "waits"],
];

/// Words that no module of the store names: schemes and titles are known above it.
const STRANGERS: [&str; 4] = ["rtsp", "udp://", "publish:", "Titles"];

fn walls() -> Walls {
    Walls::of(env!("CARGO_MANIFEST_DIR"), ROWS).with_tests(&["conformance", "floods", "listings", "test_server"])
}

#[test]
fn modules_import_only_those_of_later_rows() {
    walls().assert_order(100);
    walls().assert_named_from_root();
}

#[test]
fn each_module_stands_in_a_row() {
    walls().assert_complete();
}

#[test]
fn the_store_knows_no_live_streams_and_no_titles() {
    let known = walls().all_sources().into_iter().flat_map(|path| {
        let code = compact(&production(&path));
        STRANGERS.into_iter().filter(move |word| code.contains(word)).map(move |word| (word, path.clone()))
    });
    assert_eq!(known.collect::<Vec<_>>(), []);
}
