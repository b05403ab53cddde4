//! Lines of requests and sessions in Common Log Format, and in the combined format of web servers.
//!
//! `HOST - - [10/Oct/2000:13:55:36 +0000] "METHOD URI PROTOCOL" STATUS BYTES`, then `"REFERRER" "AGENT"` in the combined
//! format. A quote, a backslash and each byte outside of printable ASCII is written as `\x22`, as nginx does. So no text
//! of a client ends its field or its line.

use super::{ACCESS, queue::Queue};
use std::{
    fmt::{Debug, Write as _},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

/// Status of a request whose client left before it had a reply. nginx writes the same.
const CLIENT_LEFT: u64 = 499;

/// Writes events of the access log that have a method as lines.
#[derive(Debug)]
pub(super) struct CommonLines {
    queue: Arc<Queue>,
    is_combined: bool,
}

impl CommonLines {
    /// Creates a layer that adds its lines to a queue.
    pub(super) fn new(queue: Arc<Queue>, is_combined: bool) -> Self {
        Self { queue, is_combined }
    }
}

impl<S: Subscriber> Layer<S> for CommonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != ACCESS {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(line) = fields.line(self.is_combined, SystemTime::now()) {
            self.queue.push(line.as_bytes());
        }
    }
}

/// The fields of an event that lines have.
#[derive(Debug, Default)]
struct Fields {
    client: String,
    method: String,
    uri: String,
    protocol: String,
    referrer: String,
    agent: String,
    status: Option<u64>,
    bytes: u64,
    took: Duration,
}

impl Fields {
    /// Returns the line of an event that ends at `now`; `None` where it is no request and no session that ended.
    fn line(&self, is_combined: bool, now: SystemTime) -> Option<String> {
        if self.method.is_empty() || self.protocol.is_empty() {
            return None;
        }
        let mut line = String::with_capacity(128 + self.uri.len() + self.agent.len() + self.referrer.len());
        let host = if self.client.is_empty() { "-" } else { &self.client };
        escape(host, true, &mut line);
        let _ = write!(line, " - - [{}] \"", date(now.checked_sub(self.took).unwrap_or(now)));
        for (index, word) in [&self.method, &self.uri, &self.protocol].into_iter().enumerate() {
            if index > 0 {
                line.push(' ');
            }
            escape(word, true, &mut line);
        }
        let _ = write!(line, "\" {} {}", self.status.unwrap_or(CLIENT_LEFT), self.bytes);
        for text in [&self.referrer, &self.agent].into_iter().filter(|_| is_combined) {
            line.push_str(" \"");
            escape(if text.is_empty() { "-" } else { text }, false, &mut line);
            line.push('"');
        }
        line.push('\n');
        Some(line)
    }

    fn text(&mut self, field: &str, text: String) {
        match field {
            "client" => self.client = text,
            "peer" if self.client.is_empty() => {
                self.client = text.parse().map_or(text, |peer: SocketAddr| peer.ip().to_string());
            }
            "method" => self.method = text,
            "uri" => self.uri = text,
            "asset" if self.uri.is_empty() => self.uri = format!("/{text}"),
            "protocol" => self.protocol = text,
            "referrer" => self.referrer = text,
            "agent" => self.agent = text,
            _ => {}
        }
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "status" => self.status = Some(value),
            "bytes" => self.bytes = value,
            "us" => self.took = Duration::from_micros(value),
            "ms" => self.took = Duration::from_millis(value),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "message" {
            self.text(field.name(), format!("{value:?}"));
        }
    }
}

/// Appends a text with all bytes escaped that could end a field. `is_word` escapes spaces too.
fn escape(text: &str, is_word: bool, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {}
            b' ' if is_word => {}
            b' '..=b'~' => {
                out.push(char::from(byte));
                continue;
            }
            _ => {}
        }
        let _ = write!(out, "\\x{byte:02X}");
    }
}

/// Returns a time in UTC, as `10/Oct/2000:13:55:36 +0000`.
fn date(time: SystemTime) -> String {
    // "Tue, 10 Oct 2000 13:55:36 GMT" (RFC 9110 section 5.6.7).
    let text = httpdate::fmt_http_date(time);
    let mut words = text.split(' ').skip(1);
    let mut next = || words.next().unwrap_or_default();
    format!("{}/{}/{}:{} +0000", next(), next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        Fields {
            client: "2001:db8::1".to_owned(),
            method: "GET".to_owned(),
            uri: "/a b\"c\r\n\\x.mp4?é".to_owned(),
            protocol: "HTTP/1.1".to_owned(),
            agent: "a \"player\"\x1b".to_owned(),
            status: Some(206),
            bytes: 1234,
            took: Duration::from_secs(36),
            ..Fields::default()
        }
    }

    #[test]
    fn a_line_has_the_time_of_the_request_and_no_text_leaves_its_field() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(971_186_172);
        let begin = "2001:db8::1 - - [10/Oct/2000:13:55:36 +0000] \
                     \"GET /a\\x20b\\x22c\\x0D\\x0A\\x5Cx.mp4?\\xC3\\xA9 HTTP/1.1\" 206 1234";
        assert_eq!(fields().line(false, now).unwrap(), format!("{begin}\n"));
        let combined = format!("{begin} \"-\" \"a \\x22player\\x22\\x1B\"\n");
        assert_eq!(fields().line(true, now).unwrap(), combined);
    }

    #[test]
    fn lines_of_other_events_are_left_out_and_clients_that_left_have_a_status() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(Fields { method: String::new(), ..fields() }.line(false, now), None);
        let mut left = Fields { status: None, uri: String::new(), client: String::new(), ..fields() };
        left.text("peer", "192.0.2.1:5000".to_owned());
        left.text("asset", "a.mp4".to_owned());
        let line = left.line(false, now + Duration::from_secs(60)).unwrap();
        assert_eq!(line, "192.0.2.1 - - [01/Jan/1970:00:00:24 +0000] \"GET /a.mp4 HTTP/1.1\" 499 1234\n");
    }
}
