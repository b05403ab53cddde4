//! The admin API of a server.

use super::{Response, get, read_response};
use serde_json::{Map, Value, json};
use std::{
    io::{BufReader, Write as _},
    net::TcpStream,
    time::Duration,
};

/// Asks for one thing.
#[track_caller]
pub fn api(admin: u16, path: &str) -> Value {
    let reply = get(admin, &format!("/api/v1/{path}"), &[]);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    serde_json::from_str(&reply.text()).unwrap()
}

/// The items of a list, a thousand at most.
#[track_caller]
pub fn items(admin: u16, path: &str) -> Value {
    api(admin, path)["items"].take()
}

/// Performs an operation with a body.
pub fn send(admin: u16, method: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", admin)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(stream, "{method} /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").unwrap();
    let own = if body.is_empty() { &[][..] } else { &[("Content-Type", "application/json")] };
    let own = own.iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
    for (name, value) in headers.iter().chain(own) {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    read_response(&mut BufReader::new(stream), false)
}

/// A body of `name=value&name=value`. The value of `session` is a number, where it is one.
pub fn body(pairs: &str) -> Value {
    let pairs = pairs.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
    let value = |name: &str, value: &str| {
        value.parse::<u64>().ok().filter(|_| name == "session").map_or(json!(value), |id| json!(id))
    };
    Value::Object(pairs.map(|(name, text)| (name.to_owned(), value(name, text))).collect::<Map<_, _>>())
}
