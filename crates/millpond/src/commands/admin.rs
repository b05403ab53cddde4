//! Talking to the admin API of a running server.

use super::{Outcome, runtime, shell_word::shell_word};
use clap::{Arg, ArgMatches, parser::ValueSource};
use millpond_terminal::out;
use reqwest::Method;
use serde_json::Value;
use std::{error::Error, time::Duration};

/// Most items of a page.
const PAGE: &str = "1000";
/// Forms of an address.
const EXPECTED: &str = "HOST:PORT such as 127.0.0.1:8380, or unix:PATH";
/// Longest silence of a server that is asked for something, and of one that has something to do, such as an upgrade.
const SILENCE: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(300)];
/// Environment variable with the token, which is that of the setting too.
const TOKEN: &str = "MILLPOND_ADMIN_TOKEN";

/// The flags with the server's admin address and its token.
pub(super) fn address() -> [Arg; 2] {
    let address = Arg::new("admin")
        .long("admin")
        .value_name("ADDR")
        .default_value("127.0.0.1:8380")
        .help("Admin address of the server (its setting `admin`): HOST:PORT, http://HOST:PORT or unix:PATH");
    let token = Arg::new("admin-token")
        .long("admin-token")
        .value_name("TOKEN")
        .help("Token of the admin API (the setting `admin-token`). $MILLPOND_ADMIN_TOKEN hides it from other users");
    [address, token]
}

/// A running server, as a command's flags name it.
pub(super) struct Admin<'a> {
    address: &'a str,
    token: Option<String>,
    /// The flags with which another command asks the same server, each after a space.
    flags: String,
}

impl<'a> Admin<'a> {
    pub(super) fn of(matches: &'a ArgMatches) -> Self {
        let address = matches.get_one::<String>("admin").map(String::as_str).unwrap_or_default();
        let given = matches.get_one::<String>("admin-token").cloned();
        let mut flags = String::new();
        if matches.value_source("admin") == Some(ValueSource::CommandLine) {
            flags.push_str(&format!(" --admin {}", shell_word(address)));
        }
        // The token itself is not printed: logs keep what commands print.
        if given.is_some() {
            flags.push_str(" --admin-token TOKEN");
        }
        let token = given.or_else(|| std::env::var(TOKEN).ok());
        Self { address, token: token.filter(|token| !token.is_empty()), flags }
    }

    /// Returns a command of this program for the same server, as an operator can run it.
    pub(super) fn command(&self, words: &str) -> String {
        format!("millpond {words}{}", self.flags)
    }

    /// Performs an operation of the API. Returns its reply.
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        (query, body): (&[(&str, &str)], Option<Value>),
    ) -> Result<String, Box<dyn Error>> {
        let silence = SILENCE[usize::from(method != Method::GET)];
        let mut client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        client = client.connect_timeout(SILENCE[0]).read_timeout(silence);
        let base = match self.address.strip_prefix("unix:") {
            Some(path) => {
                client = client.unix_socket(std::path::PathBuf::from(path));
                "http://localhost".to_owned()
            }
            None => format!("http://{}", host(self.address)?),
        };
        let bad = |_| format!("--admin {}: expected {EXPECTED}", self.address);
        let mut url = reqwest::Url::parse(&format!("{base}/api/v1/{path}")).map_err(bad)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        runtime()?.block_on(async {
            let client = client.build()?;
            let mut request = client.request(method, url);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            if let Some(body) = body {
                request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.to_string());
            }
            let reply = request.send().await.map_err(|error| self.unanswered(&error, silence))?;
            let status = reply.status();
            let text = reply.text().await?;
            match said(&text) {
                _ if status.is_success() => Ok(text),
                Some(words) if is_admin(&client, &base).await => Err(words.into()),
                _ => Err(self.no_admin().into()),
            }
        })
    }

    /// Describes a request without a reply.
    fn unanswered(&self, error: &reqwest::Error, silence: Duration) -> String {
        if error.is_timeout() && !error.is_connect() {
            return format!(
                "{} takes connections, and has not answered within {} s: the server hangs, or is very busy",
                self.address,
                silence.as_secs()
            );
        }
        if error.is_connect() {
            return format!("no server answers at {}: is it running, and is this its --admin?", self.address);
        }
        if error.is_builder() {
            return "--admin-token: expected printable ASCII characters".to_owned();
        }
        format!(
            "{} gives no reply of HTTP: is it the server's setting admin (by default 127.0.0.1:8380)?",
            self.address
        )
    }

    /// Describes an address that another server, or another part of this one, has.
    fn no_admin(&self) -> String {
        format!(
            "{} is no admin address: it answers, but not as the admin API does; name the server's setting admin \
             (by default --admin 127.0.0.1:8380)",
            self.address
        )
    }

    /// Reads one thing.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Box<dyn Error>> {
        let text = self.send(Method::GET, path, (query, None))?;
        Ok(serde_json::from_str(&text).map_err(|_| self.no_admin())?)
    }

    /// Calls `head` once the server has answered, then `each` with all items of a list, page after page.
    pub(super) fn each(
        &self,
        (path, query): (&str, &[(&str, &str)]),
        head: impl FnOnce() -> Outcome,
        mut each: impl FnMut(&Value) -> Outcome,
    ) -> Outcome {
        let (mut cursor, mut head): (Option<String>, _) = (None, Some(head));
        loop {
            let mut query = query.to_vec();
            query.push(("limit", PAGE));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page = self.get(path, &query)?;
            head.take().map_or(Ok(()), |head| head())?;
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

/// Returns host and port of an address of the flag.
fn host(address: &str) -> Result<String, String> {
    let bare = address.strip_prefix("http://").unwrap_or(address);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    let port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    if port(bare) {
        return Ok(format!("127.0.0.1:{bare}"));
    }
    match bare.rsplit_once(':') {
        Some(("", text)) if port(text) => Ok(format!("127.0.0.1:{text}")),
        Some((host, text)) if port(text) && is_host(host) => Ok(bare.to_owned()),
        _ if address.starts_with("https://") => {
            Err(format!("--admin {address}: expected {EXPECTED}: the admin address has no TLS"))
        }
        _ => Err(format!("--admin {address}: expected {EXPECTED}")),
    }
}

/// Whether a text is a host and nothing else. A URL would read `\\` as a slash, and leave ends of lines out.
fn is_host(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '/' | '\\' | '@' | '?' | '#'))
}

/// Whether the admin API answers at an address: its document is there, for those who have the token.
async fn is_admin(client: &reqwest::Client, base: &str) -> bool {
    let reply = client.get(format!("{base}/api/v1/openapi.json")).send().await;
    reply.is_ok_and(|reply| matches!(reply.status().as_u16(), 200 | 401 | 403 | 421))
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
    fn commands_ask_the_same_server() {
        let shown = |args: &[&str]| {
            let matches = clap::Command::new("x").args(address()).get_matches_from([&["x"], args].concat());
            Admin::of(&matches).command("cluster status")
        };
        assert_eq!(shown(&[]), "millpond cluster status");
        assert_eq!(shown(&["--admin", "edge1:8380"]), "millpond cluster status --admin edge1:8380");
        assert_eq!(
            shown(&["--admin", "unix:/a b", "--admin-token", "secret"]),
            "millpond cluster status --admin 'unix:/a b' --admin-token TOKEN"
        );
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (given, host) in [
            ("127.0.0.1:8380", "127.0.0.1:8380"),
            ("http://edge.example:8380", "edge.example:8380"),
            ("http://[::1]:8380/", "[::1]:8380"),
            (":8380", "127.0.0.1:8380"),
            ("8380", "127.0.0.1:8380"),
        ] {
            assert_eq!(super::host(given).as_deref(), Ok(host), "{given}");
        }
        for given in [
            "",
            "edge.example",
            "http://edge.example",
            "https://h:8380",
            "h:0",
            "h:99999",
            "http://h:1/console",
            "u@h:1",
            "0",
            "127.0.0.1:8380\\x:1",
            "a\nb:1",
        ] {
            let error = super::host(given).unwrap_err();
            assert!(error.contains("expected HOST:PORT such as"), "{error}");
        }
    }

    #[test]
    fn problems_are_told_with_their_faults() {
        let text = r#"{"title":"x","status":422,"detail":"2 faults","errors":["a","b"]}"#;
        assert_eq!(said(text).as_deref(), Some("2 faults\na\nb"));
        assert_eq!(said(r#"{"detail":"no"}"#).as_deref(), Some("no"));
        assert_eq!(said("<html>"), None);
    }
}
