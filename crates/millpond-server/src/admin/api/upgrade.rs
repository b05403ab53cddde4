//! Upgrades: a new process takes over.

use super::{super::AdminState, Outcome, show};
use crate::{problem::Problem, upgrade::UpgradeError};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// The process that has taken over.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewProcess {
    /// Its identifier.
    process: u32,
}

/// Starts a new process of the same program, which takes over. If the new process does not serve, the old one continues.
#[utoipa::path(post, path = "/api/v1/upgrade", tag = "settings", responses((status = 200, body = NewProcess)))]
pub(super) async fn upgrade(state: &AdminState) -> Outcome {
    let upgraded = match &state.upgrader {
        Some(upgrader) => upgrader.upgrade().await,
        None => Err(UpgradeError::Busy),
    };
    let process = upgraded.map_err(|error| {
        let status = match &error {
            UpgradeError::Node | UpgradeError::First | UpgradeError::Busy => StatusCode::CONFLICT,
            UpgradeError::Start { .. } | UpgradeError::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status).detail(error.to_string())
    })?;
    Ok(show(&NewProcess { process }))
}
