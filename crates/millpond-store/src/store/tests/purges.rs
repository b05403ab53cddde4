//! Purges: bytes of before are not given after.

use super::disk::{on_disk, written};
use super::*;
use crate::selection::{Purge, Selection};

const LENGTH: u64 = SLICE * 4;

fn purge(path: &str, is_soft: bool) -> Purge {
    Purge { selection: Selection::Below { place: "p".into(), path: path.into() }, is_soft }
}

/// Other bytes of the same length.
fn others() -> Vec<u8> {
    bytes(LENGTH).into_iter().map(|byte| !byte).collect()
}

async fn all(store: &Store) -> Vec<u8> {
    let object = store.open("p", &path()).await.unwrap();
    read(store, &object, 0..LENGTH).await.unwrap()
}

#[tokio::test]
async fn purged_slices_are_read_from_the_origin_again() {
    let dir = tempfile::tempdir().unwrap();
    for options in [options(), on_disk(dir.path())] {
        let has_disk = options.disk.is_some();
        let rig = Rig::new(LENGTH, false, options);
        assert!(all(&rig.store).await == rig.content);
        if has_disk {
            written(&rig.store, 4).await;
            settle().await;
        }
        rig.origin.inner.replace("a", others());
        assert!(all(&rig.store).await == rig.content, "from the cache");
        assert_eq!(rig.store.purge(&[purge("b", false)]), 0);
        assert_eq!(rig.store.purge(&[purge("b", false), purge("a", false)]), 4);
        assert!(rig.store.cached().is_empty());
        assert!(all(&rig.store).await == others());
    }
}

#[tokio::test]
async fn a_request_from_before_a_purge_serves_nobody_after_it() {
    let rig = Rig::new(LENGTH, true, options());
    let object = rig.open().await;
    let mut early = rig.store.read(&object, 0..LENGTH);
    rig.origin.let_go(1);
    early.next().await.unwrap().unwrap();
    let exact = tokio::spawn({
        let (store, object) = (rig.store.clone(), object.clone());
        async move { store.read_all(&object, SLICE * 2 + 5..SLICE * 2 + 9).await.unwrap() }
    });
    settle().await;
    rig.origin.inner.replace("a", others());
    rig.store.purge(&[purge("", false)]);
    rig.origin.let_go(10_000);
    let at = SLICE as usize * 2;
    assert_eq!(rig.store.read_all(&object, SLICE * 2 + 5..SLICE * 2 + 9).await.unwrap(), others()[at + 5..at + 9]);
    drop(exact.await.unwrap());
    assert!(all(&rig.store).await == others());
    while let Some(chunk) = early.next().await {
        chunk.unwrap();
    }
    settle().await;
    assert!(all(&rig.store).await == others(), "nothing of before was kept");
}

#[tokio::test]
async fn the_beginning_of_a_slice_from_before_a_purge_is_not_kept() {
    let rig = Rig::new(LENGTH, true, options());
    rig.origin.let_go(4);
    let object = rig.open().await;
    settle().await;
    let wanted = SLICE..SLICE + 1000;
    let fetching = rig.store.prefetch_exactly(&object, wanted.clone());
    fetching.await;
    settle().await;
    rig.origin.inner.replace("a", others());
    rig.store.purge(&[purge("a", false)]);
    rig.origin.let_go(10_000);
    settle().await;
    let found = read(&rig.store, &object, wanted).await.unwrap();
    assert!(found == others()[SLICE as usize..SLICE as usize + 1000]);
}

#[tokio::test]
async fn a_disk_that_is_opened_later_is_purged_too() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Watched::new(false);
    origin.inner.put("a", bytes(LENGTH));
    let start = |options: &StoreOptions| {
        let store = Store::new(options).unwrap();
        store.add_place("p", Arc::new(Handle(origin.clone())));
        store
    };
    let with_disk = on_disk(dir.path());
    let store = start(&with_disk);
    assert!(all(&store).await == bytes(LENGTH));
    written(&store, 4).await;
    drop(store);
    origin.inner.replace("a", others());
    let store = start(&options());
    store.purge(&[purge("a", false)]);
    store.open_disk(with_disk.disk.as_ref().unwrap()).unwrap();
    assert!(all(&store).await == others());
}

#[tokio::test]
async fn a_soft_purge_keeps_the_bytes_of_the_same_version() {
    let rig = Rig::new(LENGTH, false, options());
    assert!(all(&rig.store).await == rig.content);
    rig.origin.reads();
    assert_eq!(rig.store.purge(&[purge("a", true)]), 0);
    let heads = rig.origin.heads.load(Ordering::SeqCst);
    assert!(all(&rig.store).await == rig.content);
    assert_eq!(rig.origin.heads.load(Ordering::SeqCst), heads + 1, "its version is asked for");
    assert_eq!(rig.origin.reads(), [], "its bytes are not");
    rig.origin.inner.put("a", others());
    assert!(all(&rig.store).await == rig.content, "fresh again");
    rig.store.purge(&[purge("a", true)]);
    assert!(all(&rig.store).await == others());
}

#[tokio::test]
async fn an_absent_object_is_asked_for_after_a_purge() {
    let rig = Rig::new(LENGTH, false, options());
    let late = ObjectPath::parse("late").unwrap();
    assert!(rig.store.open("p", &late).await.unwrap_err().is_not_found());
    rig.origin.inner.put("late", bytes(10));
    assert!(rig.store.open("p", &late).await.is_err(), "remembered");
    rig.store.purge(&[purge("late", false)]);
    assert_eq!(rig.store.open("p", &late).await.unwrap().meta().len, 10);
}
