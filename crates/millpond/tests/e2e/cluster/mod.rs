//! Nodes of a cluster.

mod bookings;
mod clocks;
mod differ;
mod etcd_tls;
mod examples;
mod fleet_changes;
mod fleet_console;
mod homes;
mod live_streams;
mod moved_streams;
mod node_tls;
mod nodes;
mod purges;
mod roll;
mod static_nodes;
mod tags;
mod zones;

use crate::support::Server;
use std::time::{Duration, Instant};

/// Waits for something, with a limit that a busy machine keeps.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn status(server: &Server) -> serde_json::Value {
    crate::support::api::api(server.admin, "cluster")
}

/// Number of nodes that take work, as a server sees them.
fn taking(server: &Server) -> usize {
    status(server)["nodes"].as_array().unwrap().iter().filter(|node| node["draining"] == false).count()
}
