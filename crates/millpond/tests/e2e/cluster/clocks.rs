//! Nodes whose clocks differ: it is told, and neither bookings nor numbers of live segments suffer.

use super::{status, taking, wait_for};
use crate::{
    live::publish::push_clip,
    operations::metrics::{By, watch::Watch},
    support::{self, FAKETIME, Server, etcd::Etcd},
};
use std::path::Path;

/// Ten minutes.
const AHEAD: i64 = 600_000;

/// A node whose clock is ahead.
fn ahead(args: &[&str]) -> Server {
    let env = [("LD_PRELOAD", FAKETIME), ("FAKETIME", "+600s"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    Server::start_with(args, &env)
}

/// Milliseconds by which a node's clock is ahead, as another one has compared them.
fn clock(of: &str, at: &Server) -> Option<i64> {
    let all = status(at);
    let node = all["nodes"].as_array().unwrap().iter().find(|node| node["name"] == of)?.clone();
    node["clock-ahead-ms"].as_i64()
}

/// First number of the playlist of a live stream's pictures.
fn first_number(server: &Server) -> Option<u64> {
    let text = server.get("live/door/v1/index.m3u8").text();
    text.lines().find_map(|line| line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:")?.parse().ok())
}

#[test]
fn a_clock_that_is_ahead_is_told_and_corrected_for() {
    if !Path::new(FAKETIME).is_file() {
        support::missing("faketime");
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let addresses = etcd.addresses();
    let args = |name| ["live=publish:", "--linger", "0s", "--cluster", addresses.as_str(), "--node", name];
    // Alone, it can't know.
    let wrong = ahead(&args("a"));
    let watch = Watch::begin(&wrong);
    let others = ["b", "c"].map(|name| Server::start(&args(name)));
    wait_for("three nodes", || others.iter().chain([&wrong]).all(|node| taking(node) == 3));

    let is_near = |found: Option<i64>, wanted: i64| found.is_some_and(|found| (found - wanted).abs() < 2000);
    let all_compared =
        || others.iter().all(|node| is_near(clock("a", node), AHEAD)) && is_near(clock("b", &wrong), -AHEAD);
    wait_for("the clocks are compared", all_compared);
    wait_for("the others too", || is_near(clock("b", &others[1]), 0) && is_near(clock("c", &others[0]), 0));
    let own = |node: &Server| status(node)["clock-ahead-ms"].as_i64();
    wait_for("it knows that its own is wrong", || is_near(own(&wrong), AHEAD));
    assert!(others.iter().all(|node| is_near(own(node), 0)));
    let offset = wrong.metric("millpond_cluster_clock_offset_seconds", "");
    assert!((598.0..602.0).contains(&offset), "{offset}");
    let told = |node: &Server| node.log_text().contains("the clock of this machine differs from those of most nodes");
    assert!(told(&wrong) && !others.iter().any(told), "{}", wrong.log_text());
    watch.end(By::Clocks, &wrong);

    // A stream at that node goes on at another one, whose clock is behind: the numbers of its segments rise.
    let publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/door", wrong.rtsp));
    wait_for("the stream", || first_number(&wrong).is_some());
    let before = first_number(&wrong).unwrap();
    drop(publisher);
    drop(wrong);
    let _publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/door", others[0].rtsp));
    wait_for("the stream at another node", || first_number(&others[0]).is_some());
    let after = first_number(&others[0]).unwrap();
    assert!(after >= before, "{after} after {before}");
}
