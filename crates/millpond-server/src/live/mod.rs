//! Sources of streams, for both front ends: HTTP and RTSP ask here and never each other.

mod connector;
mod publishers;
mod settings;
mod sources;
pub(crate) mod state;

pub(crate) use connector::SourceConnector;
pub use publishers::PublishSettings;
pub use settings::LiveSettings;
pub(crate) use sources::{LivePlace, Sources, window_options};
