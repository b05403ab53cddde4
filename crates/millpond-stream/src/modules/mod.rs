//! The modules of a graph: each kind in one file, and in one line of [`KINDS`].
//!
//! A module implements [`Module`](crate::graph::Module). It gets frames by the pipes of that trait, and all else by its
//! constructor, from rows below. No module knows who starts it: modules with one input and no output are started by
//! [`Manager::attach`](crate::Manager::attach), others by what builds their graphs, in `streams/` and `manager/`.

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

use crate::{kind::ModuleKind, live, reception, transmission};

/// All kinds of modules, and of what takes frames as modules do.
pub const KINDS: &[ModuleKind] = &[
    loader::KIND,
    key_frames::KIND,
    past::KIND,
    channel::KIND,
    recorder::KIND,
    segmenter::KIND,
    Splice::KIND,
    LadderFollower::KIND,
    reception::KIND,
    reception::PUBLISHED,
    reception::TRANSPORT,
    transmission::KIND,
    transmission::MULTICAST,
    live::VIEWING,
];
