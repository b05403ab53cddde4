//! Settings as a part of the server declares them.
//!
//! Each part has a file with its settings: a struct of their values and a list of declarations ([`Settings::LIST`]). A declaration
//! has name, form, default, help, the moment at which a new value takes effect ([`At`]), and how its value is read and shown.
//! Flags, environment, file, `millpond check`, `--help` and `docs/reference/settings.md` are made from it. The server composes its
//! configuration of the structs.
//!
//! [`files`] has the files that settings name, and notices their changes; [`machine`] has what defaults depend on.
//!
//! The crate knows no part of the server and no configuration file.
#![forbid(unsafe_code)]

mod error;
pub mod files;
pub mod machine;
mod nearest;
mod network;
mod own;
pub mod value;

use std::{collections::BTreeMap, fmt};

pub use error::{ConfigError, ConfigErrors, Source};
use machine::Machine;
pub use nearest::nearest;
pub use network::Network;
pub use own::Own;
use value::{BadValue, Form};

/// One setting of a part, whose values are a `T`.
pub struct Setting<T: 'static> {
    /// Its key in the file; `--` and this is the flag.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// Its default as text, in words where it depends on the machine.
    pub default: &'static str,
    /// Its effect, one sentence.
    pub help: &'static str,
    /// Whether a reload applies a new value.
    pub applied: At<T>,
    /// Parses a value and stores it.
    pub apply: fn(&mut T, &str) -> Result<(), BadValue>,
    /// The live value as text; `None` where it is off.
    pub show: fn(&T) -> Option<String>,
}

/// The moment at which a new value of a setting takes effect.
pub enum At<T: 'static> {
    /// A reload of the configuration.
    Reload,
    /// The next start of the server. The function copies the old value, with which the server runs on.
    Restart(fn(&mut T, &T)),
}

/// Description of a setting, whichever part it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its key in the file; `--` and this is the flag.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// Its default as text, in words where it depends on the machine.
    pub default: &'static str,
    /// Its effect, one sentence.
    pub help: &'static str,
    /// Whether a new value takes effect at the next start only.
    pub needs_restart: bool,
    /// Whether a place may have its own value.
    pub is_of_places: bool,
    /// Heading of its part.
    pub part: &'static str,
}

impl<T: Settings> Setting<T> {
    /// The declaration without its functions, below the heading of its part.
    pub const fn declaration(&self, part: &'static str) -> Declaration {
        Declaration {
            name: self.name,
            form: self.form,
            default: self.default,
            help: self.help,
            needs_restart: matches!(self.applied, At::Restart(_)),
            is_of_places: T::OF_PLACES,
            part,
        }
    }
}

impl<T> fmt::Debug for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Declaration {
    /// The effect, and whether a place may have its own value.
    pub fn about(&self) -> String {
        let own = if self.is_of_places { ". A place may have its own value" } else { "" };
        format!("{}{own}", self.help)
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("MILLPOND_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

/// The machine and the environment, which some defaults depend on.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// Cores, memory and open files.
    pub machine: Machine,
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The settings of one part of the server. The type holds their values.
pub trait Settings: Sized + 'static {
    /// Declarations, in the order of the documentation.
    const LIST: &'static [Setting<Self>];

    /// Whether a place may have its own values, an [`Own`] of the part.
    const OF_PLACES: bool = false;

    /// The values of a server without any setting.
    fn defaults(host: &Host<'_>) -> Self;

    /// Completes defaults that depend on other settings of the part, and returns all conflicts between its settings.
    fn complete(&mut self, _sources: &Sources) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Takes the values of all settings that need a restart from the settings that the server runs with.
    fn keep_fixed(&mut self, running: &Self) {
        for setting in Self::LIST {
            if let At::Restart(keep) = setting.applied {
                keep(self, running);
            }
        }
    }

    /// The setting of a name; underscores stand for dashes.
    fn find(name: &str) -> Option<&'static Setting<Self>> {
        let name = name.replace('_', "-");
        Self::LIST.iter().find(|setting| setting.name == name)
    }
}

/// Says that this program was built without the feature that a setting or command needs, and how to get one with it.
pub fn absent(name: &str, feature: &str) -> String {
    format!(
        "{name} needs a program with the feature \"{feature}\", which this one was built without: build it with \
         --features {feature}, or take a released one"
    )
}

/// Where each setting that was given got its value, by the setting's name.
#[derive(Debug, Clone, Default)]
pub struct Sources(BTreeMap<&'static str, Source>);

impl Sources {
    /// Tells whether a setting was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Where a setting got its value.
    pub fn of(&self, name: &str) -> Source {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// A conflict between a setting and others.
    pub fn conflict(&self, name: &str, reason: impl Into<String>) -> ConfigError {
        ConfigError::Conflict { at: self.of(name), reason: reason.into() }
    }

    /// A setting whose feature this program was built without.
    pub fn absent(&self, name: &str, feature: &str) -> ConfigError {
        self.conflict(name, absent(name, feature))
    }

    /// Notes where a setting got its value.
    pub fn insert(&mut self, name: &'static str, source: Source) {
        self.0.insert(name, source);
    }
}
