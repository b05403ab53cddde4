//! Access rules of places, for HTTP and RTSP alike.
//!
//! A place without rules is open. `settings` has the rules, `gate` applies those of one place, and `gates` has all. Credentials are a
//! user's name and password, or a [`token`] that is signed by one of the [`keys`]. Another server may decide instead (`external`). A `Pass` is
//! the admission; `limits` bounds requests, connections and transfers of clients and tokens. Tokens stand in a path (`/~TOKEN/films/a.mp4`), so that relative
//! URLs of playlists carry them; in a query; or in `Authorization`.

mod cors;
mod external;
mod gate;
mod gates;
mod generations;
mod kept;
mod key_set;
pub mod keys;
mod limits;
mod metrics;
mod pass;
mod passwords;
mod publishers;
mod publishing;
mod question;
mod refusal;
mod revoked;
mod settings;
pub mod token;

pub use cors::CorsOrigins;
pub use external::ExternalSettings;
pub(crate) use gate::{Decision, Gate, Question, RtspDecision, Sight, Viewer, query_token};
pub(crate) use gates::{Gates, RuledPlace};
pub use limits::ClientLimitSettings;
pub(crate) use limits::{Hold, Limited, Limits};
pub(crate) use metrics::AccessMetrics;
pub(crate) use pass::Pass;
pub use passwords::{BadLine, UserFile, Users, UsersError};
pub(crate) use passwords::{HttpClient, HttpRefusal, Passwords, TooManyGuesses, Unproved, watch as watch_passwords};
#[cfg(test)]
pub(crate) use passwords::{LIFETIME, REALM};
pub(crate) use publishers::{Admission, OpenRefusal, Publishers};
pub use publishing::PublishSettings;
pub(crate) use question::{Asker, AuthAction};
pub(crate) use refusal::Refusal;
pub use settings::{AccessSettings, KeySource};
pub use token::{Claims, Parties, SignError, sign};
