//! Three nodes of a list, without any service: killed, returned, drained, purged, and cut off by another secret.

use super::{status, taking, wait_for};
use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Response, Running, Server, api::send, clips, free_port, get, origins},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Nodes of one list.
struct Fleet {
    places: Vec<String>,
    lease: &'static str,
    ports: [u16; 3],
    caches: [TempDir; 3],
    secret: TempDir,
    nodes: [Option<Server>; 3],
}

impl Fleet {
    /// Starts three nodes, the last one first.
    fn start(places: Vec<String>, lease: &'static str) -> Self {
        let secret = tempfile::tempdir().unwrap();
        fs::write(secret.path().join("own"), "a secret of thirty-two bytes....").unwrap();
        fs::write(secret.path().join("other"), "another secret of 32 bytes......").unwrap();
        let (ports, caches) = ([(); 3].map(|()| free_port()), [(); 3].map(|()| tempfile::tempdir().unwrap()));
        let mut fleet = Self { places, lease, ports, caches, secret, nodes: [const { None }; 3] };
        [2, 0, 1].into_iter().for_each(|at| fleet.begin(at));
        fleet.wait();
        fleet
    }

    /// The setting `cluster-nodes`.
    fn list(&self) -> String {
        self.ports.map(|port| format!("http://127.0.0.1:{port}")).join(",")
    }

    fn secret(&self, name: &str) -> String {
        self.secret.path().join(name).to_str().unwrap().to_owned()
    }

    fn begin(&mut self, at: usize) {
        let (list, secret, cache) = (self.list(), self.secret("own"), self.caches[at].path().to_str().unwrap());
        let cluster = ["--cluster-nodes", &list, "--cluster-secret", &secret, "--node", NAMES[at]];
        let more = ["--cluster-lease", self.lease, "--cache", cache];
        let places: Vec<_> = self.places.iter().map(String::as_str).collect();
        self.nodes[at] = Some(Server::start_at(self.ports[at], &[&places[..], &cluster, &more].concat()));
    }

    /// Kills a node with SIGKILL.
    fn kill(&mut self, at: usize) {
        self.nodes[at] = None;
    }

    fn running(&self) -> Vec<&Server> {
        self.nodes.iter().flatten().collect()
    }

    fn node(&self, at: usize) -> &Server {
        self.nodes[at].as_ref().unwrap()
    }

    /// Waits until all running nodes have the same view, with all of them in it.
    fn wait(&self) {
        let running = self.running();
        wait_for("one view", || running.iter().all(|node| taking(node) == running.len()));
    }
}

/// The port of the node that serves a path: that to which a server redirects, or its own.
fn owner(server: &Server, path: &str) -> u16 {
    let reply = server.get(path);
    match reply.status {
        200 => server.port,
        307 => {
            let location = reply.header("location").unwrap();
            location.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse().unwrap()
        }
        status => panic!("{path}: {status}"),
    }
}

/// Output of `millpond cluster status`.
fn told(node: &Server) -> String {
    let admin = format!("127.0.0.1:{}", node.admin);
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["cluster", "status", "--admin", &admin]).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

fn drains(by: &Server, node: &str) -> bool {
    let all = status(by);
    all["nodes"].as_array().unwrap().iter().any(|found| found["name"] == node && found["draining"] == true)
}

#[test]
fn nodes_of_a_list_are_a_cluster_and_dead_ones_are_replaced() {
    let mut fleet = Fleet::start(vec![clips::folder().to_str().unwrap().to_owned()], "10s");
    for node in fleet.running() {
        wait_for("all peers answer", || told(node).contains(": member; 2 of 2 peers answer; revision "));
        let all = status(node);
        assert_eq!((&all["registry"], &all["etcd"]["state"]), (&json!("cluster-nodes"), &json!("following")));
    }

    // All nodes agree on the owner of each title, and each of them owns some.
    let names = clips::CLIPS.iter().map(|clip| clip.name).filter(|name| name.ends_with(".mp4"));
    let assets: Vec<_> = names.map(|name| format!("{name}/index.m3u8")).collect();
    let owners = |node: &Server| assets.iter().map(|asset| owner(node, asset)).collect::<Vec<_>>();
    let before = owners(fleet.node(0));
    fleet.running().iter().for_each(|node| assert_eq!(owners(node), before));
    let at = before.iter().position(|port| *port != fleet.ports[0]).unwrap();
    let dead = fleet.ports.iter().position(|port| *port == before[at]).unwrap();

    // A dead node gets no viewers at once, and leaves when its lease is over.
    fleet.kill(dead);
    wait_for("viewers go elsewhere", || owner(fleet.node(0), &assets[at]) != before[at]);
    fleet.wait();
    let next = owner(fleet.node(0), &assets[at]);
    assert!(next != before[at] && fleet.running().iter().all(|node| owner(node, &assets[at]) == next));
    let url = format!("http://127.0.0.1:{}", before[at]);
    for node in fleet.running() {
        wait_for("the status names the peer", || told(node).contains(&format!("peer {url}: ")));
        assert!(told(node).contains("1 of 2 peers answer"), "{}", told(node));
        assert!(node.log_text().contains("a node of cluster-nodes does not answer"), "{}", node.log_text());
    }

    // It returns, with its titles.
    fleet.begin(dead);
    fleet.wait();
    assert!(fleet.running().iter().all(|node| owner(node, &assets[at]) == before[at]));

    // Another node with a name that is taken does not start.
    let [port, rtsp, admin] = [(); 3].map(|()| free_port());
    let (list, secret) = (format!("{},http://127.0.0.1:{port}", fleet.list()), fleet.secret("own"));
    let mut second = Command::new("timeout");
    second.args(["60", env!("CARGO_BIN_EXE_millpond"), "serve", "--cluster-nodes", &list, "--cluster-secret", &secret]);
    second.args(["--node", "b", "--cluster-lease", "10s"]);
    for (flag, port) in [("--http", port), ("--rtsp", rtsp), ("--admin", admin)] {
        second.args([flag, &format!("127.0.0.1:{port}")]);
    }
    let refused = second.stdout(Stdio::null()).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("has the name \"b\" too"), "{words}");
    assert!(fleet.running().iter().all(|node| taking(node) == 3));

    // A node drains, whichever is asked for it.
    let asked = fleet.node(0);
    assert_eq!(send(asked.admin, "PUT", "cluster/nodes/c/drain", &Value::Null, &[]).status, 200);
    wait_for("c drains", || fleet.running().iter().all(|node| drains(node, "c")));
    assert!(owners(fleet.node(1)).iter().all(|port| *port != fleet.ports[2]));
    assert_eq!(send(fleet.node(1).admin, "DELETE", "cluster/nodes/c/drain", &Value::Null, &[]).status, 200);
    fleet.wait();

    // A node that ends in order is gone before its lease.
    let id = Pid::from_child(&fleet.node(1).process.0);
    kill_process(id, Signal::TERM).unwrap();
    wait_for("b has left", || status(fleet.node(0))["nodes"].as_array().unwrap().len() == 2);
}

#[test]
fn strangers_and_nodes_with_another_secret_are_not_admitted() {
    let fleet = Fleet::start(vec![clips::folder().to_str().unwrap().to_owned()], "10s");
    for target in ["/.millpond/registry", "/.millpond/registry?since=0&run=0&wait=0", "/~eyJ.a.b/.millpond/registry"] {
        assert_eq!(get(fleet.ports[0], target, &[]).status, 404, "{target}");
        assert_eq!(get(fleet.ports[0], target, &[("Millpond-Home", "1")]).status, 404, "{target}");
    }
    let port = free_port();
    let list = format!("{},http://127.0.0.1:{port}", fleet.list());
    let (secret, folder) = (fleet.secret("other"), clips::folder().to_str().unwrap());
    let stranger = Server::start_at(
        port,
        &[folder, "--cluster-nodes", &list, "--cluster-secret", &secret, "--node", "d", "--cluster-lease", "10s"],
    );
    let words = "it answers 404: it has no cluster-nodes, or another cluster-secret than this node";
    wait_for("it tells why", || told(&stranger).matches(words).count() == 3);
    wait_for("the log tells why", || stranger.log_text().contains(words));
    assert_eq!(taking(&stranger), 1, "it serves alone");
    assert!(fleet.running().iter().all(|node| taking(node) == 3));
    assert_eq!(stranger.get(&format!("{}/index.m3u8", clips::CLIPS[0].name)).status, 200);
    // Questions that are refused are in the access log once a minute at most.
    assert!(fleet.running().iter().all(|node| node.log_text().matches("/.millpond/registry").count() <= 3));
    // Nobody's pass is in a log.
    assert!(!stranger.log_text().contains("/~"), "{}", stranger.log_text());
}

#[test]
fn a_node_in_nobodys_list_tells_it_and_a_wrong_list_is_refused() {
    let fleet = Fleet::start(vec![clips::folder().to_str().unwrap().to_owned()], "10s");
    let (port, secret, folder) = (free_port(), fleet.secret("own"), clips::folder().to_str().unwrap());
    let list = format!("{},http://127.0.0.1:{port}", fleet.list());
    let forgotten = Server::start_at(
        port,
        &[folder, "--cluster-nodes", &list, "--cluster-secret", &secret, "--node", "d", "--cluster-lease", "10s"],
    );
    wait_for("the log tells it", || forgotten.log_text().contains("no other node has this one in its cluster-nodes"));
    let words = "this node is in cluster-nodes of no other node";
    wait_for("the status tells it", || told(&forgotten).contains(words));
    let lacking = " lacks this node in its cluster-nodes";
    wait_for("the status names the others", || told(&forgotten).matches(lacking).count() == 3);
    assert!(fleet.running().iter().all(|node| !told(node).contains(words)));

    let [own, rtsp, admin] = [(); 3].map(|()| free_port());
    let refused = |list: &str, words: &str| {
        let (list, words) = (list.replace("OWN", &own.to_string()), words.replace("OWN", &own.to_string()));
        let mut wrong = Command::new("timeout");
        wrong.args(["60", env!("CARGO_BIN_EXE_millpond"), "serve", folder, "--cluster-nodes", &list]);
        wrong.args(["--cluster-secret", &secret, "--node", "e", "--http", &format!("127.0.0.1:{own}")]);
        wrong.args(["--rtsp", &format!("127.0.0.1:{rtsp}"), "--admin", &format!("127.0.0.1:{admin}")]);
        let ended = wrong.stdout(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && told.contains(&words), "{list}: {told}");
    };
    refused("http://127.0.0.1:OWN", "cluster-nodes has one address, http://127.0.0.1:OWN");
    refused("http://127.0.0.1:OWN,http://127.0.0.1:OWN/", "twice: name each node once");
    refused("http://127.0.0.1:1,http://127.0.0.1:2", "none of them is this node, which is at 127.0.0.1:OWN");
    refused("https://127.0.0.1:OWN,http://127.0.0.1:2", "so write http://127.0.0.1:OWN");
}

#[test]
fn answers_of_a_stranger_at_a_listed_address_are_ignored() {
    let mut fleet = Fleet::start(vec![clips::folder().to_str().unwrap().to_owned()], "10s");
    let watch = Watch::begin(fleet.nodes[0].as_ref().unwrap());
    fleet.kill(2);
    // It answers all questions, as a node would that ends the leases of others.
    let stranger = TcpListener::bind(("127.0.0.1", fleet.ports[2])).unwrap();
    std::thread::spawn(move || {
        for stream in stranger.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nMillpond-Proof: 00\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
            );
        }
    });
    let node = fleet.nodes[0].as_ref().unwrap();
    watch.end(By::Forged, node);
    wait_for("the log names the address", || {
        let (text, port) = (node.log_text(), format!("127.0.0.1:{}", fleet.ports[2]));
        text.lines().any(|line| line.contains("an answer is ignored") && line.contains(&port))
    });
    wait_for("c has left, and b stays", || fleet.running().iter().all(|node| taking(node) == 2));
}

/// Three slices.
fn content(byte: u8) -> Vec<u8> {
    vec![byte; 3 << 20]
}

/// Replaces a file. All of its contents have the same entity tag.
fn publish(folder: &Path, name: &str, content: &[u8]) {
    let new = folder.join("new");
    let mut file = fs::File::create(&new).unwrap();
    file.write_all(content).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    fs::rename(new, folder.join(name)).unwrap();
}

#[track_caller]
fn gives(node: &Server, name: &str, expected: &[u8]) {
    let reply = get(node.port, &format!("/films/{name}"), &[]);
    assert_eq!(reply.status, 200);
    assert!(reply.body == expected, "{name}: other bytes of port {}: {}", node.port, node.log_text());
}

fn purge(node: &Server, path: &str) -> u64 {
    let reply: Response = send(node.admin, "POST", "cluster/purge", &json!({ "path": path }), &[]);
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_str::<Value>(&reply.text()).unwrap()["epoch"].as_u64().unwrap()
}

/// Whether some nodes have applied a purge, as one of them knows.
fn has_applied(by: &Server, names: &[&str], epoch: u64) -> bool {
    let all = status(by);
    let nodes = all["nodes"].as_array().unwrap();
    names.iter().all(|name| {
        nodes.iter().any(|node| node["name"] == *name && node["purged"].as_u64().is_some_and(|last| last >= epoch))
    })
}

#[test]
fn no_node_of_a_list_gives_purged_bytes_also_after_it_was_away() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port)): Option<(Running, u16)> = origins::nginx(folder.path(), scratch.path(), "") else {
        return;
    };
    let contents = [1, 2, 3, 4].map(content);
    let name = "film.bin";
    publish(folder.path(), name, &contents[0]);
    // A node that is stopped stays in the view.
    let mut fleet = Fleet::start(vec![format!("films=http://127.0.0.1:{port}")], "60s");
    fleet.running().iter().for_each(|node| gives(node, name, &contents[0]));

    // All nodes hear a purge, whichever is asked.
    publish(folder.path(), name, &contents[1]);
    gives(fleet.node(0), name, &contents[0]);
    let first = purge(fleet.node(1), "films/film.bin");
    wait_for("all have purged", || has_applied(fleet.node(0), &NAMES, first));
    fleet.running().iter().for_each(|node| gives(node, name, &contents[1]));

    // The first request meets a node that was stopped before it has heard of the purge.
    let id = Pid::from_child(&fleet.node(2).process.0);
    kill_process(id, Signal::STOP).unwrap();
    publish(folder.path(), name, &contents[2]);
    let second = purge(fleet.node(0), "films");
    assert!(second > first);
    wait_for("a and b have purged", || has_applied(fleet.node(0), &["a", "b"], second));
    gives(fleet.node(0), name, &contents[2]);
    // A process that has paused for less is waited for.
    std::thread::sleep(Duration::from_secs(2));
    kill_process(id, Signal::CONT).unwrap();
    gives(fleet.node(2), name, &contents[2]);
    wait_for("c has purged", || has_applied(fleet.node(0), &NAMES, second));

    // A node that is dead during the purge finds the old bytes on its disk when it is back.
    let slices = contents[0].len() / (512 << 10);
    wait_for("slices on the disk", || fleet.node(2).metric("millpond_disk_slices", "") >= slices as f64);
    fleet.kill(2);
    publish(folder.path(), name, &contents[3]);
    let third = purge(fleet.node(1), "films/film.bin");
    wait_for("a and b have purged", || has_applied(fleet.node(1), &["a", "b"], third));
    fleet.begin(2);
    gives(fleet.node(2), name, &contents[3]);
    fleet.running().iter().for_each(|node| gives(node, name, &contents[3]));
    wait_for("c has purged", || has_applied(fleet.node(1), &NAMES, third));
}
