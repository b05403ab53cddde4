//! Differences between two configurations, and what becomes of them.

use crate::config::{Config, Effective, Loaded, PlaceConfig};
use millpond_settings::Source;
use serde::Serialize;
use std::collections::BTreeSet;

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Settings that have another value now.
    pub applied: Vec<Change>,
    /// Settings of the configuration that differ from those in force until the server starts again.
    pub needs_restart: Vec<Change>,
    /// Places that have changed.
    pub places: PlaceChanges,
    /// Findings that are probably, but not certainly, mistakes.
    pub warnings: Vec<String>,
}

/// A setting with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Name of the setting.
    pub setting: String,
    /// Its value before, as TOML; `None` where it was off.
    pub from: Option<String>,
    /// Its new value.
    pub to: Option<String>,
}

/// Places that have changed, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlaceChanges {
    /// Places that are new.
    pub added: Vec<String>,
    /// Places that are gone.
    pub removed: Vec<String>,
    /// Places with another location or other options.
    pub changed: Vec<String>,
}

impl Report {
    /// Compares the configuration in force with a new one that was read. `loaded` is changed to what comes in force: settings that
    /// need a restart keep their values.
    pub(super) fn new(running: &Loaded, loaded: &mut Loaded) -> Self {
        keep_derived(running, loaded);
        let wanted = loaded.effective.clone();
        loaded.config.keep_fixed(&running.config);
        keep_addresses(&running.config, &mut loaded.config);
        loaded.show_again();
        let mut report = Self { warnings: loaded.warnings.clone(), ..Self::default() };
        for (wanted, now) in wanted.iter().zip(&loaded.effective).filter(|(wanted, _)| wanted.name != "places") {
            if wanted.value != now.value {
                report.needs_restart.push(change(now, wanted));
            }
            let before = running.effective.iter().find(|before| before.name == now.name);
            if let Some(before) = before.filter(|before| before.value != now.value) {
                report.applied.push(change(before, now));
            }
        }
        report.add_token(running, loaded);
        report.places = PlaceChanges::between(&running.config, &loaded.config);
        report
    }

    /// Adds another token of the admin API. Tokens are shown alike, and the file of a token keeps its name.
    fn add_token(&mut self, running: &Loaded, loaded: &Loaded) {
        let (before, now) = (&running.config.admin, &loaded.config.admin);
        let name = if now.token_file.is_some() { "admin-token-file" } else { "admin-token" };
        let is_known = self.applied.iter().any(|change| change.setting.starts_with("admin-token"));
        if before.token == now.token || is_known {
            return;
        }
        let shown = |loaded: &Loaded| loaded.effective.iter().find(|setting| setting.name == name)?.value.clone();
        self.applied.push(Change { setting: name.to_owned(), from: shown(running), to: shown(loaded) });
    }

    /// Tells whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.needs_restart.is_empty() && self.places == PlaceChanges::default()
    }
}

fn change(from: &Effective, to: &Effective) -> Change {
    Change { setting: to.name.to_owned(), from: from.value.clone(), to: to.value.clone() }
}

/// Keeps addresses that other parts are bound to: the nodes of a cluster know those of HTTP and RTSP, and packets leave from the
/// host of RTSP.
fn keep_addresses(running: &Config, new: &mut Config) {
    let is_node = running.cluster.is_on();
    if is_node {
        new.http.address = running.http.address;
    }
    if is_node || new.rtsp.address.ip() != running.rtsp.address.ip() {
        new.rtsp.address = running.rtsp.address;
    }
}

/// Keeps defaults that follow from the machine: the free space of the disk changes all the time, and the cache should not.
fn keep_derived(running: &Loaded, loaded: &mut Loaded) {
    let is_default = |loaded: &Loaded| {
        loaded.effective.iter().any(|setting| setting.name == "cache-size" && setting.source == Source::Default)
    };
    if is_default(running) && is_default(loaded) {
        loaded.config.storage.cache_size = running.config.storage.cache_size;
        loaded.show_again();
    }
}

impl PlaceChanges {
    fn between(before: &Config, after: &Config) -> Self {
        let names = |config: &Config| -> BTreeSet<String> {
            config.places.iter().map(|place| place.spec.name.clone()).collect()
        };
        let (old, new) = (names(before), names(after));
        let differs = |name: &&String| place(before, name) != place(after, name);
        Self {
            added: new.difference(&old).cloned().collect(),
            removed: old.difference(&new).cloned().collect(),
            changed: new.intersection(&old).filter(differs).cloned().collect(),
        }
    }
}

/// The place of a name.
pub(crate) fn place<'a>(config: &'a Config, name: &str) -> Option<&'a PlaceConfig> {
    config.places.iter().find(|place| place.spec.name == name)
}
