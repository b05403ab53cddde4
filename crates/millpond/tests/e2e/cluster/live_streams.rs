//! Clusters: a live stream has one session, and viewers reach its node.

use super::{taking, wait_for};
use crate::{
    access::tokens,
    live::publish::{assert_of_clip, hashes, push_clip, reader},
    live::sources::{PICTURES, Source, X264, has_gstreamer},
    support::{Server, clips, etcd::Etcd, free_port, rtsp::Client},
};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

#[test]
fn a_live_stream_has_one_session_for_all_nodes() {
    if !has_gstreamer() {
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let pictures =
        format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1");
    let camera = Source::start(free_port(), &[("door", pictures.clone())]);
    let port = camera.port;
    let place = format!("cams=rtsp://127.0.0.1:{port}/");
    // No node redirects: each one is asked for the stream.
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-steering", "none"];
        Server::start(&[place.as_str()].into_iter().chain(cluster).collect::<Vec<_>>())
    };
    let mut nodes: Vec<_> = ["a", "b", "c"].into_iter().map(start).collect();
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
    let play = |node: &Server| {
        let mut stream = TcpStream::connect(("127.0.0.1", node.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        write!(stream, "GET /cams/door/stream.ts HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut first = [0; 20_000];
        stream.read_exact(&mut first).unwrap();
        assert!(first.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&first));
        stream
    };
    let mut viewers: Vec<_> = nodes.iter().map(play).collect();
    let server = |node: &Server| {
        let all = crate::support::api::items(node.admin, "streams");
        all[0]["server"].as_str().unwrap_or_default().to_owned()
    };
    let own = |node: &Server| server(node).contains(&format!(":{port}/"));
    let owner = nodes.iter().position(own).unwrap();
    assert_eq!(nodes.iter().filter(|node| own(node)).count(), 1, "one node asks the camera");
    let feeds = nodes.iter().filter(|node| server(node).contains(&format!(":{}/", nodes[owner].rtsp))).count();
    assert_eq!(feeds, 2, "it feeds the others");

    // Its owner is killed: another node asks the camera, and feeds the last one. Viewers go on.
    drop(nodes.remove(owner));
    drop(viewers.remove(owner));
    let mut bytes = vec![0; 20_000];
    wait_for("a new owner", || {
        viewers.iter_mut().for_each(|viewer| viewer.read_exact(&mut bytes).unwrap());
        let fed = |node: &Server, by: &Server| server(node).contains(&format!(":{}/", by.rtsp));
        (own(&nodes[0]) && fed(&nodes[1], &nodes[0])) || (own(&nodes[1]) && fed(&nodes[0], &nodes[1]))
    });
    viewers.iter_mut().for_each(|viewer| viewer.read_exact(&mut bytes).unwrap());

    // It returns, and takes nothing back: the stream stays at the node that asks the camera, and viewers of the returned node get it from there.
    nodes.push(start(["a", "b", "c"][owner]));
    wait_for("the owner is back", || nodes.iter().all(|node| taking(node) == 3));
    viewers.push(play(&nodes[2]));
    let holder = nodes.iter().position(own).unwrap();
    assert!(holder < 2, "{}", server(&nodes[2]));
    assert!(server(&nodes[2]).contains(&format!(":{}/", nodes[holder].rtsp)), "{}", server(&nodes[2]));
    viewers.iter_mut().for_each(|viewer| viewer.read_exact(&mut bytes).unwrap());
    let asking = nodes.iter().filter(|node| own(node)).count();
    assert_eq!(asking, 1, "one node asks the camera");

    // The camera restarts: the node asks it again, and does not take its own pictures from the others.
    drop(camera);
    let state = |node: &Server| crate::support::api::items(node.admin, "streams")[0]["state"].clone();
    wait_for("the camera is missed", || state(&nodes[holder]) != "running");
    let _camera = Source::start(port, &[("door", pictures)]);
    wait_for("the camera is asked again", || state(&nodes[holder]) == "running");
    viewers.iter_mut().for_each(|viewer| viewer.read_exact(&mut bytes).unwrap());
    let asking: Vec<_> = nodes.iter().map(own).collect();
    assert!(asking[holder] && asking.iter().filter(|asks| **asks).count() == 1, "{asking:?}");
}

#[test]
fn viewers_of_pushed_streams_are_sent_to_their_node() {
    let Some(etcd) = Etcd::start() else { return };
    let start =
        |name| Server::start(&["live=publish:", "--linger", "0s", "--cluster", &etcd.addresses(), "--node", name]);
    let (first, second) = (start("a"), start("b"));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node) == 2));
    let _publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/door", second.rtsp));
    let ask = || Client::new(&first, "live/door").ask("DESCRIBE", "", "");
    // A node that does not know the name yet waits for a publisher of its own.
    wait_for("the name of the stream", || etcd.has("/millpond/live/b/"));
    wait_for("the stream at the other node", || ask().status == 302);
    assert_eq!(ask().headers["location"], format!("rtsp://127.0.0.1:{}/live/door?_millpond_node=a", second.rtsp));
    let reply = first.get("live/door/index.m3u8");
    let location = format!("http://127.0.0.1:{}/live/door/index.m3u8?_millpond_node=a", second.port);
    assert_eq!((reply.status, reply.header("location")), (307, Some(&*location)));
}

#[test]
fn clients_that_know_no_redirects_get_streams_of_other_nodes() {
    let Some(etcd) = Etcd::start() else { return };
    let places = [format!("clips={}", clips::folder().display()), "live=publish:".to_owned()];
    for steering in ["proxy", "none"] {
        let start = |name: &str| {
            let name = format!("{steering}-{name}");
            let cluster = ["--cluster", &etcd.addresses(), "--cluster-steering", steering, "--node", &name];
            let prefix = format!("/{steering}/");
            let more = ["--cluster-prefix", &prefix, "--linger", "0s"];
            Server::start(&[&places.each_ref().map(String::as_str)[..], &cluster, &more].concat())
        };
        let nodes = [start("a"), start("b"), start("c")];
        wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
        let publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/door", nodes[1].rtsp));
        // A viewer who asks before that waits for a publisher at the node that is asked.
        let known = |node: &str| {
            wait_for("the name of the stream", || {
                etcd.text(&format!("/{steering}/live/{steering}-{node}/")).contains("door")
            });
            std::thread::sleep(Duration::from_millis(500));
        };
        known("b");

        // Nobody is redirected, and all get all pictures.
        let by_rtsp = |node: &Server| format!("rtsp://127.0.0.1:{}/live/door", node.rtsp);
        let readers = nodes.each_ref().map(|node| {
            wait_for("the stream", || Client::new(node, "live/door").ask("DESCRIBE", "", "").status == 200);
            let http = node.url("live/door/stream.ts");
            [reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(node)], "0:v", 80), reader(&["-i", &http], "0:v", 80)]
        });
        for pictures in readers.into_iter().flatten() {
            assert_of_clip(&hashes(pictures), 80);
        }
        let describe = |node: &Server, path: &str| Client::new(node, path).ask("DESCRIBE", "", "").status;
        assert!(nodes.iter().all(|node| describe(node, "clips/h264_aac.mp4") == 200), "no node redirects");

        // The others take it from its node, and do not tell that they have it.
        let server = |node: &Server| {
            let all = crate::support::api::items(node.admin, "streams");
            let door = all.as_array().unwrap().iter().find(|stream| stream["path"] == "live/door").cloned();
            door.map(|door| door["server"].as_str().unwrap_or("none").to_owned())
        };
        assert_eq!(server(&nodes[1]).as_deref(), Some("none"), "it has a publisher");
        assert!(!["a", "c"].iter().any(|name| etcd.has(&format!("/{steering}/live/{steering}-{name}/"))));

        // A stream that runs stays for its viewers, also where its node is not known, or another node asks.
        let mut viewer = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(&nodes[0])], "0:v", 10_000);
        wait_for("the viewer", || nodes[0].metric("millpond_rtsp_playing", "") == 1.0);
        assert_eq!(Client::new(&nodes[0], "live/door").ask("DESCRIBE", "?_millpond_node=x", "").status, 404);
        assert!(etcd.ctl(&["del", "--prefix", &format!("/{steering}/live/")]));
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(describe(&nodes[0], "live/door"), 200);
        assert_eq!(nodes[0].metric("millpond_rtsp_playing", ""), 1.0);
        let asks = |address: &str| address.contains(&format!(":{}/", nodes[1].rtsp));
        assert!(server(&nodes[0]).is_some_and(|address| asks(&address)), "{:?}", server(&nodes[0]));
        let _ = (viewer.kill(), viewer.wait());

        // The publisher goes to another node: viewers find it there.
        drop(publisher);
        wait_for("its end", || {
            let all = crate::support::api::items(nodes[1].admin, "streams");
            all.as_array().unwrap().iter().all(|stream| stream["path"] != "live/door" || stream["state"] != "running")
        });
        let _publisher = push_clip("tcp", &by_rtsp(&nodes[2]));
        known("c");
        wait_for("the stream", || describe(&nodes[0], "live/door") == 200);
        let pictures = hashes(reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(&nodes[0])], "0:v", 60));
        assert_of_clip(&pictures, 60);
    }
}

#[test]
fn streams_of_one_folder_are_at_their_nodes_and_rules_hold() {
    let Some(etcd) = Etcd::start() else { return };
    let (_keys, key) = tokens::file(tokens::SECRET.as_bytes());
    let (_secret, secret) = tokens::file(b"the secret of the cluster: thirty-two bytes");
    let start = |name: &str| {
        let cluster = ["--cluster", &etcd.addresses(), "--cluster-steering", "proxy", "--node", name];
        let streams = if name == "b" { "1" } else { "9" };
        let rules = ["--access-tokens", &key, "--cluster-secret", &secret, "--client-streams", streams];
        Server::start(&[&["live=publish:", "--linger", "0s"], &cluster[..], &rules].concat())
    };
    let nodes = ["a", "b", "c"].map(start);
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
    let push =
        |node: &Server, name: &str| push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/hall/{name}", node.rtsp));
    let _publishers = [push(&nodes[1], "one"), push(&nodes[2], "two"), push(&nodes[1], "three")];
    for (node, name) in [("b", "one"), ("c", "two"), ("b", "three")] {
        wait_for(name, || etcd.text(&format!("/millpond/live/{node}/")).contains(&format!("hall/{name}\"")));
    }
    std::thread::sleep(Duration::from_millis(500));
    let token = tokens::made(&serde_json::json!({ "exp": tokens::now() + 600 }));
    let describe = |name: &str, query: &str| {
        Client::new(&nodes[0], &format!("live/hall/{name}")).ask("DESCRIBE", query, "").status
    };
    for name in ["one", "two", "three"] {
        // Nobody but viewers with tokens and nodes with passes gets it.
        assert_eq!(describe(name, ""), 403, "{name}");
        assert_eq!(describe(name, "?_millpond_node=b"), 403, "{name}");
        wait_for(name, || describe(name, &format!("?token={token}")) == 200);
    }
    // The node takes two streams of one node at once: limits of clients do not count it.
    let readers = ["one", "two", "three"].map(|name| {
        let url = format!("rtsp://127.0.0.1:{}/live/hall/{name}?token={token}", nodes[0].rtsp);
        reader(&["-rtsp_transport", "tcp", "-i", &url], "0:v", 60)
    });
    for pictures in readers {
        assert_of_clip(&hashes(pictures), 60);
    }
    assert!(nodes.iter().all(|node| !node.log_text().contains("eyJ")), "no passes in the log");
}
