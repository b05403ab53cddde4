//! The fleet by the admin address of one node, with its token.

use super::wait_for;
use crate::support::{Response, Server, api::send, etcd::Etcd, get, request};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Each node has a token of its own: an operator has that of the first one.
const TOKENS: [&str; 3] = ["the-token-of-node-a", "the-token-of-node-b", "the-token-of-node-c"];

/// Nodes, with a secret where `secret` is a file. A node that is stopped stays in the view.
fn nodes(etcd: &Etcd, place: &str, secret: Option<&Path>) -> Vec<Server> {
    let start = |(name, token): (&str, &str)| {
        let addresses = etcd.addresses();
        let mut args = vec![place, "--cluster", &addresses, "--node", name, "--cluster-lease", "60s"];
        args.extend(["--admin-token", token]);
        args.extend(secret.iter().flat_map(|path| ["--cluster-secret", path.to_str().unwrap()]));
        Server::start(&args)
    };
    let nodes: Vec<_> = NAMES.into_iter().zip(TOKENS).map(start).collect();
    wait_for("three nodes", || {
        nodes.iter().zip(TOKENS).all(|(node, token)| {
            let all = with_token(node, token, "GET", "cluster", &Value::Null);
            let all: Value = serde_json::from_str(&all.text()).unwrap();
            let taking = |node: &&Value| node["draining"] == false;
            all["nodes"].as_array().unwrap().iter().filter(taking).count() == NAMES.len()
        })
    });
    nodes
}

fn with_token(node: &Server, token: &str, method: &str, path: &str, body: &Value) -> Response {
    send(node.admin, method, path, body, &[("Authorization", &format!("Bearer {token}"))])
}

/// Asks the first node.
fn ask(nodes: &[Server], method: &str, path: &str) -> Response {
    with_token(&nodes[0], TOKENS[0], method, path, &Value::Null)
}

#[track_caller]
fn read(nodes: &[Server], path: &str) -> Value {
    let reply = ask(nodes, "GET", path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    serde_json::from_str(&reply.text()).unwrap()
}

/// Nodes of a list, by the names that have an error.
fn silent(fleet: &Value) -> Vec<(String, String)> {
    let nodes = fleet["nodes"].as_array().unwrap().iter();
    let with_error =
        nodes.filter_map(|node| Some((node["name"].as_str()?.to_owned(), node["error"].as_str()?.to_owned())));
    with_error.collect()
}

/// The fleet, once all nodes answer: a busy machine takes longer than a second.
fn whole(nodes: &[Server]) -> Value {
    let mut fleet = Value::Null;
    wait_for("all nodes answer", || {
        fleet = read(nodes, "cluster/fleet");
        silent(&fleet).is_empty()
    });
    fleet
}

/// Files of the origin: enough that some of them have their home at another node than the first.
const FILES: usize = 12;
const LENGTH: usize = 1 << 20;

/// An origin with some files, and the place that reads it.
fn origin() -> (tempfile::TempDir, Server, String) {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        std::fs::write(folder.path().join(format!("{number}.bin")), vec![number as u8; LENGTH]).unwrap();
    }
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    (folder, origin, place)
}

fn secret() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "a secret of the nodes, which has 40 bytes").unwrap();
    (folder, path)
}

#[test]
fn one_token_shows_and_changes_all_nodes() {
    let Some(etcd) = Etcd::start() else { return };
    let ((_folder, _origin, place), (_keys, secret)) = (origin(), secret());
    let mut nodes = nodes(&etcd, &place, Some(&secret));

    // All nodes answer, and none was asked with the operator's token.
    let fleet = whole(&nodes);
    let names: Vec<_> = fleet["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect();
    assert_eq!((&fleet["node"], names), (&json!("a"), NAMES.map(Value::from).to_vec()));
    let report = &fleet["nodes"][1]["report"];
    assert_eq!(
        (&report["version"], report["waiting-for"].as_array().map(Vec::len)),
        (&json!(env!("CARGO_PKG_VERSION")), Some(0))
    );
    assert_eq!(ask(&nodes[1..], "GET", "cluster/fleet").status, 401, "the token is that of another node");

    // Any view of a node, with its query, and only with the token.
    let version = ask(&nodes, "GET", "cluster/nodes/b/api/version");
    assert_eq!((version.status, version.header("millpond-node")), (200, Some("b")));
    assert!(version.text().contains("\"node\": \"b\""), "{}", version.text());
    assert!(ask(&nodes, "GET", "cluster/nodes/a/api/version").text().contains("\"node\": \"a\""));
    let unasked = get(nodes[0].admin, "/api/v1/cluster/nodes/b/api/version", &[]);
    assert_eq!(unasked.status, 401);
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/b/api/cache/objects?limit=0").status, 400);
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/b/api/nothing").status, 404);
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/nobody/api/version").status, 404);
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/b/api/cloudevents").status, 400);
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/b/api/../../../films").status, 400);

    // A request that arrives by way of a node is passed on to no further node.
    for path in [
        "cluster/nodes/c/api/version",
        "cluster/nodes/b/api/version",
        "cluster/fleet",
        "cluster/objects?url=films/0.bin",
    ] {
        let reply = ask(&nodes, "GET", &format!("cluster/nodes/b/api/{path}"));
        assert_eq!(reply.status, 508, "{path}: {}", reply.text());
        assert!(reply.text().contains("came by way of the node a"), "{}", reply.text());
    }

    // A title lies where it was read, and a change reaches the node.
    for number in 0..FILES {
        assert_eq!(get(nodes[1].port, &format!("/films/{number}.bin"), &[]).body.len(), LENGTH);
    }
    let slices = |file: &str, name: &str| {
        let found = read(&nodes, &format!("cluster/objects?url=films%2F{file}"));
        assert_eq!(found["path"], format!("films/{file}"));
        let all = found["nodes"].as_array().unwrap();
        let of = all.iter().find(|node| node["name"] == name).unwrap();
        of["in-memory"].as_u64().unwrap() + of["on-disk"].as_u64().unwrap()
    };
    let (mut file, mut holder) = (String::new(), "");
    wait_for("another node has slices", || {
        let files = (0..FILES).map(|number| format!("{number}.bin"));
        let mut all = files.flat_map(|file| ["b", "c"].map(|name| (file.clone(), name)));
        all.find(|(file, name)| slices(file, name) > 0).map(|found| (file, holder) = found).is_some()
    });
    let body = json!({ "path": format!("films/{file}") });
    let path = format!("cluster/nodes/{holder}/api/cache/purge");
    let purged = with_token(&nodes[0], TOKENS[0], "POST", &path, &body);
    assert_eq!(purged.status, 200, "{}", purged.text());
    assert!(!purged.text().contains("\"purged-slices\": 0"), "{}", purged.text());
    assert_eq!(slices(&file, holder), 0);
    assert_eq!(ask(&nodes, "PUT", "cluster/nodes/b/api/cluster/nodes/c/drain").status, 200);
    let drains = || read(&nodes, "cluster")["nodes"][2]["draining"].clone();
    wait_for("c drains", || drains() == true);
    assert_eq!(ask(&nodes, "DELETE", "cluster/nodes/b/api/cluster/nodes/c/drain").status, 200);
    wait_for("c takes work", || drains() == false);
    let line = |node: &Server, words: &[&str]| {
        node.log_text().lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    let (path, quoted) = ("/api/v1/cache/purge", format!("\"{holder}\""));
    wait_for("the node names the one by which the change came", || {
        let words = ["an operator of another node asked for a change", path, "\"a\""];
        line(&nodes[usize::from(holder == "c") + 1], &words)
    });
    wait_for("a names the changed node", || line(&nodes[0], &["asked a node for a change", path, &quoted]));

    // Viewers make hot titles.
    wait_for("a hot title", || {
        get(nodes[2].port, "/films/0.bin", &[]);
        let fleet = read(&nodes, "cluster/fleet");
        fleet["titles"].as_array().unwrap().iter().any(|title| title["title"] == "films/0.bin")
    });

    // Strangers.
    let inner = "/.millpond/node/api/v1/version";
    for headers in
        [&[][..], &[("Millpond-Node", "a")], &[("Millpond-Node", "a"), ("Authorization", "Bearer eyJh.e30.x")]]
    {
        let reply = request(nodes[1].port, "GET", inner, headers);
        assert_eq!(reply.status, 404, "{headers:?}: {}", reply.text());
        let fields = [headers, &[("Content-Length", "0")]].concat();
        let changed = request(nodes[1].port, "PUT", "/.millpond/node/api/v1/cluster/nodes/c/drain", &fields);
        assert_eq!(changed.status, 404, "{headers:?}: {}", changed.text());
    }
    assert_eq!(get(nodes[1].port, "/.millpond/node", &[]).status, 404);

    // A node that is stopped costs a second, and one that is gone says so.
    let id = Pid::from_child(&nodes[2].process.0);
    kill_process(id, Signal::STOP).unwrap();
    // A busy system stops its threads some moments later.
    wait_for("c is late", || {
        let late = silent(&read(&nodes, "cluster/fleet"));
        late.iter().any(|(name, why)| name == "c" && why.contains("node c has not answered within 1 s"))
    });
    kill_process(id, Signal::CONT).unwrap();
    whole(&nodes);
    drop(nodes.pop());
    let gone = silent(&read(&nodes, "cluster/fleet"));
    assert!(gone.iter().any(|(name, why)| name == "c" && why.contains("node c")), "{gone:?}");
    let refused = ask(&nodes, "GET", "cluster/nodes/c/api/version");
    assert!(matches!(refused.status, 502 | 504), "{}", refused.text());
}

#[test]
fn without_a_secret_no_node_asks_another() {
    let Some(etcd) = Etcd::start() else { return };
    let (_folder, _origin, place) = origin();
    let nodes = nodes(&etcd, &place, None);
    let refused = ask(&nodes, "GET", "cluster/nodes/b/api/version");
    assert!(
        refused.status == 409 && refused.text().contains("node a can't ask node b, for it has neither cluster-secret"),
        "{}",
        refused.text()
    );
    assert_eq!(ask(&nodes, "GET", "cluster/nodes/a/api/version").status, 200);
    let fleet = read(&nodes, "cluster/fleet");
    let silent = silent(&fleet);
    assert!(silent.len() == 2 && silent.iter().all(|(_, why)| why.contains("cluster-secret")), "{silent:?}");
    assert!(fleet["nodes"][0]["report"].is_object(), "{fleet}");
    let stranger = request(nodes[1].port, "GET", "/.millpond/node/api/v1/version", &[("Millpond-Node", "a")]);
    assert_eq!((stranger.status, get(nodes[1].port, "/.millpond/node", &[]).status), (404, 404));
    // A server that is no node has none of it.
    let alone = Server::start(&[&place]);
    assert_eq!(send(alone.admin, "GET", "cluster/fleet", &Value::Null, &[]).status, 404);
    assert_eq!(get(alone.port, "/.millpond/node/api/v1/version", &[]).status, 404);
}
