//! Three nodes on an etcd of three members: nodes that are killed, drained or cut off, and their return.

use crate::operations::metrics::{By, watch::Watch};
use crate::support::{Response, Server, clips, etcd::Etcd, free_port, get, request, rtsp::Client};
use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// A busy disk may delay the writes of etcd for seconds.
const LEASE: &str = "10s";

fn node(etcd: &Etcd, name: &str) -> Server {
    let folder = clips::folder().to_str().unwrap();
    Server::start(&[folder, "--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", LEASE])
}

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

/// Names of the nodes that take work, as a server sees them.
fn taking(server: &Server) -> Vec<String> {
    let all = status(server);
    let nodes = all["nodes"].as_array().unwrap().iter().filter(|node| node["draining"] == false);
    nodes.map(|node| node["name"].as_str().unwrap().to_owned()).collect()
}

/// Changes of a node that a server has noticed, the newest one first. A busy machine may miss probes: those are left out.
fn noticed(server: &Server, node: &str) -> Vec<String> {
    let all = status(server);
    let of = all["changes"].as_array().unwrap().iter().filter(|change| change["node"] == node);
    let named = of.map(|change| change["change"].as_str().unwrap().to_owned());
    named.filter(|change| !change.ends_with("reachable")).collect()
}

/// Events of a kind that some servers have emitted.
fn emitted(servers: &[&Server], kind: &str) -> f64 {
    let label = format!("type=\"millpond.node.{kind}\"");
    servers.iter().map(|server| server.metric("millpond_events_total", &label)).sum()
}

/// Whether curl, as the check of a balancer, finds a server healthy.
fn is_healthy(server: &Server) -> bool {
    let url = format!("http://127.0.0.1:{}/.millpond/health", server.port);
    Command::new("curl")
        .args(["--fail", "--silent", "--max-time", "5", &url])
        .stdout(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// The node of a manifest: the port that a server redirects to, or its own.
fn owner(server: &Server, path: &str) -> u16 {
    let reply = server.get(path);
    match reply.status {
        200 => server.port,
        307 => port(&reply),
        status => panic!("{path}: {status}"),
    }
}

fn port(reply: &Response) -> u16 {
    let location = reply.header("location").unwrap();
    location.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse().unwrap()
}

/// Playlists of the clips in MP4. With more viewers, assets go where the load is lower, of which each node knows another moment.
fn assets() -> Vec<String> {
    let names = clips::CLIPS.iter().map(|clip| clip.name).filter(|name| name.ends_with(".mp4"));
    names.map(|name| format!("{name}/index.m3u8")).collect()
}

#[test]
fn any_address_plays_everything_and_dead_nodes_are_replaced() {
    let Some(mut etcd) = Etcd::start() else { return };
    let mut nodes = vec![node(&etcd, NAMES[0])];
    let watch = Watch::begin(&nodes[0]);
    nodes.extend(NAMES[1..].iter().map(|name| node(&etcd, name)));
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == NAMES));

    // The nodes that came later are told once, by one node; all have noticed them.
    wait_for("b and c have joined", || noticed(&nodes[0], "c") == ["joined"] && noticed(&nodes[0], "b") == ["joined"]);
    wait_for("one event each", || emitted(&nodes.iter().collect::<Vec<_>>(), "joined") == 2.0);
    let versions =
        status(&nodes[0])["nodes"].as_array().unwrap().iter().map(|node| node["version"].clone()).collect::<Vec<_>>();
    assert!(versions.iter().all(|version| *version == env!("CARGO_PKG_VERSION")), "{versions:?}");

    // All nodes agree on the owner, which serves what it is asked.
    let assets = assets();
    let owners: Vec<u16> = assets.iter().map(|asset| owner(&nodes[0], asset)).collect();
    for node in &nodes {
        let same: Vec<u16> = assets.iter().map(|asset| owner(node, asset)).collect();
        assert_eq!(same, owners);
    }
    assert!(nodes.iter().all(|node| owners.contains(&node.port)), "{owners:?}");
    let at = owners.iter().position(|port| *port != nodes[0].port).unwrap();
    let (asset, owner_port) = (&assets[at], owners[at]);
    let reply = get(nodes[0].port, &format!("/{asset}?token=7"), &[]);
    let location = reply.header("location").unwrap().to_owned();
    assert!(location.ends_with("?token=7&_millpond_node=a") && reply.header("cache-control") == Some("no-store"));
    let target = location.strip_prefix(&format!("http://127.0.0.1:{owner_port}")).unwrap();
    let marked = get(owner_port, target, &[]);
    assert_eq!(marked.status, 200);
    // A marked request is served by whoever gets it: no loop, whatever the views are. Manifests list the nodes, the own one first.
    let here = get(nodes[0].port, target, &[]);
    assert_eq!(here.status, 200);
    let pathway = |reply: &Response| {
        let text = reply.text();
        let first = text.split("PATHWAY-ID=\"").nth(1).unwrap_or_default();
        (first.split('"').next().unwrap().to_owned(), text.matches("#EXT-X-STREAM-INF").count())
    };
    assert_eq!(pathway(&here), ("a".to_owned(), 3));
    assert!(pathway(&marked).0 != "a");

    // RTSP: 302 to the same node, which describes and sets up.
    let clip = asset.strip_suffix("/index.m3u8").unwrap();
    let owning = nodes.iter().position(|node| node.port == owner_port).unwrap();
    let reply = Client::new(&nodes[0], clip).ask("DESCRIBE", "", "");
    let expected = format!("rtsp://127.0.0.1:{}/{clip}?_millpond_node=a", nodes[owning].rtsp);
    assert_eq!((reply.status, &reply.headers["location"]), (302, &expected));
    let reply = Client::new(&nodes[0], clip).ask("SETUP", "/v1", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
    assert_eq!(reply.status, 302);
    let mut client = Client::new(&nodes[owning], clip);
    assert_eq!(client.ask("DESCRIBE", "", "").status, 200);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP").status, 200);

    // Garbage under the prefix is told and ignored.
    assert!(etcd.ctl(&["put", "/millpond/nodes/garbage", "{"]));
    assert!(etcd.ctl(&["put", "/millpond/nodes/d/1", r#"{"name":"d","http":"http://u@h/x","capacity":9}"#]));
    wait_for("problems", || nodes.iter().all(|node| status(node)["problem-count"] == 2));
    assert_eq!(taking(&nodes[0]), NAMES);

    // Another node with a name that is taken does not start.
    let mut second = Command::new("timeout");
    second.args([
        "60",
        env!("CARGO_BIN_EXE_millpond"),
        "serve",
        "--cluster",
        &etcd.addresses(),
        "--node",
        "b",
        "--cluster-lease",
        LEASE,
    ]);
    for flag in ["--http", "--rtsp", "--admin"] {
        second.args([flag, &format!("127.0.0.1:{}", free_port())]);
    }
    let refused = second.stdout(Stdio::null()).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("has the name \"b\" too"), "{words}");

    // The owner is killed: others are sent to another node at once, and the view follows within the lease.
    let killed = nodes.remove(owning);
    drop(killed);
    // A node that answered a moment ago is not probed again.
    std::thread::sleep(Duration::from_millis(300));
    let next = owner(&nodes[0], asset);
    assert!(next != owner_port && nodes.iter().any(|node| node.port == next));
    wait_for("two nodes", || nodes.iter().all(|node| taking(node).len() == 2));
    assert_eq!(owner(&nodes[0], asset), owner(&nodes[1], asset));
    // Both have noticed that it does not answer, and that its lease ended. One node has told each.
    let dead = NAMES[owning];
    wait_for("it is lost", || nodes.iter().all(|node| noticed(node, dead).first().is_some_and(|last| last == "lost")));
    let both: Vec<_> = nodes.iter().collect();
    wait_for("events", || emitted(&both, "lost") == 1.0 && emitted(&both, "unreachable") >= 1.0);
    assert!(nodes.iter().all(|node| node.log_text().contains("a node is lost: its lease ended without a drain")));

    // Without etcd all goes on, also beyond the lease.
    (0..3).for_each(|member| etcd.kill(member));
    wait_for("etcd is away", || nodes.iter().all(|node| status(node)["etcd"]["state"] == "away"));
    wait_for("the lease is over", || nodes.iter().all(|node| status(node)["membership"] == "lost"));
    assert!(nodes.iter().all(|node| taking(node).len() == 2 && node.metric("millpond_cluster_following", "") == 0.0));
    assert_eq!(owner(&nodes[0], asset), owner(&nodes[1], asset));
    (0..3).for_each(|member| etcd.revive(member));
    let is_back = |node: &Server| {
        let all = status(node);
        all["etcd"]["state"] == "following" && all["membership"] == "member"
    };
    wait_for("etcd is back", || nodes.iter().all(is_back));
    wait_for("both registered again", || nodes.iter().all(|node| taking(node).len() == 2));

    // A node comes back under its name.
    nodes.push(node(&etcd, NAMES[owning]));
    wait_for("three nodes again", || nodes.iter().all(|node| taking(node) == NAMES));
    assert_eq!(owner(&nodes[0], asset), nodes[2].port);
    watch.end(By::Cluster, &nodes[0]);
}

/// A title whose only segment has 50 MB, under several names.
fn big_title() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let noise = "nullsrc=s=640x360:r=25:d=4,noise=alls=100:allf=t";
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-f", "lavfi", "-i", noise, "-c:v", "libx264", "-preset", "ultrafast", "-qp", "1"]);
    ffmpeg.args(["-g", "500", "-pix_fmt", "yuv420p"]).arg(folder.path().join("big.mp4"));
    assert!(ffmpeg.status().unwrap().success());
    for n in 0..16 {
        std::fs::hard_link(folder.path().join("big.mp4"), folder.path().join(format!("{n}.mp4"))).unwrap();
    }
    folder
}

#[test]
fn players_go_on_when_their_node_dies() {
    let Some(etcd) = Etcd::start() else { return };
    let (films, big) = (clips::folder().to_str().unwrap(), big_title());
    let places = [format!("films={films}"), format!("big={}", big.path().display())];
    let start = |name, steering| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", LEASE];
        let places = places.iter().map(String::as_str);
        let all: Vec<_> = places.chain(cluster).chain(["--cluster-steering", steering]).collect();
        Server::start(&all)
    };
    let mut nodes = vec![start("a", "proxy"), start("b", "redirect"), start("c", "steer")];
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == NAMES));
    let watch = Watch::begin(&nodes[0]);
    let dead = nodes.pop().unwrap();

    // Of the node c, as b tells.
    let of_dead = |name: &str| owner(&nodes[1], &format!("{name}/index.m3u8")) == dead.port;
    let assets: Vec<_> = clips::CLIPS.iter().map(|clip| format!("films/{}", clip.name)).collect();
    let asset = assets.iter().find(|asset| asset.contains("h264") && of_dead(asset)).unwrap();
    let list = dead.get(&format!("{asset}/index.m3u8")).text();
    let server =
        format!("#EXT-X-CONTENT-STEERING:SERVER-URI=\"../../.millpond/steering?path=/{asset}\",PATHWAY-ID=\"c\"");
    assert!(list.contains(&server), "{list}");
    let order = dead.get(&format!(".millpond/steering?path=/{asset}")).text();
    let order: serde_json::Value = serde_json::from_str(&order).unwrap();
    assert_eq!((&order["VERSION"], &order["PATHWAY-PRIORITY"][0]), (&1.into(), &"c".into()), "{order}");
    let manifest = dead.get(&format!("{asset}/index.mpd")).text();
    let first = format!("<BaseURL serviceLocation=\"c\">http://127.0.0.1:{}/{asset}/</BaseURL>", dead.port);
    assert!(manifest.contains(&first) && manifest.contains("<ContentSteering"), "{manifest}");
    // dash.js takes a relative address for one of its page.
    let steering = format!(">http://127.0.0.1:{}/.millpond/steering?path=/{asset}</ContentSteering>", dead.port);
    assert!(manifest.contains(&steering), "{manifest}");

    // Players by way of both other nodes, and a slow client in the middle of a large segment.
    let play = |node: &Server, path: &str| {
        let mut load = Command::new(env!("CARGO_BIN_EXE_millpond"));
        load.args(["load", "--clients", "8", "--duration", "30s", "--buffer", "3s", "--json", "-"]);
        load.arg(format!("http://127.0.0.1:{}/{path}", node.port)).stdout(Stdio::piped()).stderr(Stdio::null());
        let asked = || dead.metric("millpond_http_requests_total", "segment");
        let (load, before) = (load.spawn().unwrap(), asked());
        wait_for("players ask the node", || asked() > before + 8.0);
        load
    };
    let (hls, dash) = (format!("{asset}/index.m3u8"), format!("{asset}/index.mpd"));
    // Before the players: with them the node may be full, and is asked for nothing more.
    let big = (0..16).map(|n| format!("big/{n}.mp4")).find(|name| of_dead(name)).unwrap();
    let expected = nodes[1].get(&format!("{big}/v1/1.m4s"));
    assert!(expected.status == 200 && expected.body.len() > 20 << 20, "{}", expected.body.len());
    let loads = [play(&nodes[1], &dash), play(&nodes[1], &hls), play(&nodes[0], &hls)];
    let mut slow = std::net::TcpStream::connect(("127.0.0.1", nodes[0].port)).unwrap();
    write!(slow, "GET /{big}/v1/1.m4s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut first = vec![0; 1 << 20];
    slow.read_exact(&mut first).unwrap();
    drop(dead);
    slow.read_to_end(&mut first).unwrap();
    let body = first.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| &first[at + 4..]).unwrap();
    assert!(body == expected.body, "{} bytes instead of {}", body.len(), expected.body.len());
    for (load, what) in loads.into_iter().zip(["DASH", "HLS", "proxy"]) {
        let report = load.wait_with_output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["viewers"]["failed"], 0, "{what}: {report}");
        let errors = report["errors"].as_array().unwrap();
        match what {
            "proxy" => assert!(errors.is_empty(), "{report}"),
            _ => assert!(report["switches"]["servers"].as_u64() > Some(0), "{what}: {report}"),
        }
    }
    watch.end(By::Proxy, &nodes[0]);
}

#[test]
fn viewers_behind_a_balancer_with_tls_stay_with_tls() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = clips::folder().to_str().unwrap();
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", LEASE];
        Server::start(&[&[folder, "--trusted-proxies", "127.0.0.1"][..], &cluster].concat())
    };
    let nodes = ["a", "b"].map(start);
    wait_for("two nodes", || nodes.iter().all(|node| taking(node).len() == 2));
    let assets = assets();
    let elsewhere = assets.iter().find(|asset| owner(&nodes[0], asset) == nodes[1].port).unwrap();
    // No node has an address with TLS, so viewers who came by TLS stay at the balancer.
    let by_tls = [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https")];
    for path in [elsewhere.clone(), elsewhere.replace("index.m3u8", "index.mpd")] {
        let reply = request(nodes[0].port, "GET", &format!("/{path}"), &by_tls);
        assert_eq!(reply.status, 200, "{path}: {:?}", reply.header("location"));
        assert!(!reply.text().contains("http://127.0.0.1"), "{path}: {}", reply.text());
        let plain = request(nodes[0].port, "GET", &format!("/{path}"), &[("X-Forwarded-For", "192.0.2.7")]);
        assert_eq!((plain.status, port(&plain)), (307, nodes[1].port), "{path}");
    }
}

/// A proxy of another loopback address: nodes reach each other without its header.
fn by_proxy(port: u16, header: &[u8], request: &str) -> String {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    socket.connect(&std::net::SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    let mut stream = std::net::TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&[header, request.as_bytes()].concat()).unwrap();
    let mut reply = Vec::new();
    let mut some = [0; 4096];
    while !reply.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let read = stream.read(&mut some).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&some[..read]);
    }
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn viewers_whose_tls_ends_at_a_proxy_stay_there_in_both_protocols() {
    let Some(etcd) = Etcd::start() else { return };
    let folder = clips::folder().to_str().unwrap();
    let start = |name| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", LEASE];
        Server::start(
            &[&[folder, "--trusted-proxies", "127.0.0.2", "--forwarded-by", "proxy-protocol"][..], &cluster].concat(),
        )
    };
    let nodes = ["a", "b"].map(start);
    wait_for("two nodes", || nodes.iter().all(|node| taking(node).len() == 2));
    let list = assets().into_iter().find(|asset| owner(&nodes[0], asset) == nodes[1].port).unwrap();
    let asset = list.trim_end_matches("/index.m3u8");
    // Version 2 of the PROXY protocol: a client, and HAProxy's remark whether it has TLS.
    let header = |has_tls: u8| {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14".to_vec();
        header.extend([192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb]);
        header.extend([0x20, 0, 5, has_tls, 0, 0, 0, 0]);
        header
    };
    let http = format!("GET /{list} HTTP/1.1\r\nHost: a\r\n\r\n");
    let rtsp = format!("DESCRIBE rtsp://127.0.0.1:{}/{asset} RTSP/1.0\r\nCSeq: 1\r\n\r\n", nodes[0].rtsp);
    for (port, request, moved) in [(nodes[0].port, &http, "307"), (nodes[0].rtsp, &rtsp, "302")] {
        let status = |has_tls| {
            let reply = by_proxy(port, &header(has_tls), request);
            reply.split(' ').nth(1).map(str::to_owned).unwrap()
        };
        assert_eq!((status(0).as_str(), status(1).as_str()), (moved, "200"), "{request}");
    }
}

#[test]
fn nodes_drain_and_leave() {
    let Some(etcd) = Etcd::start() else { return };
    // The lease is long: what follows does not wait for its end.
    let folder = clips::folder().to_str().unwrap();
    let start = |name, weight: &[&str]| {
        let cluster = [folder, "--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        Server::start(&[&cluster, weight].concat())
    };
    let (first, mut second) = (start("a", &[]), start("b", &["--cluster-weight", "3000"]));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node).len() == 2));
    let assets = assets();
    let of_second = assets.iter().find(|asset| owner(&first, asset) == second.port).unwrap();

    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let output =
            command.arg("cluster").args(args).args(["--admin", &format!("127.0.0.1:{}", first.admin)]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let explained = command(&["assign", of_second]);
    assert!(explained.contains("1. b: has room") && explained.contains("homes of its first bytes"), "{explained}");
    assert!(!explained.contains("\\n"), "a line for each dispenser: {explained}");
    wait_for("etcd is followed", || command(&["status"]).contains("node a: member; etcd: following"));
    let nodes = status(&first);
    let of = |name: &str| nodes["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name).unwrap().clone();
    let (light, heavy) = (of("a"), of("b"));
    assert_eq!((&light["capacity-bps"], &heavy["capacity-bps"]), (&1_000_000_000.into(), &3_000_000_000_u64.into()));
    assert!(light["limit-bps"].is_null() && heavy["limit-bps"].is_null(), "a weight is no limit: {nodes}");
    let ready = |node: &Server| get(node.admin, "/readyz", &[]);
    assert!(ready(&second).status == 200 && is_healthy(&second));

    // A node that drains sends new viewers away, also those who ask it.
    command(&["drain", "b"]);
    wait_for("b drains", || [&first, &second].iter().all(|node| taking(node) == ["a"]));
    assert_eq!((owner(&first, of_second), owner(&second, of_second)), (first.port, first.port));
    // Balancers send nobody either. The node that drains answers, and the other one is as before.
    let out = ready(&second);
    assert!(out.status == 503 && out.text().contains("an operator drains this node"), "{}", out.text());
    let health = get(second.port, "/.millpond/health", &[]);
    assert_eq!(
        (health.status, health.text().as_str(), health.header("cache-control")),
        (503, "draining\n", Some("no-store"))
    );
    assert!(!is_healthy(&second) && is_healthy(&first) && ready(&first).status == 200);
    command(&["drain", "b", "--undo"]);
    wait_for("b takes work", || [&first, &second].iter().all(|node| taking(node).len() == 2));
    assert!(ready(&second).status == 200 && is_healthy(&second));
    assert_eq!(owner(&first, of_second), second.port);
    let missing = request(first.admin, "PUT", "/api/v1/cluster/nodes/nobody/drain", &[("Content-Length", "0")]);
    assert_eq!(missing.status, 404);

    // SIGTERM: the lease is revoked, and the others know at once.
    let id = rustix::process::Pid::from_child(&second.process.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    wait_for("b has left", || status(&first)["nodes"].as_array().unwrap().len() == 1);
    assert!(second.process.0.wait().unwrap().success());
    assert_eq!(owner(&first, of_second), first.port);
    let all = ["left", "draining", "resumed", "draining", "joined"];
    wait_for("all is noticed", || noticed(&first, "b") == all);
    assert_eq!(
        (emitted(&[&first], "draining"), emitted(&[&first], "left"), emitted(&[&first], "lost")),
        (2.0, 1.0, 0.0)
    );
}

#[test]
fn a_stopped_node_gets_no_viewers() {
    let Some(etcd) = Etcd::start() else { return };
    // The lease outlives the test: what is noticed is noticed by probes.
    let folder = clips::folder().to_str().unwrap();
    let start = |name, steering| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
        Server::start(&[&[folder, "--cluster-steering", steering][..], &cluster].concat())
    };
    let mut nodes = vec![start("a", "redirect"), start("b", "proxy"), start("c", "redirect")];
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == NAMES));
    let watch = Watch::begin(&nodes[0]);
    let stopped = nodes.pop().unwrap();
    let of_stopped: Vec<_> = assets().into_iter().filter(|asset| owner(&nodes[0], asset) == stopped.port).collect();
    assert!(!of_stopped.is_empty());

    // The system accepts connections for the node, and the node never answers.
    let id = rustix::process::Pid::from_child(&stopped.process.0);
    rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
    // A node that answered a moment ago is not probed again.
    std::thread::sleep(Duration::from_millis(300));
    let mut longest = Duration::ZERO;
    for (node, asset) in nodes.iter().flat_map(|node| of_stopped.iter().map(move |asset| (node, asset))) {
        let asked = Instant::now();
        let reply = node.get(asset);
        assert!(reply.status == 200 || port(&reply) != stopped.port, "{asset}: {}", reply.status);
        longest = longest.max(asked.elapsed());
    }
    eprintln!("the longest wait of a viewer: {longest:?}");
    // A second on an idle machine.
    assert!(longest < Duration::from_secs(10), "{longest:?}");
    let is_reachable = |node: &Server| {
        let all = status(node);
        let nodes = all["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["name"] == "c").unwrap()["reachable"].clone()
    };
    wait_for("all know it", || nodes.iter().all(|node| is_reachable(node) == false));
    assert!(nodes.iter().all(|node| taking(node) == NAMES), "its lease is valid");
    wait_for("it is told", || emitted(&nodes.iter().collect::<Vec<_>>(), "unreachable") >= 1.0);

    // It gets its viewers back when it answers.
    rustix::process::kill_process(id, rustix::process::Signal::CONT).unwrap();
    wait_for("it answers", || nodes.iter().all(|node| is_reachable(node) == true));
    wait_for("its viewers are back", || owner(&nodes[0], &of_stopped[0]) == stopped.port);
    wait_for("that is told", || emitted(&nodes.iter().collect::<Vec<_>>(), "reachable") >= 1.0);
    watch.end(By::Silent, &nodes[0]);
}
