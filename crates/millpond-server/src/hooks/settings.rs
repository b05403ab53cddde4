//! Settings of events and hooks.

use super::signature::HookSecret;
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration, show_size},
};
use std::{path::PathBuf, time::Duration};
use url::Url;

/// Name of the setting of the program that gets events. The admin API never changes it.
pub(crate) const RUN: &str = "hook-run";

/// Hooks that get events, and bounds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSettings {
    /// Endpoints, each once.
    pub endpoints: Vec<Url>,
    /// Key of the signatures.
    pub secret: Option<HookSecret>,
    /// File with that key.
    pub secret_file: Option<PathBuf>,
    /// Program and its arguments; empty where none is started.
    pub run: Vec<String>,
    /// Time limit of a request or of the program.
    pub timeout: Duration,
    /// Time for which an event is sent again.
    pub patience: Duration,
    /// Most events that wait for a hook.
    pub queue: usize,
    /// Free bytes below which a disk is low.
    pub disk_low: u64,
}

/// Most endpoints.
const MOST: usize = 16;
/// Bounds of `hook-timeout`.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Bounds of `hook-queue`.
const QUEUE: (usize, usize) = (1, 100_000);

impl Settings for HookSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self {
            endpoints: Vec::new(),
            secret: None,
            secret_file: None,
            run: Vec::new(),
            timeout: Duration::from_secs(10),
            patience: Duration::from_secs(24 * 3600),
            queue: 10_000,
            disk_low: 1 << 30,
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        if let Some(path) = self.secret_file.clone() {
            if self.secret.is_some() {
                let why = "hook-secret and hook-secret-file can't be set both";
                return vec![sources.conflict("hook-secret-file", why)];
            }
            match millpond_settings::files::read_text(&path) {
                Ok(text) => self.secret = Some(HookSecret::new(text.trim())),
                Err(error) => {
                    let (at, reason) = (sources.of("hook-secret-file"), error.to_string());
                    return vec![ConfigError::File { at, key: "hook-secret-file", path, reason }];
                }
            }
        }
        let name = if self.secret_file.is_some() { "hook-secret-file" } else { "hook-secret" };
        match &self.secret {
            // The value is in no error: it may be a part of the real one.
            Some(secret) if !secret.is_strong() => {
                vec![sources.conflict(name, format!("{name}: expected {}", HookSecret::EXPECTED))]
            }
            _ => Vec::new(),
        }
    }
}

const LIST: &[Setting<HookSettings>] = &[
    Setting {
        name: "hooks",
        form: Form::List,
        default: "none",
        help: "URLs that get each event of streams, viewers, recordings and disks by POST, as CloudEvents",
        applied: At::Reload,
        apply: |hooks, text| endpoints(text).map(|v| hooks.endpoints = v),
        show: |hooks| {
            let urls: Vec<_> = hooks.endpoints.iter().map(without_secrets).collect();
            (!urls.is_empty()).then(|| urls.join(","))
        },
    },
    Setting {
        name: "hook-secret",
        form: Form::Text,
        default: "none: events are not signed",
        help: "Secret that signs events for hooks, whsec_ and Base64 (Standard Webhooks). Other users of the machine can read it on the command \
               line, but not in a file or the environment",
        applied: At::Reload,
        apply: |hooks, text| {
            hooks.secret = Some(HookSecret::new(text));
            Ok(())
        },
        show: |hooks| hooks.secret.as_ref().filter(|_| hooks.secret_file.is_none()).map(|_| "***".to_owned()),
    },
    Setting {
        name: "hook-secret-file",
        form: Form::Path,
        default: "none",
        help: "File with the secret that signs events for hooks",
        applied: At::Reload,
        apply: |hooks, text| value::path(text).map(|v| hooks.secret_file = Some(v)),
        show: |hooks| hooks.secret_file.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: RUN,
        form: Form::List,
        default: "none",
        help: "Program that is started for each event, and its arguments. It gets the event in its environment and as JSON on its standard \
               input. There is no shell, and arguments have no commas. The admin API can't change it",
        applied: At::Reload,
        apply: |hooks, text| program(text).map(|v| hooks.run = v),
        show: |hooks| (!hooks.run.is_empty()).then(|| value::joined(&hooks.run)),
    },
    Setting {
        name: "hook-timeout",
        form: Form::Duration,
        default: "10s",
        help: "Time limit for the answer of a hook and for the program of hook-run, 100ms to 60s",
        applied: At::Reload,
        apply: |hooks, text| value::duration_in(text, TIMEOUT.0, TIMEOUT.1).map(|v| hooks.timeout = v),
        show: |hooks| Some(show_duration(hooks.timeout)),
    },
    Setting {
        name: "hook-retry",
        form: Form::Duration,
        default: "24h",
        help: "Time for which an event is sent again to a hook that does not take it. The event is dropped then",
        applied: At::Reload,
        apply: |hooks, text| value::duration(text).map(|v| hooks.patience = v),
        show: |hooks| Some(show_duration(hooks.patience)),
    },
    Setting {
        name: "hook-queue",
        form: Form::Count,
        default: "10000",
        help: "Most events that wait for a hook, 1 to 100000. Above it, and above 16 MiB, the oldest events are dropped",
        applied: At::Reload,
        apply: |hooks, text| value::count_in(text, QUEUE.0, QUEUE.1).map(|v| hooks.queue = v),
        show: |hooks| Some(hooks.queue.to_string()),
    },
    Setting {
        name: "disk-low",
        form: Form::Size,
        default: "1GiB",
        help: "Free space of the disk of the cache, recordings or time shift below which there is an event; 0 turns that off",
        applied: At::Reload,
        apply: |hooks, text| value::size(text).map(|v| hooks.disk_low = v),
        show: |hooks| Some(show_size(hooks.disk_low)),
    },
];

fn endpoints(text: &str) -> Result<Vec<Url>, BadValue> {
    let mut urls: Vec<Url> = Vec::new();
    for item in value::list(text) {
        let url = Url::parse(&item).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(mut url) = url else {
            return Err(BadValue::new("http or https URLs such as \"https://app.example/events\""));
        };
        url.set_fragment(None);
        if urls.contains(&url) {
            return Err(BadValue::new("each URL once"));
        }
        urls.push(url);
    }
    if urls.len() > MOST {
        return Err(BadValue::new(format!("at most {MOST} URLs")));
    }
    Ok(urls)
}

fn program(text: &str) -> Result<Vec<String>, BadValue> {
    let words = value::list(text);
    match words.first() {
        Some(program) if !program.starts_with('/') => {
            Err(BadValue::new("the path of a program from the root on, such as \"/usr/local/bin/on-event\""))
        }
        _ => Ok(words),
    }
}

/// A URL for people to read: it may have a password, or a key in its query.
pub(super) fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::machine::Machine;

    fn settings() -> HookSettings {
        HookSettings::defaults(&Host { machine: Machine::detect(), variable: &|_| None })
    }

    fn apply(settings: &mut HookSettings, name: &str, text: &str) -> Result<Option<String>, String> {
        let setting = HookSettings::find(name).unwrap();
        (setting.apply)(settings, text).map_err(|bad| bad.expected)?;
        Ok((setting.show)(settings))
    }

    #[test]
    fn urls_are_checked_and_shown_without_secrets() {
        let mut settings = settings();
        let shown = apply(&mut settings, "hooks", "https://user:pass@app.example/e?key=1#x, http://10.0.0.7:8000/");
        assert_eq!(shown.unwrap().unwrap(), "https://app.example/e,http://10.0.0.7:8000/");
        assert_eq!(settings.endpoints[0].as_str(), "https://user:pass@app.example/e?key=1");
        for bad in ["ftp://a/", "app.example/events", "https://", "http://a/,http://a/", "unix:/run/x", "file:///etc"] {
            assert!(apply(&mut settings, "hooks", bad).is_err(), "{bad}");
        }
        let many: Vec<_> = (0..=MOST).map(|number| format!("http://a/{number}")).collect();
        assert!(apply(&mut settings, "hooks", &many.join(",")).is_err());
        assert_eq!(apply(&mut settings, "hooks", ""), Ok(None));
    }

    #[test]
    fn a_program_has_a_whole_path() {
        let mut settings = settings();
        assert!(apply(&mut settings, RUN, "on-event").is_err());
        assert_eq!(apply(&mut settings, RUN, "/bin/on-event,-v").unwrap().unwrap(), "/bin/on-event,-v");
        assert_eq!(settings.run, ["/bin/on-event", "-v"]);
    }

    #[test]
    fn a_secret_has_one_source_and_is_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        std::fs::write(&file, format!("{text}\n")).unwrap();
        let faults = |secret: Option<&str>, file: Option<&std::path::Path>| {
            let mut settings = settings();
            settings.secret = secret.map(HookSecret::new);
            settings.secret_file = file.map(PathBuf::from);
            let faults = settings.complete(&Sources::default());
            (faults.iter().map(ToString::to_string).collect::<String>(), settings)
        };
        let (said, settings) = faults(None, Some(&file));
        assert!(said.is_empty() && settings.secret == Some(HookSecret::new(text)), "{said}");
        assert_eq!((HookSettings::find("hook-secret").unwrap().show)(&settings), None);
        assert!(faults(Some(text), Some(&file)).0.contains("both"));
        assert!(faults(None, Some(&folder.path().join("none"))).0.contains("none"));
        std::fs::write(&file, "whsec_short").unwrap();
        let said = faults(None, Some(&file)).0;
        assert!(said.contains("openssl") && !said.contains("short"), "{said}");
        let mut settings = self::settings();
        assert_eq!(apply(&mut settings, "hook-secret", text).unwrap().unwrap(), "***");
        let said = faults(Some("whsec_short"), None).0;
        assert!(said.contains("openssl") && !said.contains("short"), "{said}");
    }
}
