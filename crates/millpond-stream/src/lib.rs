//! The stream engine: moves frames from where they enter to where they leave, in real time (AMPS, rows A1 to A4).
//!
//! A [`Feed`] is where frames enter: a stored title is one. A [`Format`] says what one of its tracks is. Modules pass
//! [`Frame`]s on through pipes; an [`Outlet`](outlet::Outlet) is where the packets of one track leave. The [`Manager`] takes a
//! [`Request`] for a [`Subscriber`], whatever protocol both came from: it finds a graph that can be shared, forks it, or
//! builds one, and gives a handle, [`Playing`], that releases what nobody else uses.
//!
//! It knows the store, presentations and payload formats. It does not know signalling: no message of RTSP or HTTP, no
//! configuration file. [`Options`] are its own.

pub mod admission;
mod cannot_open;
pub mod clock;
mod counters;
mod cues;
mod dropping;
mod epoch;
mod feed;
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
pub mod outlet;
pub mod reception;
pub mod registry;
mod report;
mod resources;
mod source;
mod splice;
mod stored;
mod strain;
mod streams;
mod ticks;
mod transmission;
pub mod transport_stream;
#[cfg(test)]
mod walls;

pub use admission::{Admitted, Bounds, ClientAddress, Full};
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
    Attached, ChannelSource, FoundPart, FoundSegment, LiveFeed, LiveWindow, PartBytes, PastPoint, PastStart, Program,
    ShiftOptions, ShiftReport, Titles, Viewing, WindowOptions,
};
pub use manager::{
    Beginning, Group, GroupAddress, KeepAlive, LiveCollector, Manager, Opened, Options, Played, PlayedPart, Playing,
    Request, Start, Stopped, Subscriber,
};
pub use modules::{CannotRecord, RecordLimits, Recording, RecordingEnd, RecordingState};
pub use multicast::{Groups, NoGroups};
pub use reception::{Conflict, Publication, PublicationEnd, PublishedMedia};
pub use report::{Reporter, StreamState};
pub use resources::Resources;
pub use source::{SourceCounts, SourceError, SourceErrorKind};
pub use splice::{InsertionEnd, InsertionReport, Unfit};
pub use stored::{HeavyWork, StoredMedia};
pub use streams::{
    CannotInsert, Linger, LiveRequest, LiveStream, PublishRefused, PublishRequest, Source, StreamReport,
};
pub use transmission::{
    Lateness, Observer, PACKETS_KEPT, Progress, Protection, ROUND, RateRule, SentTotals, TrackSender, Udp, ntp,
};
