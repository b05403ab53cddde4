//! Derived objects over sources in memory and in files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::origin::disk::DiskOrigin;
use crate::origin::memory::MemoryOrigin;
use crate::store::StoreOptions;

const SLICE: u64 = 4096;

/// Every second byte of a source.
#[derive(Debug)]
struct Half {
    /// Length of the source.
    source: u64,
    /// Largest part that was supplied.
    largest: Arc<AtomicUsize>,
    /// Memory that each range claims besides its bytes.
    claims: u64,
}

/// A range of every second byte.
struct Halving {
    source: Vec<u8>,
    memory: u64,
    largest: Arc<AtomicUsize>,
}

impl Half {
    fn of(source: u64) -> Self {
        Self { source, largest: Arc::default(), claims: 0 }
    }
}

impl Derivation for Half {
    fn name(&self) -> &'static str {
        "half"
    }

    fn length(&self) -> u64 {
        self.source / 2
    }

    fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String> {
        if range.start >= 400_000 { Err("nothing there".to_owned()) } else { Ok(2 * range.start..2 * range.end) }
    }

    fn begin(&self, range: &Range<u64>) -> Result<Box<dyn Making>, String> {
        let memory = 3 * (range.end - range.start) + self.claims;
        Ok(Box::new(Halving { source: Vec::new(), memory, largest: self.largest.clone() }))
    }
}

impl Making for Halving {
    fn memory(&self) -> u64 {
        self.memory
    }

    fn supply(&mut self, part: &[u8]) {
        self.largest.fetch_max(part.len(), Ordering::Relaxed);
        self.source.extend_from_slice(part);
    }

    fn finish(self: Box<Self>) -> Result<Bytes, String> {
        Ok(half(&self.source).into())
    }
}

fn half(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().step_by(2).copied().collect()
}

fn bytes() -> Vec<u8> {
    (0..1_000_000_u32).map(|number| (number / 7) as u8).collect()
}

/// Opens `a.ts` of a place that holds it in memory.
async fn opened(memory: u64) -> (Store, MemoryOrigin, Arc<Object>) {
    let options = StoreOptions { slice: SLICE as u32, memory, ..StoreOptions::default() };
    let (store, origin) = (Store::new(&options).unwrap(), MemoryOrigin::new("films"));
    origin.put("a.ts", bytes());
    store.add_place("films", Arc::new(origin.clone()));
    let source = store.open("films", &ObjectPath::parse("a.ts").unwrap()).await.unwrap();
    (store, origin, source)
}

#[tokio::test]
async fn a_derived_object_is_read_like_others() {
    let (store, origin, source) = opened(StoreOptions::default().memory).await;
    let derived = store.derived(&source, Arc::new(Half::of(1_000_000)));
    assert_eq!((derived.meta().len, derived.path().as_str(), derived.is_storable()), (500_000, "a.ts/half", false));
    let expected = half(&bytes());
    for (start, end) in [(0, 10), (4000, 9000), (399_000, 400_000)] {
        let found = store.read_all(&derived, start as u64..end as u64).await.unwrap();
        assert_eq!(found, expected[start..end]);
    }
    let error = store.read_all(&derived, 450_000..450_001).await.unwrap_err().to_string();
    assert!(error.contains("half of films/a.ts") && error.contains("nothing there"), "{error}");

    // Another version of the source makes another object, and the old one is not mixed with it.
    origin.put("a.ts", vec![9; 1_000_000]);
    let error = store.read_all(&derived, 100_000..100_001).await.unwrap_err();
    assert!(matches!(error, OriginError::Changed { .. }), "{error}");
    assert!(!Arc::ptr_eq(&derived, &store.derived(&source, Arc::new(Half::of(1_000_000)))));
}

#[tokio::test]
async fn one_version_has_one_object_while_it_is_used() {
    let (store, _origin, source) = opened(StoreOptions::default().memory).await;
    let make = || store.derived(&source, Arc::new(Half::of(1_000_000)));
    let (first, second) = (make(), make());
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(store.derived_objects().all().len(), 1);
    drop((first, second));
    assert!(store.derived_objects().all().is_empty());
    assert_eq!(make().meta().len, 500_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_are_made_within_the_memory_budget() {
    // Each making takes three slices of eight, so one runs at a time.
    let memory = 8 * SLICE;
    let (store, _origin, source) = opened(memory).await;
    let derived = store.derived(&source, Arc::new(Half::of(1_000_000)));
    let expected = Arc::new(half(&bytes()));
    let tasks: Vec<_> = (0..12_u64)
        .map(|number| {
            let (store, derived, expected) = (store.clone(), derived.clone(), expected.clone());
            tokio::spawn(async move {
                let mut reader = store.read(&derived, number * 20_000..number * 20_000 + 60_000);
                let mut at = (number * 20_000) as usize;
                while let Some(bytes) = reader.next_bytes().await {
                    let bytes = bytes.unwrap();
                    assert!(store.stats().memory_used <= memory);
                    assert!(bytes == expected[at..at + bytes.len()], "reader {number} at {at}");
                    at += bytes.len();
                }
                assert_eq!(at as u64, number * 20_000 + 60_000);
            })
        })
        .collect();
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(30), task).await;
        ended.expect("no reader waits for ever").unwrap();
    }
}

#[tokio::test]
async fn a_range_beyond_half_the_memory_is_refused() {
    let (store, _origin, source) = opened(8 * SLICE).await;
    let greedy = Half { claims: 4 * SLICE, ..Half::of(1_000_000) };
    let derived = store.derived(&source, Arc::new(greedy));
    let error = store.read_all(&derived, 10..20).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OriginError::Unplayable { .. }), "{text}");
    assert!(text.contains("bytes 10 to 20 of the half take 16414 bytes") && text.contains("at most 16384"), "{text}");
}

#[tokio::test]
async fn files_are_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = bytes().into_iter().cycle().take(3_000_000).collect();
    std::fs::write(folder.path().join("a.ts"), &content).unwrap();
    let store = Store::new(&StoreOptions::default()).unwrap();
    store.add_place("films", Arc::new(DiskOrigin::new(folder.path()).unwrap()));
    let source = store.open("films", &ObjectPath::parse("a.ts").unwrap()).await.unwrap();
    assert!(source.file().is_some());
    let half_of = Half::of(3_000_000);
    let largest = half_of.largest.clone();
    let derived = store.derived(&source, Arc::new(half_of));
    let found = store.read_all(&derived, 1000..399_000).await.unwrap();
    assert!(found == half(&content)[1000..399_000]);
    assert_eq!(largest.load(Ordering::Relaxed), 256 * 1024);
}
