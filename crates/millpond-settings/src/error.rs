//! Errors of a configuration, and their places.

use std::fmt;
use std::path::PathBuf;

/// Where the value of a setting was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Source {
    /// Nowhere: the documented default.
    #[default]
    Default,
    /// In the configuration file, at a line and column that count from 1.
    File {
        /// The file.
        path: PathBuf,
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
    /// In an environment variable.
    Environment(String),
    /// On the command line, in this flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file can't be read.
    #[error("{path}: cannot read the configuration file: {reason}", path = path.display())]
    Unreadable {
        /// The file that was named.
        path: PathBuf,
        /// Error of the system.
        reason: String,
    },
    /// The configuration file is not TOML.
    #[error("{at}: not valid TOML: {reason}")]
    Syntax {
        /// Where it stops to be.
        at: Source,
        /// Error of the parser.
        reason: String,
    },
    /// A key that means nothing.
    #[error("{at}: unknown key \"{key}\"{hint}", hint = hint(.nearest))]
    UnknownKey {
        /// Where it stands.
        at: Source,
        /// The key.
        key: String,
        /// The known key that looks most like it.
        nearest: Option<String>,
    },
    /// A key of another section.
    #[error("{at}: \"{key}\" {cure}")]
    Misplaced {
        /// Where it stands.
        at: Source,
        /// The key.
        key: String,
        /// The kind of key, and the section or setting that it belongs to.
        cure: String,
    },
    /// A value that its setting can't take.
    #[error("{at}{key}: expected {expected}, found {found}{hint}", at = before(.at), key = name(.at, .key), hint = hint(.nearest))]
    Value {
        /// Where it stands.
        at: Source,
        /// The setting.
        key: String,
        /// The form of value it takes, with an example.
        expected: String,
        /// The value found.
        found: String,
        /// The known word that looks most like it.
        nearest: Option<String>,
    },
    /// The same setting twice in one place.
    #[error("{at}: {key} is set more than once here")]
    Twice {
        /// The second time.
        at: Source,
        /// The setting.
        key: String,
    },
    /// Settings that don't go together.
    #[error("{at}: {reason}")]
    Conflict {
        /// Where one of them stands.
        at: Source,
        /// Which settings, and what to do.
        reason: String,
    },
    /// A file that a setting names can't be taken.
    #[error("{at}{key}: {path}: {reason}", at = before(.at), key = name(.at, .key), path = path.display())]
    File {
        /// Where it is named.
        at: Source,
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The line and what is wrong with it, or what the system said.
        reason: String,
    },
    /// A place that can't be understood.
    #[error("{at}: {reason}")]
    Place {
        /// Where it stands.
        at: Source,
        /// Which place, without secrets, and why.
        reason: String,
    },
}

/// A place in a file, before the key that stands there. Flags and variables name their key themselves.
fn before(at: &Source) -> String {
    if matches!(at, Source::File { .. }) { format!("{at}: ") } else { String::new() }
}

/// The key as it was written.
fn name(at: &Source, key: &str) -> String {
    match at {
        Source::Flag(_) | Source::Environment(_) => at.to_string(),
        Source::Default | Source::File { .. } => key.to_owned(),
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|key| format!("; did you mean \"{key}\"?")).unwrap_or_default()
}

/// All that is wrong with a configuration, in the order it was found. Displays one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
