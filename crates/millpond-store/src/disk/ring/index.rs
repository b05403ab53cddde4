//! Reads the records of an index. Pure.

use super::record::{Entry, Found, SIZE};

/// Returns the records of the index of file `number`, whose data file has `data_length` bytes, up to the first bad one.
/// A good record has its payload right behind the one before, and within the data file.
pub(super) fn entries(number: u32, index: &[u8], data_length: u64) -> Vec<Entry> {
    let mut end = 0;
    let (records, _) = index.as_chunks::<SIZE>();
    let good = records.iter().map_while(|bytes| {
        let entry = Entry::decode(bytes)?;
        let place = entry.found.place;
        let is_next = place.file == number && place.offset == end && place.end() <= data_length;
        end = place.end();
        is_next.then_some(entry)
    });
    good.collect()
}

/// Returns the payloads that the index of file `number` names, beside a data file of `data_length` bytes.
pub fn found(number: u32, index: &[u8], data_length: u64) -> Vec<Found> {
    entries(number, index, data_length).into_iter().map(|entry| entry.found).collect()
}
