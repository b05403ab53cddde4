//! Roles of nodes.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A role of a node in a cluster (Srinilta and Choudhary 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Answers viewers' first requests and sends them to dispensers.
    Manager,
    /// Serves streams.
    Dispenser,
    /// Is home of slices: reads them from the origin once for all nodes.
    Storage,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Manager, Self::Dispenser, Self::Storage];

    /// The role as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Dispenser => "dispenser",
            Self::Storage => "storage",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("role {0:?}: expected manager, dispenser or storage")]
pub struct InvalidRole(String);

impl FromStr for Role {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| InvalidRole(text.chars().take(32).collect()))
    }
}

/// A set of roles. The default is all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Roles(u8);

impl Roles {
    /// No roles.
    pub const NONE: Self = Self(0);
    /// All roles.
    pub const ALL: Self = Self(0b111);

    /// Whether `role` is in the set.
    pub const fn contains(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// The set with `role` in it.
    #[must_use]
    pub const fn with(self, role: Role) -> Self {
        Self(self.0 | (1 << role as u8))
    }

    /// The roles of the set.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.contains(*role))
    }
}

impl Default for Roles {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
