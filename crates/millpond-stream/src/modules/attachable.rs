//! Kinds of modules that an operator attaches to a channel or live stream, by name and options.
//!
//! A program that links this crate adds a kind of its own by implementing [`AttachableKind`], and
//! [`Module`](crate::graph::Module) for the modules that the kind makes.

use crate::{
    Format,
    calling_webrtc::without_long_parts,
    graph::{Module, ModuleError},
    kind::ModuleKind,
    live::Program,
};
use futures_util::future::BoxFuture;
use millpond_settings::{
    nearest,
    value::{BadValue, Form},
};
use millpond_store::shown_without_secrets;
use std::{collections::BTreeMap, sync::Arc};

/// An option of a kind of modules.
#[derive(Clone, Copy, Debug)]
pub struct ModuleOption {
    /// Its name.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// Its default as text; empty where there is none.
    pub default: &'static str,
    /// Its effect, one sentence.
    pub help: &'static str,
    /// Whether each module needs a value.
    pub is_required: bool,
    /// Checks a value.
    pub check: fn(&str) -> Result<(), BadValue>,
}

/// The option of kinds with an output: where the output is published.
pub const TO: ModuleOption = ModuleOption {
    name: "to",
    form: Form::Path,
    default: "",
    help: "Path of the stream that the frames are published as, in a place of publishers",
    is_required: true,
    check: |text| match text.trim_matches('/') {
        "" => Err(BadValue::new("a path of a place of publishers, such as live/copy")),
        _ => Ok(()),
    },
};

/// Returns the value of an option as it is shown: without user, password and query of a URL. The last part of a path by RTMP is a
/// stream key. By HTTP, long parts may be one.
#[must_use]
pub fn shown_option(value: &str) -> String {
    let Some((before, _)) = value.split_once("://") else { return value.to_owned() };
    let shown = shown_without_secrets(value, &[]);
    // A line has a path before its URL.
    let scheme = before.rsplit(char::is_whitespace).next().unwrap_or_default().to_ascii_lowercase();
    match (&*scheme, shown.rsplit_once('/')) {
        ("rtmp" | "rtmps", Some((before, key))) if !key.is_empty() && before.contains("://") => format!("{before}/***"),
        ("http" | "https", _) => without_long_parts(&shown),
        _ => shown,
    }
}

/// Tracks without which a kind of modules has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleInput {
    /// Any track is enough.
    Any,
    /// Pictures.
    Pictures,
    /// Sound.
    Sound,
}

impl ModuleInput {
    /// Its name in replies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Pictures => "pictures",
            Self::Sound => "sound",
        }
    }

    fn takes(self, format: &Format) -> bool {
        match self {
            Self::Any => true,
            Self::Pictures => format.is_video(),
            Self::Sound => format.kind == millpond_package::MediaKind::Audio,
        }
    }

    /// Checks whether a stream has such a track.
    ///
    /// # Errors
    /// It has none.
    pub fn check(self, kind: &str, program: &Program) -> Result<(), NoInput> {
        if program.formats().any(|(_, format)| self.takes(format)) {
            return Ok(());
        }
        let found: Vec<_> = program.formats().map(|(_, format)| format.track.codec.parameter()).collect();
        let (kind, path) = (kind.to_owned(), program.path().to_owned());
        Err(NoInput { kind, needs: self.name(), path, found: found.join(", ") })
    }
}

/// A stream has no track that a kind of modules can take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} needs {needs}, and {path} has {found} only")]
pub struct NoInput {
    kind: String,
    needs: &'static str,
    path: String,
    found: String,
}

/// Values of the options of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleOptions(BTreeMap<String, String>);

/// Options that a kind of modules can't take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    /// The kind has no such option.
    #[error("{kind} has no option {name:?}{hint} (options: {known})", hint = hint(.nearest.as_deref()))]
    Unknown {
        /// The kind.
        kind: &'static str,
        /// The option.
        name: String,
        /// The option that looks most like it.
        nearest: Option<String>,
        /// All options of the kind.
        known: String,
    },
    /// A value can't be used.
    #[error("{name}: expected {expected}, found {found:?}")]
    Value {
        /// The option.
        name: &'static str,
        /// The values that the option takes.
        expected: String,
        /// The value.
        found: String,
    },
    /// A value exceeds a setting of the server.
    #[error(
        "{name}: found {found}, expected at most {most}, the setting {setting}: lower the value, or raise the setting"
    )]
    Limit {
        /// The option.
        name: &'static str,
        /// The value.
        found: String,
        /// Highest value that the setting permits.
        most: String,
        /// The setting.
        setting: &'static str,
    },
    /// A value is missing.
    #[error("{kind} needs the option {name}: {help}")]
    Missing {
        /// The kind.
        kind: &'static str,
        /// The option.
        name: &'static str,
        /// Its effect.
        help: &'static str,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean {nearest:?}?")).unwrap_or_default()
}

impl ModuleOptions {
    /// Makes those of pairs. The last value of a name counts.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// The value of an option, where it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Checks them for a kind.
    ///
    /// # Errors
    /// The first option that the kind can't take.
    pub fn check(&self, declaration: &ModuleDeclaration) -> Result<(), BadOption> {
        let (options, name_of_kind) = (declaration.all_options(), declaration.kind.name);
        for (name, value) in self.iter() {
            let Some(option) = options.iter().find(|option| option.name == name) else {
                let names = || options.iter().map(|option| option.name);
                let known = if options.is_empty() { "none".to_owned() } else { names().collect::<Vec<_>>().join(", ") };
                let nearest = nearest(name, names());
                return Err(BadOption::Unknown { kind: name_of_kind, name: name.to_owned(), nearest, known });
            };
            (option.check)(value).map_err(|BadValue { expected, .. }| BadOption::Value {
                name: option.name,
                expected,
                found: shown_option(value),
            })?;
        }
        match options.iter().find(|option| option.is_required && self.get(option.name).is_none()) {
            Some(ModuleOption { name, help, .. }) => Err(BadOption::Missing { kind: name_of_kind, name, help }),
            None => Ok(()),
        }
    }
}

/// An attachable kind of modules as operators see it.
#[derive(Clone, Copy, Debug)]
pub struct ModuleDeclaration {
    /// Its name and description, and whether it has an output.
    pub kind: ModuleKind,
    /// The tracks that its modules need.
    pub input: ModuleInput,
    /// Its options, without [`TO`].
    pub options: &'static [ModuleOption],
    /// Whether a module that ends is begun again, however it was attached: its results are no file, but a connection.
    pub is_kept: bool,
}

impl ModuleDeclaration {
    /// All options: its own, and [`TO`] where it has an output.
    #[must_use]
    pub fn all_options(&self) -> Vec<ModuleOption> {
        let output = (self.kind.outputs > 0).then_some(TO);
        output.into_iter().chain(self.options.iter().copied()).collect()
    }
}

/// A kind of modules that an operator attaches to channels and live streams.
///
/// Its modules have one input, and one output or none. An output has frames of the tracks and epochs of the input. It is published
/// at the path that the option [`TO`] names.
pub trait AttachableKind: Send + Sync + 'static {
    /// Its name, input and options.
    fn declaration(&self) -> &'static ModuleDeclaration;

    /// Checks options against limits that are not those of the declaration, such as settings of the server. Called before the
    /// stream is opened, with options that were [checked](ModuleOptions::check).
    ///
    /// # Errors
    /// The first option that exceeds a limit.
    fn check(&self, _options: &ModuleOptions) -> Result<(), BadOption> {
        Ok(())
    }

    /// Makes a module for a stream, which is open. The options were [checked](Self::check). `id` is the module's number,
    /// which no other module of the server has.
    ///
    /// # Errors
    /// The module can't be made. The operator reads why.
    fn make<'a>(
        &'a self,
        stream: &'a Program,
        options: &'a ModuleOptions,
        id: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>>;
}

/// A module that a kind has made.
pub struct MadeModule {
    /// The module.
    pub module: Box<dyn Module>,
    /// Names it among others of its stream.
    pub label: String,
    /// The part of it that outlives the module, where there is one.
    pub results: Option<Arc<dyn ModuleResults>>,
}

/// Frames that a module has passed on, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleCounts {
    /// Frames.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
}

/// The part of a module that outlives it, such as a file.
pub trait ModuleResults: Send + Sync {
    /// Counts so far; `None` where the module counts nothing.
    fn counts(&self) -> Option<ModuleCounts> {
        None
    }

    /// Told before the module is detached by an operator.
    fn stopping(&self) {}

    /// The reason why the module had nothing left to do, for its operator; `None` where it is not known.
    fn why(&self) -> Option<String> {
        None
    }

    /// Waits until everything is complete, once the module has ended. Cancel safe.
    fn complete(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::TEE;

    fn check(pairs: &[(&str, &str)]) -> Result<(), String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ModuleOptions::of(pairs).check(&TEE).map_err(|error| error.to_string())
    }

    #[test]
    fn urls_are_shown_without_secrets() {
        for (value, shown) in [
            ("live/copy", "live/copy"),
            ("rtmps://a.example/live2/HUSH?b=c", "rtmps://a.example/live2/***"),
            ("live/cam rtmp://a.example/live2/HUSH", "live/cam rtmp://a.example/live2/***"),
            ("srt://h:9000?passphrase=HUSH", "srt://h:9000"),
            ("https://HUSH@h.example/live/whip?token=HUSH", "https://h.example/live/whip"),
            ("https://h.example/a4f2HUSHa4f2HUSHa4f2HUSH/webRTC/publish", "https://h.example/***/webRTC/publish"),
            ("http://h.example:8080", "http://h.example:8080"),
        ] {
            let found = shown_option(value);
            assert_eq!(found, shown);
        }
    }

    #[test]
    fn options_are_those_of_the_kind() {
        assert_eq!(check(&[("to", "live/copy")]), Ok(()));
        assert_eq!(check(&[("to", "live/copy"), ("delay", "30s")]), Ok(()));
        let refused = |pairs: &[(&str, &str)], words: &str| {
            let error = check(pairs).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        refused(&[], "tee needs the option to: Path of the stream");
        refused(&[("to", "/")], "to: expected a path of a place of publishers, such as live/copy, found \"/\"");
        refused(
            &[("to", "a/b"), ("delai", "3s")],
            "tee has no option \"delai\", did you mean \"delay\"? (options: to, delay)",
        );
        refused(&[("to", "a/b"), ("delay", "2h")], "delay: expected a duration from 0s to 600s");
    }
}
