//! Who may play and publish.

mod exposure;
mod external;
mod limits;
mod proxies;
pub(crate) mod tokens;
