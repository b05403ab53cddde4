//! Nodes with different settings, and two clusters on one prefix of etcd.

use super::{status, taking, wait_for};
use crate::{
    access::tokens::hang_up,
    operations::metrics::{By, watch::Watch},
    support::{
        Server,
        api::{api, send},
        clips,
        etcd::Etcd,
        get,
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path, process::Command};

/// Writes the places of a node. No camera answers: nobody has to.
fn write(file: &Path, live_segment: &str, has_extra: bool) {
    let folder = clips::folder().display();
    let extra = if has_extra { format!("[places.extra]\nurl = \"{folder}\"\n") } else { String::new() };
    let cams = format!("url = \"rtsp://127.0.0.1:9/\"\nlive-segment = \"{live_segment}\"\nsource-timeout = \"1s\"");
    std::fs::write(file, format!("[places.films]\nurl = \"{folder}\"\n[places.cams]\n{cams}\n{extra}")).unwrap();
}

/// The nodes that a node would send viewers of a path to, and the homes of its first bytes.
fn assigned(node: &Server, path: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let all = api(node.admin, &format!("cluster/assign?path={path}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let candidates = all["candidates"].as_array().unwrap().iter().map(|candidate| text(&candidate["name"]));
    (candidates.collect(), all["homes"].as_array().unwrap().iter().map(text).collect())
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The port that a node sends a viewer to; `None` where it answers itself.
fn sent_to(node: &Server, path: &str) -> Option<u16> {
    let reply = node.get(path);
    let location = reply.header("location").filter(|_| reply.status == 307)?;
    Some(location.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse().unwrap())
}

/// Playlists of the clips in MP4.
fn titles() -> impl Iterator<Item = String> {
    let names = clips::CLIPS.iter().map(|clip| clip.name).filter(|name| name.ends_with(".mp4"));
    names.map(|name| format!("{name}/index.m3u8"))
}

#[test]
fn a_node_that_differs_gets_no_viewers_of_that_place() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.toml"));
    let start = |name: &str| {
        let config = file(name);
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        Server::start(&[&["--config", config.to_str().unwrap()], cluster.as_slice()].concat())
    };
    write(&file("a"), "2s", true);
    write(&file("b"), "2s", true);
    // It has another segment duration for one place, and lacks one.
    write(&file("c"), "4s", false);
    let first = start("a");
    let watch = Watch::begin(&first);
    let mut nodes = vec![first, start("b"), start("c")];
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));

    // All nodes name the same one: in the status, as a metric, in the log and by the command.
    let count = |node: &Server| status(node)["differences"].as_array().unwrap().len();
    wait_for("differences", || nodes.iter().all(|node| count(node) == 2));
    for node in &nodes {
        let all = status(node);
        let all = all["differences"].as_array().unwrap();
        let told = ["cams", "extra"]
            .map(|place| all.iter().find(|one| one["place"] == place).unwrap_or_else(|| panic!("{place}: {all:?}")));
        let lists = told.map(|one| json!([one["differing"], one["lacking"]]));
        assert_eq!(lists, [json!([["c"], []]), json!([[], ["c"]])]);
        assert_eq!(node.metric("millpond_cluster_differences", ""), 2.0);
        let log = node.log_text();
        assert_eq!(log.matches("place cams: other settings at c").count(), 1, "{log}");
        assert_eq!(log.matches("place extra: missing at c").count(), 1, "{log}");
    }
    let admin = format!("127.0.0.1:{}", nodes[1].admin);
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    let shown = command.args(["cluster", "status", "--admin", &admin]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains("): place cams: other settings at c") && shown.contains("): place extra: missing at c"),
        "{shown}"
    );

    // Viewers of these places are not sent to it, and it keeps its own.
    let [a, b, c] = &nodes[..] else { panic!("three nodes") };
    for stream in (0..16).map(|number| format!("cams/{number}/index.m3u8")) {
        assert_eq!([a, b].map(|node| assigned(node, &stream).0), [names(&["a", "b"]), names(&["a", "b"])], "{stream}");
        assert_eq!(assigned(c, &stream).0, names(&["c"]), "{stream}");
    }
    let streams = (0..64).map(|number| format!("cams/{number}/index.m3u8"));
    let first = |path: &str| api(a.admin, &format!("cluster/assign?path={path}"))["candidates"][0]["name"].clone();
    let of_b = streams.into_iter().find(|path| first(path) == "b").expect("b owns some");
    assert_eq!((sent_to(a, &of_b), sent_to(c, &of_b)), (Some(b.port), None));
    for title in titles().map(|title| format!("extra/{title}")) {
        for node in [a, b] {
            assert_eq!(assigned(node, &title), (names(&["a", "b"]), names(&["a", "b"])), "{title}");
            assert!(sent_to(node, &title).is_none_or(|port| port == a.port || port == b.port), "{title}");
        }
        assert_eq!(c.get(&title).status, 404);
    }
    // Those of the other place are.
    let mut owners = BTreeSet::new();
    for title in titles().map(|title| format!("films/{title}")) {
        assert!([a, b, c].iter().all(|node| assigned(node, &title).0 == names(&["a", "b", "c"])), "{title}");
        owners.insert(sent_to(a, &title).unwrap_or(a.port));
    }
    assert!(owners.contains(&c.port), "{owners:?}");

    // A reload mends it: all nodes know at once.
    write(&file("c"), "2s", true);
    hang_up(&mut nodes[2]);
    wait_for("no differences", || nodes.iter().all(|node| count(node) == 0));
    wait_for("viewers of the camera", || assigned(&nodes[0], &of_b).0 == names(&["a", "b", "c"]));
    assert_eq!(assigned(&nodes[2], &of_b).0, names(&["a", "b", "c"]));
    assert!(nodes[0].log_text().contains("nodes of the cluster have the same settings again"));
    assert_eq!(nodes[0].metric("millpond_cluster_differences", ""), 0.0);
    watch.end(By::Differ, &nodes[0]);
}

#[test]
fn two_clusters_on_one_prefix_do_not_mix() {
    let Some(etcd) = Etcd::start() else { return };
    let other = tempfile::tempdir().unwrap();
    let title = titles().next().unwrap();
    let clip = title.strip_suffix("/index.m3u8").unwrap();
    std::fs::copy(clips::folder().join(clip), other.path().join(clip)).unwrap();
    // The places have the same name, and as folders the same print.
    let start = |name: &str, id: &str, folder: &Path| {
        let place = format!("films={}", folder.display());
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-id", id, "--cluster-lease", "5s"];
        Server::start(&[&[place.as_str()], cluster.as_slice()].concat())
    };
    let east = [start("a", "east", clips::folder()), start("b", "east", clips::folder())];
    wait_for("two nodes", || east.iter().all(|node| taking(node) == 2));
    assert!(etcd.text("/millpond/cluster-id").contains("east"));
    let west = start("w", "west", other.path());

    // It says so with the cure, joins nothing, and serves its own.
    let membership = |node: &Server| status(node)["membership"].as_str().unwrap().to_owned();
    wait_for("it is foreign", || {
        membership(&west).starts_with("foreign: the prefix /millpond/ belongs to the cluster")
    });
    assert!(west.log_text().contains("set another cluster-prefix, or cluster-id"), "{}", west.log_text());
    assert_eq!((status(&west)["cluster-id"].as_str(), west.metric("millpond_cluster_member", "")), (Some("west"), 0.0));
    assert!(status(&west)["nodes"].as_array().unwrap().is_empty() && !etcd.has("/millpond/nodes/w/"));
    for title in titles().map(|title| format!("films/{title}")) {
        assert!(east.iter().all(|node| sent_to(node, &title).is_none_or(|port| port != west.port)), "{title}");
        assert_eq!(sent_to(&west, &title), None, "{title}");
    }
    assert_eq!(west.get(&format!("films/{title}")).status, 200);
    // It does not purge the other cluster, whose keys it can write.
    let purge = send(west.admin, "POST", "cluster/purge", &json!({ "path": "films" }), &[]);
    assert_eq!(purge.status, 409, "{}", purge.text());
    assert!(purge.text().contains("set another cluster-prefix") && !etcd.has("/millpond/purge/"), "{}", purge.text());
    assert!(east.iter().all(|node| taking(node) == 2 && membership(node) == "member"));
    wait_for("it can serve", || get(west.admin, "/readyz", &[]).status == 200);

    // The other cluster is gone for good, and its key is deleted: the prefix is free.
    drop(east);
    assert!(etcd.ctl(&["del", "/millpond/cluster-id"]));
    wait_for("it joins", || membership(&west) == "member" && taking(&west) == 1);
    assert!(etcd.text("/millpond/cluster-id").contains("west"));
}
