//! Errors of etcd and of the way to it.

use std::time::Duration;

/// Codes of gRPC that callers tell apart.
pub mod code {
    /// The lease or key is not there.
    pub const NOT_FOUND: i64 = 5;
    /// The user may not do this.
    pub const PERMISSION_DENIED: i64 = 7;
    /// The member can't serve now; another one may.
    pub const UNAVAILABLE: i64 = 14;
    /// The token is not valid, or there is none.
    pub const UNAUTHENTICATED: i64 = 16;
}

/// An error of a request to etcd. No variant contains a password or a token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EtcdError {
    /// A member can't be reached.
    #[error("{member}: {reason}")]
    Unreachable {
        /// Address of the member.
        member: String,
        /// Error of the connection.
        reason: String,
    },
    /// A member did not reply in time.
    #[error("{member}: no reply within {limit:?}")]
    TimedOut {
        /// Address of the member.
        member: String,
        /// Time limit.
        limit: Duration,
    },
    /// etcd refused the request.
    #[error("{member}: {message}")]
    Refused {
        /// Address of the member.
        member: String,
        /// Code of gRPC, as in [`code`].
        code: i64,
        /// etcd's words.
        message: String,
    },
    /// A reply that is none of etcd's API.
    #[error("{member}: {reason}")]
    Malformed {
        /// Address of the member.
        member: String,
        /// The fault.
        reason: String,
    },
    /// The revision from which a watch was to begin has been compacted: the keys must be read anew.
    #[error("{member}: revisions before {revision} are compacted")]
    Compacted {
        /// Address of the member.
        member: String,
        /// First revision that is left.
        revision: i64,
    },
}

impl EtcdError {
    /// Tells whether another member may answer the same request.
    pub fn is_of_member(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Malformed { .. } => true,
            Self::Refused { code, .. } => *code == code::UNAVAILABLE,
            Self::Compacted { .. } => false,
        }
    }

    /// Tells whether etcd no longer knows the client's token.
    pub(crate) fn is_of_token(&self) -> bool {
        // etcd refuses these requests with code 3 (invalid argument) and the words: the second of them has no token (3.4), the last one a
        // token (JWT) from before a change of users and roles.
        const WORDS: [&str; 3] = ["invalid auth token", "user name is empty", "revision of auth store is old"];
        matches!(self, Self::Refused { code, message, .. }
            if *code == code::UNAUTHENTICATED || WORDS.iter().any(|words| message.contains(words)))
    }

    /// Tells whether the named key or lease does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: code::NOT_FOUND, .. })
    }
}
