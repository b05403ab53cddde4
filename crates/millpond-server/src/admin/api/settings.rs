//! Settings and places: their values and sources, and changes of the configuration file.

use super::{
    super::AdminState,
    Outcome, absent, bounds,
    page::{Items, fits},
    request::ApiRequest,
    show,
};
use crate::{
    config::{Config, EditError, Effective, Loaded, PlaceConfig, edit},
    problem::Problem,
    reload::{Change, ReloadError, Reloader, Report},
};
use http::StatusCode;
use millpond_settings::{Source, value::Form};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// All settings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SettingList {
    /// The configuration file; null if there is none.
    file: Option<String>,
    /// Whether there is a configuration file that can be changed.
    is_writable: bool,
    /// The settings, in the order of docs/reference/settings.md.
    settings: Vec<ShownSetting>,
}

/// A setting.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ShownSetting {
    /// Name.
    name: &'static str,
    /// `address`, `path`, `count`, `size`, `duration`, `switch`, `choice`, `text` or `list`.
    form: &'static str,
    /// Values of a choice.
    choices: Vec<&'static str>,
    /// Effect.
    help: &'static str,
    /// Default, in words.
    default: &'static str,
    /// Value that the next start would use; null if the setting is off. Secrets are `***`.
    value: Option<String>,
    /// Source of that value, in words.
    source: String,
    /// `default`, `file`, `environment` or `flag`.
    from: &'static str,
    /// The value of the running server.
    in_force: Option<String>,
    /// Whether the value is a secret.
    is_secret: bool,
    /// Whether a reload applies a new value; else a restart.
    is_live: bool,
    /// Whether `value` and `in-force` differ.
    needs_restart: bool,
}

/// Filter of settings.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingQuery {
    /// Part of name or help.
    q: Option<String>,
}

/// A change of the configuration file.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SettingChange {
    /// New values by the names of their settings, as text.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// Settings that leave the file.
    #[serde(default)]
    unset: Vec<String>,
    /// Checks only.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a reload.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Reloaded {
    /// Whether the file was written.
    is_written: bool,
    /// Settings that have another value now; of a trial, that would have.
    applied: Vec<ChangedSetting>,
    /// Settings that get another value when the server starts again.
    needs_restart: Vec<ChangedSetting>,
    /// Places that have changed.
    places: ChangedPlaces,
    /// Findings that are probably mistakes.
    warnings: Vec<String>,
}

/// A setting with another value.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedSetting {
    /// Name.
    setting: String,
    /// The previous value; null if the setting was off.
    from: Option<String>,
    /// Its new value.
    to: Option<String>,
}

/// Places that have changed, by their names.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedPlaces {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl Reloaded {
    fn of(report: Report, is_written: bool) -> Self {
        let changes = |changes: Vec<Change>| {
            let plain = |value: Option<String>| plain(value.as_deref());
            let change = |Change { setting, from, to }| ChangedSetting { setting, from: plain(from), to: plain(to) };
            changes.into_iter().map(change).collect()
        };
        let Report { applied, needs_restart, places, warnings } = report;
        let places = ChangedPlaces { added: places.added, removed: places.removed, changed: places.changed };
        Self { is_written, applied: changes(applied), needs_restart: changes(needs_restart), places, warnings }
    }
}

/// A place.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Place {
    /// Name.
    name: String,
    /// Its location, without secrets.
    location: String,
    /// `folder`, `http`, `s3`, `gcs`, `azure`, `rtsp`, `transport` or `publish`.
    kind: &'static str,
    /// Whether the place has live streams.
    is_live: bool,
    /// Whether the place's origin has answered.
    is_ready: bool,
    /// `default`, `file`, `environment` or `flag`.
    from: &'static str,
    /// Source of the place, in words.
    source: String,
}

/// A place for the configuration file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct NewPlace {
    /// Its location.
    url: String,
    /// Its own settings, as text.
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

fn reloader(state: &AdminState) -> Result<&Reloader, Problem> {
    state.reloader.as_ref().ok_or_else(|| absent("this server has no configuration"))
}

fn from(source: &Source) -> &'static str {
    match source {
        Source::Default => "default",
        Source::File { .. } => "file",
        Source::Environment(_) => "environment",
        Source::Flag(_) => "flag",
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Address => "address",
        Form::Path => "path",
        Form::Count => "count",
        Form::Size => "size",
        Form::Duration => "duration",
        Form::Switch => "switch",
        Form::Choice(_) => "choice",
        Form::Text => "text",
        Form::List => "list",
        Form::Output => "output",
    }
}

/// The text of a value that is written as TOML.
fn plain(value: Option<&str>) -> Option<String> {
    let value = value?;
    let parsed: Option<toml::Table> = toml::from_str(&format!("value = {value}")).ok();
    let text = parsed.and_then(|table| table.get("value")?.as_str().map(str::to_owned));
    Some(text.unwrap_or_else(|| value.to_owned()))
}

fn of<'a>(loaded: &'a Loaded, name: &str) -> Option<&'a Effective> {
    loaded.effective.iter().find(|effective| effective.name == name)
}

/// Lists all settings with their values and sources, and the values in force.
#[utoipa::path(get, path = "/api/v1/settings", tag = "settings", params(SettingQuery), responses((status = 200, body = SettingList)))]
pub(super) async fn list_settings(request: &ApiRequest, state: &AdminState) -> Outcome {
    let (reloader, SettingQuery { q }) = (reloader(state)?, request.query()?);
    let (running, file) = (reloader.loaded(), reloader.file());
    // The file may have been changed and not loaded yet: its values hold at the next start.
    let waiting = reloader.check(|text| Ok(text.to_owned())).await.unwrap_or_default();
    let waiting: Vec<Change> = waiting.applied.into_iter().chain(waiting.needs_restart).collect();
    let declared = Config::settings().into_iter().filter(|setting| fits(q.as_deref(), [setting.name, setting.help]));
    let settings = declared.map(|setting| {
        let effective = of(&running, setting.name);
        let in_force = plain(effective.and_then(|effective| effective.value.as_deref()));
        let change = waiting.iter().find(|change| change.setting == setting.name);
        let value = change.map_or_else(|| in_force.clone(), |change| plain(change.to.as_deref()));
        let source = effective.map(|effective| effective.source.clone()).unwrap_or_default();
        ShownSetting {
            name: setting.name,
            form: form(setting.form),
            choices: setting.form.choices().to_vec(),
            help: setting.help,
            default: setting.default,
            is_live: !setting.needs_restart,
            needs_restart: change.is_some(),
            is_secret: value.as_deref() == Some("***"),
            value,
            source: source.to_string(),
            from: from(&source),
            in_force,
        }
    });
    let settings = settings.collect();
    let file = file.map(|file| file.display().to_string());
    Ok(show(&SettingList { is_writable: reloader.can_write(), file, settings }))
}

/// Changes the configuration file, keeps its comments, and puts it in force. Either all changes are made, or none.
#[utoipa::path(patch, path = "/api/v1/settings", tag = "settings", request_body = SettingChange,
    responses((status = 200, body = Reloaded)))]
pub(super) async fn change_settings(request: &ApiRequest, state: &AdminState) -> Outcome {
    let reloader = reloader(state)?;
    let SettingChange { set, unset, dry_run } = request.json()?;
    bounds::settings(state, set.keys().chain(&unset))?;
    for name in set.keys().chain(&unset) {
        let running = reloader.loaded();
        let source = of(&running, &name.replace('_', "-")).map(|effective| effective.source.clone());
        if let Some(source @ (Source::Environment(_) | Source::Flag(_))) = source {
            let why = format!("{name} is given by {source}, which wins over the file");
            return Err(Problem::new(StatusCode::CONFLICT).detail(why));
        }
    }
    change(reloader, dry_run, move |text| edit::settings(text, &set, &unset)).await
}

/// Lists the places.
#[utoipa::path(get, path = "/api/v1/places", tag = "settings", responses((status = 200, body = Items<Place>)))]
pub(super) fn list_places(state: &AdminState) -> Outcome {
    let running = reloader(state)?.loaded();
    let sources =
        running.effective.iter().filter(|effective| effective.name == "places").map(|effective| &effective.source);
    let place = |(place, source): (&PlaceConfig, &Source)| Place {
        name: place.spec.name.clone(),
        location: place.spec.source.to_string(),
        kind: place.spec.kind().name,
        is_live: place.spec.is_live(),
        is_ready: place.spec.is_live() || state.readiness.has_answered(&place.spec.name),
        from: from(source),
        source: source.to_string(),
    };
    Ok(show(&Items { items: running.config.places.iter().zip(sources).map(place).collect() }))
}

/// Writes a place into the configuration file, and puts it in force.
#[utoipa::path(put, path = "/api/v1/places/{name}", tag = "settings", params(("name" = String, Path, description = "Name of the place")),
    request_body = NewPlace, responses((status = 200, body = Reloaded)))]
pub(super) async fn put_place(request: &ApiRequest, state: &AdminState) -> Outcome {
    let (name, NewPlace { url, settings }) = (request.parameter(0).to_owned(), request.json()?);
    let reloader = places_of_file(state)?;
    bounds::place(state, reloader, &url, settings.keys())?;
    change(reloader, false, move |text| edit::place(text, &name, &url, &settings)).await
}

/// Removes a place from the configuration file and from the server.
#[utoipa::path(delete, path = "/api/v1/places/{name}", tag = "settings", params(("name" = String, Path, description = "Name of the place")),
    responses((status = 200, body = Reloaded)))]
pub(super) async fn remove_place(request: &ApiRequest, state: &AdminState) -> Outcome {
    let name = request.parameter(0).to_owned();
    change(places_of_file(state)?, false, move |text| edit::without_place(text, &name)).await
}

/// Reads the configuration again, and puts it in force.
#[utoipa::path(post, path = "/api/v1/reload", tag = "settings", responses((status = 200, body = Reloaded)))]
pub(super) async fn reload(state: &AdminState) -> Outcome {
    let report = reloader(state)?.reload().await.map_err(refused)?;
    Ok(show(&Reloaded::of(report, false)))
}

/// The reloader of a server whose places are those of its file. Places of the environment or of arguments win over the file.
fn places_of_file(state: &AdminState) -> Result<&Reloader, Problem> {
    let reloader = reloader(state)?;
    let running = reloader.loaded();
    let places = running.effective.iter().filter(|effective| effective.name == "places");
    let mut sources = places.map(|effective| &effective.source);
    match sources.find(|source| matches!(source, Source::Environment(_) | Source::Flag(_))) {
        Some(source) => {
            let why = format!("places are given by {source}, which wins over the file");
            Err(Problem::new(StatusCode::CONFLICT).detail(why))
        }
        None => Ok(reloader),
    }
}

async fn change(
    reloader: &Reloader,
    is_trial: bool,
    edit: impl FnOnce(&str) -> Result<String, EditError> + Send + 'static,
) -> Outcome {
    let report = if is_trial { reloader.check(edit).await } else { reloader.apply(edit).await };
    Ok(show(&Reloaded::of(report.map_err(refused)?, !is_trial)))
}

/// The problem of a configuration that is not taken.
fn refused(error: ReloadError) -> Problem {
    let status = match &error {
        ReloadError::Invalid(_) | ReloadError::Edit(EditError::Syntax(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        ReloadError::Edit(EditError::Unknown(_)) => StatusCode::BAD_REQUEST,
        ReloadError::Edit(EditError::NoPlace(_)) => StatusCode::NOT_FOUND,
        // The log has the reason of the system.
        ReloadError::Refused(_)
        | ReloadError::NoFile
        | ReloadError::Write { .. }
        | ReloadError::Changed
        | ReloadError::Edit(EditError::ListedPlaces) => StatusCode::CONFLICT,
        ReloadError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    };
    match error {
        ReloadError::Invalid(errors) => {
            let errors: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
            let plural = if errors.len() == 1 { "" } else { "s" };
            let detail = format!("{} fault{plural} in the configuration", errors.len());
            Problem::new(status).detail(detail).errors(errors)
        }
        error => Problem::new(status).detail(error.to_string()),
    }
}
