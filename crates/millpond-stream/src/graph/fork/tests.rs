//! Branches that join, lag and leave.

use super::*;
use bytes::Bytes;
use millpond_media::Importance;

const KEPT: KeptLimits = KeptLimits { runs: 64, bytes: usize::MAX, span: Duration::MAX };
const LIMITS: QueueLimits = QueueLimits { runs: 128, ..QueueLimits::MODULE };

/// Frames of track 0 by number: key frames where they are divisible by 10.
fn run(numbers: std::ops::Range<u32>) -> Run {
    let frame = |number: u32| Frame {
        track: 0,
        number,
        due: Duration::ZERO,
        pts: 0,
        epoch: 0,
        is_sync: number.is_multiple_of(10),
        importance: Importance::BASE,
        data: Bytes::new(),
    };
    numbers.map(frame).collect()
}

fn fork(registry: &Registry) -> Fork {
    Fork::new(registry, &registry.add("channel", "news"), Arc::new(Lead::of(0)), KEPT)
}

fn taken(reader: &mut PipeReader) -> Vec<u32> {
    let mut all = Vec::new();
    while let Ok(Some(frame)) = reader.peek() {
        all.push(frame.number);
        reader.advance();
    }
    reader.return_permits();
    all
}

#[tokio::test]
async fn who_joins_begins_with_the_last_key_frame_and_disturbs_nobody() {
    let registry = Registry::default();
    let fork = fork(&registry);
    let (a, b) = (registry.add("transmission", "a"), registry.add("transmission", "b"));
    let mut early = Box::pin(fork.join(a.id(), None, LIMITS));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "nothing to begin with");
    fork.put(&run(1..5));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "no key frame");
    fork.put(&run(5..12));
    let Branch { reader: mut first, first: run_of_first, runs, .. } = early.await.unwrap();
    assert_eq!((run_of_first.len(), runs), (7, 1));
    fork.put(&run(12..15));
    let mut second = fork.join(b.id(), None, LIMITS).await.unwrap().reader;
    fork.put(&run(15..18));
    assert_eq!(registry.snapshot().pipes.len(), 2);
    assert_eq!(taken(&mut first), (5..18).collect::<Vec<_>>());
    assert_eq!(taken(&mut second), (5..18).collect::<Vec<_>>());
    fork.put(&run(18..22));
    drop(first);
    assert_eq!(registry.snapshot().pipes.len(), 1);
    let third = fork.join(a.id(), None, LIMITS).await.unwrap();
    assert_eq!(third.first.len(), 4, "from the newer key frame on");
    fork.put(&run(22..23));
    fork.close();
    assert_eq!(taken(&mut second), (18..23).collect::<Vec<_>>());
    assert_eq!(second.peek(), Err(Closed));
    assert!(fork.join(a.id(), None, LIMITS).await.is_err() && fork.is_closed());
}

#[tokio::test]
async fn who_takes_nothing_loses_runs_alone() {
    let registry = Registry::default();
    let fork = fork(&registry);
    let a = registry.add("transmission", "a");
    fork.put(&run(0..1));
    let slow = fork.join(a.id(), None, LIMITS).await.unwrap();
    let mut quick = fork.join(a.id(), None, LIMITS).await.unwrap().reader;
    let mut lost = 0;
    for number in 1..200 {
        lost += fork.put(&run(number..number + 1));
        assert_eq!(taken(&mut quick).last(), Some(&number));
    }
    assert_eq!(fork.figures().lost, lost as u64);
    assert_eq!(registry.snapshot().pipes.iter().map(|edge| edge.lost).sum::<u64>(), lost as u64);
    let mut reader = slow.reader;
    let left = taken(&mut reader);
    assert_eq!(left.len() + lost, 200);
    assert!(left.len() <= 1 + LIMITS.runs, "the key frame that it began with does not count");
    // Key frames, and frames behind the one before them.
    assert!(left.windows(2).all(|pair| pair[1].is_multiple_of(10) || pair[1] == pair[0] + 1), "{left:?}");
}

#[tokio::test]
async fn far_key_frames_are_waited_for() {
    let registry = Registry::default();
    let fork = fork(&registry);
    let a = registry.add("transmission", "a");
    fork.put(&run(0..1));
    for number in 0..KEPT.runs as u32 {
        fork.put(&run(10 * number + 1..10 * number + 2));
    }
    let mut late = Box::pin(fork.join(a.id(), None, LIMITS));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut late).await.is_err());
    fork.put(&run(1000..1001));
    assert_eq!(late.await.unwrap().first[0].number, 1000);
}
