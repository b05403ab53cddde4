//! Places as operators write them, and the schemes of their URLs.
//!
//! A [`PlaceSpec`] is a name and a [`PlaceSource`]: the location of objects, which the store makes an origin of, or a
//! [`LiveLocation`], which the stream engine makes streams of. A [`PlaceKind`] is what the rest of the server must know of a
//! scheme: its words, its options and, of a live one, how its source is reached and made.
//!
//! A new scheme is a row of [`PlaceKind`]s or [`LiveKind`]s here, and the crate that speaks its protocol. What this crate does
//! not know: configuration files, rules of titles, and the protocols themselves.
#![forbid(unsafe_code)]

mod error;
mod kind;
mod live;
mod objects;
mod publish;
mod rtsp;
mod source;
mod spec;
mod stores;
mod transport;
mod urls;

pub use error::PlaceError;
pub use kind::{OptionGroup, PlaceKind};
pub use live::{LiveKind, LiveLocation, LiveReach, LiveSourceError, SEVERAL, SourceSettings, several};
pub use source::PlaceSource;
pub use spec::PlaceSpec;
pub use stores::{StoreNameError, map_target, stripe_store};
