//! Places as operators write them, and the schemes of their URLs.
//!
//! A [`PlaceSpec`] is a name and a [`PlaceSource`]: the location of objects, which the store makes an origin of, or a
//! [`LiveLocation`], which the stream engine makes streams of. A [`PlaceKind`] has the schemes, words and
//! options of a kind of place. A [`LiveKind`] also says how its source is reached and made.
//!
//! To add a scheme, add a [`PlaceKind`] or a [`LiveKind`] to the tables of this crate. Its protocol is another crate's. This crate
//! does not know configuration files, rules of titles, or protocols.
#![forbid(unsafe_code)]

mod dash;
mod error;
mod hls;
mod kind;
mod live;
#[cfg(feature = "stripe")]
mod maps;
mod objects;
mod publish;
mod rtmp;
mod rtsp;
mod source;
mod spec;
mod srt;
mod stores;
mod transport;
mod urls;
mod web_transport;
mod whep;

pub use error::PlaceError;
pub use kind::{OptionGroup, PlaceKind};
pub use live::{LiveKind, LiveLocation, LiveReach, LiveSourceError, SEVERAL, SourceSettings, several};
#[cfg(feature = "stripe")]
pub use maps::map_target;
pub use source::PlaceSource;
pub use spec::PlaceSpec;
pub use stores::{StoreNameError, stripe_store};
