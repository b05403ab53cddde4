//! The stream engine: moves frames from feeds to outlets, in real time (AMPS, rows A1 to A4).
//!
//! Frames enter at a [`Feed`], such as a stored title. A [`Format`] describes one of its tracks. Modules pass [`Frame`]s on
//! through pipes. The packets of one track leave at an [`Outlet`](outlet::Outlet). The [`Manager`] takes a [`Request`] for a
//! [`Subscriber`], from any protocol. It shares and forks an existing graph, or builds a new one. It returns a handle,
//! [`Playing`]. Dropping the handle releases the parts that no other session uses.
//!
//! It knows the store, presentations and payload formats. It does not know signalling: no message of RTSP or HTTP, no
//! configuration file. [`Options`] are its own.

pub mod admission;
pub mod broadcast;
mod calling_webrtc;
mod cannot_open;
pub mod clock;
mod counters;
mod cues;
mod dropping;
mod epoch;
mod feed;
pub mod flv_stream;
mod format;
pub mod fragmenter;
mod frame;
pub mod graph;
mod kind;
mod lead;
pub mod live;
mod manager;
pub mod modules;
mod multicast;
mod notice;
pub mod outlet;
pub mod pushing;
pub mod reception;
pub mod registry;
pub mod remote;
mod report;
mod resources;
mod source_health;
mod splice;
mod stored;
mod strain;
mod streams;
mod ticks;
mod transmission;
pub mod transport_stream;
#[cfg(test)]
mod walls;
mod web;

pub use admission::{Admitted, Bounds, ClientAddress, Full};
pub use calling_webrtc::WebRtcEndpoint;
pub use cannot_open::CannotOpen;
pub use counters::{CounterCollector, Counters};
pub use cues::Cues;
pub use dropping::Dropping;
pub use epoch::{Epoch, EpochReason};
pub use feed::Feed;
pub use format::Format;
pub use frame::{Frame, Run};
pub use kind::ModuleKind;
pub use lead::Tempo;
pub use live::{
    ChannelSource, FormatsChanged, FoundPart, FoundSegment, LiveFeed, LiveWindow, PartBytes, PastPoint, PastStart,
    Program, ShiftOptions, ShiftReport, TimedStart, Titles, TransportPayloads, Viewing, WindowOptions,
};
pub use manager::{
    Beginning, Group, GroupAddress, KeepAlive, LiveCollector, Manager, Opened, Options, Phases, Played, PlayedPart,
    Playing, Request, Start, Stopped, Subscriber,
};
pub use modules::{
    AttachableKind, BadOption, CannotPush, CannotRecord, FilePlan, MadeModule, ModuleCounts, ModuleDeclaration,
    ModuleInput, ModuleOption, ModuleOptions, ModuleResults, NoInput, PUSH, PUSH_URL, Pulse, PushDestination,
    RecordLimits, Recording, RecordingEnd, RecordingState, WrittenFile, shown_option,
};
pub use multicast::{Groups, NoGroups};
pub use notice::{Notice, NoticeBoard};
pub use reception::{Conflict, Publication, PublicationEnd, PublishedMedia};
pub use report::{Reporter, StreamState};
pub use resources::Resources;
pub use source_health::{SourceCounts, SourceError, SourceErrorKind};
pub use splice::{InsertionEnd, InsertionReport, Unfit};
pub use stored::{HeavyWork, StoredMedia};
pub use streams::{
    Attached, AttachmentEnd, CannotAttach, CannotInsert, Linger, LiveRequest, LiveStream, NewestKeyFrame,
    PublishRefused, PublishRequest, Source, StreamReport,
};
pub use transmission::{
    Lateness, Observer, PACKETS_KEPT, Progress, Protection, ROUND, RateRule, SentTotals, SharedPort, TrackSender, Udp,
    ntp,
};
