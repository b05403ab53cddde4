//! The last minutes of the log.

use super::{Outcome, bad, page, request::ApiRequest, show};
use millpond_logging::{RecentLine, recent};
use serde::{Deserialize, Serialize};
use tracing::Level;
use utoipa::{IntoParams, ToSchema};

/// Filters of lines.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct LogQuery {
    /// Least important level: `error`, `warn`, `info`, `debug` or `trace`. Default: all that the log has.
    level: Option<String>,
    /// Part of message, target or fields.
    q: Option<String>,
    /// Number of the last line that is known.
    after: Option<u64>,
    /// Number of the newest lines, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Lines of the log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Lines {
    /// Lines, oldest first.
    items: Vec<Line>,
    /// Number of the newest line of the log: `after` of the next request.
    next_after: u64,
    /// Lines behind `after` that are gone.
    lost: u64,
}

/// A line of the log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Line {
    /// Its number, from 1.
    number: u64,
    /// Seconds since the Unix epoch.
    time: f64,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    level: String,
    /// Part of the program.
    target: &'static str,
    /// Message.
    message: String,
    /// Fields.
    #[schema(value_type = Object)]
    fields: serde_json::Map<String, serde_json::Value>,
}

impl Line {
    fn of(line: &RecentLine) -> Self {
        let RecentLine { number, time, level, target, message, fields } = line.clone();
        Self { number, time, level: level.as_str().to_ascii_lowercase(), target, message, fields }
    }
}

/// Lists the last lines of the log.
#[utoipa::path(get, path = "/api/v1/logs", tag = "logs", params(LogQuery), responses((status = 200, body = Lines)))]
pub(super) fn list_lines(request: &ApiRequest) -> Outcome {
    let LogQuery { level, q, after, limit } = request.query()?;
    let level = match level.as_deref() {
        None => Level::TRACE,
        Some(name) if ["error", "warn", "info", "debug", "trace"].contains(&name) => {
            name.parse().map_err(|_| bad("level"))?
        }
        Some(name) => return Err(bad(format!("level: {name:?} is none of error, warn, info, debug and trace"))),
    };
    let (after, limit) = (after.unwrap_or(0), page::limit(limit)?);
    let found = recent().after(after, level, limit, |line| page::fits(q.as_deref(), line.texts()));
    let items = found.lines.iter().map(|line| Line::of(line)).collect();
    Ok(show(&Lines { items, next_after: found.newest, lost: found.lost }))
}
