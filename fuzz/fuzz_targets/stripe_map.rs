//! Maps of striped objects: what parses is within limits, is written back as it was read, and its pieces cover its bytes.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_store::StripeMap;

fuzz_target!(|text: &[u8]| {
    let Ok(map) = StripeMap::parse(text) else { return };
    assert_eq!(StripeMap::parse(map.write().as_bytes()).as_ref(), Ok(&map));
    let layout = map.layout();
    let near_end = layout.length().saturating_sub(3 * layout.unit());
    for (start, end) in [(0, 5 * layout.unit()), (near_end, u64::MAX)] {
        let (mut at, mut pieces) = (start, 0);
        while let Some(piece) = layout.first(&(at..end)) {
            assert!(piece.unit < layout.units() && piece.range.end <= layout.unit());
            assert_eq!(layout.bytes(piece.unit).start + piece.range.start, at);
            assert!(layout.stores_of(piece.unit).all(|store| store < map.stores().len()));
            assert_eq!(layout.stores_of(piece.unit).count(), layout.copies());
            let path = map.unit_path(piece.unit).expect("a path");
            assert_eq!(path.components().count(), 2);
            at += piece.range.end - piece.range.start;
            pieces += 1;
        }
        assert!(pieces <= 6 && at == end.min(layout.length()).max(start));
    }
});
