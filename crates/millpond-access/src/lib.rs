//! Access rules of places, for all protocols of viewers and publishers.
//!
//! A place without rules is open. `settings` has the rules, `gate` applies those of one place, and [`Gates`] has all. Credentials are a
//! user's name and password, or a [`token`] that is signed by one of the [`keys`]. Another server may decide instead (`external`). A [`Pass`] is
//! the admission; `limits` bounds requests, connections and transfers of clients and tokens. Tokens stand in a path (`/~TOKEN/films/a.mp4`), so that relative
//! URLs of playlists carry them; in a query; or in `Authorization`.
//!
//! The crate owns no listening socket, and writes no reply: its users tell what a client asks for, and what it is refused with.
#![forbid(unsafe_code)]

mod buckets;
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
mod nodes;
mod pass;
mod passwords;
mod publishers;
mod publishing;
mod question;
pub mod random;
mod refusal;
mod revoked;
mod settings;
pub mod token;

pub use cors::CorsOrigins;
pub use external::ExternalSettings;
pub use gate::{AccessViewer, Decision, Gate, GateError, Question, RtspDecision, Sight, query_token};
pub use gates::{Gates, RuledPlace};
pub use limits::ClientLimitSettings;
pub use limits::{ClientHold, ClientLimits, Limited};
pub use metrics::AccessMetrics;
pub use nodes::NodeAddresses;
pub use pass::Pass;
pub use passwords::{
    BadLine, HttpClient, HttpRefusal, LIFETIME, Passwords, REALM, TooManyGuesses, Unproved, UserFile, Users,
    UsersError, watch as watch_passwords,
};
pub use publishers::{OpenRefusal, PublisherAdmission, Publishers};
pub use publishing::PublishSettings;
pub use question::{AskingClient, AuthAction};
pub use refusal::AccessRefusal;
pub use settings::{AccessSettings, KeySource};
pub use token::{Claims, Parties, SignError, sign};
