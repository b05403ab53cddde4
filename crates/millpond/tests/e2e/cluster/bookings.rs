//! Clusters: bandwidth that is booked.

use super::{status, taking, wait_for};
use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Server, etcd::Etcd, get, rtsp::Client},
};

#[test]
fn streams_start_only_with_bandwidth_for_all_of_their_playback() {
    let Some(etcd) = Etcd::start() else { return };
    let storage = Server::of_clips();
    let place = format!("films=http://127.0.0.1:{}", storage.port);
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "10s"];
        let limits = ["--cluster-storage-mbps", "3", "--trusted-proxies", "127.0.0.1"];
        let args: Vec<_> = [place.as_str()].into_iter().chain(cluster).chain(limits).collect();
        Server::start(&args)
    };
    let (first, second) = (start("a"), start("b"));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node) == 2));
    let watch = Watch::begin(&second);

    // The mark keeps requests where they are. One node takes all bandwidth of the storage, the last of it for sound alone.
    let path = "films/h264_aac.mp4";
    let of = |node: &Server, path: &str, client: u32| {
        let client = format!("192.0.2.{client}");
        get(node.port, &format!("/{path}/index.m3u8?_millpond_node=x"), &[("X-Forwarded-For", &client)])
    };
    let manifest = |node: &Server| of(node, path, 1);
    let booked = |node: &Server| status(node)["booked"]["storage:films"].as_u64();
    // However often a client asks, it books a title once.
    for _ in 0..9 {
        assert_eq!(manifest(&first).status, 200);
    }
    let once = booked(&first).unwrap();
    assert_eq!(of(&first, path, 2).status, 200);
    let twice = booked(&first).unwrap();
    assert!(once < 1_000_000 && twice < 2 * once + 100_000 && twice > once, "{once}, {twice}");
    let fill = |path: &str| {
        let replies = (3..250).map(|client| of(&first, path, client));
        replies.into_iter().find(|reply| reply.status != 200).expect("a refusal")
    };
    let refused = fill(path);
    fill("films/aac_44100.m4a");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    assert!(refused.text().contains("storage:films"), "{}", refused.text());

    // The other node knows, and takes no more of it.
    wait_for("bookings are seen", || booked(&second) > Some(2_500_000));
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
