//! Zones: each one reads a range once over its border, and keeps its viewers.

use super::{
    homes::{bytes, fetch, fetched_once, sum},
    status, taking, wait_for,
};
use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Server, api::api, clips, etcd::Etcd, get},
};
use std::{collections::HashMap, process::Command};

/// Three range groups.
const LENGTH: usize = 40 << 20;
const ZONES: [(&str, &str); 4] = [("a", "east"), ("b", "east"), ("c", "west"), ("d", "west")];
/// Bytes from homes in other zones.
const CROSSED: &str = "millpond_sibling_zone_bytes_total";

/// The ports that a node sends viewers of the clips to, its own where it answers itself.
fn sent_to(node: &Server) -> Vec<u16> {
    let names = clips::CLIPS.iter().map(|clip| clip.name).filter(|name| name.ends_with(".mp4"));
    let port = |name: &str| {
        let reply = node.get(&format!("clips/{name}/index.m3u8"));
        let Some(location) = reply.header("location").filter(|_| reply.status == 307) else { return node.port };
        location.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse().unwrap()
    };
    names.map(port).collect()
}

#[test]
fn a_zone_reads_once_over_its_border_and_keeps_its_viewers() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let contents = [&bytes(11)[..LENGTH], &bytes(12)[..LENGTH]].map(<[u8]>::to_vec);
    for (name, content) in ["first.bin", "second.bin"].iter().zip(&contents) {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let places =
        [format!("films=http://127.0.0.1:{}", origin.port), format!("clips={}", clips::folder().to_str().unwrap())];
    // The lease is long: nobody leaves the view.
    let start = |(name, zone): (&str, &str)| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        let zone = ["--cluster-zone", zone];
        let places: Vec<_> = places.iter().map(String::as_str).collect();
        Server::start(&[places.as_slice(), cluster.as_slice(), zone.as_slice()].concat())
    };
    let mut nodes: Vec<_> = ZONES.into_iter().map(start).collect();
    wait_for("four nodes", || nodes.iter().all(|node| taking(node) == 4));

    // The origin sends it once, and one zone gets it from the other one.
    let watches: Vec<_> = nodes.iter().map(Watch::begin).collect();
    let (mut crossed, mut failures) = (0.0, 1.0);
    for attempt in 0..3 {
        let copy = format!("{attempt}-first.bin");
        std::fs::hard_link(folder.path().join("first.bin"), folder.path().join(&copy)).unwrap();
        let before = [CROSSED, "millpond_sibling_failures_total"].map(|metric| sum(&nodes, metric));
        fetched_once(&nodes, &origin, (folder.path(), copy.as_str()), "", &contents[0]);
        crossed = sum(&nodes, CROSSED) - before[0];
        failures = sum(&nodes, "millpond_sibling_failures_total") - before[1];
        // A home that is starved makes others ask elsewhere.
        if failures == 0.0 {
            break;
        }
    }
    assert_eq!(failures, 0.0, "homes fail again and again: {}", nodes[0].log_text());
    let share = crossed / LENGTH as f64;
    assert!((0.99..1.02).contains(&share), "zones got it {share} times from each other");
    let of_other = nodes.iter().position(|node| node.metric(CROSSED, "") > 0.0).unwrap();
    for (at, watch) in watches.into_iter().enumerate() {
        if at == of_other {
            watch.end(By::Zones, &nodes[at]);
        }
    }

    // Each zone has a home, and one of them is the home of the cluster.
    let asked = |kind: &str| {
        let fields = [("Millpond-Home", kind), ("Range", "bytes=0-9")];
        let statuses: Vec<_> = nodes.iter().map(|node| get(node.port, "/films/second.bin", &fields).status).collect();
        assert!(statuses.iter().all(|status| matches!(status, 206 | 508)), "{statuses:?}");
        statuses.iter().map(|status| *status == 206).collect::<Vec<_>>()
    };
    let (zone, whole) = (asked("zone"), asked("1"));
    assert_eq!(
        [&zone[..2], &zone[2..]].map(|zone| zone.iter().filter(|is_home| **is_home).count()),
        [1, 1],
        "{zone:?}"
    );
    assert_eq!(whole.iter().filter(|is_home| **is_home).count(), 1, "{whole:?}");
    assert!(whole.iter().zip(&zone).all(|(whole, zone)| !whole || *zone), "{whole:?} {zone:?}");
    let explained = api(nodes[0].admin, "cluster/assign?path=films/second.bin/index.m3u8");
    let home = ["a", "b"][usize::from(zone[1])];
    assert_eq!(explained["zone-home"], home, "{explained}");

    // Viewers stay in the zone of the node that they ask.
    let zones: HashMap<u16, &str> = nodes.iter().zip(ZONES).map(|(node, (_, zone))| (node.port, zone)).collect();
    for (node, (name, zone)) in nodes.iter().zip(ZONES) {
        let sent = sent_to(node);
        assert!(sent.len() >= 5 && sent.iter().all(|port| zones[port] == zone), "{name}: {sent:?} of {zones:?}");
    }
    for node in status(&nodes[0])["nodes"].as_array().unwrap() {
        let (_, zone) = ZONES.iter().find(|(name, _)| node["name"] == *name).unwrap();
        assert_eq!(node["zone"], *zone, "{node}");
    }
    let admin = format!("127.0.0.1:{}", nodes[0].admin);
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    let shown = command.args(["cluster", "status", "--admin", &admin]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("ZONE") && shown.contains("east") && shown.contains("west"), "{shown}");

    // A home of a zone that is gone costs no byte: the home of the cluster is asked, and then the origin.
    drop(nodes.remove(1));
    fetch(&nodes, "second.bin", &contents[1]);
}
