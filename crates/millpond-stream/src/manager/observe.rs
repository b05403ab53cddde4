//! Watches once a second whether frames leave in time, and why they do not.

use crate::{
    Counters,
    admission::{Admission, Change, Measured, Origins},
    transmission::{ThreadTime, Transmitter},
};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Interval between lateness checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// The counters and threads by which lateness is measured, and the parts that react to it.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) counters: &'a Counters,
    pub(super) threads: &'a [Transmitter],
    pub(super) admission: &'a Admission,
    pub(super) origins: &'a Origins,
}

impl Watch<'_> {
    /// Measures lateness once a second and tells admission, without an end.
    pub(super) async fn run(self) {
        let counters = self.counters;
        let read = || [&counters.frames, &counters.lagging_frames].map(|count| count.load(Ordering::Relaxed));
        let mut before = (read(), Instant::now());
        let mut times: Vec<_> = self.threads.iter().map(|sender| ThreadTime::of(sender.thread)).collect();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = (read(), Instant::now());
            let [frames, late] = [now.0[0] - before.0[0], now.0[1] - before.0[1]];
            let threads = times.iter_mut().filter_map(ThreadTime::spent).collect();
            let measured = Measured { elapsed: now.1 - before.1, frames, late, threads };
            before = now;
            let change = self.admission.observe(now.1, &measured);
            self.tell(change, &measured);
            for place in self.origins.observe() {
                tracing::warn!(%place, "frames arrive late from an origin: no further session may read from it for now");
            }
        }
    }

    /// Counts the time of the threads, and logs a change with its measurements.
    fn tell(self, change: Option<Change>, measured: &Measured) {
        let Measured { frames, late, threads, .. } = measured;
        let counters = self.counters;
        let micros = |time: Duration| time.as_micros() as u64;
        for spent in threads {
            counters.sender_run_micros.fetch_add(micros(spent.run), Ordering::Relaxed);
            counters.sender_wait_micros.fetch_add(micros(spent.wait), Ordering::Relaxed);
        }
        match change {
            Some(Change::Refuses) => {
                counters.overloaded.store(1, Ordering::Relaxed);
                tracing::warn!(
                    frames,
                    late,
                    ?threads,
                    "frames are sent late for seconds: a sending thread has too much to do, newcomers are refused for now"
                );
            }
            Some(Change::Takes) => {
                counters.overloaded.store(0, Ordering::Relaxed);
                tracing::info!("frames are sent in time again: newcomers are taken");
            }
            Some(Change::Starved) => tracing::warn!(
                frames,
                late,
                ?threads,
                "frames are sent late: the sending threads wait for the processor, which others use; nobody is refused"
            ),
            None => {}
        }
    }
}
