//! Sources of streams, for both front ends: HTTP and RTSP ask here and never each other.

mod channels;
mod connector;
mod copies;
mod ladder_viewers;
mod ladders;
mod module_output;
mod object_key;
mod relay;
mod settings;
mod sources;
pub(crate) mod state;
mod stream_path;
mod sweep;
mod titles;
mod web;

pub use channels::ChannelConfig;
pub(crate) use connector::SourceConnector;
pub(crate) use copies::{Copies, CopyReport, WATCH_MARK};
pub(crate) use ladder_viewers::CannotFollow;
pub(crate) use ladders::{LadderAt, Ladders};
pub(crate) use module_output::UnpublishablePath;
pub(crate) use relay::{LaterSources, OwnerRelay, is_for_relay};
pub use settings::LiveSettings;
pub(crate) use sources::{LivePlace, NoPhases, NoTitle, PhasedTitle, Sources, window_options};
pub(crate) use stream_path::{PlaceOffset, StreamPath};
pub(crate) use sweep::sweep;
pub(crate) use web::SourceWeb;
