//! Clusters: bandwidth that is booked.

use super::{status, taking, wait_for};
use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Server, etcd::Etcd, rtsp::Client},
};
use std::time::{Duration, Instant};

#[test]
fn streams_start_only_with_bandwidth_for_all_of_their_playback() {
    let Some(etcd) = Etcd::start() else { return };
    let storage = Server::of_clips();
    let place = format!("films=http://127.0.0.1:{}", storage.port);
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "10s"];
        let args: Vec<_> = [place.as_str()].into_iter().chain(cluster).chain(["--cluster-storage-mbps", "3"]).collect();
        Server::start(&args)
    };
    let (first, second) = (start("a"), start("b"));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node) == 2));
    let watch = Watch::begin(&second);

    // The mark keeps requests where they are. One node takes all bandwidth of the storage, the last of it for sound alone.
    let path = "films/h264_aac.mp4";
    let of = |node: &Server, path: &str| node.get(&format!("{path}/index.m3u8?_millpond_node=x"));
    let manifest = |node: &Server| of(node, path);
    let fill = |path: &str| {
        let began = Instant::now();
        loop {
            let reply = of(&first, path);
            if reply.status != 200 {
                return reply;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is refused");
        }
    };
    let refused = fill(path);
    fill("films/aac_44100.m4a");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    assert!(refused.text().contains("storage:films"), "{}", refused.text());

    // The other node knows, and takes no more of it.
    wait_for("bookings are seen", || status(&second)["booked"]["storage:films"].as_u64() > Some(2_500_000));
    assert_eq!(manifest(&second).status, 503);
    // The book of both nodes and of the storage is told.
    let assigned = crate::support::api::api(second.admin, &format!("cluster/assign?path={path}"));
    let room = |name: &str| assigned["book"].as_array().unwrap().iter().find(|room| room["resource"] == name).unwrap();
    assert!(room("node:a")["booked-bps"].as_u64() > Some(2_500_000) && room("node:a")["fits"] == true, "{assigned}");
    assert_eq!(
        (&room("storage:films")["bound-bps"], &room("storage:films")["fits"]),
        (&3_000_000.into(), &false.into())
    );
    assert_eq!(room("storage:films")["wanted-bps"], assigned["rate-bps"]);
    let mut client = Client::new(&second, path);
    assert_eq!(client.ask("DESCRIBE", "?_millpond_node=x", "").status, 200);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP").status, 200);
    assert_eq!(client.ask("PLAY", "", "").status, 453);

    // Bookings end with their node's lease.
    drop(first);
    wait_for("the bookings are gone", || status(&second)["booked"]["storage:films"].is_null());
    assert_eq!(manifest(&second).status, 200);
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    wait_for("its bookings are written", || etcd.has("/millpond/book/nodes/b/"));
    watch.end(By::Booked, &second);
}
