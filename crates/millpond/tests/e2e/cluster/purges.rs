//! Purges of the cluster: no node gives bytes of before, whichever was away.

use super::{status, taking, wait_for};
use crate::support::{Response, Running, Server, api::send, etcd::Etcd, free_port, get, origins};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    io::Write as _,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant, SystemTime},
};
use tempfile::TempDir;

/// Three range groups, so that nodes read from each other.
const LENGTH: usize = 40 << 20;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// A node that is stopped stays in the view.
const LEASE: &str = "60s";

/// Bytes that differ everywhere.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(LENGTH);
    while bytes.len() < LENGTH {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// An origin whose entity tags are of length and time, and nodes before it.
struct Fleet {
    etcd: Etcd,
    _origin: Running,
    place: String,
    folder: TempDir,
    caches: Vec<TempDir>,
    nodes: Vec<Server>,
    _scratch: TempDir,
}

impl Fleet {
    /// Starts three nodes; nothing where etcd or nginx is not installed, which the test says.
    fn start() -> Option<Self> {
        let etcd = Etcd::start()?;
        let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (origin, port) = origins::nginx(folder.path(), scratch.path(), "")?;
        let place = format!("films=http://127.0.0.1:{port}");
        let caches = NAMES.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        let nodes = Vec::new();
        let mut fleet = Self { etcd, _origin: origin, place, folder, caches, nodes, _scratch: scratch };
        fleet.nodes = (0..NAMES.len()).map(|at| fleet.node(at, free_port())).collect();
        wait_for("three nodes", || fleet.nodes.iter().all(|node| taking(node) == NAMES.len()));
        Some(fleet)
    }

    fn node(&self, at: usize, port: u16) -> Server {
        let cache = self.caches[at].path().to_str().unwrap();
        let addresses = self.etcd.addresses();
        let cluster = ["--cluster", &addresses, "--node", NAMES[at], "--cluster-lease", LEASE, "--cache", cache];
        Server::start_at(port, &[&[self.place.as_str()], cluster.as_slice()].concat())
    }

    /// Replaces a file. Two contents of one `age` have the same entity tag.
    fn publish(&self, name: &str, content: &[u8], age: u64) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = self.folder.path().join("new");
        let mut file = std::fs::File::create(&new).unwrap();
        file.write_all(content).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + age)).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// Bytes that the nodes have got from the origin.
    fn read(&self) -> f64 {
        self.nodes.iter().map(|node| node.metric("millpond_origin_bytes_total", "")).sum()
    }
}

#[track_caller]
fn gives(node: &Server, name: &str, expected: &[u8]) {
    let reply = get(node.port, &format!("/films/{name}"), &[]);
    assert_eq!(reply.status, 200);
    assert!(reply.body == expected, "{name}: other bytes of port {}: {}", node.port, node.log_text());
}

#[track_caller]
fn purged(reply: &Response) -> (u64, Vec<String>, Vec<String>) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let report: Value = serde_json::from_str(&reply.text()).unwrap();
    let names =
        |field: &str| report[field].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    (report["epoch"].as_u64().unwrap(), names("confirmed"), names("missing"))
}

fn purge(node: &Server, body: &Value) -> (u64, Vec<String>, Vec<String>) {
    purged(&send(node.admin, "POST", "cluster/purge", body, &[]))
}

/// Runs a command of the program; `args` name the admin address too.
fn millpond(node: &Server, args: &[&str]) -> Output {
    let admin = format!("127.0.0.1:{}", node.admin);
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).args(["--admin", &admin]).output().unwrap()
}

/// The last purge that a node has applied, as another one knows it.
fn applied(by: &Server, node: &str) -> u64 {
    let all = status(by);
    let found = all["nodes"].as_array().unwrap().iter().find(|found| found["name"] == node).cloned();
    found.and_then(|found| found["purged"].as_u64()).unwrap_or(0)
}

/// Waits until a node has all slices of a file on its disk, which outlive it.
fn written(node: &Server, slices: usize) {
    wait_for("slices on the disk", || node.metric("millpond_disk_slices", "") >= slices as f64);
}

#[test]
fn no_node_gives_purged_bytes_also_after_it_was_away() {
    let Some(mut fleet) = Fleet::start() else { return };
    let contents = [bytes(1), bytes(2), bytes(3)];
    let name = "film.bin";
    fleet.publish(name, &contents[0], 0);
    fleet.nodes.iter().for_each(|node| gives(node, name, &contents[0]));
    fleet.nodes.iter().for_each(|node| written(node, LENGTH / (512 << 10)));

    // The file changes under the same entity tag while a node is stopped.
    let id = Pid::from_child(&fleet.nodes[2].process.0);
    kill_process(id, Signal::STOP).unwrap();
    fleet.publish(name, &contents[1], 0);
    gives(&fleet.nodes[0], name, &contents[0]);
    let began = Instant::now();
    let reply = send(fleet.nodes[0].admin, "POST", "cluster/purge", &json!({ "path": "films/film.bin" }), &[]);
    let (epoch, confirmed, missing) = purged(&reply);
    if confirmed.contains(&"a".to_owned()) {
        let report: Value = serde_json::from_str(&reply.text()).unwrap();
        assert!(report["purged-slices"].as_u64().is_some_and(|slices| slices > 0), "{report}");
    }
    assert!(epoch > 0 && began.elapsed() < Duration::from_secs(30), "{epoch} in {:?}", began.elapsed());
    assert!(!confirmed.contains(&"c".to_owned()) && missing.contains(&"c".to_owned()), "{confirmed:?} {missing:?}");
    // A busy machine may take longer than the reply waits.
    wait_for("a and b have purged", || ["a", "b"].iter().all(|name| applied(&fleet.nodes[0], name) == epoch));
    let told = millpond(&fleet.nodes[0], &["cluster", "status"]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let behind: Vec<_> = told.lines().filter(|line| line.ends_with("(behind in purges)")).collect();
    assert!(behind.len() == 1 && behind[0].starts_with("c "), "{told}");
    wait_for("the log names what was purged", || {
        fleet.nodes[..2].iter().all(|node| node.log_text().contains("\"objects\":\"films/film.bin\""))
    });
    gives(&fleet.nodes[0], name, &contents[1]);
    gives(&fleet.nodes[1], name, &contents[1]);
    // The first request meets the node before its own tasks have heard of the purge.
    kill_process(id, Signal::CONT).unwrap();
    gives(&fleet.nodes[2], name, &contents[1]);
    wait_for("c has purged", || applied(&fleet.nodes[0], "c") == epoch);
    fleet.nodes.iter().for_each(|node| gives(node, name, &contents[1]));

    // A node that is dead during the purge finds the old bytes on its disk when it is back.
    written(&fleet.nodes[2], LENGTH / (512 << 10));
    let port = fleet.nodes.remove(2).port;
    fleet.publish(name, &contents[2], 0);
    let (epoch, ..) = purge(&fleet.nodes[1], &json!({ "pattern": "films/*.bin" }));
    wait_for("a and b have purged", || ["a", "b"].iter().all(|name| applied(&fleet.nodes[1], name) == epoch));
    let back = fleet.node(2, port);
    fleet.nodes.push(back);
    gives(&fleet.nodes[2], name, &contents[2]);
    assert!(fleet.nodes[2].log_text().contains("purged, as the cluster was"), "{}", fleet.nodes[2].log_text());
    fleet.nodes.iter().for_each(|node| gives(node, name, &contents[2]));
    wait_for("c is a member", || applied(&fleet.nodes[0], "c") == epoch);
}

#[test]
fn purges_name_folders_and_patterns_and_soft_ones_keep_what_is_the_same() {
    let Some(mut fleet) = Fleet::start() else { return };
    let [first, second] = [1, 2].map(|seed| bytes(seed)[..3 << 20].to_vec());
    let names = ["one/a.bin", "one/b.dat", "two/a.bin"];
    names.iter().for_each(|name| fleet.publish(name, &first, 0));
    let all_give = |fleet: &Fleet, name: &str, content: &[u8]| {
        fleet.nodes.iter().for_each(|node| gives(node, name, content));
    };
    names.iter().for_each(|name| all_give(&fleet, name, &first));
    names.iter().for_each(|name| fleet.publish(name, &second, 0));
    let confirmed = |(epoch, ..): (u64, Vec<String>, Vec<String>)| {
        wait_for("all have purged", || NAMES.iter().all(|name| applied(&fleet.nodes[0], name) >= epoch));
    };

    confirmed(purge(&fleet.nodes[0], &json!({ "pattern": "films/**/*.dat" })));
    all_give(&fleet, "one/a.bin", &first);
    all_give(&fleet, "one/b.dat", &second);
    confirmed(purge(&fleet.nodes[1], &json!({ "path": "films/one" })));
    all_give(&fleet, "one/a.bin", &second);
    all_give(&fleet, "two/a.bin", &first);
    let told = millpond(&fleet.nodes[2], &["cache", "purge", "--cluster", "films/two/a.bin"]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(text.contains("\"epoch\"") && text.contains("\"confirmed\""), "{text}");
    // The command fails where a node is late.
    assert_eq!(told.status.success(), text.contains("\"missing\": []"), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    confirmed((report["epoch"].as_u64().unwrap(), Vec::new(), Vec::new()));
    all_give(&fleet, "two/a.bin", &second);
    let starred = millpond(&fleet.nodes[2], &["cache", "purge", "--cluster", "films/two/*"]);
    let words = String::from_utf8_lossy(&starred.stderr).into_owned();
    assert!(words.contains("films/two/*: without --pattern, * stands for itself"), "{words}");

    // A soft purge asks for the version, and reads what has another one.
    let before = fleet.read();
    confirmed(purge(&fleet.nodes[0], &json!({ "path": "films/one", "soft": true })));
    all_give(&fleet, "one/a.bin", &second);
    assert_eq!(fleet.read(), before, "the bytes are the same");
    fleet.publish("one/a.bin", &first, 60);
    confirmed(purge(&fleet.nodes[0], &json!({ "path": "films/one", "soft": true })));
    all_give(&fleet, "one/a.bin", &first);

    // Requests for purges that are refused.
    let refused = |body: Value| send(fleet.nodes[0].admin, "POST", "cluster/purge", &body, &[]);
    assert_eq!(refused(json!({ "path": "series/a" })).status, 404);
    assert_eq!(refused(json!({ "path": "films/a", "pattern": "films/*" })).status, 400);
    let long = refused(json!({ "pattern": format!("films/{}", "x".repeat(2000)) }));
    assert!(long.status == 400 && long.text().contains("at most 1024"), "{}", long.text());
    let alone = Server::start(&[&fleet.place]);
    assert_eq!(send(alone.admin, "POST", "cluster/purge", &json!({ "path": "films/one" }), &[]).status, 404);
    (0..3).for_each(|member| fleet.etcd.kill(member));
    let cut = send(fleet.nodes[0].admin, "POST", "cluster/purge", &json!({ "path": "films/one" }), &[]);
    assert!(cut.status == 502 && cut.text().contains("etcd"), "{}: {}", cut.status, cut.text());
    let words = cut.text();
    assert!(words.contains("The purge /millpond/purge/") && words.contains("may still be done"), "{words}");
    all_give(&fleet, "one/a.bin", &first);
}

#[test]
fn a_home_that_is_behind_gives_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let content = bytes(1);
    fleet.publish("film.bin", &content, 0);
    let asked = |node: &Server, purged: Option<&str>| {
        let mut fields = vec![("Millpond-Home", "1"), ("Range", "bytes=0-99")];
        fields.extend(purged.map(|epoch| ("Millpond-Purged", epoch)));
        get(node.port, "/films/film.bin", &fields).status
    };
    let all = |purged: Option<&str>| fleet.nodes.iter().map(|node| asked(node, purged)).collect::<Vec<_>>();
    let served = all(None);
    assert_eq!(served.iter().filter(|status| **status == 206).count(), 1, "{served:?}");
    assert_eq!(all(Some("0")), served);
    assert_eq!(all(Some("9999999999")), [508; 3]);
    // That is no fault, and no circle.
    fleet.nodes.iter().for_each(|node| assert!(!node.log_text().contains("request failed"), "{}", node.log_text()));
    let fields = [("Millpond-Home", "1"), ("Range", "bytes=0-99"), ("Millpond-Purged", "9999999999")];
    let told = fleet.nodes.iter().map(|node| get(node.port, "/films/film.bin", &fields).text()).collect::<String>();
    assert!(told.contains("this home has not applied the purge 9999999999 yet"), "{told}");
    let (epoch, ..) = purge(&fleet.nodes[0], &json!({ "path": "films" }));
    wait_for("all have purged", || NAMES.iter().all(|name| applied(&fleet.nodes[0], name) == epoch));
    assert_eq!(all(Some(&epoch.to_string())), served);
    assert!(fleet.etcd.has("/millpond/purge/"));
    let path: &Path = fleet.caches[0].path();
    assert!(!path.join("purged.json").exists(), "it is written once the purge is old");
}
