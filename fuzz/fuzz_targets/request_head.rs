//! Request heads: nothing panics, and a head is the same whatever follows it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| millpond_server::fuzzing::request_head(bytes));
