//! Joined objects over sources in memory and in files.

use std::time::Duration;

use super::*;
use crate::origin::disk::DiskOrigin;
use crate::origin::memory::MemoryOrigin;
use crate::store::StoreOptions;

const SLICE: u64 = 4096;

/// Bytes of a source, which differ from those of others.
fn bytes(source: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ source).collect()
}

fn store() -> Store {
    Store::new(&StoreOptions { slice: SLICE as u32, ..StoreOptions::default() }).unwrap()
}

/// Joins ranges of objects. `list` names them.
async fn joined(store: &Store, list: &Arc<Object>, ranges: &[(&str, Range<u64>)]) -> (Arc<Object>, Arc<[u64]>) {
    let mut all = JoinedRanges::default();
    for (path, range) in ranges {
        let object = store.open("films", &ObjectPath::parse(path).unwrap()).await.unwrap();
        all.push(&JoinedSource::of(&object), range.clone());
    }
    let starts = all.starts();
    (store.joined(list, all), starts)
}

async fn in_memory() -> (Store, MemoryOrigin, Arc<Object>) {
    let (store, origin) = (store(), MemoryOrigin::new("films"));
    origin.put("show.m3u8", "a list");
    origin.put("a.ts", bytes(1, 10_000));
    origin.put("b.ts", bytes(2, 20_000));
    store.add_place("films", Arc::new(origin.clone()));
    let list = store.open("films", &ObjectPath::parse("show.m3u8").unwrap()).await.unwrap();
    (store, origin, list)
}

#[tokio::test]
async fn ranges_are_read_one_behind_the_other() {
    let (store, _origin, list) = in_memory().await;
    let ranges = [("b.ts", 0..100), ("b.ts", 100..9000), ("a.ts", 0..u64::MAX), ("a.ts", 5..5), ("b.ts", 0..20_000)];
    let (object, starts) = joined(&store, &list, &ranges).await;
    let (a, b) = (bytes(1, 10_000), bytes(2, 20_000));
    let expected = [&b[..9000], &a[..], &b[..]].concat();
    assert_eq!((object.meta().len, &starts[..]), (39_000, &[0, 100, 9000, 19_000][..]));
    for (start, end) in [(0, 39_000), (8_999, 9_001), (18_990, 19_010), (38_000, 39_000), (100, 100)] {
        let found = store.read_all(&object, start as u64..end as u64).await.unwrap();
        assert!(found == expected[start..end], "{start} to {end}");
    }
    let whole = store.read_whole(&object).await.unwrap();
    assert!(whole == expected);
    assert_eq!((object.path().as_str(), object.is_storable(), object.named().lasting), ("show.m3u8", true, false));
}

#[tokio::test]
async fn one_version_has_one_object_and_another_one_ends_it() {
    let (store, origin, list) = in_memory().await;
    let ranges = [("a.ts", 0..10_000), ("b.ts", 0..20_000)];
    let (first, _) = joined(&store, &list, &ranges).await;
    let (second, _) = joined(&store, &list, &ranges).await;
    assert!(Arc::ptr_eq(&first, &second));
    let (other, _) = joined(&store, &list, &[("a.ts", 0..9_999), ("b.ts", 0..20_000)]).await;
    assert_ne!(first.meta().version, other.meta().version);

    origin.put("b.ts", bytes(9, 20_000));
    let error = store.read_all(&first, 20_000..20_001).await.unwrap_err();
    assert!(matches!(error, OriginError::Changed { .. }), "{error}");
    assert!(first.is_outdated() && !other.is_outdated());
    origin.remove("a.ts");
    let error = store.read_all(&other, 9000..9010).await.unwrap_err();
    assert!(other.is_outdated(), "{error}");
}

#[tokio::test]
async fn files_are_not_held_open_and_not_mixed_with_later_versions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    write("show.m3u8", b"a list");
    let (a, b) = (bytes(1, 600_000), bytes(2, 700_000));
    write("a.ts", &a);
    write("b.ts", &b);
    let store = store();
    store.add_place("films", Arc::new(DiskOrigin::new(folder.path()).unwrap()));
    let list = store.open("films", &ObjectPath::parse("show.m3u8").unwrap()).await.unwrap();
    let (object, _) = joined(&store, &list, &[("a.ts", 0..600_000), ("b.ts", 0..700_000)]).await;
    assert!(object.file().is_none());
    let found = store.read_all(&object, 599_000..1_250_000).await.unwrap();
    assert!(found == [&a[599_000..], &b[..650_000]].concat());
    write("b.ts", &b[..699_999]);
    let error = store.read_all(&object, 1_299_000..1_299_100).await.unwrap_err();
    assert!(matches!(error, OriginError::Changed { .. }), "{error}");
    assert!(object.is_outdated());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_share_little_memory() {
    let options = StoreOptions { slice: SLICE as u32, memory: 8 * SLICE, ..StoreOptions::default() };
    let (store, origin) = (Store::new(&options).unwrap(), MemoryOrigin::new("films"));
    origin.put("show.m3u8", "a list");
    let names: Vec<String> = (0..50).map(|number| format!("{number}.ts")).collect();
    let mut expected = Vec::new();
    for (number, name) in names.iter().enumerate() {
        // Segments begin and end within slices.
        let content = bytes(number as u8, 10_001 + number);
        expected.extend_from_slice(&content);
        origin.put(name, content);
    }
    store.add_place("films", Arc::new(origin));
    let list = store.open("films", &ObjectPath::parse("show.m3u8").unwrap()).await.unwrap();
    let ranges: Vec<_> = names.iter().map(|name| (name.as_str(), 0..u64::MAX)).collect();
    let (object, _) = joined(&store, &list, &ranges).await;
    let expected = Arc::new(expected);
    let tasks: Vec<_> = (0..12_usize)
        .map(|number| {
            let (store, object, expected) = (store.clone(), object.clone(), expected.clone());
            tokio::spawn(async move {
                let (mut at, end) = (number * 30_000, number * 30_000 + 90_000);
                let mut reader = store.read(&object, at as u64..end as u64);
                while let Some(bytes) = reader.next_bytes().await {
                    let bytes = bytes.unwrap();
                    assert!(bytes == expected[at..at + bytes.len()], "reader {number} at {at}");
                    at += bytes.len();
                }
                assert_eq!(at, end);
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(30), task).await.expect("no reader waits for ever").unwrap();
    }
}
