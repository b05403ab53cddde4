//! `Range` and conditional fields: every range lies inside the body. Input: lines, the first a length.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let len = lines.next().and_then(|line| line.parse().ok()).unwrap_or(100);
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    millpond_server::fuzzing::range_and_conditions(&fields, len);
});
