use super::*;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use proptest::prelude::*;
use record::SIZE;

#[expect(unreachable_pub, reason = "shared with the tests of the server")]
#[path = "../../../../millpond/tests/e2e/support/small_disk.rs"]
mod small_disk;
use small_disk::SmallDisk;

const NAME: &str = "cams/door";
const HOUR: Duration = Duration::from_secs(3600);

/// Notes that a test has not run, for `SmallDisk`.
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Data files of 128 KiB, in all 1 MiB.
fn limits() -> RingLimits {
    RingLimits { age: HOUR, bytes: 1 << 20, min_free: 0 }
}

/// Returns the record of a part; each has a second.
fn part(number: u32) -> RingRecord {
    let time = Duration::from_secs(u64::from(number));
    RingRecord {
        kind: RingKind::Part,
        track: 1,
        flags: 7,
        run: 0xabc,
        epoch: 2,
        segment: u64::from(number / 4),
        part: number,
        start: time,
        duration: Duration::from_secs(1),
        wall: HOUR + time,
        source: Duration::ZERO,
    }
}

/// Returns the payload of a part, in two pieces.
fn content(number: u32, length: usize) -> Arc<[Bytes]> {
    let mut rng = fastrand::Rng::with_seed(u64::from(number));
    let mut all: Bytes = (0..length).map(|_| rng.u8(..)).collect();
    let first = all.split_to(length / 3);
    Arc::new([first, all])
}

fn open(folder: &Path, limits: RingLimits, writer: &RingWriter) -> (Ring, Vec<Found>) {
    // The ring that was closed last is locked until the writer has closed it, and for a moment longer where a process
    // that another test starts has its descriptors.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match Ring::open(folder, NAME, limits, writer) {
            Err(RingError::Locked { .. }) if Instant::now() < deadline => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

/// Appends parts, and returns their places.
fn append(ring: &Ring, parts: impl Iterator<Item = (u32, usize)>) -> Vec<Outcome> {
    let queued: Vec<Queued> =
        parts.map(|(number, length)| ring.append(part(number), content(number, length))).collect();
    ring.flush();
    queued.iter().map(Queued::outcome).collect()
}

fn read(ring: &Ring, place: RingPlace) -> Vec<u8> {
    let Ok(Chunk::File { file, range, .. }) = ring.read(place) else { panic!("no file") };
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).unwrap();
    bytes
}

fn check(ring: &Ring, found: &Found, length: usize) {
    assert_eq!(found.record, part(found.record.part));
    assert!(read(ring, found.place) == content(found.record.part, length).concat(), "part {}", found.record.part);
}

/// Names of the files of the ring, with their lengths.
fn files(ring: &Ring) -> Vec<(String, u64)> {
    let entries = fs::read_dir(&ring.shared.folder).unwrap().map(|entry| entry.unwrap());
    let all = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()));
    let mut all: Vec<_> = all.filter(|(name, _)| name.contains('-')).collect();
    all.sort();
    all
}

#[test]
fn payloads_are_there_at_once_and_after_a_restart() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, found) = open(dir.path(), limits(), &writer);
    assert!(found.is_empty() && files(&ring).is_empty());
    // The fourth file holds the last ones.
    let outcomes = append(&ring, (0..13).map(|number| (number, 32 << 10)));
    for (number, outcome) in (0..).zip(outcomes) {
        let Outcome::Written(place) = outcome else { panic!("{number}: {outcome:?}") };
        assert_eq!(place.length(), 32 << 10);
        check(&ring, &Found { record: part(number), is_after_gap: false, place }, 32 << 10);
    }
    assert_eq!((ring.stats().written, ring.stats().lost, files(&ring).len()), (13, 0, 8));
    assert!(matches!(Ring::open(dir.path(), NAME, limits(), &writer), Err(RingError::Locked { .. })));
    drop(ring);
    let (ring, found) = open(dir.path(), limits(), &writer);
    assert_eq!(found.iter().map(|found| found.record.part).collect::<Vec<_>>(), Vec::from_iter(0..13));
    found.iter().for_each(|found| check(&ring, found, 32 << 10));
    assert!(found.iter().all(|found| !found.is_after_gap));
    let expected = ("data-000004".to_owned(), 32 << 10);
    assert_eq!(files(&ring)[3], expected, "nothing is allocated behind the last payload");
    assert_eq!(ring.stats().bytes, files(&ring).iter().map(|(_, length)| length).sum::<u64>());
    append(&ring, std::iter::once((13, 0)));
    assert_eq!(files(&ring).len(), 10, "a restart begins a new file");
}

#[test]
fn files_are_evicted_by_bytes_and_age_and_stay_while_they_are_read() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, _) = open(dir.path(), limits(), &writer);
    let Outcome::Written(first) = append(&ring, std::iter::once((0, 40 << 10)))[0] else { panic!("not written") };
    let Ok(Chunk::File { file, range, .. }) = ring.read(first) else { panic!("no file") };
    append(&ring, (1..100).map(|number| (number, 40 << 10)));
    let stats = ring.stats();
    assert!((600 << 10..=1 << 20).contains(&stats.bytes) && stats.lost == 0, "{stats:?}");
    let mut bytes = vec![0; 40 << 10];
    file.read_exact_at(&mut bytes, range.start).unwrap();
    assert!(bytes == content(0, 40 << 10).concat());
    drop(file);
    assert!(matches!(ring.read(first), Err(RingError::Evicted { .. })));
    // Parts up to 94 are older than an hour. Files have three; the last one has part 99.
    ring.evict(HOUR + HOUR + Duration::from_secs(96));
    ring.flush();
    assert_eq!(files(&ring).len(), 6, "{:?}", files(&ring));
    ring.evict(HOUR * 3);
    ring.flush();
    assert_eq!((files(&ring), ring.stats().bytes), (Vec::new(), 0), "the file under way too");
    assert!(matches!(append(&ring, std::iter::once((100, 5)))[0], Outcome::Written(_)));
}

#[test]
fn free_space_is_kept() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, _) = open(dir.path(), limits(), &writer);
    append(&ring, (0..20).map(|number| (number, 40 << 10)));
    drop(ring);
    let (ring, found) = open(dir.path(), RingLimits { min_free: u64::MAX, ..limits() }, &writer);
    assert!(found.len() > 10);
    ring.evict(HOUR);
    assert_eq!(append(&ring, std::iter::once((20, 5))), [Outcome::Lost]);
    assert!(files(&ring).is_empty());
    let failure = ring.stats().failure.unwrap();
    assert!(failure.contains("bytes are free"), "{failure}");
}

#[test]
fn what_has_no_room_is_lost_and_the_next_record_says_so() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, _) = open(dir.path(), limits(), &writer);
    assert_eq!(append(&ring, std::iter::once((0, (128 << 10) + 1))), [Outcome::Lost], "longer than a file");
    // Pieces that share their memory fill the queue.
    let piece = content(1, 120 << 10);
    let mut queued: Vec<Queued> = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !queued.iter().any(|queued| queued.outcome() == Outcome::Lost) && Instant::now() < deadline {
        queued.extend((0..1000).map(|number| ring.append(part(number), piece.clone())));
    }
    ring.flush();
    let is_lost = |queued: &Queued| queued.outcome() == Outcome::Lost;
    assert!(queued.iter().any(is_lost), "the disk is faster than memory");
    assert!(queued.iter().all(|queued| queued.outcome() != Outcome::Waiting));
    append(&ring, [(7, 10), (8, 10)].into_iter());
    drop(ring);
    let (_ring, found) = open(dir.path(), limits(), &writer);
    let last = &found[found.len() - 1];
    assert_eq!((last.record.part, last.is_after_gap), (8, false));
    let was_lost = queued.last().is_some_and(is_lost);
    assert_eq!(found[found.len() - 2].is_after_gap, was_lost);
}

#[test]
fn a_full_disk_loses_payloads_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else { return };
    let writer = RingWriter::start().unwrap();
    // Files of 1 MiB with their indexes, on a disk of 2 MiB.
    let large = RingLimits { bytes: 8 << 20, ..limits() };
    let (ring, _) = open(disk.0.path(), large, &writer);
    let other = tempfile::tempdir().unwrap();
    let (healthy, _) = open(other.path(), large, &writer);
    assert!(matches!(append(&ring, std::iter::once((0, 1 << 20)))[0], Outcome::Written(_)));
    // Another program takes what is left.
    let rest = fs::File::create(disk.0.path().join("rest")).unwrap();
    let zeros = vec![0; 64 << 10];
    while std::io::Write::write_all(&mut &rest, &zeros).is_ok() {}
    // Even without the older file there is no room for another one with its index.
    assert_eq!(append(&ring, std::iter::once((1, 1 << 20))), [Outcome::Lost]);
    let stats = ring.stats();
    assert_eq!((stats.errors, stats.written, stats.lost), (1, 1, 1));
    assert!(stats.failure.is_some_and(|failure| failure.contains("bytes are free")));
    assert!(matches!(append(&healthy, std::iter::once((0, 1 << 20)))[0], Outcome::Written(_)), "others go on");
    drop(ring);
    let (ring, found) = open(disk.0.path(), large, &writer);
    assert_eq!(found.len(), 1, "what was there stays");
    check(&ring, &found[0], 1 << 20);
}

#[test]
fn a_ring_rests_after_an_error_and_tries_again() {
    let dir = tempfile::tempdir().unwrap();
    let shared = Arc::new(Shared::open(dir.path(), NAME, limits()).unwrap());
    let mut writing = Writing::new(shared.clone(), Vec::new());
    let start = Instant::now();
    let mut at = |seconds: u64, number: u32| {
        let queued = Queued::default();
        let payload = content(number, 100);
        let append = Append { record: part(number), is_after_gap: false, payload, queued: queued.clone() };
        writing.append(&append, start + Duration::from_secs(seconds));
        queued.outcome()
    };
    assert!(matches!(at(0, 0), Outcome::Written(_)));
    // The next file finds no folder.
    fs::remove_dir_all(&shared.folder).unwrap();
    assert!(matches!(at(1, 1), Outcome::Written(_)), "an open file");
    for number in 2..3000 {
        at(2, number);
    }
    let stats = shared.stats();
    assert!(stats.lost > 0 && stats.errors == 1 && stats.failure.is_some(), "{stats:?}");
    fs::create_dir(&shared.folder).unwrap();
    assert_eq!(at(31, 3000), Outcome::Lost);
    assert!(matches!(at(32, 3001), Outcome::Written(_)));
    assert_eq!(shared.stats().failure, None);
    drop(writing);
    let (_, found) = recovery::recover(&shared.folder).unwrap();
    assert_eq!(found.iter().map(|found| (found.record.part, found.is_after_gap)).collect::<Vec<_>>(), [(3001, true)]);
}

#[test]
fn rings_of_other_streams_are_not_taken() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, _) = open(dir.path(), limits(), &writer);
    let folder = ring.shared.folder.clone();
    drop(ring);
    drop(open(dir.path(), limits(), &writer));
    fs::write(folder.join("name"), "cams/do").unwrap();
    drop(open(dir.path(), limits(), &writer));
    assert_eq!(fs::read(folder.join("name")).unwrap(), NAME.as_bytes(), "a part of the name is completed");
    fs::write(folder.join("name"), "other").unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let error = loop {
        match Ring::open(dir.path(), NAME, limits(), &writer) {
            Err(RingError::Locked { .. }) if Instant::now() < deadline => std::thread::yield_now(),
            opened => break opened.unwrap_err(),
        }
    };
    assert!(matches!(error, RingError::Taken { .. }), "{error}");
    let small = RingLimits { bytes: 1000, ..limits() };
    assert!(matches!(Ring::open(dir.path(), "b", small, &writer), Err(RingError::TooSmall { .. })));
}

/// A process that appends parts until it is killed, by the test after it.
#[test]
fn appends_until_it_is_killed() {
    let Some(folder) = std::env::var_os("MILLPOND_RING_CRASH") else { return };
    let (ring, found) = open(Path::new(&folder), limits(), &RingWriter::start().unwrap());
    let next = found.last().map_or(0, |last| last.record.part + 1);
    for number in next.. {
        let queued = ring.append(part(number), content(number, 3000));
        while queued.outcome() == Outcome::Waiting {
            std::thread::yield_now();
        }
        assert_ne!(queued.outcome(), Outcome::Lost);
    }
}

#[test]
fn a_process_killed_twenty_times_loses_only_what_it_was_writing() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (mut seen, mut rounds, began) = (None, 0, Instant::now());
    // A busy machine may not even start a process in that time.
    while (rounds < 20 || seen < Some(20)) && began.elapsed() < Duration::from_secs(120) {
        rounds += 1;
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["disk::ring::tests::appends_until_it_is_killed", "--exact"])
            .env("MILLPOND_RING_CRASH", dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(30 + fastrand::u64(..40)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (ring, found) = open(dir.path(), limits(), &writer);
        for found in &found {
            check(&ring, found, 3000);
        }
        let parts: Vec<u32> = found.iter().map(|found| found.record.part).collect();
        assert!(parts.windows(2).all(|two| two[1] == two[0] + 1), "{parts:?}");
        assert!(parts.last().copied() >= seen, "{:?} after {seen:?}", parts.last());
        seen = parts.last().copied();
    }
    assert!(seen >= Some(20), "{seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_cut_of_any_file_leaves_a_prefix_of_it(
        lengths in prop::collection::vec(0..40_000_usize, 1..20),
        file: prop::sample::Index,
        share in 0.0..1.0_f64,
    ) {
        let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
        let (ring, _) = open(dir.path(), limits(), &writer);
        let parts = || (0..).zip(lengths.iter().copied());
        append(&ring, parts());
        let folder = ring.shared.folder.clone();
        drop(ring);
        let (ring, before) = open(dir.path(), limits(), &writer);
        prop_assert_eq!(before.len(), lengths.len());
        let (name, length) = file.get(&files(&ring)).clone();
        drop(ring);
        let cut = (length as f64 * share) as u64;
        fs::OpenOptions::new().write(true).open(folder.join(&name)).unwrap().set_len(cut).unwrap();
        let (ring, after) = open(dir.path(), limits(), &writer);
        let number: u32 = name[name.len() - 6..].parse().unwrap();
        let is_index = name.starts_with("index");
        let rank = |found: &Found| before.iter().filter(|other| other.place.file == number).position(|other| other == found);
        let stays = |found: &&Found| match rank(found) {
            Some(rank) if is_index => ((rank + 1) * SIZE) as u64 <= cut,
            Some(_) => found.place.end() <= cut,
            None => true,
        };
        // Payloads without bytes at the cut stay too.
        let expected: Vec<Found> = before.iter().filter(stays).copied().collect();
        prop_assert_eq!(&after, &expected);
        for found in &after {
            check(&ring, found, lengths[found.record.part as usize]);
        }
    }

    #[test]
    fn flipped_bits_of_an_index_end_it(numbers in 1..30_u32, at: prop::sample::Index, bit in 0..8_u8) {
        let mut index = Vec::new();
        let mut offset = 0;
        for number in 0..numbers {
            let place = RingPlace { file: 3, offset, length: number };
            offset += u64::from(number);
            let found = Found { record: part(number), is_after_gap: false, place };
            index.extend_from_slice(&record::Entry { found, sum: 1 }.encode());
        }
        prop_assert_eq!(found(3, &index, offset).len(), numbers as usize);
        prop_assert_eq!(found(4, &index, offset).len(), 0, "of another file");
        let at = at.index(index.len());
        index[at] ^= 1 << bit;
        prop_assert_eq!(found(3, &index, offset).len(), at / SIZE);
    }
}

#[test]
fn sweeps_remove_the_oldest_files_of_all_rings_and_nothing_else() {
    let (dir, writer) = (tempfile::tempdir().unwrap(), RingWriter::start().unwrap());
    let (ring, _) = open(dir.path(), limits(), &writer);
    append(&ring, (0..13).map(|number| (number, 32 << 10)));
    let all = files(&ring);
    // A folder with a name of its own, and one whose name has another hash.
    for (folder, name) in [("photos", "photos"), ("0123456789abcdef", "cams/gate")] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        fs::write(dir.path().join(folder).join("name"), name).unwrap();
        fs::write(dir.path().join(folder).join("data-000001"), [0; 4096]).unwrap();
    }
    let now = std::time::SystemTime::now();
    let later = now + 2 * HOUR;
    let total = |total| SweepLimits { age: HOUR, total };
    // An open ring is never too old, and its writer removes what exceeds the total.
    let swept = sweep(dir.path(), total(None), later).unwrap();
    assert_eq!((swept.removed, swept.bytes > 4 * (128 << 10), swept.excess.len()), (0, true, 0), "{swept:?}");
    let swept = sweep(dir.path(), total(Some(swept.bytes - 1)), later).unwrap();
    assert_eq!(files(&ring), all);
    let [(name, bytes)] = &swept.excess[..] else { panic!("{swept:?}") };
    assert_eq!((&**name, *bytes), (NAME, all[0].1 + all[4].1));
    ring.free(*bytes);
    ring.flush();
    assert_eq!(files(&ring).len(), all.len() - 2);
    // One that is not open is bounded at once, then removed as a whole.
    let folder = ring.shared.folder.clone();
    drop(ring);
    while folder.join("data-000002").exists() {
        assert!(sweep(dir.path(), total(Some(200 << 10)), now).unwrap().bytes <= 200 << 10);
        std::thread::yield_now();
    }
    assert!(folder.join("data-000004").exists());
    assert_eq!(sweep(dir.path(), total(None), later).unwrap(), Swept { removed: 1, ..Swept::default() });
    assert!(!folder.exists());
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|of| of.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["0123456789abcdef", "photos"]);
    assert_eq!(fs::read_dir(dir.path().join("photos")).unwrap().count(), 2);
    assert_eq!(sweep(&dir.path().join("none"), total(None), now).unwrap(), Swept::default());
    let (_, found) = open(dir.path(), limits(), &writer);
    assert!(found.is_empty());
}
