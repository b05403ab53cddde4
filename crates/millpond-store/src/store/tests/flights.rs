//! Origin requests: their length, their end, their sharing.

use super::*;

#[tokio::test]
async fn one_request_goes_ahead_of_its_reader_by_a_window() {
    let rig = Rig::new(SLICE * 30, true, options());
    let object = rig.open().await;
    rig.origin.let_go(4);
    settle().await;
    let mut reader = rig.store.read(&object, 0..SLICE * 20);
    reader.next().await.unwrap().unwrap();
    settle().await;
    assert_eq!(rig.origin.reads()[..2], [0..SLICE, SLICE..SLICE * 20]);
    rig.origin.let_go(1000);
    for _ in 0..200 {
        settle().await;
        if rig.store.stats().cache.entries >= 10 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    settle().await;
    assert_eq!(rig.store.stats().cache.entries, 10, "slice 0, slice 1 that it comes to, and eight more");
    while let Some(chunk) = reader.next().await {
        chunk.unwrap();
    }
    assert_eq!(rig.origin.reads(), []);
    assert_eq!(rig.stats().origin_bytes, SLICE * 20);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_reader_stops_is_given_up_and_made_anew() {
    let rig = Rig::new(SLICE * 30, false, options());
    let object = rig.open().await;
    let mut reader = rig.store.read(&object, 0..SLICE * 30);
    let mut all = reader.next().await.unwrap().unwrap().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.stats().in_flight, 0);
    while let Some(chunk) = reader.next().await {
        all += chunk.unwrap().len();
    }
    assert_eq!(all, SLICE * 30);
    let asked = rig.origin.reads();
    assert_eq!(asked[1], SLICE..SLICE * 30);
    assert_eq!(asked[2].start, SLICE * 10, "where the first one was given up: {asked:?}");
    assert_eq!(rig.stats().origin_bytes, SLICE * 30, "no byte twice");
}

#[tokio::test]
async fn who_begins_far_ahead_of_a_request_does_not_wait_for_it() {
    let rig = Rig::new(SLICE * 40, true, options());
    let object = rig.open().await;
    rig.origin.let_go(4);
    settle().await;
    let mut first = rig.store.read(&object, 0..SLICE * 40);
    first.next().await.unwrap().unwrap();
    settle().await;
    let second = rig.store.read(&object, SLICE * 30..SLICE * 31);
    rig.origin.let_go(1000);
    let bytes = crate::store::collect(second).await.unwrap();
    assert!(bytes == rig.content[SLICE as usize * 30..SLICE as usize * 31]);
    assert_eq!(rig.origin.reads()[2..], [SLICE * 30..SLICE * 31]);
    while let Some(chunk) = first.next().await {
        chunk.unwrap();
    }
    let asked = rig.origin.reads();
    assert_eq!(asked, [SLICE * 31..SLICE * 40], "the first request ended before what the second had sent for");
}

#[tokio::test]
async fn a_fetch_that_nobody_wants_and_has_brought_little_stops_at_once() {
    let rig = Rig::new(SLICE * 20, true, options());
    let object = rig.open().await;
    rig.origin.let_go(4);
    settle().await;
    let mut reader = rig.store.read(&object, SLICE..SLICE * 9);
    rig.origin.let_go(1);
    reader.next().await.unwrap().unwrap();
    drop(reader);
    settle().await;
    assert_eq!(rig.stats().in_flight, 0);
    assert_eq!(rig.store.stats().memory_used, SLICE, "slice 0, and no room kept");
}

#[tokio::test]
async fn who_joins_a_request_that_is_ending_sends_for_the_rest_in_time() {
    let rig = Rig::new(SLICE * 20, true, options());
    let object = rig.open().await;
    rig.origin.let_go(4);
    settle().await;
    rig.origin.reads();
    let mut first = rig.store.read(&object, SLICE..SLICE * 9);
    rig.origin.let_go(2);
    first.next().await.unwrap().unwrap();
    settle().await;
    drop(first);
    let mut second = rig.store.read(&object, SLICE..SLICE * 4);
    second.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(rig.origin.reads(), [SLICE..SLICE * 9, SLICE * 2..SLICE * 4]);
    rig.origin.let_go(100);
    while let Some(chunk) = second.next().await {
        chunk.unwrap();
    }
    assert_eq!(rig.stats().origin_bytes, SLICE * 4);
}

#[tokio::test]
async fn a_slow_reader_paces_nobody() {
    let rig = Rig::new(SLICE * 10, false, options());
    let object = rig.open().await;
    let mut slow = rig.store.read(&object, SLICE..SLICE * 9);
    slow.next().await.unwrap().unwrap();
    settle().await;
    assert_eq!(rig.stats().in_flight, 0, "the run is here, though nobody took it");
    assert_eq!(rig.stats().origin_bytes, SLICE * 9);
    let quick = read(&rig.store, &object, SLICE..SLICE * 9).await.unwrap();
    assert!(quick == rig.content[SLICE as usize..9 * SLICE as usize]);
    assert_eq!(rig.stats().slice_hits, 8);
    assert_eq!(rig.stats().memory_hit_bytes, SLICE * 8);
    assert_eq!(rig.stats().slice_misses, 1);
}
