//! The admission of a request: the token or user whose limits count, and its end.

use super::{
    kept::Kept,
    revoked::Revoked,
    token::{Claims, LEEWAY},
};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Interval between checks of running transfers against the list of revoked tokens, and the clock.
const LOOK: Duration = Duration::from_secs(5);

/// The admission of a request. The default is that of a path without rules, or of a user.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    token: Option<Token>,
    is_of_node: bool,
}

#[derive(Clone, Debug)]
struct Token {
    /// Hashes of its name, or of the user and the token that another server admits.
    identities: [Option<u64>; 2],
    /// Claims of a JWT.
    claims: Option<Arc<Claims>>,
    revoked: Option<Arc<Kept<Revoked>>>,
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Pass {
    /// The pass of a token with a hash of its name.
    pub(super) fn new(identity: u64, claims: Arc<Claims>, revoked: Option<Arc<Kept<Revoked>>>) -> Self {
        Self::of(Token { identities: [Some(identity), None], claims: Some(claims), revoked })
    }

    /// The pass of a user and a token that another server admits, with hashes of their names.
    pub(super) fn of_external(identities: [Option<u64>; 2]) -> Self {
        Self::of(Token { identities, claims: None, revoked: None })
    }

    /// The pass of another node of the cluster, which has admitted its viewers.
    pub fn of_node() -> Self {
        Self { token: None, is_of_node: true }
    }

    fn of(token: Token) -> Self {
        Self { token: Some(token), is_of_node: false }
    }

    /// Whether the client is another node. Limits of clients do not count it.
    pub(super) fn is_of_node(&self) -> bool {
        self.is_of_node
    }

    /// Hashes of the names whose limits count, where a token or another server admitted the request.
    pub(super) fn identities(&self) -> impl Iterator<Item = u64> {
        self.token.iter().flat_map(|token| token.identities).flatten()
    }

    /// The filter of manifests that the token states; `None` where it states none, and without a token.
    pub fn filter(&self) -> Option<&str> {
        self.token.as_ref()?.claims.as_ref()?.filter.as_deref()
    }

    /// Whether the token has ended by time, or was revoked.
    pub fn is_over(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.is_over(now()))
    }

    /// Waits until the token has ended, at most 5 s longer. Never returns for other passes.
    pub async fn over(&self) {
        if self.token.as_ref().is_none_or(|token| token.claims.is_none()) {
            return std::future::pending().await;
        }
        while !self.is_over() {
            tokio::time::sleep(LOOK).await;
        }
    }

    #[cfg(test)]
    pub(super) fn of_token(identity: u64) -> Self {
        Self::of_external([Some(identity), None])
    }
}

impl Token {
    fn is_over(&self, now: u64) -> bool {
        let Some(claims) = &self.claims else { return false };
        let is_revoked = |revoked: &Arc<Kept<Revoked>>| claims.jti.as_deref().is_some_and(|jti| revoked.has(jti));
        claims.exp.saturating_add(LEEWAY) < now || self.revoked.as_ref().is_some_and(is_revoked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(revoked: &str) -> Token {
        let filter = Some("max-height=720".into());
        let claims = Claims { exp: 100, paths: None, net: None, jti: Some("a1".into()), sub: None, filter };
        let revoked = Some(Kept::new(Revoked::of(revoked)));
        Token { identities: [Some(0), None], claims: Some(Arc::new(claims)), revoked }
    }

    #[test]
    fn a_token_ends_by_time_or_by_the_list() {
        assert!(!token("a2\n").is_over(100) && token("").is_over(106) && token("a2\na1\n").is_over(1));
        assert!(!Pass::default().is_over());
    }

    #[test]
    fn a_pass_has_the_filter_of_its_token() {
        assert_eq!(Pass::of(token("")).filter(), Some("max-height=720"));
        assert_eq!(Pass::of_token(1).filter(), None);
        assert_eq!(Pass::default().filter(), None);
    }
}
