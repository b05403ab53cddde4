//! Visits of viewers: the bytes they read, when and how fast.

/// One viewer's visit: bytes of one object from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// Its start, in seconds from the start of the trace.
    pub at: f64,
    /// The number of the object.
    pub object: u64,
    /// Bytes of the object.
    pub len: u64,
    /// The first byte read.
    pub from: u64,
    /// The byte behind the last one read.
    pub to: u64,
    /// Bytes a second at which they are read; infinite for visits that take no time.
    pub rate: f64,
}

/// All visits, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Its name in tables.
    pub name: String,
    /// The visits.
    pub visits: Vec<Visit>,
}

/// Totals of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Visits.
    pub visits: u64,
    /// Bytes read in all.
    pub bytes: u64,
    /// Objects visited.
    pub objects: u64,
    /// Bytes of those objects.
    pub unique_bytes: u64,
    /// Visits of the most visited object.
    pub most: u64,
}

impl Workload {
    /// Divides all bytes by `bytes` and all times by `times`, to be played for real. Rates follow.
    #[must_use]
    pub fn scaled(mut self, bytes: f64, times: f64) -> Self {
        let scale = |value: u64| (value as f64 / bytes) as u64;
        for visit in &mut self.visits {
            visit.at /= times;
            visit.rate *= times / bytes;
            (visit.len, visit.from, visit.to) = (scale(visit.len), scale(visit.from), scale(visit.to));
        }
        self
    }

    /// Returns the totals.
    pub fn totals(&self) -> Totals {
        let mut objects = std::collections::HashMap::new();
        for visit in &self.visits {
            let entry = objects.entry(visit.object).or_insert((0_u64, 0_u64));
            *entry = (entry.0 + 1, entry.1.max(visit.len));
        }
        Totals {
            visits: self.visits.len() as u64,
            bytes: self.visits.iter().map(|visit| visit.to - visit.from).sum(),
            objects: objects.len() as u64,
            unique_bytes: objects.values().map(|(_, len)| len).sum(),
            most: objects.values().map(|(visits, _)| *visits).max().unwrap_or(0),
        }
    }
}
