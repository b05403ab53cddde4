use super::*;
use crate::events::{EventMetrics, Kind};
use millpond_settings::{Host, Settings as _, machine::Machine};
use prometheus_client::registry::Registry;
use serde_json::json;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// An endpoint that answers with one status, or never where that is 0.
struct Endpoint {
    url: url::Url,
    status: Arc<AtomicU16>,
    subjects: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", listener.local_addr().unwrap()).parse().unwrap();
        let (status, subjects) = (Arc::new(AtomicU16::new(204)), Arc::<Mutex<Vec<String>>>::default());
        let endpoint = Self { url, status: status.clone(), subjects: subjects.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (status, subjects) = (status.clone(), subjects.clone());
                tokio::spawn(async move {
                    let mut request = String::new();
                    while !request.ends_with("}}") {
                        request.push(char::from(stream.read_u8().await.unwrap()));
                    }
                    let status = status.load(Ordering::Relaxed);
                    if status == 0 {
                        std::future::pending::<()>().await;
                    }
                    if status == 204 {
                        let body = request.split_once("\r\n\r\n").unwrap().1;
                        let event: serde_json::Value = serde_json::from_str(body).unwrap();
                        subjects.lock().unwrap().push(event["subject"].as_str().unwrap().to_owned());
                    }
                    let reply = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n\r\n");
                    let _ = stream.write_all(reply.as_bytes()).await;
                });
            }
        });
        endpoint
    }

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    async fn until(&self, subjects: &[&str]) {
        for _ in 0..6000 {
            if *self.subjects.lock().unwrap() == subjects {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{:?}, not {subjects:?}", self.subjects.lock().unwrap());
    }
}

struct Made {
    events: Arc<Events>,
    hooks: Hooks,
    settings: HookSettings,
    registry: Registry,
}

fn made() -> Made {
    let mut registry = Registry::default();
    let events = Events::new("edge", 100, &EventMetrics::register(&mut registry));
    let hooks = Hooks::new(events.clone(), &HookMetrics::register(&mut registry));
    let mut settings = HookSettings::defaults(&Host { machine: Machine::detect(), variable: &|_| None });
    settings.timeout = Duration::from_millis(300);
    Made { events, hooks, settings, registry }
}

impl Made {
    fn emit(&self, subject: &str) {
        self.events.emit(Kind::SourceLost, subject, json!({}));
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

#[tokio::test]
async fn a_hook_that_stays_keeps_its_events_and_a_new_one_gets_those_from_then_on() {
    let (first, second, mut made) = (Endpoint::start().await, Endpoint::start().await, made());
    first.answers(503);
    made.emit("early");
    made.settings.endpoints = vec![first.url.clone()];
    made.hooks.reconfigure(&made.settings);
    made.emit("b");
    made.settings.endpoints = vec![second.url.clone(), first.url.clone()];
    made.settings.timeout = Duration::from_secs(5);
    made.hooks.reconfigure(&made.settings);
    made.emit("c");
    second.until(&["c"]).await;
    first.answers(204);
    first.until(&["early", "b", "c"]).await;
    made.settings.endpoints = vec![second.url.clone()];
    made.hooks.reconfigure(&made.settings);
    made.emit("d");
    second.until(&["c", "d"]).await;
    first.until(&["early", "b", "c"]).await;
    assert!(!made.metrics().contains(&format!("waiting_events{{hook=\"127.0.0.1:{}\"", first.url.port().unwrap())));
}

#[tokio::test]
async fn a_hook_that_hangs_delays_no_other() {
    let (slow, quick, mut made) = (Endpoint::start().await, Endpoint::start().await, made());
    slow.answers(0);
    made.settings.endpoints = vec![slow.url.clone(), quick.url.clone()];
    made.hooks.reconfigure(&made.settings);
    for subject in ["a", "b", "c"] {
        made.emit(subject);
    }
    quick.until(&["a", "b", "c"]).await;
    slow.answers(204);
    slow.until(&["a", "b", "c"]).await;
    let metrics = made.metrics();
    let port = slow.url.port().unwrap();
    assert!(
        metrics.contains(&format!("hook_attempts_total{{hook=\"127.0.0.1:{port}\",result=\"failed\"}} 1")),
        "{metrics}"
    );
}

#[tokio::test]
async fn events_that_are_refused_are_dropped_and_a_gone_endpoint_gets_no_more() {
    let (endpoint, mut made) = (Endpoint::start().await, made());
    made.settings.endpoints = vec![endpoint.url.clone()];
    made.hooks.reconfigure(&made.settings);
    endpoint.answers(422);
    made.emit("bad");
    let dropped = "reason=\"refused\"} 1";
    while !made.metrics().contains(dropped) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    endpoint.answers(204);
    made.emit("good");
    endpoint.until(&["good"]).await;
    endpoint.answers(410);
    made.emit("gone");
    let is_over = || made.hooks.inner.lock().unwrap().running[0].handle.is_finished();
    while !is_over() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    endpoint.answers(204);
    // A reload begins it again.
    made.hooks.reconfigure(&made.settings);
    made.emit("again");
    endpoint.until(&["good", "again"]).await;
}

#[tokio::test]
async fn the_end_waits_for_hooks_that_work() {
    let (up, down, mut made) = (Endpoint::start().await, Endpoint::start().await, made());
    down.answers(500);
    made.settings.endpoints = vec![down.url.clone(), up.url.clone()];
    made.hooks.reconfigure(&made.settings);
    for subject in ["a", "b"] {
        made.emit(subject);
    }
    let began = Instant::now();
    made.hooks.finish(Duration::from_secs(60)).await;
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(*up.subjects.lock().unwrap(), ["a", "b"]);
}
