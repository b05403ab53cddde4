//! Commands, configuration, logs and metrics.

mod access_log;
mod announced;
mod api;
mod cli;
mod first_words;
mod hooks;
mod log_lines;
pub(crate) mod metrics;
mod mistakes;
mod papers;
mod process;
mod prometheus;
mod reload;
mod traces;
pub(crate) mod upgrade;
mod words;
