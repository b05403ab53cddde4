//! Slices of which only the beginning is fetched.

use super::*;

const PART: u64 = 16 * 1024;

#[tokio::test]
async fn an_object_is_opened_by_its_head_and_read_on_from_there() {
    let rig = Rig::new(SLICE * 3, false, options());
    let object = rig.store.open_head("p", &path(), PART).await.unwrap();
    assert_eq!(rig.store.read_all(&object, 0..PART).await.unwrap(), rig.content[..PART as usize]);
    settle().await;
    assert_eq!(rig.store.read_all(&object, 100..2000).await.unwrap(), rig.content[100..2000]);
    assert_eq!(read(&rig.store, &object, 0..SLICE + 10).await.unwrap(), rig.content[..SLICE as usize + 10]);
    assert_eq!(rig.origin.reads(), [0..PART, PART..SLICE * 2]);
    assert_eq!(read(&rig.store, &object, 0..SLICE * 2).await.unwrap(), rig.content[..SLICE as usize * 2]);
    assert_eq!(rig.origin.reads(), [0..0; 0], "the slices are whole now");
}

#[tokio::test]
async fn a_small_object_is_whole_after_its_head() {
    let rig = Rig::new(1000, false, options());
    let object = rig.store.open_head("p", &path(), PART).await.unwrap();
    settle().await;
    assert_eq!(read(&rig.store, &object, 0..1000).await.unwrap(), rig.content);
    assert_eq!(rig.origin.reads(), [0..PART]);
}

#[tokio::test]
async fn exact_ranges_follow_each_other_without_gap_or_overlap() {
    let rig = Rig::new(SLICE * 6, false, options());
    let object = rig.store.open_head("p", &path(), PART).await.unwrap();
    let ends = [PART, 50_000, 50_001, SLICE, SLICE + 5, 3 * SLICE - 1, 3 * SLICE + 77, 6 * SLICE];
    for pair in ends.windows(2) {
        let range = pair[0]..pair[1];
        rig.store.prefetch_exactly(&object, range.clone()).await;
        let found = read(&rig.store, &object, range.clone()).await.unwrap();
        assert!(found == rig.content[range.start as usize..range.end as usize], "{range:?}");
    }
    let mut reads = rig.origin.reads();
    reads.sort_by_key(|range| range.start);
    assert!(reads.windows(2).all(|pair| pair[0].end == pair[1].start), "{reads:?}");
    assert_eq!(reads.last().map(|range| range.end), Some(6 * SLICE));
    assert!(read(&rig.store, &object, 0..6 * SLICE).await.unwrap() == rig.content);
    assert_eq!(rig.origin.reads(), [0..0; 0]);
}

#[tokio::test]
async fn a_reader_that_wants_more_than_an_exact_range_goes_on() {
    let rig = Rig::new(SLICE * 4, true, options());
    let opening = tokio::spawn({
        let store = rig.store.clone();
        async move { store.open_head("p", &path(), PART).await.unwrap() }
    });
    rig.origin.let_go(1);
    let object = opening.await.unwrap();
    rig.store.prefetch_exactly(&object, PART..SLICE + 100).await;
    let reading = tokio::spawn({
        let (store, object) = (rig.store.clone(), object.clone());
        async move { read(&store, &object, 1000..SLICE * 2).await }
    });
    settle().await;
    rig.origin.let_go(100);
    assert!(reading.await.unwrap().unwrap() == rig.content[1000..SLICE as usize * 2]);
    let reads = rig.origin.reads();
    assert_eq!(reads, [0..PART, PART..SLICE + 100, SLICE + 100..SLICE * 2]);
}

#[tokio::test]
async fn trimmed_reads_end_soon_behind_their_range() {
    let rig = Rig::new(SLICE * 40, false, StoreOptions { slice: 8 * SLICE as u32, memory: 400 * SLICE, ..options() });
    let object = rig.store.open_head("p", &path(), PART).await.unwrap();
    let trimmed = async |range: Range<u64>| {
        let mut reader = rig.store.read(&object, range.clone()).trimmed();
        let mut whole = Vec::new();
        while let Some(bytes) = reader.next_bytes().await {
            whole.extend_from_slice(&bytes.unwrap());
        }
        assert!(whole == rig.content[range.start as usize..range.end as usize], "{range:?}");
    };
    trimmed(1000..5 * SLICE + 1).await;
    settle().await;
    trimmed(5 * SLICE + 1..10 * SLICE).await;
    settle().await;
    // A small range completes its slice.
    trimmed(20 * SLICE..20 * SLICE + 10).await;
    settle().await;
    assert_eq!(rig.origin.reads(), [0..PART, PART..6 * SLICE, 6 * SLICE..10 * SLICE, 16 * SLICE..24 * SLICE]);
}

#[tokio::test]
async fn parts_leave_memory_for_others() {
    let rig = Rig::new(SLICE * 64, false, StoreOptions { memory: 8 * SLICE, ..options() });
    let object = rig.store.open_head("p", &path(), PART).await.unwrap();
    for place in 0..60 {
        rig.store.prefetch_exactly(&object, place * SLICE..place * SLICE + SLICE / 2).await;
        settle().await;
    }
    let all = read(&rig.store, &object, 0..SLICE * 64).await.unwrap();
    assert!(all == rig.content);
    assert!(rig.store.stats().memory_used <= 8 * SLICE);
}
