//! Purges by the tags that nginx states for files: all nodes, and their disks after a restart.

use super::{taking, wait_for};
use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Running, Server, api::send, etcd::Etcd, free_port, get, origins},
};
use serde_json::{Value, json};
use std::{
    process::Command,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

const LENGTH: usize = 1 << 20;
const NAMES: [&str; 2] = ["a", "b"];
const FILES: [&str; 3] = ["one/a.bin", "two/a.bin", "three/a.bin"];
/// Fields of the folders of these files.
const FIELDS: &str = "location /one { add_header Surrogate-Key 'film-7 drama'; } \
                      location /two { add_header Cache-Tag 'film-8, drama'; }";

struct Fleet {
    etcd: Etcd,
    _origin: Running,
    place: String,
    folder: TempDir,
    caches: [TempDir; 2],
    nodes: Vec<Server>,
    _scratch: TempDir,
}

impl Fleet {
    /// Starts two nodes; nothing where etcd or nginx is not installed, which the test says.
    fn start() -> Option<Self> {
        let etcd = Etcd::start()?;
        let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (origin, port) = origins::nginx(folder.path(), scratch.path(), FIELDS)?;
        let place = format!("films=http://127.0.0.1:{port}");
        let caches = NAMES.map(|_| tempfile::tempdir().unwrap());
        let mut fleet = Self { etcd, _origin: origin, place, folder, caches, nodes: Vec::new(), _scratch: scratch };
        fleet.nodes = (0..NAMES.len()).map(|at| fleet.node(at, free_port())).collect();
        wait_for("two nodes", || fleet.nodes.iter().all(|node| taking(node) == NAMES.len()));
        Some(fleet)
    }

    fn node(&self, at: usize, port: u16) -> Server {
        let cache = self.caches[at].path().to_str().unwrap();
        let addresses = self.etcd.addresses();
        let cluster = ["--cluster", &addresses, "--node", NAMES[at], "--cluster-lease", "60s", "--cache", cache];
        Server::start_at(port, &[&[self.place.as_str()], cluster.as_slice()].concat())
    }

    /// Replaces all files by others with the same entity tags.
    fn publish(&self, byte: u8) {
        for name in FILES {
            let path = self.folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let new = self.folder.path().join("new");
            std::fs::write(&new, vec![byte; LENGTH]).unwrap();
            let file = std::fs::File::options().write(true).open(&new).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
            std::fs::rename(new, path).unwrap();
        }
    }

    #[track_caller]
    fn gives(&self, expected: [u8; 3]) {
        for node in &self.nodes {
            for (name, byte) in FILES.into_iter().zip(expected) {
                let reply = get(node.port, &format!("/films/{name}"), &[]);
                assert_eq!((reply.status, reply.body.len()), (200, LENGTH), "{name}");
                assert!(reply.body.iter().all(|found| *found == byte), "{name} of {}: {}", node.port, node.log_text());
            }
        }
    }

    /// Waits until all nodes have applied a purge.
    fn applied(&self, report: &Value) {
        let epoch = report["epoch"].as_u64().unwrap();
        wait_for("all have purged", || {
            let all = super::status(&self.nodes[0]);
            all["nodes"].as_array().unwrap().iter().all(|node| node["purged"].as_u64() >= Some(epoch))
        });
    }
}

#[test]
fn a_purge_of_a_tag_reaches_all_nodes_and_their_disks() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.publish(1);
    fleet.gives([1, 1, 1]);
    let written =
        |node: &Server| node.metric("millpond_disk_slices", "") >= (FILES.len() * LENGTH / (512 << 10)) as f64;
    wait_for("slices on the disks", || fleet.nodes.iter().all(written));
    // A node that begins anew knows the tags of slices that nobody has asked for since.
    let port = fleet.nodes.remove(1).port;
    let back = fleet.node(1, port);
    fleet.nodes.push(back);
    wait_for("b is back", || fleet.nodes.iter().all(|node| taking(node) == NAMES.len()));
    fleet.publish(2);
    let purge = |body: Value| send(fleet.nodes[0].admin, "POST", "cluster/purge", &body, &[]);
    let reply = purge(json!({ "tag": "film-7" }));
    assert_eq!(reply.status, 200, "{}", reply.text());
    fleet.applied(&serde_json::from_str(&reply.text()).unwrap());
    fleet.gives([2, 1, 1]);
    wait_for("the log names the tag", || {
        fleet.nodes.iter().all(|node| node.log_text().contains("\"objects\":\"tag film-7\""))
    });

    // Both fields count, and a command purges what carries a tag in one of them.
    let admin = format!("127.0.0.1:{}", fleet.nodes[1].admin);
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["cache", "purge"]).args(args).args(["--admin", &admin]).output().unwrap()
    };
    let told = command(&["--cluster", "--tag", "drama", "--place", "films"]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.success(), text.contains("\"missing\": []"), "{text}");
    fleet.applied(&serde_json::from_str(&text).unwrap());
    fleet.gives([2, 2, 1]);

    // A soft purge, and one of this node alone.
    fleet.publish(3);
    let told = command(&["--tag", "film-8", "--soft"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("\"purged-slices\": 0"), "{told:?}");
    fleet.gives([2, 2, 1]);
    let told = command(&["--tag", "film-8"]);
    let report: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert!(report["purged-slices"].as_u64() >= Some(2), "{report}");

    for (body, status) in [
        (json!({ "tag": "" }), 400),
        (json!({ "tag": "x".repeat(1025) }), 400),
        (json!({ "tag": "x", "place": "series" }), 404),
        (json!({ "tag": "x", "path": "films" }), 400),
        (json!({ "path": "films", "place": "films" }), 400),
    ] {
        let reply = purge(body.clone());
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
}

#[test]
fn tags_beyond_the_limits_are_counted() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // More than 64 tags, and for a few objects more than a small cache has room for.
    let tags: String = (0..70).map(|number| format!("category-{number:03} ")).collect();
    let extra = format!("location / {{ add_header Surrogate-Key '{tags}'; }}");
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), &extra) else { return };
    (0..40).for_each(|number| std::fs::write(folder.path().join(format!("{number}.bin")), vec![1; 2000]).unwrap());
    let server = Server::start(&[&format!("films=http://127.0.0.1:{port}"), "--cache-size", "16MiB"]);
    let watch = Watch::begin(&server);
    let mut numbers = (0..40).cycle();
    watch.until("millpond_disk_untagged_total", || {
        let reply = server.get(&format!("films/{}.bin", numbers.next().unwrap()));
        assert_eq!((reply.status, reply.body.len()), (200, 2000));
    });
    watch.end(By::Tags, &server);
}
