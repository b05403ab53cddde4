//! Slices on the disk.

use super::*;

/// Waits until the disk tier has written that many slices.
async fn written(store: &Store, count: u64) {
    for _ in 0..2000 {
        if store.stats().disk.unwrap().written >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not written: {:?}", store.stats().disk);
}

fn on_disk(folder: &std::path::Path) -> StoreOptions {
    let disk = DiskOptions { folder: folder.to_owned(), quota: 40 * SLICE, policy: "sieve" };
    StoreOptions { disk: Some(disk), memory: 256 * SLICE, ..options() }
}

#[tokio::test]
async fn slices_go_to_the_disk_and_are_sent_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(SLICE * 10 + 5, false, on_disk(dir.path()));
    let object = rig.open().await;
    assert_eq!(read(&rig.store, &object, 0..u64::MAX).await.unwrap(), rig.content);
    written(&rig.store, 11).await;
    settle().await;
    assert_eq!(rig.store.stats().cache.entries, 0, "memory holds what the disk doesn't");
    let asked = rig.origin.reads().len();
    let mut reader = rig.store.read(&object, SLICE + 7..SLICE * 3);
    let Some(Ok(Chunk::File { range, .. })) = reader.next().await else { panic!("no file") };
    assert_eq!(range.end - range.start, SLICE - 7);
    assert_eq!(rig.store.stats().disk.unwrap().ledger.pinned, SLICE, "pinned while it is held");
    drop(reader);
    assert_eq!(rig.store.stats().disk.unwrap().ledger.pinned, 0);
    assert_eq!(read(&rig.store, &object, 3..SLICE * 9).await.unwrap(), rig.content[3..SLICE as usize * 9]);
    assert_eq!(rig.store.read_all(&object, 5..SLICE * 4).await.unwrap(), rig.content[5..SLICE as usize * 4]);
    assert_eq!(rig.origin.reads().len(), 0, "{asked} before");
}

#[tokio::test]
async fn slices_outlive_a_restart_and_damage_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Watched::new(false);
    let content = bytes(SLICE * 6);
    origin.inner.put("a", content.clone());
    let start = || {
        let store = Store::new(&on_disk(dir.path())).unwrap();
        store.add_place("p", Arc::new(Handle(origin.clone())));
        store
    };
    let store = start();
    let object = store.open("p", &path()).await.unwrap();
    assert_eq!(read(&store, &object, 0..u64::MAX).await.unwrap(), content);
    written(&store, 6).await;
    drop((store, object));
    // A byte of the third slice that was written turns over.
    let slab = dir.path().join("slab-0000");
    let mut data = std::fs::read(&slab).unwrap();
    data[SLICE as usize * 2 + 99] ^= 1;
    std::fs::write(&slab, &data).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let store = start();
    assert_eq!(store.stats().disk.unwrap().ledger.entries, 6);
    let object = store.open("p", &path()).await.unwrap();
    origin.reads();
    assert_eq!(read(&store, &object, 0..u64::MAX).await.unwrap(), content);
    let asked = origin.reads();
    assert_eq!(asked.iter().map(|range| range.end - range.start).sum::<u64>(), SLICE, "{asked:?}");
    assert_eq!(store.stats().disk.unwrap().damaged, 1);
}

#[tokio::test]
async fn a_pinned_slice_stays_as_it_is_while_others_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(SLICE * 200, false, on_disk(dir.path()));
    let object = rig.open().await;
    read(&rig.store, &object, 0..SLICE).await.unwrap();
    written(&rig.store, 1).await;
    settle().await;
    let mut reader = rig.store.read(&object, 0..SLICE);
    let Some(Ok(Chunk::File { file, range, pin: _pin })) = reader.next().await else { panic!("no file") };
    for step in 1..40 {
        read(&rig.store, &object, step * 5 * SLICE..(step * 5 + 5) * SLICE).await.unwrap();
        settle().await;
    }
    let stats = rig.store.stats().disk.unwrap();
    assert!(stats.ledger.evictions > 0 && stats.ledger.bytes <= stats.capacity, "{stats:?}");
    assert_eq!(crate::origin::disk::read_at(&file, range).unwrap(), rig.content[..SLICE as usize]);
}
