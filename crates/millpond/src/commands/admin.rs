//! Talking to the admin API of a running server.

use super::{Outcome, runtime};
use crate::out;
use clap::{Arg, ArgMatches};
use reqwest::Method;
use serde_json::Value;
use std::error::Error;

/// Most items of a page.
const PAGE: &str = "1000";
/// Environment variable with the token, which is that of the setting too.
const TOKEN: &str = "MILLPOND_ADMIN_TOKEN";

/// The flags with the server's admin address and its token.
pub(super) fn address() -> [Arg; 2] {
    let address = Arg::new("admin")
        .long("admin")
        .value_name("ADDR")
        .default_value("127.0.0.1:8380")
        .help("Admin address of the server (its setting `admin`): HOST:PORT or unix:PATH");
    let token = Arg::new("admin-token")
        .long("admin-token")
        .value_name("TOKEN")
        .help("Token of the admin API (the setting `admin-token`); better in $MILLPOND_ADMIN_TOKEN");
    [address, token]
}

/// A running server, as a command's flags name it.
pub(super) struct Admin<'a> {
    address: &'a str,
    token: Option<String>,
}

impl<'a> Admin<'a> {
    pub(super) fn of(matches: &'a ArgMatches) -> Self {
        let address = matches.get_one::<String>("admin").map(String::as_str).unwrap_or_default();
        let token = matches.get_one::<String>("admin-token").cloned().or_else(|| std::env::var(TOKEN).ok());
        Self { address, token: token.filter(|token| !token.is_empty()) }
    }

    /// Performs an operation of the API. Returns its reply.
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        (query, body): (&[(&str, &str)], Option<Value>),
    ) -> Result<String, Box<dyn Error>> {
        let mut client = reqwest::Client::builder().no_proxy();
        let base = match self.address.strip_prefix("unix:") {
            Some(path) => {
                client = client.unix_socket(std::path::PathBuf::from(path));
                "http://localhost".to_owned()
            }
            None => format!("http://{}", self.address),
        };
        let mut url = reqwest::Url::parse(&format!("{base}/api/v1/{path}"))
            .map_err(|error| format!("--admin {}: {error}", self.address))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        runtime()?.block_on(async {
            let mut request = client.build()?.request(method, url);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            if let Some(body) = body {
                request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.to_string());
            }
            let sent = request.send().await;
            let reply = sent.map_err(|_| {
                format!("no server answers at {}: is it running, and is this its --admin?", self.address)
            })?;
            let status = reply.status();
            let text = reply.text().await?;
            if status.is_success() {
                return Ok(text);
            }
            Err(said(&text).unwrap_or_else(|| status.to_string()).into())
        })
    }

    /// Reads one thing.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Box<dyn Error>> {
        Ok(serde_json::from_str(&self.send(Method::GET, path, (query, None))?)?)
    }

    /// Calls `each` with all items of a list, page after page.
    pub(super) fn each(&self, path: &str, query: &[(&str, &str)], mut each: impl FnMut(&Value) -> Outcome) -> Outcome {
        let mut cursor: Option<String> = None;
        loop {
            let mut query = query.to_vec();
            query.push(("limit", PAGE));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page = self.get(path, &query)?;
            page["items"].as_array().into_iter().flatten().try_for_each(&mut each)?;
            cursor = page["next-cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Performs an operation, and prints its reply as JSON.
    pub(super) fn print(&self, method: Method, path: &str, body: Option<Value>) -> Outcome {
        out::json(&self.send(method, path, (&[], body))?)
    }
}

/// The words of a problem, with each fault behind them.
fn said(text: &str) -> Option<String> {
    let problem: Value = serde_json::from_str(text).ok()?;
    let errors = problem["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let detail = problem["detail"].as_str()?;
    Some(std::iter::once(detail).chain(errors).collect::<Vec<_>>().join("\n"))
}

/// A path of media as one component of a path of the API.
pub(super) fn component(path: &str) -> String {
    path.trim_matches('/').bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_component() {
        assert_eq!(component("/cams/front door.mp4"), "cams%2Ffront%20door.mp4");
        assert_eq!(component("a%2Fé"), "a%252F%C3%A9");
    }

    #[test]
    fn problems_are_told_with_their_faults() {
        let text = r#"{"title":"x","status":422,"detail":"2 faults","errors":["a","b"]}"#;
        assert_eq!(said(text).as_deref(), Some("2 faults\na\nb"));
        assert_eq!(said(r#"{"detail":"no"}"#).as_deref(), Some("no"));
        assert_eq!(said("<html>"), None);
    }
}
