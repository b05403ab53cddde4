//! Access rules of places, for HTTP and RTSP alike.
//!
//! A place without rules is open. `settings` has the rules, `gate` applies them. Credentials are a user's name and password,
//! or a [`token`] that is signed by one of the [`keys`]. Tokens stand in a path (`/~TOKEN/films/a.mp4`), so that relative URLs of
//! playlists carry them; in a query; or in `Authorization`.

mod gate;
mod key_set;
pub mod keys;
mod metrics;
mod settings;
pub mod token;

pub(crate) use gate::{Gates, Refusal, RtspDecision, Viewer, query_token};
pub(crate) use metrics::AccessMetrics;
pub use settings::{AccessSettings, KeySource};
pub use token::{Claims, SignError, sign};
