//! A rolling restart by one command, while a viewer watches.

use super::{status, taking, wait_for};
use crate::support::{Server, clips, etcd::Etcd, free_port};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// A busy disk may delay the writes of etcd for seconds.
const LEASE: &str = "6s";
/// Longest time of a command.
const LONGEST: Duration = Duration::from_secs(300);

/// Nodes that are started again on the same addresses, as a service manager does it.
struct Fleet {
    etcd: Etcd,
    /// Has a file with the id of each node's process.
    folder: tempfile::TempDir,
    ports: [[u16; 2]; 3],
    nodes: Vec<Server>,
}

impl Fleet {
    /// Starts three nodes; nothing where etcd is not installed, which the test says.
    fn start() -> Option<Self> {
        let (etcd, folder) = (Etcd::start()?, tempfile::tempdir().unwrap());
        let ports = [(); 3].map(|()| [free_port(), free_port()]);
        let mut fleet = Self { etcd, folder, ports, nodes: Vec::new() };
        fleet.nodes = (0..3).map(|at| fleet.node(at)).collect();
        wait_for("three nodes", || fleet.nodes.iter().all(|node| taking(node) == 3));
        Some(fleet)
    }

    fn node(&self, at: usize) -> Server {
        let [http, admin] = self.ports[at];
        let place = format!("films={}", clips::folder().display());
        let admin_address = format!("127.0.0.1:{admin}");
        let cluster = ["--cluster", &self.etcd.addresses(), "--node", NAMES[at], "--cluster-lease", LEASE];
        let mut server = Server::start_at(http, &[&[place.as_str(), "--admin", &admin_address][..], &cluster].concat());
        server.admin = admin;
        crate::support::wait_for_port(admin, &server.log);
        std::fs::write(self.folder.path().join(NAMES[at]), server.process.0.id().to_string()).unwrap();
        server
    }

    /// The flag of a command that ends a node's process.
    fn kill(&self) -> String {
        format!("kill -TERM $(cat {}/{{node}})", self.folder.path().display())
    }

    /// Starts `millpond cluster roll` at the node b.
    fn roll(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let admin = format!("127.0.0.1:{}", self.ports[1][1]);
        command.args(["cluster", "roll", "--admin", &admin]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts nodes whose processes have ended until a command ends. Those of `except` stay away.
    fn tend(&mut self, mut command: Child, except: &[usize]) -> Output {
        let began = Instant::now();
        while command.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < LONGEST, "the command does not end");
            for at in (0..3).filter(|at| !except.contains(at)) {
                if self.nodes[at].process.0.try_wait().unwrap().is_some() {
                    self.nodes[at] = self.node(at);
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        command.wait_with_output().unwrap()
    }
}

/// Asks a server; `None` where there is no whole reply.
fn asked(port: u16, target: &str) -> Option<(u16, String, usize)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).ok()?;
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&reply[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = |head: &str| head.split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok();
    let body = reply.len() - end - 4;
    (length(&head).is_none_or(|length| length == body)).then_some((status, head, body))
}

/// Plays by the rules of a balancer: asks a node whose health is good, and follows its redirect. Returns the error, if there is one.
fn watched(ports: &[u16], title: &str) -> Result<(), String> {
    let healthy = |port: &&u16| asked(**port, "/.millpond/health").is_some_and(|(status, ..)| status == 200);
    let port = *ports.iter().find(healthy).ok_or("no node is healthy")?;
    let list = asked(port, &format!("/films/{title}/index.m3u8")).ok_or_else(|| format!("{port} breaks off"))?;
    let port = match list {
        (200, ..) => port,
        (307, head, _) => {
            let at =
                head.split("location: http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
            at.ok_or_else(|| format!("no location: {head}"))?
        }
        (status, ..) => return Err(format!("{port}: the playlist has status {status}")),
    };
    match asked(port, &format!("/films/{title}/v1/1.m4s?_millpond_node=x")) {
        Some((200, _, body)) if body > 0 => Ok(()),
        reply => Err(format!("{port}: a segment has {reply:?}")),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn nodes_are_restarted_one_after_the_other_and_no_viewer_notices() {
    let Some(mut fleet) = Fleet::start() else { return };
    let run = |server: &Server| status(server)["incarnation"].as_str().unwrap().to_owned();
    let before: Vec<_> = fleet.nodes.iter().map(run).collect();
    let ports: Vec<u16> = fleet.ports.iter().map(|[http, _]| *http).collect();
    let titles: Vec<_> = clips::CLIPS
        .iter()
        .map(|clip| clip.name)
        .filter(|name| name.starts_with("h264") && name.ends_with(".mp4"))
        .collect();
    let (over, requests) = (AtomicBool::new(false), AtomicU64::new(0));
    let output = std::thread::scope(|scope| {
        let viewers: Vec<_> = [0, 1]
            .map(|turn| {
                let (ports, titles, over, requests) = (&ports, &titles, &over, &requests);
                scope.spawn(move || {
                    let began = Instant::now();
                    let mut ports = ports.clone();
                    while !over.load(Ordering::Relaxed) && began.elapsed() < LONGEST {
                        for title in titles.iter().skip(turn) {
                            watched(&ports, title)?;
                            requests.fetch_add(1, Ordering::Relaxed);
                        }
                        ports.rotate_left(1);
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    Ok::<(), String>(())
                })
            })
            .into();
        let command = fleet.roll(&["--run", &fleet.kill(), "--limit", "60s"]);
        let output = fleet.tend(command, &[]);
        over.store(true, Ordering::Relaxed);
        for viewer in viewers {
            assert_eq!(viewer.join().unwrap(), Ok(()), "{}", text(&output.stdout));
        }
        output
    });
    let (told, wrong) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{wrong}");
    assert!(requests.load(Ordering::Relaxed) > 10);
    assert!(told.starts_with("the order: a, c, b\n"), "the asked node is the last one: {told}");
    let version = env!("CARGO_PKG_VERSION");
    for name in NAMES {
        let steps = [
            format!("{name}: drains; version {version}, "),
            format!("{name}: has no sessions"),
            format!("{name}: runs kill -TERM"),
            format!("{name}: is back; version {version} -> {version}"),
            format!("{name}: takes viewers again"),
        ];
        assert!(steps.iter().all(|step| told.contains(step.as_str())), "{steps:?}: {told}");
    }
    let after: Vec<_> = fleet.nodes.iter().map(run).collect();
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{before:?} {after:?}");
    wait_for("all take work", || fleet.nodes.iter().all(|node| taking(node) == 3));
}

#[test]
fn a_roll_ends_at_the_first_failure_and_says_how_to_go_on() {
    let Some(mut fleet) = Fleet::start() else { return };
    // A command that fails.
    let failed = fleet.roll(&["--run", "exit 3", "--node", "c", "--limit", "1s"]).wait_with_output().unwrap();
    let words = text(&failed.stderr);
    assert!(!failed.status.success() && words.contains("c: exit 3: exit status: 3"), "{words}");
    let admin = format!("--admin 127.0.0.1:{}", fleet.ports[1][1]);
    let resume =
        format!("left: c; to resume: millpond cluster roll --run 'exit 3' --limit 1s --node c --end-drain c {admin}");
    assert!(words.contains(&resume), "{words}");
    assert!(words.contains(&format!("to end that: millpond cluster drain c --undo {admin}")), "{words}");
    // The drain lasts.
    wait_for("c drains", || taking(&fleet.nodes[0]) == 2);

    // A node that does not come back.
    let command = fleet.roll(&["--run", &fleet.kill(), "--return", "3s", "--from", "c", "--end-drain", "c"]);
    let failed = fleet.tend(command, &[2]);
    let words = text(&failed.stderr);
    assert!(!failed.status.success() && words.contains("c: not back after 3s"), "{words}{}", text(&failed.stdout));
    assert!(
        words.contains("left: c, b; to resume: millpond cluster roll ") && words.contains("--from c --end-drain c"),
        "{words}"
    );
    assert!(words.contains("to go on without c: millpond cluster roll ") && words.contains("--from b"), "{words}");
    wait_for("c has ended", || fleet.nodes[2].process.0.try_wait().unwrap().is_some());
    fleet.nodes[2] = fleet.node(2);
    let listed = |node: &Server| super::status(node)["nodes"].as_array().unwrap().len();
    wait_for("c is back", || fleet.nodes.iter().all(|node| listed(node) == 3));

    // Names of no node, and nodes that nobody could stand in for.
    let unknown = fleet.roll(&["--run", "true", "--from", "x"]).wait_with_output().unwrap();
    assert!(
        text(&unknown.stderr).contains("the cluster has no node x: there are a, b, c")
            && text(&unknown.stderr)
                .contains(&format!("To go on without it: millpond cluster roll --run true --from b {admin}")),
        "{}",
        text(&unknown.stderr)
    );

    // A drain of before the roll stays.
    assert_eq!(taking(&fleet.nodes[0]), 2, "c drains");
    let command = fleet.roll(&["--run", &fleet.kill(), "--node", "c"]);
    let kept = fleet.tend(command, &[]);
    let told = text(&kept.stdout);
    assert!(
        kept.status.success() && told.contains("c: drains already, and will drain on"),
        "{told}{}",
        text(&kept.stderr)
    );
    assert!(told.contains(&format!("c: drains on; to end that: millpond cluster drain c --undo {admin}")), "{told}");
    wait_for("c is back, and drains", || fleet.nodes.iter().all(|node| listed(node) == 3 && taking(node) == 2));

    // Ctrl-C: the node at hand takes viewers again.
    let folder = fleet.folder.path().to_owned();
    let mark = folder.join("waits");
    let waits = format!("touch {}; exec sleep 60", mark.display());
    let command = fleet.roll(&["--run", &waits, "--node", "c", "--end-drain", "c"]);
    wait_for("the command runs", || Path::new(&mark).exists());
    kill_process(Pid::from_child(&command), Signal::INT).unwrap();
    let ended = command.wait_with_output().unwrap();
    let words = text(&ended.stderr);
    assert!(!ended.status.success() && words.contains("interrupted at c: its drain is undone"), "{words}");
    wait_for("all take work", || fleet.nodes.iter().all(|node| taking(node) == 3));

    // A drain that waits.
    let admin = format!("127.0.0.1:{}", fleet.ports[1][1]);
    let drain = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["cluster", "drain", "--admin", &admin]).args(args).output().unwrap()
    };
    let waited = drain(&["a", "--wait", "--limit", "60s"]);
    let told = text(&waited.stdout);
    assert!(waited.status.success() && told.contains("a has no sessions"), "{told}{}", text(&waited.stderr));
    assert!(drain(&["a", "--undo"]).status.success());
    let bad = drain(&["a", "--wait", "--limit", "soon"]);
    assert!(text(&bad.stderr).contains("--limit soon: expected a duration"), "{}", text(&bad.stderr));
}
