//! Hostile movies through the indexer, a presentation and every output: a run over the steps that the bytes justify is
//! a crash.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_hostile::{OutputError, SparseObject, outputs};
use millpond_media::{MediaError, Work, WorkError};
use millpond_package::PackageError;

fuzz_target!(|bytes: &[u8]| {
    // The first two bytes say how long the object is behind the bytes that are there: sparse files claim the most.
    let Some((sparse, head)) = bytes.split_first_chunk::<2>() else { return };
    let len = head.len() as u64 + (u64::from(u16::from_be_bytes(*sparse)) << 16);
    let object = SparseObject { head: head.to_vec().into(), len };
    let steps = outputs::justified_steps(head.len() as u64);
    match outputs::run(&object, &Work::new(steps), &mut |_| ()) {
        Err(OutputError::Media(MediaError::Work { error: WorkError::Exhausted { .. }, path, offset })) => {
            panic!("{path} at byte {offset}: more than {steps} steps for {} bytes", head.len());
        }
        Err(OutputError::Package(PackageError::Work(WorkError::Exhausted { .. }))) => {
            panic!("presentation: more than {steps} steps for {} bytes", head.len());
        }
        _ => {}
    }
});
