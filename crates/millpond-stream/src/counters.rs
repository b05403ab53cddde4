//! Counters of an engine, and their collector for metrics.

use crate::admission::Full;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, histogram::Histogram},
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Upper bounds in seconds for jitter and round trips: from the same switch to the other side of the world.
const NETWORK_SECONDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Counted by all modules and sending threads of an engine.
#[derive(Debug)]
pub struct Counters {
    pub(crate) packets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) late_frames: AtomicU64,
    /// Late frames that were loaded in time.
    pub(crate) lagging_frames: AtomicU64,
    pub(crate) missed_deadlines: AtomicU64,
    pub(crate) dropped_frames: AtomicU64,
    pub(crate) interval_hits: AtomicU64,
    pub(crate) interval_misses: AtomicU64,
    pub(crate) failed_sends: AtomicU64,
    pub(crate) repeated_packets: AtomicU64,
    /// Packets that were asked for and not sent again.
    pub(crate) refused_repeats: AtomicU64,
    /// Requests for packets of a stream that their sender does not receive.
    pub(crate) foreign_feedback: AtomicU64,
    pub(crate) reports: AtomicU64,
    pub(crate) lost_packets: AtomicU64,
    /// Loss events of rate control.
    pub(crate) loss_events: AtomicU64,
    /// Frames that rate control dropped.
    pub(crate) held_frames: AtomicU64,
    /// Reports arrive once in some seconds from each receiver: the locks of these are no burden.
    jitter: Histogram,
    round_trip: Histogram,
    /// Subscribers that play now.
    pub(crate) playing: AtomicU64,
    /// Time of the sending threads on a processor, and waiting for one, in microseconds.
    pub(crate) sender_run_micros: AtomicU64,
    pub(crate) sender_wait_micros: AtomicU64,
    /// 1 while new sessions are refused because sending is late.
    pub(crate) overloaded: AtomicU64,
    /// Recordings that run now.
    pub(crate) recordings: AtomicU64,
    pub(crate) recorded_bytes: AtomicU64,
    pub(crate) recorded_frames: AtomicU64,
    /// Frames that recordings left out because the disk was slow.
    pub(crate) unrecorded_frames: AtomicU64,
    pub(crate) failed_recordings: AtomicU64,
    /// Modules that push to a destination now.
    pub(crate) pushes: AtomicU64,
    pub(crate) pushed_bytes: AtomicU64,
    pub(crate) pushed_frames: AtomicU64,
    /// Connections to destinations that ended before their stream.
    pub(crate) failed_pushes: AtomicU64,
    /// Refused sessions, in the order of [`Full`].
    refused: [AtomicU64; Full::NAMES.len()],
}

impl Default for Counters {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            packets: zero(),
            bytes: zero(),
            frames: zero(),
            late_frames: zero(),
            lagging_frames: zero(),
            missed_deadlines: zero(),
            dropped_frames: zero(),
            interval_hits: zero(),
            interval_misses: zero(),
            failed_sends: zero(),
            repeated_packets: zero(),
            refused_repeats: zero(),
            foreign_feedback: zero(),
            reports: zero(),
            lost_packets: zero(),
            loss_events: zero(),
            held_frames: zero(),
            jitter: Histogram::new(NETWORK_SECONDS),
            round_trip: Histogram::new(NETWORK_SECONDS),
            playing: zero(),
            sender_run_micros: zero(),
            sender_wait_micros: zero(),
            overloaded: zero(),
            recordings: zero(),
            recorded_bytes: zero(),
            recorded_frames: zero(),
            unrecorded_frames: zero(),
            failed_recordings: zero(),
            pushes: zero(),
            pushed_bytes: zero(),
            pushed_frames: zero(),
            failed_pushes: zero(),
            refused: Default::default(),
        }
    }
}

impl Counters {
    /// Counts a refused session.
    pub fn refuse(&self, full: Full) {
        if let Some(count) = self.refused.get(full as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bytes that were sent since the start.
    pub fn sent_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of subscribers that play now.
    pub fn playing(&self) -> u64 {
        self.playing.load(Ordering::Relaxed)
    }

    /// Number of sessions refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether new sessions are refused now because sending is late.
    pub fn is_overloaded(&self) -> bool {
        self.overloaded.load(Ordering::Relaxed) != 0
    }

    /// Counts a receiver report.
    pub(crate) fn report(&self, lost: u64, jitter: Duration, round_trip: Option<Duration>) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        self.lost_packets.fetch_add(lost, Ordering::Relaxed);
        self.jitter.observe(jitter.as_secs_f64());
        if let Some(round_trip) = round_trip {
            self.round_trip.observe(round_trip.as_secs_f64());
        }
    }
}

/// One counter: name, help, value.
type Field = (&'static str, &'static str, fn(&Counters) -> &AtomicU64);

const COUNTERS: &[Field] = &[
    ("rtp_packets", "RTP packets sent", |counters| &counters.packets),
    ("rtp_bytes", "Bytes of RTP packets sent, headers included", |counters| &counters.bytes),
    ("rtp_frames", "Frames sent as RTP packets", |counters| &counters.frames),
    ("rtp_late_frames", "Frames sent more than 100 ms after they were due", |counters| &counters.late_frames),
    (
        "rtp_lagging_frames",
        "Late frames that had been loaded in time, so that the machine was too slow to send them",
        |counters| &counters.lagging_frames,
    ),
    ("rtp_missed_deadlines", "Times that frames were loaded more than 100 ms after they were due", |counters| {
        &counters.missed_deadlines
    }),
    (
        "rtsp_interval_hits",
        "Blocks of frames that a session found in memory, because another session was ahead within the caching window",
        |counters| &counters.interval_hits,
    ),
    (
        "rtsp_interval_misses",
        "Blocks of frames that a session within the caching window did not find in memory",
        |counters| &counters.interval_misses,
    ),
    ("rtp_dropped_frames", "Frames not sent because the receiver was slow or the frame was invalid", |counters| {
        &counters.dropped_frames
    }),
    ("rtp_failed_sends", "RTP and RTCP packets that the system did not accept for sending", |counters| {
        &counters.failed_sends
    }),
    ("rtp_repeated_packets", "RTP packets sent again because their receiver requested them", |counters| {
        &counters.repeated_packets
    }),
    (
        "rtp_refused_repeats",
        "RTP packets that receivers requested again and did not get: they were too old, or requested too often, or \
         too many",
        |counters| &counters.refused_repeats,
    ),
    ("rtcp_foreign_feedback", "Requests for lost packets from senders that do not receive the stream", |counters| {
        &counters.foreign_feedback
    }),
    ("recorded_bytes", "Bytes that recordings wrote into their files", |counters| &counters.recorded_bytes),
    ("recorded_frames", "Frames that recordings wrote into their files", |counters| &counters.recorded_frames),
    ("recording_lost_frames", "Frames missing in recordings because the disk was slow", |counters| {
        &counters.unrecorded_frames
    }),
    ("recordings_failed", "Recordings that ended because their file could not be written", |counters| {
        &counters.failed_recordings
    }),
    ("pushed_bytes", "Bytes of frames that were pushed to destinations", |counters| &counters.pushed_bytes),
    ("pushed_frames", "Frames that were pushed to destinations", |counters| &counters.pushed_frames),
    ("pushes_failed", "Connections to destinations that ended before their stream", |counters| &counters.failed_pushes),
    ("rtcp_reports", "Receiver reports received", |counters| &counters.reports),
    ("rtcp_lost_packets", "Packets that receivers report as lost", |counters| &counters.lost_packets),
    (
        "rtp_loss_events",
        "Loss events that rate control found in reports; all losses within one round trip are one event",
        |counters| &counters.loss_events,
    ),
    (
        "rtp_held_frames",
        "Frames of stored titles and of time shift dropped because the rate control would have made them late",
        |counters| &counters.held_frames,
    ),
];

/// Shows the counters of an engine in metrics.
#[derive(Debug)]
pub struct CounterCollector(pub Arc<Counters>);

impl Collector for CounterCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in COUNTERS {
            let counter = ConstCounter::new(value(&self.0).load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        for (name, help, histogram) in [
            ("rtcp_jitter_seconds", "Interarrival jitter that receivers report", &self.0.jitter),
            ("rtcp_round_trip_seconds", "Round-trip times according to receiver reports", &self.0.round_trip),
        ] {
            histogram.encode(encoder.encode_descriptor(name, help, None, histogram.metric_type())?)?;
        }
        let help = "Refused RTSP sessions (453)";
        let mut family = encoder.encode_descriptor("rtsp_refused", help, None, MetricType::Counter)?;
        for (reason, count) in Full::NAMES.iter().zip(&self.0.refused) {
            let labels = [("reason", *reason)];
            ConstCounter::new(count.load(Ordering::Relaxed)).encode(family.encode_family(&labels)?)?;
        }
        let help = "Time for which the threads that send RTP ran, and for which they waited for a processor";
        let mut family = encoder.encode_descriptor("rtp_sender_seconds", help, None, MetricType::Counter)?;
        for (state, micros) in [("running", &self.0.sender_run_micros), ("waiting", &self.0.sender_wait_micros)] {
            let seconds = micros.load(Ordering::Relaxed) as f64 / 1e6;
            ConstCounter::new(seconds).encode(family.encode_family(&[("state", state)])?)?;
        }
        for (name, help, value) in [
            ("recordings", "Running recordings", &self.0.recordings),
            ("pushes", "Destinations that streams are pushed to now", &self.0.pushes),
            ("rtsp_playing", "Playing RTSP sessions", &self.0.playing),
            (
                "rtsp_overloaded",
                "1 while new RTSP sessions are refused because packets are sent late",
                &self.0.overloaded,
            ),
        ] {
            let gauge = ConstGauge::new(value.load(Ordering::Relaxed) as i64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
