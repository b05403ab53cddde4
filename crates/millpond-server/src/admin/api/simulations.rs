//! Runs of the simulator.

use super::{
    super::{
        AdminState,
        simulations::{NoRun, Run, RunState},
    },
    Outcome, Reply, absent,
    page::Items,
    request::ApiRequest,
    show, shown,
};
use crate::problem::Problem;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;
use utoipa::ToSchema;

/// A run of the simulator.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Simulation {
    /// Its number.
    id: u64,
    /// `running`, `done`, `failed` or `cancelled`.
    state: &'static str,
    /// Start time, in seconds since the Unix epoch.
    started: f64,
    /// Duration, after the run has ended.
    seconds: f64,
    /// The request.
    #[schema(value_type = Object)]
    options: Value,
    /// The reason of a failure.
    error: Option<String>,
    /// Outcomes, as `millpond simulate --json` prints them; null in lists.
    #[schema(value_type = Option<Vec<Object>>)]
    outcomes: Option<Value>,
}

/// The run to start. docs/handbook/simulator.md explains each field.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct NewSimulation {
    /// A generated workload, such as sproxy or zipf.
    preset: Option<String>,
    /// Sizes of the cache.
    cache: Option<Vec<String>>,
    /// Sizes of a slice.
    slice: Option<Vec<String>>,
    /// When upcoming slices are fetched.
    mode: Option<Vec<String>>,
    /// Eviction policies.
    policy: Option<Vec<String>>,
    /// Bandwidth of the link in bytes a second, such as 10MB.
    bandwidth: Option<String>,
    /// Time from a request to the first byte of its reply, such as 50ms.
    delay: Option<String>,
    /// Seed of the workload.
    seed: Option<u64>,
    /// Divides all bytes.
    shrink: Option<f64>,
}

impl NewSimulation {
    /// Flags of the command. Each is one word, so that no value is taken for a flag.
    fn flags(&self) -> Vec<String> {
        let list = |values: &Option<Vec<String>>| values.as_ref().map(|values| values.join(","));
        let flags = [
            ("preset", self.preset.clone()),
            ("cache", list(&self.cache)),
            ("slice", list(&self.slice)),
            ("mode", list(&self.mode)),
            ("policy", list(&self.policy)),
            ("bandwidth", self.bandwidth.clone()),
            ("delay", self.delay.clone()),
            ("seed", self.seed.map(|seed| seed.to_string())),
            ("shrink", self.shrink.map(|shrink| shrink.to_string())),
        ];
        flags.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?))).collect()
    }
}

impl Simulation {
    fn of(run: Run, with_outcomes: bool) -> Self {
        Self {
            id: run.id,
            state: match run.state {
                RunState::Running => "running",
                RunState::Done => "done",
                RunState::Failed => "failed",
                RunState::Cancelled => "cancelled",
            },
            started: run.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            seconds: run.seconds,
            options: run.options,
            error: run.error,
            outcomes: run.outcomes.filter(|_| with_outcomes).map(|outcomes| (*outcomes).clone()),
        }
    }
}

/// Lists the last runs of the simulator.
#[utoipa::path(get, path = "/api/v1/simulations", tag = "simulations", responses((status = 200, body = Items<Simulation>)))]
pub(super) fn list_simulations(state: &AdminState) -> Reply {
    show(&Items { items: state.desk.simulations.list().into_iter().map(|run| Simulation::of(run, false)).collect() })
}

/// Starts a run of the simulator, in a separate process.
#[utoipa::path(post, path = "/api/v1/simulations", tag = "simulations", request_body = NewSimulation,
    responses((status = 202, body = Simulation)))]
pub(super) fn start_simulation(request: &ApiRequest, state: &AdminState) -> Outcome {
    let options: NewSimulation = request.json()?;
    match state.desk.simulations.start(&options.flags(), json!(options)) {
        Ok(run) => Ok(shown(StatusCode::ACCEPTED, &Simulation::of(run, true))),
        Err(error) => {
            let status = match error {
                NoRun::Busy => StatusCode::TOO_MANY_REQUESTS,
                NoRun::Start(_) => StatusCode::SERVICE_UNAVAILABLE,
                NoRun::None => StatusCode::FORBIDDEN,
            };
            Err(Problem::new(status).detail(error.to_string()))
        }
    }
}

/// Shows a run of the simulator and its outcomes.
#[utoipa::path(get, path = "/api/v1/simulations/{id}", tag = "simulations", params(("id" = u64, Path, description = "Number of the run")),
    responses((status = 200, body = Simulation)))]
pub(super) fn get_simulation(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let found = state.desk.simulations.list().into_iter().find(|run| run.id == id);
    found.map(|run| show(&Simulation::of(run, true))).ok_or_else(|| absent(format!("there is no simulation {id}")))
}

/// Cancels a run of the simulator, or removes a run that has ended.
#[utoipa::path(delete, path = "/api/v1/simulations/{id}", tag = "simulations", params(("id" = u64, Path, description = "Number of the run")),
    responses((status = 200, body = Simulation)))]
pub(super) fn end_simulation(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let removed = state.desk.simulations.remove(id);
    removed.map(|run| show(&Simulation::of(run, false))).ok_or_else(|| absent(format!("there is no simulation {id}")))
}
