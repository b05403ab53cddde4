//! Capabilities that both ends announce in `connect` and its reply (Enhanced RTMP 2, "Enhancing NetConnection connect Command").

use crate::amf0::{Property, Value};

/// Flags of `capsEx`.
const MULTITRACK: u32 = 0x02;
const MOD_EX: u32 = 0x04;
/// `CanForward`: the flag of codecs in the maps.
const CAN_FORWARD: f64 = 4.0;
/// Codecs of pictures and of sound.
const VIDEO: [&str; 5] = ["avc1", "hvc1", "av01", "vp09", "vp08"];
const AUDIO: [&str; 6] = ["mp4a", ".mp3", "Opus", "fLaC", "ac-3", "ec-3"];
const ALL: [&str; 11] = ["avc1", "hvc1", "av01", "vp09", "vp08", "mp4a", ".mp3", "Opus", "fLaC", "ac-3", "ec-3"];
const VIDEO_MAP: [(&str, f64); VIDEO.len()] = forwarded(VIDEO);
const AUDIO_MAP: [(&str, f64); AUDIO.len()] = forwarded(AUDIO);

/// Properties that announce what this crate's users can receive.
pub(crate) const OURS: [(&str, Property<'static>); 4] = [
    ("capsEx", Property::Number((MULTITRACK | MOD_EX) as f64)),
    ("fourCcList", Property::Texts(&ALL)),
    ("videoFourCcInfoMap", Property::Numbers(&VIDEO_MAP)),
    ("audioFourCcInfoMap", Property::Numbers(&AUDIO_MAP)),
];

const fn forwarded<const N: usize>(codecs: [&'static str; N]) -> [(&'static str, f64); N] {
    let mut map = [("", CAN_FORWARD); N];
    let mut at = 0;
    while at < N {
        map[at].0 = codecs[at];
        at += 1;
    }
    map
}

/// The capabilities that a peer announces in `connect` or its answer (Enhanced RTMP 2, "Enhancing NetConnection connect Command").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether it announces anything of Enhanced RTMP.
    pub(crate) is_enhanced: bool,
    /// Whether it reads several tracks.
    pub(crate) is_multitrack: bool,
}

impl Capabilities {
    /// Reads those of an object.
    pub(crate) fn of(object: Value<'_>) -> Self {
        let caps = object.property("capsEx").and_then(Value::number);
        let is_enhanced = caps.is_some() || OURS.iter().any(|(name, _)| object.property(name).is_some());
        // Other numbers become 0, or the nearest one of 32 bits.
        let is_multitrack = caps.is_some_and(|caps| caps as u32 & MULTITRACK != 0);
        Self { is_enhanced, is_multitrack }
    }

    /// Joins those of two objects.
    pub(crate) fn or(self, other: Self) -> Self {
        let (is_enhanced, is_multitrack) =
            (self.is_enhanced || other.is_enhanced, self.is_multitrack || other.is_multitrack);
        Self { is_enhanced, is_multitrack }
    }
}
