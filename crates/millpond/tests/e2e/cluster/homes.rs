//! Homes of slices: the origin sends each byte once for all nodes.

use crate::{
    access::tokens,
    operations::metrics::{By, watch::Watch},
    support::{Server, etcd::Etcd, get},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Six range groups.
const LENGTH: usize = 96 << 20;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Bytes that differ everywhere.
pub(super) fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(LENGTH);
    while bytes.len() < LENGTH {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// All of a file, from all of some nodes at the same time.
pub(super) fn fetch(nodes: &[Server], name: &str, expected: &[u8]) {
    std::thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| {
                let reply = get(node.port, &format!("/films/{name}"), &[]);
                assert_eq!(reply.status, 200);
                assert!(reply.body == expected, "{name}: other bytes");
            });
        }
    });
}

pub(super) fn sum(nodes: &[Server], metric: &str) -> f64 {
    nodes.iter().map(|node| node.metric(metric, "")).sum()
}

/// Fetches a file from all nodes: the origin sends it once. A machine that starves a home for two seconds makes the others go to the
/// origin; then another file is fetched, once the home is asked again.
pub(super) fn fetched_once(
    nodes: &[Server],
    origin: &Server,
    (folder, name): (&Path, &str),
    query: &str,
    content: &[u8],
) {
    let sent = || origin.metric("millpond_http_response_bytes_total", "");
    let failures = || sum(nodes, "millpond_sibling_failures_total");
    for attempt in 0..5 {
        let copy = format!("{attempt}{name}");
        std::fs::hard_link(folder.join(name), folder.join(&copy)).unwrap();
        let (before, failed) = (sent(), failures());
        fetch(nodes, &format!("{copy}{query}"), content);
        let share = || (sent() - before) / content.len() as f64;
        // Bytes are counted after the last one of a reply.
        let began = Instant::now();
        while share() < 1.0 && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if failures() == failed {
            assert!((1.0..1.05).contains(&share()), "the origin sent it {} times", share());
            return;
        }
        std::thread::sleep(Duration::from_secs(5));
    }
    panic!("homes fail again and again: {}", nodes[0].log_text());
}

#[test]
fn the_origin_sends_each_byte_once_and_a_home_that_hangs_costs_one_time_limit() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let contents = [bytes(1), bytes(2)];
    for (name, bytes) in ["first.bin", "second.bin"].iter().zip(&contents) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    // The lease is long: nobody leaves the view.
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        Server::start(&[&[place.as_str()], cluster.as_slice()].concat())
    };
    let mut nodes: Vec<_> = NAMES.into_iter().map(start).collect();
    let began = Instant::now();
    while nodes
        .iter()
        .any(|node| get(node.admin, "/api/v1/cluster", &[]).text().matches("\"http\":").count() < NAMES.len())
    {
        assert!(began.elapsed() < Duration::from_secs(60), "no three nodes");
        std::thread::sleep(Duration::from_millis(50));
    }
    let sent = || origin.metric("millpond_http_response_bytes_total", "");

    // Without bookings the assignment of a title needs no look at it.
    while nodes.iter().any(|node| get(node.admin, "/readyz", &[]).status != 200) {
        assert!(began.elapsed() < Duration::from_secs(60), "the place does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The requests for metrics count too.
    let kinds = ["file", "page", "other", "hls"];
    let of = |kind: &str| origin.metric("millpond_http_requests_total", &format!("kind=\"{kind}\""));
    let asked = || kinds.into_iter().map(of).sum::<f64>();
    let before = asked();
    let explained = crate::support::api::api(nodes[0].admin, "cluster/assign?path=films/cold.mp4/index.m3u8");
    assert_eq!(explained["candidates"].as_array().unwrap().len(), 3, "{explained}");
    assert_eq!(asked(), before, "the origin was asked");

    fetched_once(&nodes, &origin, (folder.path(), "first.bin"), "", &contents[0]);
    assert!(sum(&nodes, "millpond_sibling_hits_total") >= 6.0);
    // Each node tells apart what the origin sent and what homes sent: all nodes together got as much as the origin sent.
    let (from_origin, from_homes) =
        (sum(&nodes, "millpond_origin_bytes_total"), sum(&nodes, "millpond_sibling_bytes_total"));
    assert!((0.99..1.01).contains(&(from_origin / sent())), "{from_origin} of {}", sent());
    assert!(from_homes >= 1.9 * LENGTH as f64, "{from_homes}");

    // One node hangs: it is asked once by each of the others, and again after a pause that grows.
    let hung = nodes.pop().unwrap();
    let id = Pid::from_child(&hung.process.0);
    kill_process(id, Signal::STOP).unwrap();
    let before = sent();
    let watch = Watch::begin(&nodes[0]);
    fetch(&nodes, "second.bin", &contents[1]);
    let failing = &crate::support::api::api(nodes[0].admin, "cluster")["failing-homes"][0];
    assert!(failing["place"] == "films" && failing["home"] == format!("http://127.0.0.1:{}", hung.port), "{failing}");
    assert!(nodes[0].log_text().contains("a home of slices fails: this node reads from the origin"));
    watch.end(By::Homes, &nodes[0]);
    kill_process(id, Signal::CONT).unwrap();
    let share = (sent() - before) / LENGTH as f64;
    // The origin sends ranges of the hung home to both others.
    assert!((1.05..2.0).contains(&share), "the origin sent it {share} times");
    assert!(sum(&nodes, "millpond_sibling_failures_total") >= 1.0);
}

#[test]
fn homes_serve_nodes_in_places_with_rules() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let content = &bytes(3)[..40 << 20];
    std::fs::write(folder.path().join("third.bin"), content).unwrap();
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    let (_keys, key) = tokens::file(tokens::SECRET.as_bytes());
    let (_secret, secret) = tokens::file(b"the secret of the cluster: thirty-two bytes");
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        let rules = ["--access-tokens", &key, "--cluster-secret", &secret];
        Server::start(&[&[place.as_str()], cluster.as_slice(), rules.as_slice()].concat())
    };
    let nodes: Vec<_> = NAMES.into_iter().map(start).collect();
    let began = Instant::now();
    while nodes
        .iter()
        .any(|node| get(node.admin, "/api/v1/cluster", &[]).text().matches("\"http\":").count() < NAMES.len())
    {
        assert!(began.elapsed() < Duration::from_secs(60), "no three nodes");
        std::thread::sleep(Duration::from_millis(50));
    }
    let token = tokens::made(&serde_json::json!({ "exp": tokens::now() + 600 }));
    fetched_once(&nodes, &origin, (folder.path(), "third.bin"), &format!("?token={token}"), content);
    // Nobody else is taken for a node.
    let viewer =
        tokens::made(&serde_json::json!({ "exp": tokens::now() + 600, "sub": "millpond-home", "paths": ["other"] }));
    for (path, status) in [("/films/third.bin".to_owned(), 401), (format!("/~{viewer}/films/third.bin"), 403)] {
        let fields = [("Millpond-Home", "1"), ("Range", "bytes=0-9")];
        assert_eq!(get(nodes[0].port, &path, &fields).status, status, "{path}");
    }
    assert!(nodes.iter().all(|node| !node.log_text().contains("eyJ")), "no passes in the log");
}

#[test]
fn limits_of_clients_do_not_count_nodes() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let content = &bytes(4)[..40 << 20];
    std::fs::write(folder.path().join("fourth.bin"), content).unwrap();
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        let limits =
            ["--client-requests", "1", "--client-burst", "1", "--client-connections", "1", "--client-streams", "1"];
        Server::start(&[&[place.as_str()], cluster.as_slice(), limits.as_slice()].concat())
    };
    let nodes: Vec<_> = NAMES.into_iter().map(start).collect();
    super::wait_for("three nodes", || nodes.iter().all(|node| super::taking(node) == 3));
    let limited = sum(&nodes, "millpond_access_limited_total");
    fetched_once(&nodes, &origin, (folder.path(), "fourth.bin"), "", content);
    assert_eq!(sum(&nodes, "millpond_access_limited_total"), limited);
    // A client at another address is no node.
    let url = format!("http://127.0.0.1:{}/films/fourth.bin", nodes[0].port);
    let asked = || {
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "--silent",
            "--interface",
            "127.0.0.9",
            "--head",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
        ]);
        String::from_utf8(curl.arg(&url).output().unwrap().stdout).unwrap()
    };
    let all: Vec<_> = (0..5).map(|_| asked()).collect();
    assert!(all.iter().any(|status| status == "429"), "{all:?}");
}
