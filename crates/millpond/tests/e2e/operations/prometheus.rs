//! The files in `ops/`: rules, dashboard and scrape configuration, with a real Prometheus.

use crate::support::{Running, Server, free_port, get, have, rtsp::Client};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const OPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops");
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");

/// Expressions of the dashboard, with its variables replaced.
fn dashboard() -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(OPS).join("grafana/millpond.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    expressions
        .map(|text| text.replace("$job", "millpond").replace("$instance", ".*").replace("$__rate_interval", "1m"))
        .collect()
}

/// Names in an expression or a file of rules that begin as Millpond's metrics do.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let ours = words.filter(|word| word.starts_with("millpond_") || word.starts_with("process_"));
    ours.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

#[test]
fn every_metric_that_the_dashboard_and_the_rules_name_exists() {
    let server = Server::start(&[]);
    let text = get(server.admin, "/metrics", &[]).text();
    let known: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let rules = std::fs::read_to_string(Path::new(OPS).join("prometheus/millpond.rules.yml")).unwrap();
    let used = dashboard().into_iter().chain([rules]).flat_map(|text| names(&text)).collect::<BTreeSet<_>>();
    assert!(used.len() > 50, "{used:?}");
    let is_known =
        |name: &str| known.contains(name) || name.strip_suffix("_bucket").is_some_and(|name| known.contains(name));
    let unknown: Vec<_> = used.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn each_alert_fires_and_stays_silent_as_its_tests_say() {
    if !have("promtool") {
        return;
    }
    for args in [["check", "config", "prometheus.yml"], ["test", "rules", "millpond.tests.yml"]] {
        let output = Command::new("promtool").args(args).current_dir(format!("{OPS}/prometheus")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said));
    }
    let rules = std::fs::read_to_string(format!("{OPS}/prometheus/millpond.rules.yml")).unwrap();
    let tests = std::fs::read_to_string(format!("{OPS}/prometheus/millpond.tests.yml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let has = |how: &str| tests.contains(&format!("name: {alert} {how}\n"));
        assert!(has("fires") && has("is silent"), "{alert} has no tests");
    }
}

/// A Prometheus that scrapes a server each second.
fn prometheus(admin: u16, folder: &Path) -> (Running, u16) {
    let port = free_port();
    let rules = PathBuf::from(format!("{OPS}/prometheus/millpond.rules.yml")).canonicalize().unwrap();
    let config = std::fs::read_to_string(format!("{OPS}/prometheus/prometheus.yml")).unwrap();
    let config = config.replace("127.0.0.1:8380", &format!("127.0.0.1:{admin}")).replace("15s", "1s");
    let config = config.replace("- millpond.rules.yml", &format!("- {}", rules.display()));
    std::fs::write(folder.join("prometheus.yml"), config).unwrap();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", folder.join("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let log = std::fs::File::create(folder.join("log")).unwrap();
    (Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap()), port)
}

/// The reply of Prometheus, once it is as wanted.
fn ask(port: u16, path: &str, wanted: impl Fn(&Value) -> bool, folder: &Path) -> Value {
    let began = Instant::now();
    loop {
        let reply = std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(|_| get(port, path, &[]));
        let value = reply.and_then(|reply| serde_json::from_slice::<Value>(&reply.body).ok()).unwrap_or_default();
        if wanted(&value) {
            return value;
        }
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(90), "{path}: {value:#}\n{}", log());
        std::thread::sleep(Duration::from_millis(250));
    }
}

#[test]
fn a_real_prometheus_reads_the_metrics_and_every_panel_has_data() {
    if !have("prometheus") {
        return;
    }
    let origin = Server::start(&[SAMPLE, "--access-log", "off"]);
    let server = Server::start(&[&format!("films={}", origin.url("")), &format!("local={SAMPLE}")]);
    let folder = tempfile::tempdir().unwrap();
    let (_prometheus, port) = prometheus(server.admin, folder.path());
    let is_up = |value: &Value| value["data"]["activeTargets"][0]["health"] == "up";
    let targets = ask(port, "/api/v1/targets", is_up, folder.path());
    assert_eq!(targets["data"]["activeTargets"][0]["lastError"], "", "{targets:#}");
    server.get("films/180p.mp4?CMCD=bl%3D2000%2Cmtp%3D5000%2Cot%3Dav%2Crtp%3D900");
    server.get("films/180p.mp4");
    server.get("local/180p.mp4/v1/1.m4s");
    let mut client = Client::new(&server, "local/180p.mp4");
    client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    client.receive(|packets| packets.len() > 20);
    let groups = ask(port, "/api/v1/rules", |value| value["status"] == "success", folder.path());
    let rules: Vec<_> =
        groups["data"]["groups"].as_array().unwrap().iter().flat_map(|g| g["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 20 && rules.iter().all(|rule| rule["lastError"].is_null()), "{rules:#?}");
    for expression in dashboard().iter().map(String::as_str).chain(["millpond:place_received_bytes:rate5m"]) {
        let query = url::form_urlencoded::byte_serialize(expression.as_bytes()).collect::<String>();
        let has_data = |value: &Value| value["data"]["result"].as_array().is_some_and(|result| !result.is_empty());
        ask(port, &format!("/api/v1/query?query={query}"), has_data, folder.path());
    }
    // The scrape asked for OpenMetrics, and all of it was understood.
    let is_read = |value: &Value| value["data"]["result"][0]["value"][1] == "1";
    ask(port, "/api/v1/query?query=up%7Bjob%3D%22millpond%22%7D", is_read, folder.path());
}
