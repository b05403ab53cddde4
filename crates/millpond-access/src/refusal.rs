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

    /// Returns the name of the rule that refused, for the log: a setting, or a claim of the token.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Network => "access-networks",
            Self::Dots => "no dots in paths",
            Self::Token(TokenError::Path) => "paths of the token",
            Self::Token(TokenError::Address) => "net of the token",
            Self::Token(TokenError::Revoked) => "access-revoked",
            Self::Token(TokenError::Foreign) => "access-issuer or access-audience",
            Self::Token(_) | Self::NoKeys => "access-tokens",
            Self::Credentials(_) | Self::Malformed(_) | Self::Guesses(_) => "access-users or access-tokens",
            Self::Denied | Self::NoAnswer => "auth-url",
        }
    }

    /// Describes the refusal with its cure. The text names no network, path or key of the rules.
    pub fn for_viewers(&self) -> String {
        match self.cure() {
            Some(cure) => format!("{self}. {cure}"),
            None => self.to_string(),
        }
    }

    /// Returns the cure for a viewer or the operator; `None` where the challenge or `Retry-After` states it.
    fn cure(&self) -> Option<&'static str> {
        Some(match self {
            Self::Network => "The operator of this server can add the network to access-networks",
            Self::Dots => "Write the address without the components . and ..",
            Self::Token(TokenError::Path) => "Ask for a link to this title",
            Self::Token(TokenError::Address) => {
                "Open the link in the network that it was made for, or ask for a link for this network"
            }
            Self::Token(TokenError::Early) => "Open the link later, or ask for another link",
            Self::Token(_) => "Ask for a new link",
            Self::Denied => "Ask the operator of this server for access: the server at auth-url decides",
            Self::Credentials(_) | Self::Malformed(_) | Self::Guesses(_) | Self::NoKeys | Self::NoAnswer => {
                return None;
            }
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_rule_tell_its_name_and_what_mends_it() {
        for (refusal, rule, cure) in [
            (AccessRefusal::Network, "access-networks", "can add the network to access-networks"),
            (AccessRefusal::Dots, "no dots in paths", "without the components"),
            (AccessRefusal::Token(TokenError::Path), "paths of the token", "Ask for a link to this title"),
            (AccessRefusal::Token(TokenError::Address), "net of the token", "for this network"),
            (AccessRefusal::Token(TokenError::Revoked), "access-revoked", "Ask for a new link"),
            (AccessRefusal::Denied, "auth-url", "Ask the operator"),
        ] {
            assert_eq!(refusal.rule(), rule);
            let told = refusal.for_viewers();
            assert!(told.starts_with(&refusal.to_string()) && told.contains(cure), "{told}");
        }
        let asks = AccessRefusal::Credentials(Vec::new());
        assert_eq!(asks.for_viewers(), asks.to_string(), "the challenge tells what is needed");
    }
}
