//! The modules of a graph: each kind in one file, and in one line of [`KINDS`].

mod channel;
mod follower;
mod key_frames;
mod laps;
mod loader;
mod past;
mod recorder;
mod segmenter;
mod splice;

pub(crate) use channel::Channel;
pub(crate) use follower::LadderFollower;
pub use key_frames::supported_scale;
pub(crate) use key_frames::{KeyFrameLoader, KeyFrames};
pub(crate) use laps::Laps;
pub(crate) use loader::Loader;
pub(crate) use past::PastLoader;
pub use recorder::{CannotRecord, RecordLimits, Recording, RecordingEnd, RecordingState};
pub(crate) use segmenter::Segmenter;
pub(crate) use splice::{ClipLoader, Splice};

use crate::{kind::ModuleKind, live, reception};

/// All kinds of modules.
pub const KINDS: &[ModuleKind] = &[
    loader::KIND,
    key_frames::KIND,
    past::KIND,
    channel::KIND,
    recorder::KIND,
    segmenter::KIND,
    splice::KIND,
    LadderFollower::KIND,
    reception::KIND,
    reception::PUBLISHED,
    reception::TRANSPORT,
    ModuleKind { name: "transmission", about: "sends frames to a receiver when they are due", inputs: 1, outputs: 0 },
    ModuleKind {
        name: "multicast",
        about: "sends frames to a multicast group when they are due",
        inputs: 1,
        outputs: 0,
    },
    ModuleKind {
        name: live::VIEWING,
        about: "gives frames to a viewer that takes them as one long response",
        inputs: 1,
        outputs: 0,
    },
];
