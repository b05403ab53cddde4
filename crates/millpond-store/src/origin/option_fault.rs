//! Faults of options, found without a client and without a request.

/// An option that no client can be made with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: expected {expected}, found {found}: {cure}")]
pub struct OptionFault {
    /// The option, `url` for the location, or a variable of the environment.
    pub key: &'static str,
    /// The form of value that it takes.
    pub expected: String,
    /// The value, without secrets.
    pub found: String,
    /// The remedy.
    pub cure: String,
}
