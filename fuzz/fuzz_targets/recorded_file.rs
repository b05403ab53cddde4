//! Marks of recorded files, and the walk over files that were cut off.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::recorded::{END, FileHead, FileTail, FoundHead, FragmentWalk, HeadSearch, LONGEST_HEADER};

/// The bytes of a file at an offset, as many as a header has at most.
fn header(file: &[u8], at: u64) -> &[u8] {
    let rest = usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    &rest[..rest.len().min(LONGEST_HEADER as usize)]
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(head) = FileHead::parse(bytes) {
        assert_eq!(FileHead::parse(&head.write()), Some(head));
    }
    if let Some(tail) = FileTail::parse(bytes) {
        assert_eq!(FileTail::length(&bytes[bytes.len() - END as usize..]), Some(bytes.len() as u64));
        assert_eq!(FileTail::parse(&tail.write()), Some(tail));
    }
    let mut walk = FragmentWalk::new(bytes.len() as u64);
    let mut steps = 0;
    while walk.take(header(bytes, walk.at())) {
        steps += 1;
        // A box takes eight bytes at least.
        assert!(steps <= bytes.len() / 8);
    }
    assert!(walk.whole() <= walk.at() && walk.at() <= bytes.len() as u64);
    // A whole file is whole again.
    let whole = &bytes[..walk.whole() as usize];
    let mut again = FragmentWalk::new(whole.len() as u64);
    while again.take(header(whole, again.at())) {}
    assert_eq!((again.whole(), again.fragments()), (walk.whole(), walk.fragments()));
    let mut search = HeadSearch::default();
    for step in 0.. {
        assert!(step < 10);
        match search.take(header(bytes, search.at())) {
            FoundHead::GoOn => {}
            FoundHead::At(at, _) => {
                assert!(at < bytes.len() as u64);
                break;
            }
            FoundHead::None => break,
        }
    }
});
