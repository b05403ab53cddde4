//! Metrics of live streams.

use super::Manager;
use crate::{modules::KINDS, report::StreamState, source_health::LiveTotals};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

/// Shows the live streams of an engine in metrics, once that is set.
#[derive(Clone, Debug, Default)]
pub struct LiveCollector(Arc<OnceLock<Weak<Manager>>>);

/// One counter: name, help, value.
type Field = (&'static str, &'static str, fn(&LiveTotals) -> &AtomicU64);

const COUNTERS: &[Field] = &[
    ("live_received_bytes", "Bytes of frames that live sources sent", |totals| &totals.bytes),
    ("live_received_frames", "Frames that live sources sent", |totals| &totals.frames),
    ("live_lost_packets", "Packets of live sources that did not arrive in time", |totals| &totals.lost_packets),
    ("live_asked_packets", "Missing packets that were requested again from live sources", |totals| {
        &totals.asked_packets
    }),
    ("live_repaired_packets", "Packets of live sources that were requested again and arrived in time", |totals| {
        &totals.repaired_packets
    }),
    (
        "live_too_late_packets",
        "Packets of live sources that were requested again and did not arrive in time",
        |totals| &totals.too_late_packets,
    ),
    ("live_unused_packets", "Packets of live sources that were invalid, late or from another sender", |totals| {
        &totals.unused_packets
    }),
    ("live_broken_frames", "Frames of live sources discarded because a part of the frame was missing", |totals| {
        &totals.broken_frames
    }),
    ("live_reconnections", "Times that a lost live source sent frames again", |totals| &totals.reconnections),
    ("live_refused", "Times that a live stream was closed because it sent more than stream-memory allows", |totals| {
        &totals.refused
    }),
    ("live_epochs", "Epochs of live streams that began; a discontinuity or a change of formats begins one", |totals| {
        &totals.epochs
    }),
    ("live_insertions", "Clips that began in live streams", |totals| &totals.insertions),
    ("live_cues", "SCTE 35 cues in live streams; repetitions are not counted", |totals| &totals.cues),
];

impl LiveCollector {
    /// Sets the engine whose streams are shown. The first one stays.
    pub fn set(&self, manager: &Arc<Manager>) {
        let _ = self.0.set(Arc::downgrade(manager));
    }
}

impl Collector for LiveCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Without an engine all families are there, without events.
        let manager = self.0.get().and_then(Weak::upgrade);
        let none = LiveTotals::default();
        let totals = manager.as_ref().map_or(&none, |manager| manager.live_streams().totals());
        for (name, help, value) in COUNTERS {
            let counter = ConstCounter::new(value(totals).load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let streams = manager.as_ref().map(|manager| manager.streams()).unwrap_or_default();
        let states: Vec<_> = streams.iter().map(|stream| stream.state.name()).collect();
        let mut family = encoder.encode_descriptor("live_streams", "Live streams by state", None, MetricType::Gauge)?;
        for state in StreamState::NAMES {
            let count = states.iter().filter(|of| **of == state).count();
            ConstGauge::new(count as i64).encode(family.encode_family(&[("state", state)])?)?;
        }
        let rings = || streams.iter().filter_map(|stream| Some(&stream.shift.as_ref()?.ring));
        let bytes: u64 = rings().map(|ring| ring.bytes).sum();
        let failed = rings().filter(|ring| ring.failure.is_some()).count();
        let failed = failed + streams.iter().filter(|stream| stream.shift_failure.is_some()).count();
        for (name, help, value) in [
            ("live_time_shift_bytes", "Bytes on the disk for the past of running live streams", bytes as i64),
            (
                "live_time_shift_failing",
                "Live streams whose past is not written because the disk failed",
                failed as i64,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        // Streams whose source is lost have no frames for a reason that `live_streams` tells.
        let running = streams.iter().filter(|stream| matches!(stream.state, StreamState::Running { .. }));
        let oldest = running.filter_map(|stream| stream.silence).max().unwrap_or_default();
        let age = ConstGauge::new(oldest.as_secs_f64());
        let help = "Longest time since the last frame among the running live streams; 0 if none runs";
        age.encode(encoder.encode_descriptor("live_frame_age", help, Some(&Unit::Seconds), age.metric_type())?)?;
        let help = "Frames of channels and live streams that slow viewers lost, by the module that sends them";
        let mut family = encoder.encode_descriptor("live_dropped_frames", help, None, MetricType::Counter)?;
        let lost = manager.map(|manager| manager.registry().lost()).unwrap_or_default();
        // Lost frames of other kinds of modules are told once there are some.
        let ends = KINDS.iter().filter(|kind| kind.outputs == 0).map(|kind| (kind.name, 0));
        let lost = lost.into_iter().filter(|(_, frames)| *frames > 0);
        for (kind, frames) in ends.chain(lost).collect::<BTreeMap<_, _>>() {
            ConstCounter::new(frames).encode(family.encode_family(&[("module", kind)])?)?;
        }
        Ok(())
    }
}
