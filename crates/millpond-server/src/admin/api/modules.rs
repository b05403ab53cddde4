//! Modules that operators attach to channels and live streams.

use super::{super::AdminState, Outcome, Reply, absent, request::ApiRequest, show, shown};
use crate::{
    modules::{AttachError, CannotRemove, ListedModule, ModuleLine},
    problem::{self, Problem},
    recordings::RecordError,
};
use http::StatusCode;
use millpond_stream::{
    CannotAttach, CannotPush, CannotRecord, ModuleDeclaration, PublishRefused, reception::SourceErrorKind,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io};
use utoipa::ToSchema;

/// The kinds of modules, and the modules that are attached.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ModuleList {
    /// Kinds of modules that can be attached.
    kinds: Vec<ListedModuleKind>,
    /// Modules that are wanted or run, and the last modules that ended.
    items: Vec<AttachedModule>,
}

/// A kind of modules that can be attached.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedModuleKind {
    /// Name.
    name: &'static str,
    /// Its task.
    about: &'static str,
    /// Tracks that a module needs: `any`, `pictures` or `sound`.
    input: &'static str,
    /// Whether it publishes its output.
    has_output: bool,
    /// Options.
    options: Vec<ListedModuleOption>,
}

/// An option of a kind of modules.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedModuleOption {
    /// Name.
    name: &'static str,
    /// Form of its value, such as DURATION.
    form: &'static str,
    /// Default; empty where there is none.
    default: &'static str,
    /// Its effect.
    help: &'static str,
    /// Whether each module needs a value.
    is_required: bool,
}

/// A module that is wanted, runs or has ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct AttachedModule {
    /// Its number.
    id: u64,
    /// Path of the stream.
    stream: String,
    /// Name of its kind.
    kind: String,
    /// Options that were given.
    options: BTreeMap<String, String>,
    /// Whether it is one of the setting `modules`.
    is_configured: bool,
    /// `starting`, `waiting`, `running`, `ended`, `failed` or `removed`.
    state: &'static str,
    /// Number of its module in `GET /api/v1/graph`; null unless it runs.
    module: Option<u64>,
    /// Why it waits or has ended.
    error: Option<String>,
    /// Frames that it has passed on since it was attached; null where it does not count them.
    frames: Option<u64>,
    /// Bytes of those.
    bytes: Option<u64>,
}

/// The module to attach.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewModule {
    /// Path of a channel or live stream.
    stream: String,
    /// Name of the kind.
    kind: String,
    /// Options by name.
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl ListedModuleKind {
    fn of(declaration: &ModuleDeclaration) -> Self {
        let option = |option: &millpond_stream::ModuleOption| ListedModuleOption {
            name: option.name,
            form: option.form.placeholder(),
            default: option.default,
            help: option.help,
            is_required: option.is_required,
        };
        Self {
            name: declaration.kind.name,
            about: declaration.kind.about,
            input: declaration.input.name(),
            has_output: declaration.kind.outputs > 0,
            options: declaration.all_options().iter().map(option).collect(),
        }
    }
}

impl AttachedModule {
    fn of(listed: ListedModule) -> Self {
        let ListedModule { id, line, is_configured, state, node, why, counts } = listed;
        let options = line.shown_options().map(|(name, value)| (name.to_owned(), value)).collect();
        let ModuleLine { stream, kind, .. } = line;
        let (frames, bytes) = (counts.map(|counts| counts.frames), counts.map(|counts| counts.bytes));
        Self { id, stream, kind, options, is_configured, state, module: node, error: why, frames, bytes }
    }
}

/// Lists the kinds of modules that can be attached, and the modules that are.
#[utoipa::path(get, path = "/api/v1/modules", tag = "streams", responses((status = 200, body = ModuleList)))]
pub(super) fn list_modules(state: &AdminState) -> Reply {
    let kinds = state.modules.kinds().map(ListedModuleKind::of).collect();
    show(&ModuleList { kinds, items: state.modules.list().into_iter().map(AttachedModule::of).collect() })
}

/// Attaches a module to a channel or live stream.
#[utoipa::path(post, path = "/api/v1/modules", tag = "streams", request_body = NewModule,
    responses((status = 201, body = AttachedModule)))]
pub(super) async fn attach_module(request: &ApiRequest, state: &AdminState) -> Outcome {
    let NewModule { stream, kind, options } = request.json()?;
    match state.modules.add(ModuleLine::new(&stream, &kind, options)).await {
        Ok(listed) => Ok(shown(StatusCode::CREATED, &AttachedModule::of(listed))),
        Err(error) => {
            let status = status(&error);
            tracing::warn!(stream, kind, %error, status = status.as_u16(), "no module");
            Err(Problem::new(status).detail(detail(&error)))
        }
    }
}

/// Shows a module.
#[utoipa::path(get, path = "/api/v1/modules/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the module")),
    responses((status = 200, body = AttachedModule)))]
pub(super) fn get_module(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let found = state.modules.list().into_iter().find(|listed| listed.id == id).map(AttachedModule::of);
    found.map(|module| show(&module)).ok_or_else(|| no_module(id))
}

/// Detaches a module that was attached by this API.
#[utoipa::path(delete, path = "/api/v1/modules/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the module")),
    responses((status = 200, body = AttachedModule)))]
pub(super) async fn detach_module(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    match state.modules.remove(id).await {
        Ok(listed) => Ok(show(&AttachedModule::of(listed))),
        Err(CannotRemove::Absent) => Err(no_module(id)),
        Err(CannotRemove::Configured) => Err(configured()),
    }
}

fn no_module(id: u64) -> Problem {
    absent(format!("there is no module {id}: `millpond module ls` and GET /api/v1/modules list the numbers"))
}

/// The refusal to remove a module of the configuration.
pub(super) fn configured() -> Problem {
    let why = "the module is one of the configuration: remove its line from the setting modules or push";
    Problem::new(StatusCode::CONFLICT).detail(why)
}

/// The status of an error.
pub(super) fn status(error: &AttachError) -> StatusCode {
    match error {
        AttachError::Line(_) => StatusCode::BAD_REQUEST,
        AttachError::Library(error) => problem::status(error),
        AttachError::NoStream(_) | AttachError::NotPublished { .. } => StatusCode::CONFLICT,
        AttachError::Source(error) => match error.kind {
            SourceErrorKind::NotFound | SourceErrorKind::Unpublished => StatusCode::NOT_FOUND,
            SourceErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            SourceErrorKind::NotBegun { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_GATEWAY,
        },
        AttachError::Input(_) => StatusCode::UNPROCESSABLE_ENTITY,
        AttachError::Make(error) if error.is::<CannotPush>() => StatusCode::BAD_GATEWAY,
        AttachError::Make(error) => error.downcast_ref().map_or(StatusCode::INTERNAL_SERVER_ERROR, of_recorder),
        AttachError::Attach {
            error: CannotAttach::Publish(PublishRefused::Taken | PublishRefused::NotPublished),
            ..
        }
        | AttachError::Attach { error: CannotAttach::Circle(_), .. } => StatusCode::CONFLICT,
        AttachError::Open(_) | AttachError::Attach { .. } | AttachError::Ending => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn of_recorder(error: &RecordError) -> StatusCode {
    match error {
        RecordError::Off => StatusCode::FORBIDDEN,
        RecordError::TooMany(_) | RecordError::Stream(CannotRecord::Thread(_)) => StatusCode::SERVICE_UNAVAILABLE,
        RecordError::Stream(CannotRecord::NoTracks { .. }) => StatusCode::UNPROCESSABLE_ENTITY,
        RecordError::Stream(CannotRecord::File { error, .. }) => match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

/// The client's share of an error: the log has the folder.
pub(super) fn detail(error: &AttachError) -> String {
    match error {
        AttachError::Make(made) => match made.downcast_ref() {
            Some(RecordError::Stream(CannotRecord::File { error, .. })) => format!("the file can't be made: {error}"),
            _ => error.to_string(),
        },
        error => error.to_string(),
    }
}
