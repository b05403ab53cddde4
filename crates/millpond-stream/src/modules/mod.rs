//! The modules of a graph: each kind in one file, and in one line of [`KINDS`].
//!
//! A module implements [`Module`](crate::graph::Module). It gets frames from the trait's pipes, and everything else from its
//! constructor, from rows below. No module knows its starter. [`Manager::attach`](crate::Manager::attach) starts modules that
//! operators attach, whose kinds are [`AttachableKind`]s. The builders of graphs, in `streams/` and `manager/`, start the others.

mod attachable;
mod channel;
mod follower;
mod in_band_format;
mod key_frames;
mod laps;
mod loader;
mod past;
mod pulse;
mod push;
mod recorder;
mod recording_clock;
mod recording_files;
mod segmenter;
mod splice;
mod tee;
mod title;

pub use attachable::{
    AttachableKind, BadOption, MadeModule, ModuleCounts, ModuleDeclaration, ModuleInput, ModuleOption, ModuleOptions,
    ModuleResults, NoInput, TO, shown_option,
};
pub(crate) use channel::Channel;
pub(crate) use follower::LadderFollower;
pub use key_frames::supported_scale;
pub(crate) use key_frames::{KeyFrameLoader, KeyFrames};
pub(crate) use laps::Laps;
pub(crate) use loader::Loader;
pub(crate) use past::PastLoader;
pub use pulse::Pulse;
pub(crate) use pulse::module as pulse;
pub(crate) use push::Push;
pub use push::{CannotPush, DestinationError, PUSH, PushCounts, PushDestination, URL as PUSH_URL};
pub use recorder::{
    CONTINUOUS as ARCHIVER, CannotRecord, KIND as RECORDER, RecordLimits, Recording, RecordingEnd, RecordingState,
};
pub use recording_files::{FilePlan, WrittenFile};
pub(crate) use segmenter::Segmenter;
pub(crate) use splice::{ClipLoader, Splice};
pub use tee::TEE;
pub(crate) use tee::Tee;
pub(crate) use title::TitleLoader;

use crate::{kind::ModuleKind, live, reception, transmission};

/// All kinds of modules, and of what takes frames as modules do.
pub const KINDS: &[ModuleKind] = &[
    loader::KIND,
    key_frames::KIND,
    past::KIND,
    title::KIND,
    channel::KIND,
    pulse::KIND,
    push::KIND,
    recorder::KIND,
    recorder::CONTINUOUS,
    segmenter::KIND,
    tee::KIND,
    Splice::KIND,
    LadderFollower::KIND,
    reception::KIND,
    reception::PUBLISHED,
    reception::TRANSPORT,
    reception::SRT,
    reception::RTMP,
    reception::HLS,
    reception::DASH,
    reception::WHEP,
    reception::WEB_TRANSPORT,
    transmission::KIND,
    transmission::MULTICAST,
    live::VIEWING,
];
