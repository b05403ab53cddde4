use super::*;

const SLICE: u32 = 4096;

fn name(number: u64) -> ObjectName {
    ObjectName {
        place: "p".into(),
        path: format!("films/{number}.mp4").into(),
        version: "\"1\"".into(),
        len: 1 << 20,
        tags: ObjectTags::default(),
    }
}

/// Returns the content of a slice with this key.
fn content(key: u64, len: usize) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(key);
    (0..len).map(|_| rng.u8(..)).collect()
}

/// Opens slabs that were just closed. A process that another test starts holds their lock for a moment, until its
/// execve (flock(2), execve(2)).
fn open_again(folder: &Path, quota: u64, slice: u32) -> (Slabs, Vec<StoredSlice>) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        match Slabs::open(folder, quota, slice) {
            Err(SlabError::Locked { .. }) if std::time::Instant::now() < deadline => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn put(slabs: &Slabs, slot: Slot, key: u64) -> Result<(), SlabError> {
    let name = name(key / 10);
    let slice = NewSlice { key, object: key / 10, index: (key % 10) as u32, of: 10, name: &name };
    let len = SLICE as usize - (key % 7) as usize;
    slabs.write(slot, &slice, [content(key, len)].iter()).map(drop)
}

/// Returns the length of a slot's data, and the name of its object.
fn held(slabs: &Slabs, slot: Slot) -> Option<(u32, ObjectName)> {
    let state = slabs.state();
    let record = state.held[slot as usize]?;
    Some((record.len, state.names.get(&record.object)?.name.clone()))
}

fn check(slabs: &Slabs, found: &StoredSlice) {
    let len = SLICE as usize - (found.key % 7) as usize;
    assert_eq!((found.object, found.index, found.of), (found.key / 10, (found.key % 10) as u32, 10));
    assert_eq!(held(slabs, found.slot), Some((len as u32, name(found.object))));
    let (file, start) = slabs.location(found.slot).unwrap();
    let mut data = vec![0; len];
    file.read_exact_at(&mut data, start).unwrap();
    assert_eq!(data, content(found.key, len), "slice {}", found.key);
}

/// Returns the size of a folder's files: their lengths, and their blocks on the disk.
fn taken(folder: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    files.fold((0, 0), |(len, blocks), meta| (len + meta.len(), blocks + meta.blocks() * 512))
}

#[test]
fn what_is_written_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (slabs, found) = Slabs::open(dir.path(), 1 << 20, SLICE).unwrap();
    assert!(found.is_empty() && slabs.slots() > 200);
    for slot in 0..100 {
        put(&slabs, slot, u64::from(slot) * 3).unwrap();
    }
    put(&slabs, 5, 1000).unwrap();
    slabs.free(6, 18).unwrap();
    slabs.free(7, 18).unwrap();
    assert!(slabs.verify(7), "a slot that has another slice by now is left alone");
    assert!(slabs.verify(5) && !slabs.verify(6) && held(&slabs, 6).is_none());
    assert!(matches!(Slabs::open(dir.path(), 1 << 20, SLICE), Err(SlabError::Locked { .. })));
    drop(slabs);
    let (slabs, found) = open_again(dir.path(), 1 << 20, SLICE);
    assert_eq!(found.len(), 99);
    for found in &found {
        assert!(slabs.verify(found.slot));
        check(&slabs, found);
    }
    assert_eq!(found.iter().find(|found| found.slot == 5).unwrap().key, 1000);
}

#[test]
fn the_quota_is_kept_when_full_and_when_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let quota = 3 << 20;
    let (slabs, _) = Slabs::open(dir.path(), quota, SLICE).unwrap();
    for slot in 0..slabs.slots() {
        put(&slabs, slot, u64::from(slot)).unwrap();
    }
    let (len, blocks) = taken(dir.path());
    assert!(len <= quota && blocks <= quota, "{len} and {blocks} of {quota}");
    drop(slabs);
    let (slabs, found) = open_again(dir.path(), quota / 2, SLICE);
    assert_eq!(found.len() as u32, slabs.slots(), "what fits stays");
    put(&slabs, 0, 7777).unwrap();
    let (len, blocks) = taken(dir.path());
    assert!(len <= quota / 2 && blocks <= quota / 2, "{len} and {blocks}");
    drop(slabs);
    let (_, found) = open_again(dir.path(), quota, SLICE * 2);
    assert!(found.is_empty(), "another size of slices starts anew");
    let error = Slabs::open(&dir.path().join("x"), 5000, SLICE).unwrap_err();
    assert!(matches!(error, SlabError::TooSmall { .. }), "{error}");
}

#[test]
fn names_are_made_anew_when_their_share_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (slabs, _) = Slabs::open(dir.path(), 1 << 20, SLICE).unwrap();
    for key in 0..50_000_u64 {
        put(&slabs, (key % 50) as Slot, key * 10).unwrap();
    }
    assert!(dir.path().join("names").metadata().unwrap().len() <= NAMES_LEAST);
    drop(slabs);
    let (slabs, found) = open_again(dir.path(), 1 << 20, SLICE);
    assert_eq!(found.len(), 50);
    found.iter().for_each(|found| check(&slabs, found));
}

#[test]
fn a_name_stays_while_a_slice_of_its_object_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let (slabs, _) = Slabs::open(dir.path(), 1 << 20, SLICE).unwrap();
    put(&slabs, 0, 1).unwrap();
    // Between the name and the record, the only other slice is dropped.
    let meanwhile = || {
        slabs.free(0, 1).unwrap();
        content(2, SLICE as usize - 2)
    };
    let object = name(0);
    let slice = NewSlice { key: 2, object: 0, index: 2, of: 10, name: &object };
    let data = std::cell::OnceCell::new();
    slabs.write(1, &slice, std::iter::once_with(|| data.get_or_init(meanwhile))).unwrap();
    assert_eq!(held(&slabs, 1), Some((SLICE - 2, name(0))));
    put(&slabs, 2, 3).unwrap();
    slabs.free(1, 2).unwrap();
    assert_eq!(slabs.objects(), [HeldObject { hash: 0, name: name(0), slices: 1 }]);
}

#[test]
fn flipped_bits_are_never_taken_for_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let (slabs, _) = Slabs::open(dir.path(), 1 << 20, SLICE).unwrap();
    for slot in 0..60 {
        put(&slabs, slot, u64::from(slot)).unwrap();
    }
    drop(slabs);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut damaged = 0;
    for round in 0..300 {
        let file = dir.path().join(["slab-0000", "slots", "names"][round % 3]);
        let mut bytes = fs::read(&file).unwrap();
        let within = [60 * SLICE as usize, HEADER as usize + 60 * record::SIZE, bytes.len()][round % 3];
        let at = rng.usize(..within.max(1));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << rng.u8(..8);
        }
        fs::write(&file, &bytes).unwrap();
        let (slabs, found) = open_again(dir.path(), 1 << 20, SLICE);
        for found in &found {
            if slabs.verify(found.slot) {
                check(&slabs, found);
            } else {
                damaged += 1;
                slabs.free(found.slot, found.key).unwrap();
            }
        }
        // Lost slices are written again, so that each round has one to damage.
        for slot in (0..60).filter(|slot| held(&slabs, *slot).is_none()) {
            put(&slabs, slot, u64::from(slot)).unwrap();
        }
    }
    assert!(damaged > 50, "{damaged}");
}

#[test]
fn bytes_under_way_stay_as_they_are_when_their_slot_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let (slabs, _) = Slabs::open(dir.path(), 1 << 20, SLICE).unwrap();
    put(&slabs, 0, 0).unwrap();
    let (file, start) = slabs.location(0).unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut at = start;
    assert_eq!(rustix::fs::sendfile(&ours, &*file, Some(&mut at), 4096).unwrap(), 4096);
    put(&slabs, 0, 7).unwrap();
    drop(ours);
    if slabs.detaches() {
        let mut received = Vec::new();
        (&theirs).read_to_end(&mut received).unwrap();
        assert_eq!(received, content(0, 4096));
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Slabs::open(&file.join("below"), 1 << 20, SLICE).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

/// A process that writes slices until it is killed, by the test after it.
#[test]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os("MILLPOND_SLAB_CRASH") else { return };
    let (slabs, _) = open_again(Path::new(&folder), 1 << 20, SLICE);
    for key in fastrand::u64(..1 << 40).. {
        put(&slabs, fastrand::u32(..200), key).unwrap();
    }
}

#[test]
fn a_process_killed_fifty_times_leaves_nothing_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for _ in 0..50 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["disk::slab::tests::writes_until_it_is_killed", "--exact"])
            .env("MILLPOND_SLAB_CRASH", dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30 + fastrand::u64(..40)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (slabs, found) = open_again(dir.path(), 1 << 20, SLICE);
        assert!(found.len() + 1 >= seen, "{} after {seen}: more is lost than what was being written", found.len());
        seen = found.len();
        for found in &found {
            assert!(slabs.verify(found.slot), "slot {}", found.slot);
            check(&slabs, found);
        }
    }
    // A busy machine writes fewer of the 200.
    assert!(seen >= 100, "{seen}");
}

#[test]
fn a_million_slices_are_found_soon() {
    let dir = tempfile::tempdir().unwrap();
    // A quota for a million slices, of which only the records are written.
    let quota = 1_020_000 * (u64::from(SLICE) + record::SIZE as u64);
    let (slabs, _) = open_again(dir.path(), quota, SLICE);
    let count = 1_000_000.min(slabs.slots());
    {
        let mut state = slabs.state();
        let mut records = Vec::with_capacity(count as usize * record::SIZE);
        for slot in 0..count {
            let object = u64::from(slot) / 1000;
            let name = name(object);
            let slice = NewSlice { key: u64::from(slot), object, index: slot % 1000, of: 1000, name: &name };
            if slot % 1000 == 0 {
                slabs.name(&mut state, &slice).unwrap();
            }
            let record = Record { len: 1, key: slice.key, object, index: slice.index, of: 1000, sum: 0 };
            records.extend_from_slice(&record.encode(slot));
        }
        slabs.records.write_all_at(&records, HEADER).unwrap();
    }
    drop(slabs);
    let started = std::time::Instant::now();
    let (_, found) = open_again(dir.path(), quota, SLICE);
    println!("{} slices found in {} ms", found.len(), started.elapsed().as_millis());
    assert_eq!(found.len() as u32, count);
}

#[test]
fn tags_take_an_eighth_of_the_names_and_the_last_ones_count() {
    let folder = tempfile::tempdir().unwrap();
    let quota = 4 << 20;
    let tags = |object: u64, turn: u64| ObjectTags::of_lines(&format!("{object}-{turn}\n{}", "x".repeat(1000)));
    let known = |slabs: &Slabs| {
        let held = slabs.objects().into_iter().filter(|held| !held.name.tags.as_str().is_empty());
        held.map(|held| (held.hash, held.name.tags)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let (slabs, _) = Slabs::open(folder.path(), quota, SLICE).unwrap();
    (0..20).for_each(|object| put(&slabs, object as Slot, object * 10).unwrap());
    // Each change is an entry: the log is rewritten many times.
    for turn in 0..100 {
        (0..20).for_each(|object| slabs.tag(object, &tags(object, turn)).unwrap());
    }
    let last = known(&slabs);
    let room = (NAMES_LEAST / TAGS_SHARE / 1000) as usize;
    assert!(last.len() <= room && last.len() + 1 >= room, "{}", last.len());
    assert!(last.iter().all(|(object, found)| *found == tags(*object, 99)) && slabs.untagged() > 0);
    assert!(slabs.has_other_tags(0, &tags(0, 98)) && !slabs.has_other_tags(0, &tags(0, 99)));
    assert!(!slabs.has_other_tags(99, &tags(0, 0)), "without slices there is nothing to tag");
    assert!(taken(folder.path()).0 <= quota);
    drop(slabs);
    let (slabs, found) = open_again(folder.path(), quota, SLICE);
    assert_eq!((known(&slabs), found.len()), (last.clone(), 20));
    // Objects that leave make room.
    last.keys().for_each(|object| slabs.free(*object as Slot, object * 10).unwrap());
    let other = (0..20).find(|object| !last.contains_key(object)).unwrap();
    slabs.tag(other, &tags(other, 7)).unwrap();
    assert_eq!(known(&slabs).into_iter().collect::<Vec<_>>(), [(other, tags(other, 7))]);
}
