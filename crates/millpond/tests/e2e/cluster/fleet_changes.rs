//! Commands for all nodes by one of them: each does it, and those that do not are named.

use super::wait_for;
use crate::support::{Server, api::send, etcd::Etcd, get};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Output},
};

const NAMES: [&str; 3] = ["a", "b", "c"];
const LENGTH: usize = 1 << 20;

/// Nodes with a configuration file each, in which the place is.
fn nodes(etcd: &Etcd, folder: &Path, place: &str) -> Vec<Server> {
    let secret = folder.join("secret");
    std::fs::write(&secret, "a secret of the nodes, which has 40 bytes").unwrap();
    let start = |name: &str| {
        let addresses = etcd.addresses();
        let config = config(folder, name);
        std::fs::write(&config, format!("[places]\nfilms = \"{place}\"\n")).unwrap();
        let files = [&config, &secret].map(|path| path.to_str().unwrap().to_owned());
        let args = ["--config", &files[0], "--cluster-secret", &files[1], "--cluster", &addresses, "--node", name];
        Server::start(&[args.as_slice(), &["--cluster-lease", "60s"]].concat())
    };
    let nodes: Vec<_> = NAMES.into_iter().map(start).collect();
    wait_for("three nodes", || nodes.iter().all(|node| super::taking(node) == NAMES.len()));
    nodes
}

fn config(folder: &Path, node: &str) -> std::path::PathBuf {
    folder.join(format!("{node}.toml"))
}

/// Runs a command at the first node.
fn millpond(nodes: &[Server], args: &[&str]) -> Output {
    let admin = format!("127.0.0.1:{}", nodes[0].admin);
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).args(["--admin", &admin]).output().unwrap()
}

/// The names of the nodes that did it. The exit code and the words must fit.
#[track_caller]
fn done(output: &Output) -> Vec<String> {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words}"));
    let names = |field: &str| {
        let nodes = report[field].as_array().unwrap().iter();
        nodes.map(|node| node["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(output.status.success(), names("failed").is_empty(), "{report}");
    for name in names("failed") {
        assert!(words.contains(&format!("not done by {name}: ")), "{words}");
    }
    names("done")
}

/// A field of the slices of the file at each node.
fn of_nodes(nodes: &[Server], of: impl Fn(&Value) -> bool) -> usize {
    let found = crate::support::api::api(nodes[0].admin, "cluster/objects?url=films%2Fa.bin");
    found["nodes"].as_array().unwrap().iter().filter(|node| of(node)).count()
}

#[test]
fn a_command_with_cluster_reaches_all_nodes_and_names_those_that_fail() {
    let Some(etcd) = Etcd::start() else { return };
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(files.path().join("a.bin"), vec![7; LENGTH]).unwrap();
    let origin = Server::start(&[files.path().to_str().unwrap()]);
    let nodes = nodes(&etcd, folder.path(), &format!("http://127.0.0.1:{}", origin.port));

    // A busy machine may need several attempts until each node answers in time.
    let all_do = |args: &[&str]| wait_for(args[1], || done(&millpond(&nodes, args)) == NAMES);
    all_do(&["cache", "warm", "films/a.bin", "--cluster"]);
    wait_for("all have the file", || {
        of_nodes(&nodes, |node| node["in-memory"].as_u64().max(node["on-disk"].as_u64()) == Some(2)) == NAMES.len()
    });
    all_do(&["cache", "pin", "films/a.bin", "--cluster"]);
    assert_eq!(of_nodes(&nodes, |node| node["pinned"] == true), NAMES.len());
    all_do(&["cache", "unpin", "films/a.bin", "--cluster"]);
    assert_eq!(of_nodes(&nodes, |node| node["pinned"] == true), 0);
    all_do(&["cache", "stat", "--cluster"]);
    wait_for("the state of all nodes", || {
        let told = millpond(&nodes, &["cluster", "status", "--ask"]);
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        told.status.success() && text.lines().filter(|line| line.ends_with(" ready")).count() == NAMES.len()
    });
    let missing = millpond(&nodes, &["cache", "pin", "films/none.bin", "--cluster"]);
    assert_eq!(done(&missing), [""; 0]);

    // A configuration that one node refuses.
    all_do(&["reload", "--cluster"]);
    std::fs::write(config(folder.path(), "b"), "no-such-setting = 1\n").unwrap();
    wait_for("b refuses", || {
        let reloaded = millpond(&nodes, &["reload", "--cluster"]);
        let words = String::from_utf8_lossy(&reloaded.stderr).into_owned();
        done(&reloaded) == ["a", "c"] && words.contains("no-such-setting")
    });

    // The API checks the request, and passes on nothing that came by way of a node.
    let ask = |path: &str, body: &Value| send(nodes[0].admin, "POST", path, body, &[]);
    assert_eq!(ask("cluster/pin", &json!({ "file": "films/a.bin" })).status, 400);
    assert_eq!(ask("cluster/warm", &json!({})).status, 400);
    assert_eq!(ask("cluster/nodes/b/api/cluster/reload", &Value::Null).status, 508);
    let alone = Server::start(&[files.path().to_str().unwrap()]);
    assert_eq!(send(alone.admin, "POST", "cluster/reload", &Value::Null, &[]).status, 404);
    assert_eq!(get(alone.admin, "/api/v1/cluster/cache", &[]).status, 404);

    // A node that hangs costs its time, and no more.
    kill_process(Pid::from_child(&nodes[2].process.0), Signal::STOP).unwrap();
    let warmed = millpond(&nodes, &["cache", "warm", "films/a.bin", "--cluster"]);
    let words = String::from_utf8_lossy(&warmed.stderr).into_owned();
    assert!(!done(&warmed).contains(&"c".to_owned()), "{words}");
    assert!(words.contains("not done by c: node c has not answered within 15 s"), "{words}");
    let told = millpond(&nodes, &["cluster", "status", "--ask"]);
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success() && words.contains("no answer of") && words.contains('c'), "{words}");
    kill_process(Pid::from_child(&nodes[2].process.0), Signal::CONT).unwrap();
}
