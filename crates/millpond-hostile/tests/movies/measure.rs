//! Measures the heap, CPU time and work steps that one movie takes.

use millpond_hostile::{OutputError, SparseObject, outputs};
use millpond_media::Work;
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::new(());

/// Keeps other tests from running meanwhile, because heap and CPU time are measured for the whole process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Most heap bytes, without the file and without its movie box, which is held once while it is read.
const MOST_HEAP: usize = 64 << 20;
/// Most CPU time of one output. The development build is up to five times slower than the release build, and other programs of a busy
/// machine slow it several times more: its limit finds what has no end. Steps are the exact limit.
const MOST_CPU: Duration = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 1 });
/// Most bytes of metadata for which [`MOST_CPU`] holds. Longer tables take time in proportion to their length.
const LONG: usize = 16 << 20;

/// Result of one measured movie.
pub(crate) struct Outcome {
    pub(crate) result: Result<u64, OutputError>,
}

/// Runs a job. Returns its result, the heap bytes held before it, and the most heap bytes held meanwhile. The test must hold [`alone`].
pub(crate) fn heap_of<T>(job: impl FnOnce() -> T) -> (T, usize, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    (job(), before, HEAP.peak_usage())
}

/// Makes every output of a movie, and fails where that costs more than its bytes justify. The test must hold [`alone`].
pub(crate) fn measured(name: &str, object: &SparseObject) -> Outcome {
    measured_of(name, object, &outputs::run)
}

/// Makes what an outline of a movie is enough for, as [`measured`].
pub(crate) fn measured_outline(name: &str, object: &SparseObject) -> Outcome {
    measured_of(name, object, &outputs::run_outline)
}

/// Makes outputs of a movie, and counts their bytes.
type Run = dyn Fn(&SparseObject, &Work, &mut dyn FnMut(&'static str)) -> Result<u64, OutputError>;

fn measured_of(name: &str, object: &SparseObject, run: &Run) -> Outcome {
    let steps = outputs::justified_steps(object.head.len() as u64);
    let work = Work::new(steps);
    HEAP.reset_peak_usage();
    let heap = HEAP.current_usage();
    let (mut since, mut slowest) = (cpu_time(), (Duration::ZERO, "none"));
    let result = run(object, &work, &mut |output| {
        let now = cpu_time();
        slowest = slowest.max((now.saturating_sub(since), output));
        since = now;
    });
    let (cpu, output) = slowest;
    let heap = HEAP.peak_usage().saturating_sub(heap);
    if std::env::var_os("HOSTILE_FIGURES").is_some() {
        let shown = format!("{result:?}").chars().take(160).collect::<String>();
        println!("{name}: {} bytes, {output} {cpu:?}, {heap} heap, {} steps: {shown}", object.head.len(), work.spent());
    }
    let exhausted = format!("{result:?}").contains("Exhausted");
    assert!(!exhausted, "{name}: {} bytes of metadata took more than {steps} steps: {result:?}", object.head.len());
    let most = MOST_CPU.mul_f64((object.head.len() as f64 / LONG as f64).max(1.0));
    assert!(cpu <= most, "{name}: {output} took {cpu:?} of CPU, expected at most {most:?}");
    let most = MOST_HEAP + object.head.len();
    assert!(heap <= most, "{name}: {heap} bytes of heap, expected at most {most}");
    Outcome { result }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
