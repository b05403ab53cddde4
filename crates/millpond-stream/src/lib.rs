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
mod counters;
mod dropping;
mod feed;
mod format;
pub mod fragmenter;
mod frame;
pub mod graph;
pub mod live;
pub mod modules;
mod multicast;
mod options;
pub mod outlet;
pub mod reception;
mod resources;
mod stored;
mod subscriber;
mod transmission;
pub mod transport_stream;

pub use admission::{Admitted, Bounds, ClientAddress, Full};
pub use counters::{CounterCollector, Counters};
pub use dropping::Dropping;
pub use feed::Feed;
pub use format::Format;
pub use frame::{Frame, Run};
pub use graph::{
    Attached, CannotOpen, Group, GroupAddress, Manager, Opened, Played, PlayedPart, Playing, Program, Request, Start,
    Stopped, Tempo, Viewing,
};
pub use live::{
    CannotInsert, ChannelSource, Conflict, Cues, Epoch, EpochReason, FoundPart, FoundSegment, InsertionEnd,
    InsertionReport, Linger, LiveCollector, LiveFeed, LiveRequest, LiveStream, LiveWindow, PartBytes, PastPoint,
    PastStart, Publication, PublicationEnd, PublishRefused, PublishRequest, PublishedMedia, ShiftOptions, ShiftReport,
    Source, SourceCounts, StreamReport, StreamState, Titles, Unfit, WindowOptions,
};
pub use modules::{CannotRecord, RecordLimits, Recording, RecordingEnd, RecordingState};
pub use multicast::{Groups, NoGroups};
pub use options::Options;
pub use resources::Resources;
pub use stored::{HeavyWork, StoredMedia};
pub use subscriber::Subscriber;
pub use transmission::{
    Lateness, Observer, PACKETS_KEPT, Progress, Protection, ROUND, RateRule, SentTotals, TrackSender, Udp, ntp,
};
