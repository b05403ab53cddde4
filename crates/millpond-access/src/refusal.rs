//! The reasons for which requests are refused.

use super::TooManyGuesses;
use super::token::TokenError;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The client is in none of the networks.
    Network,
    /// The path has components such as `..`, which could lead out of a token's paths.
    Dots,
    /// The token is refused.
    Token(TokenError),
    /// Credentials are needed, or other ones. The values of `WWW-Authenticate` follow.
    Credentials(Vec<String>),
    /// The credentials can't be read.
    Malformed(String),
    /// The client has stated too many wrong passwords.
    Guesses(TooManyGuesses),
    /// The keys of tokens have not been read yet.
    NoKeys,
    /// The server of `auth-url` does not admit the client.
    Denied,
    /// The server of `auth-url` does not answer.
    NoAnswer,
}

impl AccessRefusal {
    /// Labels of all reasons.
    pub(super) const LABELS: [&'static str; 9] =
        ["network", "path", "token", "credentials", "malformed", "guesses", "keys", "denied", "no_answer"];

    /// Label of a reason.
    pub(super) fn label(&self) -> &'static str {
        let [network, path, token, credentials, malformed, guesses, keys, denied, no_answer] = Self::LABELS;
        match self {
            Self::Network => network,
            Self::Dots => path,
            Self::Token(_) => token,
            Self::Credentials(_) => credentials,
            Self::Malformed(_) => malformed,
            Self::Guesses(_) => guesses,
            Self::NoKeys => keys,
            Self::Denied => denied,
            Self::NoAnswer => no_answer,
        }
    }
}

impl std::fmt::Display for AccessRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network => f.write_str("clients of this network may not play this"),
            Self::Dots => f.write_str("the path has a component of dots"),
            Self::Token(error) => error.fmt(f),
            Self::Credentials(_) => f.write_str("this needs a token or a password"),
            Self::Malformed(why) => f.write_str(why),
            Self::Guesses(many) => many.fmt(f),
            Self::NoKeys => f.write_str("the keys of tokens could not be read yet"),
            Self::Denied => f.write_str("auth-url does not admit this client"),
            Self::NoAnswer => f.write_str("auth-url does not answer"),
        }
    }
}
