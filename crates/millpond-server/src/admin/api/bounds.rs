//! Bounds of an API without credentials: whoever reaches it makes the server read and write no files that it does not serve already.

use super::super::{AdminGate, AdminState};
use crate::{
    config::{Config, PlaceConfig, PlaceSetting},
    hooks,
    problem::Problem,
    reload::Reloader,
};
use http::StatusCode;
use millpond_place::PlaceSpec;
use millpond_settings::value::Form;
use std::path::{Path, PathBuf};

/// Cure in the error of a refused request: three ways to change the setting or the place.
const CURE: &str = "the admin API has no token: edit the configuration file and reload, set admin-token-file, or make admin a \
                    socket file (unix:PATH)";

/// Checks the names of settings that a request changes.
///
/// # Errors
/// The setting is the program of hooks; or the API has no credentials, and a setting names a file.
pub(super) fn settings<'a>(state: &AdminState, names: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    let names = names.map(|name| name.replace('_', "-")).collect::<Vec<_>>();
    if names.iter().any(|name| name == hooks::RUN) {
        let why = "names a program that the server starts: it stands in the configuration file, a flag or the environment, \
                   and the API does not change it";
        return Err(refusal(format!("{} {why}", hooks::RUN)));
    }
    if !is_open(&state.gate) {
        return Ok(());
    }
    let all = Config::settings();
    let is_file = |name: &str| {
        all.iter().any(|setting| setting.name == name && matches!(setting.form, Form::Path | Form::Output))
    };
    match names.iter().find(|name| is_file(name)) {
        Some(name) => Err(refusal(format!("{name} names a file of this machine, and {CURE}"))),
        None => Ok(()),
    }
}

/// Checks a place that a request adds, with its own settings.
///
/// # Errors
/// The API has no credentials, and the place is a folder outside of those that are served, or names a file.
pub(super) fn place<'a>(
    state: &AdminState,
    reloader: &Reloader,
    url: &str,
    mut names: impl Iterator<Item = &'a String>,
) -> Result<(), Problem> {
    if !is_open(&state.gate) {
        return Ok(());
    }
    let is_file = |name: &str| PlaceSetting::find(name).is_some_and(|setting| setting.form == Form::Path);
    if let Some(name) = names.find(|name| is_file(name)) {
        return Err(refusal(format!("{name} names a file of this machine, and {CURE}")));
    }
    // A location that can't be parsed is refused with its reason later.
    let spec = PlaceSpec::parse(&format!("place={url}")).ok();
    let Some(folder) = spec.as_ref().and_then(PlaceSpec::folder) else { return Ok(()) };
    if is_within(folder, &reloader.loaded().config.places) {
        return Ok(());
    }
    Err(refusal(format!("{} is outside of the folders that are served, and {CURE}", folder.display())))
}

/// Tells whether everybody who reaches the API may use it.
fn is_open(gate: &AdminGate) -> bool {
    gate.token.is_none() && gate.hosts.is_some()
}

/// Tells whether a folder is one of the places', or lies in one.
fn is_within(folder: &Path, places: &[PlaceConfig]) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let roots = places.iter().filter_map(|place| place.spec.folder()?.canonicalize().ok());
    lies_in(&folder, roots)
}

fn lies_in(folder: &Path, mut roots: impl Iterator<Item = PathBuf>) -> bool {
    // A single file may be a place. It has no folders.
    roots.any(|root| folder == root || (root.is_dir() && folder.starts_with(&root)))
}

fn refusal(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{AdminToken, AllowedHosts};

    #[test]
    fn an_api_is_open_without_token_and_socket() {
        let hosts = || Some(AllowedHosts::new("127.0.0.1:8380".parse().unwrap(), &[]));
        let token = || Some(AdminToken::new("sixteen-letters-or-more"));
        assert!(is_open(&AdminGate { hosts: hosts(), token: None }));
        assert!(!is_open(&AdminGate { hosts: hosts(), token: token() }));
        assert!(!is_open(&AdminGate { hosts: None, token: None }));
    }

    #[test]
    fn folders_lie_in_a_root_or_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let roots = || std::iter::once(root.clone());
        assert!(lies_in(&root, roots()) && lies_in(&root.join("a/b"), roots()));
        assert!(!lies_in(Path::new("/"), roots()) && !lies_in(Path::new("/etc"), roots()));
        let beside = PathBuf::from(format!("{}x", root.display()));
        assert!(!lies_in(&beside, roots()));
    }
}
