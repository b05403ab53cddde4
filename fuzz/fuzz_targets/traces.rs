//! Traces of the simulator: what is read can be played.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_lab::simulate::{replay, trace};
use millpond_store::policy::PolicyName;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for read in [trace::csv(&text), trace::log(&text), trace::oracle(bytes)] {
        let Ok(workload) = read else { continue };
        assert!(workload.visits.iter().all(|visit| visit.from <= visit.to && visit.to <= visit.len));
        // Whole objects: a visit is one request then, however long it says that its object is.
        let outcome = replay(&workload, 1 << 20, None, PolicyName::S3Fifo, |_| {});
        assert!(outcome.hits <= outcome.asks);
    }
});
