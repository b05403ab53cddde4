//! Indexes of ring files: payloads lie one behind the other, within the data file.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_store::ring::found;

fuzz_target!(|bytes: &[u8]| {
    let [number, length, index @ ..] = bytes else { return };
    let most = u64::from(*length) << 10;
    let all = found(u32::from(*number), index, most);
    assert!(all.len() <= index.len() / 128);
    assert!(all.iter().map(|found| u64::from(found.place.length())).sum::<u64>() <= most);
});
