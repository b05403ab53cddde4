//! Slices on the disk.

use super::*;
use crate::disk::slab::SlabError;

/// Waits until the disk tier has written that many slices.
pub(super) async fn written(store: &Store, count: u64) {
    for _ in 0..2000 {
        if store.stats().disk.unwrap().written >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not written: {:?}", store.stats().disk);
}

pub(super) fn on_disk(folder: &std::path::Path) -> StoreOptions {
    let disk = DiskOptions { folder: folder.to_owned(), quota: 40 * SLICE, policy: PolicyName::Sieve };
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
    // A bit of the third slice that was written is flipped.
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

/// Reads a range into memory; slices that the disk has lost are fetched again.
async fn loaded(store: &Store, object: &Arc<Object>, range: Range<u64>) -> Vec<u8> {
    let mut reader = store.read(object, range);
    let mut whole = Vec::new();
    while let Some(bytes) = reader.next_bytes().await {
        whole.extend_from_slice(&bytes.unwrap());
    }
    whole
}

/// Returns an object whose six slices are all on the disk.
async fn six_on_disk(folder: &std::path::Path) -> (Rig, Arc<Object>) {
    let rig = Rig::new(SLICE * 6, false, on_disk(folder));
    let object = rig.open().await;
    read(&rig.store, &object, 0..u64::MAX).await.unwrap();
    written(&rig.store, 6).await;
    settle().await;
    rig.origin.reads();
    (rig, object)
}

fn cut(folder: &std::path::Path) -> u64 {
    let slab = std::fs::OpenOptions::new().write(true).open(folder.join("slab-0000")).unwrap();
    let len = slab.metadata().unwrap().len();
    slab.set_len(SLICE * 2 + 10).unwrap();
    len
}

fn turn_over(folder: &std::path::Path, at: u64) {
    use std::os::unix::fs::FileExt as _;
    let slab = std::fs::OpenOptions::new().read(true).write(true).open(folder.join("slab-0000")).unwrap();
    let mut byte = [0];
    slab.read_exact_at(&mut byte, at).unwrap();
    slab.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[tokio::test]
async fn a_slab_that_was_cut_off_is_fetched_again_in_the_same_read() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    let len = cut(dir.path());
    assert_eq!(loaded(&rig.store, &object, 3..u64::MAX).await, rig.content[3..]);
    let stats = rig.store.stats().disk.unwrap();
    assert!(stats.damaged >= 1, "{stats:?}");
    let asked: u64 = rig.origin.reads().iter().map(|range| range.end - range.start).sum();
    assert!((SLICE * 4..=SLICE * 6).contains(&asked), "{asked}");
    written(&rig.store, 10).await;
    settle().await;
    assert_eq!(std::fs::metadata(dir.path().join("slab-0000")).unwrap().len(), len, "a new file");
    assert_eq!(loaded(&rig.store, &object, 0..u64::MAX).await, rig.content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_readers_of_a_slab_that_is_cut_again_and_again_see_no_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    for round in 0..100 {
        // A slice that is being written while the file is truncated makes it longer again, and leaves zeros behind the
        // cut. So the test waits until the queue is empty. A slice that could not be written stays in memory.
        assert!(loaded(&rig.store, &object, 0..u64::MAX).await == rig.content, "round {round}, before the cut");
        let written = || rig.store.stats().disk.unwrap().written;
        let mut before = u64::MAX;
        while before != written() {
            before = written();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cut(dir.path());
        let readers = (0..4).map(|number| {
            let (store, object, from) = (rig.store.clone(), object.clone(), number * SLICE);
            tokio::spawn(async move { (from, loaded(&store, &object, from..u64::MAX).await) })
        });
        for reader in readers.collect::<Vec<_>>() {
            let (from, whole) = reader.await.unwrap();
            assert!(whole == rig.content[from as usize..], "round {round}, from {from}");
        }
    }
    assert!(rig.store.stats().disk.unwrap().damaged > 0);
}

#[tokio::test]
async fn what_is_written_behind_a_cut_shows_no_zeros_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    let mut early = rig.store.read(&object, SLICE * 3..SLICE * 4);
    let Some(Ok(Chunk::File { file, range, pin })) = early.next().await else { panic!("no file") };
    cut(dir.path());
    rig.origin.inner.put("b", bytes(SLICE * 3));
    let other = rig.store.open("p", &ObjectPath::parse("b").unwrap()).await.unwrap();
    read(&rig.store, &other, 0..u64::MAX).await.unwrap();
    written(&rig.store, 9).await;
    assert_eq!(loaded(&rig.store, &object, 0..u64::MAX).await, rig.content);
    let found = crate::origin::disk::read_at(&file, range.clone());
    assert!(found.is_err(), "the file that was cut off stays short for those who still send from it");
    rig.store.lost(&object, SLICE * 3, pin.as_ref()).unwrap();
    assert_eq!(
        loaded(&rig.store, &object, SLICE * 3..SLICE * 4).await,
        rig.content[SLICE as usize * 3..SLICE as usize * 4]
    );
}

#[tokio::test]
async fn a_slice_not_read_for_an_hour_is_compared_before_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    tokio::time::pause();
    turn_over(dir.path(), SLICE * 2 + 99);
    tokio::time::advance(Duration::from_secs(3599)).await;
    loaded(&rig.store, &object, 0..SLICE).await;
    assert_eq!(rig.store.stats().disk.unwrap().verified, 0);
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert_eq!(loaded(&rig.store, &object, 0..u64::MAX).await, rig.content);
    let stats = rig.store.stats().disk.unwrap();
    assert_eq!((stats.damaged, stats.verified), (1, 5), "the first was read lately");
}

#[tokio::test]
async fn damage_is_found_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    tokio::time::pause();
    turn_over(dir.path(), SLICE * 2 + 99);
    let disk = rig.store.slices().disk().unwrap().clone();
    let round = || {
        let mut slot = 0;
        while let (next, 1..) = disk.scrub_step(slot) {
            slot = next;
        }
        (disk.stats().verified, disk.stats().damaged, disk.stats().ledger.entries, disk.stats().ledger.pinned)
    };
    assert_eq!(round(), (0, 0, 6, 0), "written lately");
    tokio::time::advance(Duration::from_secs(3601)).await;
    assert_eq!(round(), (6, 1, 5, 0));
    assert_eq!(round(), (6, 1, 5, 0), "proven lately");
    tokio::time::advance(Duration::from_secs(1800)).await;
    loaded(&rig.store, &object, 0..SLICE).await;
    tokio::time::advance(Duration::from_secs(1801)).await;
    assert_eq!(round(), (11, 1, 5, 0), "what is read all the time too");
    assert_eq!(loaded(&rig.store, &object, 0..u64::MAX).await, rig.content);
}

#[tokio::test]
async fn what_must_not_be_stored_never_reaches_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(SLICE * 6, false, StoreOptions { freshness: Some(Duration::ZERO), ..on_disk(dir.path()) });
    let forbidden = Permission { storage: Storage::Never, ..Permission::default() };
    let said = |permission| Freshness { permission, ..Freshness::default() };
    *rig.origin.said.lock().unwrap() = said(forbidden);
    let object = rig.open().await;
    assert_eq!(read(&rig.store, &object, 0..u64::MAX).await.unwrap(), rig.content);
    settle().await;
    assert!(!object.is_storable() && !dir.path().join("slab-0000").exists());
    assert_eq!(rig.store.stats().disk.unwrap().written, 0);

    rig.origin.inner.put("b", bytes(SLICE * 6));
    *rig.origin.said.lock().unwrap() = said(Permission::default());
    let path = ObjectPath::parse("b").unwrap();
    let object = rig.store.open("p", &path).await.unwrap();
    read(&rig.store, &object, 0..SLICE * 4).await.unwrap();
    written(&rig.store, 4).await;
    settle().await;
    *rig.origin.said.lock().unwrap() = said(forbidden);
    let same = rig.store.open("p", &path).await.unwrap();
    assert_eq!(rig.store.stats().disk.unwrap().ledger.entries, 0, "what was there is taken off");
    assert_eq!(rig.store.permission(&object), forbidden);
    assert_eq!(read(&rig.store, &same, 0..u64::MAX).await.unwrap(), bytes(SLICE * 6));
    assert_eq!(read(&rig.store, &object, 0..u64::MAX).await.unwrap(), bytes(SLICE * 6));
    settle().await;
    assert_eq!(rig.store.stats().disk.unwrap().written, 4);
}

#[tokio::test]
async fn a_disk_passes_to_another_store_once_nobody_reads_from_it() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, object) = six_on_disk(dir.path()).await;
    let options = on_disk(dir.path());
    let next = Store::new(&StoreOptions { disk: None, ..options.clone() }).unwrap();
    let disk = options.disk.unwrap();
    assert!(matches!(next.open_disk(&disk), Err(StoreError::Disk(SlabError::Locked { .. }))));
    let mut reader = rig.store.read(&object, 0..SLICE);
    let Some(Ok(chunk @ Chunk::File { .. })) = reader.next().await else { panic!("not from the disk") };
    rig.store.keep(&object, std::slice::from_ref(&(0..SLICE)));
    assert!(!rig.store.leave_disk(), "a slice is being sent");
    drop((reader, chunk));
    assert!(rig.store.leave_disk(), "what an operator has pinned is not being read");
    next.open_disk(&disk).unwrap();
    assert_eq!(next.stats().disk.unwrap().ledger.entries, 6);
    rig.origin.reads();
    assert_eq!(loaded(&rig.store, &object, 0..SLICE).await.len() as u64, SLICE);
    assert!(!rig.origin.reads().is_empty(), "the old store reads from the origin");
}
