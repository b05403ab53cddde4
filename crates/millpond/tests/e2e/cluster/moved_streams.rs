//! Clusters: any node answers any address of a live stream, also after the node died that asked the source.

use super::{taking, wait_for};
use crate::{
    live::sources::{PICTURES, SOUND, Source, X264, has_gstreamer},
    support::{Response, Server, api::items, etcd::Etcd, free_port, read_response},
};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

/// Time for which what a playlist listed can be fetched.
const LISTED: Duration = Duration::from_secs(10);

/// One request. An error where the node is gone, or breaks off.
fn fetch(port: u16, target: &str) -> io::Result<Response> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let head = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let fields = String::from_utf8_lossy(&reply[..head]).to_ascii_lowercase();
    let length = fields.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let is_whole = match length {
        Some(length) => reply.len() == head + 4 + length,
        None => reply.ends_with(b"0\r\n\r\n") || fields.starts_with("http/1.1 204"),
    };
    if is_whole {
        Ok(read_response(&mut BufReader::new(&*reply), false))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// A balancer without stickiness, and a player behind it that follows a media playlist.
struct Player {
    ports: Vec<u16>,
    turn: usize,
    /// Path of the playlist.
    playlist: &'static str,
    /// Media by their addresses, and when a playlist listed them last.
    media: BTreeMap<String, (Vec<u8>, Instant)>,
    /// Addresses of init segments and parts, in the order of playback.
    order: Vec<String>,
    sequence: u64,
    discontinuities: u64,
    /// The segment and part that the next request waits for.
    next: Option<(u64, usize)>,
    /// When there was something new last, and the longest pause.
    news: Instant,
    pause: Duration,
}

impl Player {
    fn new(nodes: &[Server], playlist: &'static str) -> Self {
        Self {
            ports: nodes.iter().map(|node| node.port).collect(),
            turn: 0,
            playlist,
            media: BTreeMap::new(),
            order: Vec::new(),
            sequence: 0,
            discontinuities: 0,
            next: None,
            news: Instant::now(),
            pause: Duration::ZERO,
        }
    }

    /// Asks one node after the other, as a balancer does where a node can't be reached. Players ask again where a node is busy.
    fn get(&mut self, target: &str) -> Response {
        let mut last = String::new();
        for _ in 0..20 {
            self.turn += 1;
            let port = self.ports[self.turn % self.ports.len()];
            match fetch(port, target) {
                Ok(reply) if reply.status == 503 && reply.header("retry-after").is_some() => {
                    last = format!("{port}: {}", reply.text());
                    std::thread::sleep(Duration::from_millis(500));
                }
                Ok(reply) => return reply,
                Err(error) => last = format!("{port}: {error}"),
            }
        }
        panic!("no node answers {target}: {last}");
    }

    /// Reads the playlist once, as soon as it has the next part, and fetches all that is new.
    fn step(&mut self) {
        let query = self.next.map(|(segment, part)| format!("?_HLS_msn={segment}&_HLS_part={part}"));
        let reply = self.get(&format!("/{}{}", self.playlist, query.unwrap_or_default()));
        assert_eq!(reply.status, 200, "{} {:?}: {}", self.playlist, self.next, reply.text());
        let text = reply.text();
        let number = |tag: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(tag));
            line.unwrap_or_else(|| panic!("{tag}: {text}")).parse().unwrap()
        };
        let (sequence, discontinuities) = (number("#EXT-X-MEDIA-SEQUENCE:"), number("#EXT-X-DISCONTINUITY-SEQUENCE:"));
        assert!(sequence >= self.sequence && discontinuities >= self.discontinuities, "{text}");
        (self.sequence, self.discontinuities) = (sequence, discontinuities);
        let folder = self.playlist.rsplit_once('/').unwrap().0.rsplit_once('/').unwrap().0;
        let attribute = |line: &str| {
            let uri = line.split("URI=\"").nth(1)?.split('"').next()?.strip_prefix("../")?.to_owned();
            Some(format!("/{folder}/{uri}"))
        };
        let (mut segment, mut parts, mut listed) = (sequence, 0, Vec::new());
        for line in text.lines() {
            if line.starts_with("#EXT-X-MAP:") || line.starts_with("#EXT-X-PART:") {
                parts += usize::from(line.starts_with("#EXT-X-PART:"));
                listed.extend(attribute(line).map(|address| (address, true)));
            } else if let Some(address) = line.strip_prefix("../") {
                (segment, parts) = (segment + 1, 0);
                listed.push((format!("/{folder}/{address}"), false));
            }
        }
        self.next = Some((segment, parts));
        let mut has_news = false;
        for (address, is_played) in listed {
            if let Some((_, seen)) = self.media.get_mut(&address) {
                *seen = Instant::now();
                continue;
            }
            let reply = self.get(&address);
            assert_eq!(reply.status, 200, "{address}, which is listed: {}{text}", String::from_utf8_lossy(&reply.body));
            self.media.insert(address.clone(), (reply.body, Instant::now()));
            if is_played {
                self.order.push(address);
                has_news = true;
            }
        }
        if has_news {
            self.pause = self.pause.max(self.news.elapsed());
            self.news = Instant::now();
        }
    }

    /// Asserts that all nodes have what was listed not long ago, and the same bytes.
    fn assert_same(&self) {
        for (address, (bytes, seen)) in self.media.iter().filter(|(_, (_, seen))| seen.elapsed() < LISTED / 2) {
            for port in &self.ports {
                let reply = fetch(*port, address).unwrap();
                let is_late = seen.elapsed() > LISTED;
                assert!(
                    is_late || reply.status == 200,
                    "{address} at {port}: {}",
                    String::from_utf8_lossy(&reply.body)
                );
                assert!(is_late || reply.body == *bytes, "{address} at {port} has other bytes");
            }
        }
    }

    /// Times of the decoded frames, by ffprobe: each init segment begins a file.
    fn times(&self) -> Vec<f64> {
        let mut files: Vec<Vec<u8>> = Vec::new();
        for address in &self.order {
            let bytes = &self.media[address].0;
            match address.contains("/init-") {
                true => files.push(bytes.clone()),
                false => files.last_mut().unwrap().extend(bytes),
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let mut times = Vec::new();
        for (number, bytes) in files.iter().enumerate() {
            let file = folder.path().join(format!("{number}.mp4"));
            fs::write(&file, bytes).unwrap();
            let probe = Command::new("ffprobe")
                .args(["-v", "error", "-show_entries", "frame=best_effort_timestamp_time", "-of", "csv=p=0"])
                .arg(&file)
                .output()
                .unwrap();
            assert!(probe.status.success() && probe.stderr.is_empty(), "{}", String::from_utf8_lossy(&probe.stderr));
            let text = String::from_utf8(probe.stdout).unwrap();
            // Frames with side data have more fields, and lines without any.
            times.extend(text.lines().filter_map(|line| line.split(',').next()?.parse::<f64>().ok()));
        }
        times
    }
}

#[test]
fn players_go_on_by_other_nodes_when_the_node_of_a_stream_dies() {
    if !has_gstreamer() {
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let pictures =
        format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1");
    let camera = Source::start(free_port(), &[("door", format!("{pictures} {SOUND} ! rtpmp4gpay name=pay1 pt=97"))]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", camera.port);
    for steering in ["proxy", "none"] {
        let prefix = format!("/{steering}/");
        let start = |name: &str| {
            let cluster = ["--cluster", &etcd.addresses(), "--cluster-prefix", &prefix, "--node", name];
            Server::start(&[&[place.as_str(), "--cluster-steering", steering], &cluster[..]].concat())
        };
        let mut nodes: Vec<_> = ["a", "b", "c"].into_iter().map(start).collect();
        wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
        let mut players = ["cams/door/v1/index.m3u8", "cams/door/a1/index.m3u8"].map(|path| Player::new(&nodes, path));
        let asks = |node: &Server| {
            let all = items(node.admin, "streams");
            all.as_array().unwrap().iter().any(|stream| {
                stream["state"] == "running"
                    && stream["server"].as_str().is_some_and(|server| server.contains(&format!(":{}/", camera.port)))
            })
        };
        let play = |players: &mut [Player; 2], for_seconds: u64| {
            let until = Instant::now() + Duration::from_secs(for_seconds);
            std::thread::scope(|scope| {
                for player in players {
                    scope.spawn(move || {
                        while Instant::now() < until {
                            player.step();
                        }
                    });
                }
            });
        };
        play(&mut players, 8);
        assert_eq!(nodes.iter().filter(|node| asks(node)).count(), 1, "one node asks the camera");
        // A node that stands by has all of it; with `none`, all nodes have.
        players.iter().for_each(Player::assert_same);

        // The node that asks the camera is killed in the middle of requests.
        let owner = nodes.iter().position(asks).unwrap();
        let mut killed = Some(nodes.remove(owner));
        players.iter_mut().for_each(|player| player.pause = Duration::ZERO);
        std::thread::scope(|scope| {
            let killed = killed.take();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_secs(2));
                drop(killed);
            });
            play(&mut players, 12);
        });
        wait_for("another node asks the camera", || nodes.iter().filter(|node| asks(node)).count() == 1);
        for player in &mut players {
            player.ports = nodes.iter().map(|node| node.port).collect();
        }
        play(&mut players, 2);
        players.iter().for_each(Player::assert_same);
        for player in &players {
            let runs: std::collections::BTreeSet<_> = player
                .order
                .iter()
                .filter_map(|address| address.split('/').find(|part| part.starts_with('~')))
                .collect();
            assert_eq!(runs.len(), 1, "{steering}: the run goes on: {runs:?}");
            let inits = player.order.iter().filter(|address| address.contains("/init-")).count();
            assert_eq!(inits, 2, "{steering}: one discontinuity");
            let times = player.times();
            assert!(times.len() > 100 && times.is_sorted_by(|a, b| a < b), "{steering}: {times:?}");
            eprintln!("{steering}: {}: longest pause {:?}", player.playlist, player.pause);
            assert!(player.pause < LISTED, "{steering}: {:?}", player.pause);
        }
    }
}

/// Waits until a condition holds, while players go on.
fn play_until(players: &mut [Player; 2], what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        players.iter_mut().for_each(Player::step);
    }
}

#[test]
fn a_node_that_has_paused_gives_way_to_the_one_that_took_its_stream_over() {
    if !has_gstreamer() {
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let pictures =
        format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1");
    let camera = Source::start(free_port(), &[("door", format!("{pictures} {SOUND} ! rtpmp4gpay name=pay1 pt=97"))]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", camera.port);
    // The lease ends during the pause, or outlives it.
    for (steering, lease) in [("proxy", "3s"), ("none", "3s"), ("proxy", "60s")] {
        let prefix = format!("/{steering}{lease}/");
        let start = |name: &str| {
            let cluster = ["--cluster", &etcd.addresses(), "--cluster-prefix", &prefix, "--node", name];
            let settings = [place.as_str(), "--cluster-steering", steering, "--cluster-lease", lease];
            Server::start(&[&settings[..], &cluster[..]].concat())
        };
        let nodes: Vec<_> = ["a", "b", "c"].into_iter().map(start).collect();
        wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
        let mut players = ["cams/door/v1/index.m3u8", "cams/door/a1/index.m3u8"].map(|path| Player::new(&nodes, path));
        let rows = |node: &Server, state: &str| -> Vec<String> {
            let all = items(node.admin, "streams");
            let all = all.as_array().unwrap().iter().filter(|stream| stream["state"] == state);
            all.map(|stream| stream["server"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let of_camera = format!(":{}/", camera.port);
        let asks = |node: &Server| rows(node, "running").iter().any(|server| server.contains(&of_camera));
        play_until(&mut players, "one node asks the camera", || nodes.iter().filter(|node| asks(node)).count() == 1);
        let owner = nodes.iter().position(asks).unwrap();
        let others: Vec<_> = nodes.iter().enumerate().filter(|(at, _)| *at != owner).map(|(_, node)| node).collect();
        let copies = || others.iter().filter(|node| !rows(node, "copy").is_empty()).count();
        play_until(&mut players, "another node has a copy", || copies() >= 1);

        let id = rustix::process::Pid::from_child(&nodes[owner].process.0);
        rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
        players.iter_mut().for_each(|player| player.ports = others.iter().map(|node| node.port).collect());
        play_until(&mut players, "another node asks the camera", || others.iter().any(|node| asks(node)));
        let until = Instant::now() + Duration::from_secs(8);
        play_until(&mut players, "players go on", || Instant::now() > until);
        rustix::process::kill_process(id, rustix::process::Signal::CONT).unwrap();

        // Its addresses are those of the run that goes on.
        players.iter_mut().for_each(|player| player.ports = nodes.iter().map(|node| node.port).collect());
        let until = Instant::now() + Duration::from_secs(8);
        play_until(&mut players, "players go on at all nodes", || Instant::now() > until);
        let has_one = || !asks(&nodes[owner]) && nodes.iter().filter(|node| asks(node)).count() == 1;
        play_until(&mut players, "the node that paused gives way", has_one);
        players.iter().for_each(Player::assert_same);
        for player in &players {
            let runs: std::collections::BTreeSet<_> = player
                .order
                .iter()
                .filter_map(|address| address.split('/').find(|part| part.starts_with('~')))
                .collect();
            assert_eq!(runs.len(), 1, "{steering} {lease}: {runs:?}");
            let times = player.times();
            assert!(times.len() > 100 && times.is_sorted_by(|a, b| a < b), "{steering} {lease}: {times:?}");
        }
    }
}

#[test]
fn manifests_of_live_streams_list_nodes_and_the_next_one_goes_on() {
    if !has_gstreamer() {
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let pictures =
        format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1");
    let camera = Source::start(free_port(), &[("door", pictures)]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", camera.port);
    let start = |name: &str| {
        let cluster = ["--cluster", &etcd.addresses(), "--node", name];
        Server::start(&[&[place.as_str(), "--cluster-steering", "redirect"], &cluster[..]].concat())
    };
    let mut nodes: Vec<_> = ["a", "b", "c"].into_iter().map(start).collect();
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
    let got = |port: u16, target: &str| {
        let reply = fetch(port, target).unwrap();
        assert_eq!(reply.status, 200, "{target} at {port}: {}", reply.text());
        reply.text()
    };
    // Those that do not have the stream send players to the one that has it.
    let targets = nodes.iter().map(|node| fetch(node.port, "/cams/door/index.m3u8").unwrap());
    let redirects: Vec<_> = targets.filter(|reply| reply.status == 307).collect();
    assert_eq!(redirects.len(), 2);
    let location = redirects[0].header("location").unwrap().to_owned();
    let owner = nodes.iter().position(|node| location.contains(&format!(":{}/", node.port))).unwrap();

    let list = got(nodes[owner].port, "/cams/door/index.m3u8");
    let variants: Vec<&str> = list.lines().filter(|line| line.contains("v1/index.m3u8")).collect();
    assert_eq!(list.matches("#EXT-X-STREAM-INF:").count(), 3, "{list}");
    assert_eq!(variants[0], "v1/index.m3u8", "{list}");
    let mpd = got(nodes[owner].port, "/cams/door/index.mpd");
    assert_eq!(mpd.matches("<BaseURL serviceLocation=").count(), 3, "{mpd}");

    // A player that is cut off from the owner has the same run at the next node, whatever it asks for.
    let run = |text: &str| text.split('/').find(|part| part.starts_with('~')).map(str::to_owned);
    let of_owner = run(&got(nodes[owner].port, "/cams/door/v1/index.m3u8"));
    assert!(of_owner.is_some());
    let next = variants[1].strip_prefix("http://127.0.0.1:").unwrap();
    let (port, target) = next.split_at(next.find('/').unwrap());
    let port: u16 = port.parse().unwrap();
    let media = |query: &str| got(port, &format!("{target}{query}"));
    let before = media("");
    assert_eq!(run(&before), of_owner, "{before}");
    let segment = before.lines().find_map(|line| line.strip_prefix("../")).unwrap();
    let reply = fetch(port, &format!("/cams/door/{segment}")).unwrap();
    assert!(reply.status == 200 && !reply.body.is_empty(), "{segment}: {}", reply.status);

    // When the owner dies, it goes on.
    drop(nodes.remove(owner));
    let number = |text: &str| -> u64 {
        let first = text.lines().find_map(|line| line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:")).unwrap();
        first.parse::<u64>().unwrap() + text.matches("#EXTINF:").count() as u64
    };
    let waited = Instant::now();
    let after = loop {
        let reply = fetch(port, &format!("{target}&_HLS_msn={}", number(&before) + 2)).unwrap();
        match reply.status {
            200 => break reply.text(),
            _ => assert!(waited.elapsed() < Duration::from_secs(60), "{}", reply.text()),
        }
    };
    assert_eq!(run(&after), of_owner, "{after}");
    assert!(number(&after) >= number(&before) + 2 && after.contains("#EXT-X-DISCONTINUITY\n"), "{after}");
}
