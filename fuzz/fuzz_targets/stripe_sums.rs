//! Checksums of striped files: strange, shortened and damaged ones are refused, and whole ones find a damaged unit.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_store::{Layout, SumPage, SumTable, SumWriter};

/// Verifies all checksums of an object.
fn pages(table: &SumTable, sums: &Bytes, root: &str) -> Option<Vec<SumPage>> {
    let part = |start: u64, end: u64| sums.slice((start as usize).min(sums.len())..(end as usize).min(sums.len()));
    let head = table.head(part(0, table.head_length()), root).ok()?;
    let page = |page| {
        let range = table.page_range(page);
        head.page(page, part(range.start, range.end)).ok()
    };
    (0..table.pages()).map(page).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((choices, pattern)) = input.split_first_chunk::<9>() else { return };
    let unit = 65_536 + 2 * u64::from(u16::from_le_bytes([choices[2], choices[3]]));
    let at = u32::from_le_bytes([choices[4], choices[5], choices[6], choices[7]]) as usize;
    let mask = choices[8] | 1;
    let length = 8 * usize::from(u16::from_le_bytes([choices[0], choices[1]]));
    let object: Vec<u8> = pattern.iter().chain(&[0]).copied().cycle().take(length).collect();

    let layout = Layout::new(length as u64, unit, 3, 1).expect("a layout");
    let table = SumTable::new(layout).expect("a table");
    let mut writer = SumWriter::new(table);
    object.chunks(unit as usize).for_each(|unit| writer.add(unit));
    let (sums, root) = writer.finish();
    assert_eq!(sums.len() as u64, table.length());
    let found = pages(&table, &sums, &root).expect("its own checksums");

    // A strange object, a shortened one and a damaged one.
    let strange = Bytes::copy_from_slice(input);
    assert!(length == 0 || strange.starts_with(&sums) || pages(&table, &strange, &root).is_none());
    if !sums.is_empty() {
        let mut damaged = sums.to_vec();
        damaged[at % sums.len()] ^= mask;
        assert_eq!(pages(&table, &damaged.into(), &root), None);
        assert_eq!(pages(&table, &sums.slice(..at % sums.len()), &root), None);
    }
    assert_eq!(found.first().and_then(|page| page.unit(layout.units())), None);
    for (number, bytes) in (0..).zip(object.chunks(unit as usize)) {
        let of = found[table.page_of(number) as usize].unit(number).expect("a unit's checksums");
        assert_eq!((of.length(), of.verify(bytes)), (bytes.len() as u64, Ok(())));
        let mut damaged = bytes.to_vec();
        let place = at % damaged.len();
        damaged[place] ^= mask;
        assert_eq!(of.verify(&damaged).map_err(|bad| bad.block), Err(place as u64 / 65_536));
    }
});
