//! Live streams: `/streams` lists them.

use crate::live::state;
use millpond_stream::{EpochReason, SourceCounts, StreamReport};
use serde_json::{Value, json};

/// Returns the list of streams.
pub(super) fn list(streams: &[StreamReport]) -> Value {
    streams.iter().map(shown).collect()
}

fn shown(stream: &StreamReport) -> Value {
    let epoch = stream.epoch.as_ref().map(|epoch| {
        let codecs = epoch.formats.iter().flatten().map(|format| format.track.codec.parameter());
        json!({
            "number": epoch.number, "reason": reason(epoch.reason), "from-seconds": epoch.from.as_secs_f64(),
            "wall": epoch.wall.as_secs_f64(), "codecs": codecs.collect::<Vec<_>>(),
        })
    });
    let SourceCounts {
        sessions,
        packets,
        lost_packets,
        asked_packets,
        repaired_packets,
        too_late_packets,
        reordered_packets,
        unused_packets,
        broken_frames,
    } = stream.received;
    let mut all = state::fields(&stream.state);
    let fields = [
        ("path", json!(*stream.path)),
        ("kind", json!(stream.source.split(':').next())),
        ("source", json!(stream.source)),
        ("server", json!(stream.server.as_deref())),
        // As text, because not every reader of JSON has integers of 64 bits.
        ("run", json!(stream.run.map(|run| format!("{run:016x}")))),
        ("epoch", json!(epoch)),
        ("viewers", json!(stream.viewers)),
        ("bit-rate", json!(stream.bit_rate)),
        ("memory-bytes", json!(stream.memory)),
        ("memory-limit-bytes", json!(stream.memory_limit)),
        ("frames", json!(stream.frames)),
        ("bytes", json!(stream.bytes)),
        ("cues", json!(stream.cues)),
        ("silent-seconds", json!(stream.silence.map(|silence| silence.as_secs_f64()))),
        ("dropped-frames", json!(stream.lost)),
        ("sessions", json!(sessions)),
        ("packets", json!(packets)),
        ("lost-packets", json!(lost_packets)),
        ("asked-packets", json!(asked_packets)),
        ("repaired-packets", json!(repaired_packets)),
        ("too-late-packets", json!(too_late_packets)),
        ("reordered-packets", json!(reordered_packets)),
        ("unused-packets", json!(unused_packets)),
        ("broken-frames", json!(broken_frames)),
    ];
    let shift = stream.shift.as_ref().map(|shift| {
        let (from, to) = (shift.from.map(|time| time.as_secs_f64()), shift.to.map(|time| time.as_secs_f64()));
        json!({
            "from": from, "to": to, "bytes": shift.ring.bytes, "written": shift.ring.written, "lost": shift.ring.lost,
            "errors": shift.ring.errors, "why": shift.ring.failure,
        })
    });
    let failure = stream.shift_failure.as_ref().map(|why| json!({ "why": **why }));
    all.insert("time-shift".to_owned(), json!(shift.or(failure)));
    all.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(all)
}

fn reason(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::Start => "start",
        EpochReason::Reconnection => "reconnection",
        EpochReason::Jump => "jump",
        EpochReason::Formats => "formats",
        EpochReason::Splice => "splice",
        EpochReason::Asset => "asset",
    }
}
