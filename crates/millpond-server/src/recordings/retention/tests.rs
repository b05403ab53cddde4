use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const GIB: u64 = 1 << 30;

fn hours(count: u64) -> Duration {
    HOUR * u32::try_from(count).unwrap()
}

/// A folder of several streams that record an hour into each file, with a clock of its own.
struct Simulation {
    /// The time that really passes.
    real: Duration,
    /// Error of the wall clock in seconds.
    error: i64,
    limits: Limits,
    capacity: u64,
    files: Vec<Kept>,
    deleted: Vec<(Kept, Reason)>,
    refused: u64,
}

impl Simulation {
    fn new(limits: Limits, capacity: u64) -> Self {
        let real = hours(500_000);
        Self { real, error: 0, limits, capacity, files: Vec::new(), deleted: Vec::new(), refused: 0 }
    }

    fn now(&self) -> Duration {
        Duration::from_secs((self.real.as_secs() as i64 + self.error) as u64)
    }

    fn used(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// A minute passes, at the end of which the folder is tended, as it is in the server.
    fn tend(&mut self, written: u64) {
        let free = self.capacity.saturating_sub(self.used() + written);
        let disk = DiskState { now: self.now(), written, free: Some(free) };
        let doomed = doomed(&self.files, disk, self.limits);
        let times: Vec<_> = doomed.iter().map(|(index, _)| self.files[*index].began).collect();
        assert!(times.is_sorted(), "the oldest are deleted first");
        self.deleted.extend(doomed.iter().map(|(index, reason)| (self.files[*index], *reason)));
        let gone: Vec<usize> = doomed.into_iter().map(|(index, _)| index).collect();
        let mut index = 0;
        self.files.retain(|_| {
            index += 1;
            !gone.contains(&(index - 1))
        });
    }

    /// Each stream records an hour. A restart in the middle cuts its file in two.
    fn hour(&mut self, streams: u64, bytes: u64, restarts: bool) {
        let began = self.now();
        let parts = if restarts { 2 } else { 1 };
        let part = HOUR / parts;
        for number in 0..parts {
            for minute in 1..=60 / u64::from(parts) {
                let written = streams * bytes / 60 * minute;
                self.real += Duration::from_secs(60);
                self.tend(written);
            }
            for _ in 0..streams {
                let bytes = bytes / u64::from(parts);
                if self.used() + bytes > self.capacity {
                    self.refused += 1;
                    continue;
                }
                let began = began + part * number;
                self.files.push(Kept { began, ended: began + part, bytes });
            }
        }
        self.tend(0);
    }
}

#[test]
fn a_week_of_streams_is_kept_by_age() {
    let mut week = Simulation::new(Limits { age: Some(hours(48)), ..Limits::default() }, u64::MAX);
    for hour in 0..7 * 24 {
        week.hour(5, GIB, hour % 24 == 12);
    }
    // Nothing younger than two days is gone, and nothing older is there.
    assert!(week.deleted.iter().all(|(_, reason)| *reason == Reason::Age));
    let now = week.now();
    assert!(week.files.iter().all(|file| now - file.ended <= hours(48)));
    // One of them ended two days ago exactly, and two hours were cut in two.
    assert_eq!(week.files.len(), 5 * (48 + 1 + 2));
    assert_eq!(week.deleted.len() + week.files.len(), 5 * (7 * 24 + 7));
}

#[test]
fn a_week_of_streams_is_kept_by_bytes() {
    let limits = Limits { bytes: Some(100 * GIB), ..Limits::default() };
    let mut week = Simulation::new(limits, 200 * GIB);
    for hour in 0..7 * 24 {
        week.hour(3, GIB, hour % 24 == 5);
        assert!(week.used() <= 100 * GIB, "{hour}");
    }
    // The files that were being written had their room too.
    assert!(week.used() >= 97 * GIB, "{}", week.used() / GIB);
    assert_eq!(week.refused, 0);
    let oldest = week.files.iter().map(|file| file.began).min().unwrap();
    assert!(week.deleted.iter().all(|(file, reason)| file.began <= oldest && *reason == Reason::Bytes));
}

#[test]
fn a_disk_that_fills_up_loses_the_oldest_files_only() {
    let limits = Limits { age: Some(hours(24 * 30)), free: Some(GIB), ..Limits::default() };
    let mut week = Simulation::new(limits, 50 * GIB);
    for _ in 0..7 * 24 {
        week.hour(2, GIB, false);
    }
    assert_eq!(week.refused, 0, "there was always room");
    assert!(week.deleted.iter().all(|(_, reason)| *reason == Reason::Free));
    assert!(week.used() >= 45 * GIB);
}

#[test]
fn a_clock_that_is_set_back_deletes_nothing() {
    let mut week = Simulation::new(Limits { age: Some(hours(24)), ..Limits::default() }, u64::MAX);
    for _ in 0..3 * 24 {
        week.hour(1, GIB, false);
    }
    let (before, deleted) = (week.files.len(), week.deleted.len());
    week.error = -365 * 24 * 3600;
    for _ in 0..30 {
        week.hour(1, GIB, false);
    }
    // The files of the wrong year are old by their own clock only.
    let wrong = week.deleted[deleted..].iter().filter(|(file, _)| file.began > week.now()).count();
    assert!(wrong == 0 && week.files.len() >= before + 24, "{wrong} {}", week.files.len());
    // The clock is right again: the files of the wrong year are a year old, and the others have their age.
    week.error = 0;
    week.hour(1, GIB, false);
    assert!(week.files.iter().all(|file| week.now() - file.ended <= hours(24)));
    assert_eq!(week.files.len(), 1, "the clock was wrong for longer than files are kept");
}

#[test]
fn without_limits_nothing_is_deleted() {
    let files = [Kept { began: Duration::ZERO, ended: HOUR, bytes: GIB }; 3];
    let disk = DiskState { now: hours(1_000_000), written: u64::MAX, free: Some(0) };
    assert_eq!(doomed(&files, disk, Limits::default()), []);
    assert_eq!(doomed(&[], disk, Limits { age: Some(HOUR), bytes: Some(0), free: Some(1) }), []);
    let all =
        |written| doomed(&files, DiskState { written, ..disk }, Limits { bytes: Some(GIB), ..Limits::default() }).len();
    assert_eq!((all(u64::MAX), all(0), all(GIB)), (3, 2, 3));
}
