//! Talking to the admin address of a running server.

use super::{Outcome, runtime};
use crate::out;
use clap::{Arg, ArgMatches};
use reqwest::Method;
use std::error::Error;

/// The flag that says where the server's admin address is.
pub(super) fn address() -> Arg {
    Arg::new("admin")
        .long("admin")
        .value_name("ADDR")
        .default_value("127.0.0.1:9090")
        .help("Admin address of the server (its setting `admin`)")
}

/// Asks a running server.
pub(super) fn ask(
    matches: &ArgMatches,
    method: Method,
    path: &str,
    query: &[(&str, &str)],
) -> Result<String, Box<dyn Error>> {
    let address = matches.get_one::<String>("admin").map(String::as_str).unwrap_or_default();
    let mut url =
        reqwest::Url::parse(&format!("http://{address}{path}")).map_err(|e| format!("--admin {address}: {e}"))?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    runtime()?.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let sent = client.request(method, url).send().await;
        let reply =
            sent.map_err(|_| format!("no server answers at {address}: is it running, and is this its --admin?"))?;
        let status = reply.status();
        let text = reply.text().await?;
        if status.is_success() {
            return Ok(text);
        }
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        Err(problem["detail"].as_str().map_or_else(|| status.to_string(), str::to_owned).into())
    })
}

/// Prints what a running server answers.
pub(super) fn print(matches: &ArgMatches, method: Method, path: &str, query: &[(&str, &str)]) -> Outcome {
    out::json(&ask(matches, method, path, query)?)
}
