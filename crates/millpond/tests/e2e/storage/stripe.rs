//! Striped objects: written by `millpond stripe`, played from several stores, and read back.

use crate::operations::metrics::origin::{Manner, Origin};
use crate::support::{self, Server, api::api, etcd::Etcd, origins};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

/// Small units, so that a short film has many.
const UNIT: &str = "64KiB";

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/360p.mp4")
}

/// Folders of a place and of stores.
struct Scene {
    scratch: tempfile::TempDir,
    stores: Vec<&'static str>,
    /// Further options of the place.
    options: &'static str,
}

impl Scene {
    fn new(stores: &[&'static str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for name in stores.iter().chain(&["place", "plain"]) {
            fs::create_dir(scratch.path().join(name)).unwrap();
        }
        fs::copy(sample(), scratch.path().join("plain/film.mp4")).unwrap();
        Self { scratch, stores: stores.to_vec(), options: "" }
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    /// The stores as folders.
    fn folders(&self) -> Vec<String> {
        self.stores.iter().map(|name| format!("{name}={}", self.path(name))).collect()
    }

    /// Stripes the film over stores; its map is in the place.
    fn stripe(&self, over: &[String], more: &[&str], env: &[(&str, String)]) {
        let (film, map) = (self.path("plain/film.mp4"), self.path("place/film.mp4.stripe"));
        let over = over.join(",");
        let args = [&["stripe", &film, "--over", &over, "--unit", UNIT, "--map", &map][..], more].concat();
        let output = millpond(&args, env);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A server of the place, where the stores are at `over`.
    fn server(&self, over: &[String], env: &[(&str, String)]) -> Server {
        self.server_with(over, env, &[])
    }

    /// The same with further arguments.
    fn server_with(&self, over: &[String], env: &[(&str, String)], more: &[&str]) -> Server {
        let over: Vec<String> = over.iter().map(|store| format!("{store:?}")).collect();
        let config = self.scratch.path().join("config.toml");
        let text = format!(
            "[places.films]\nurl = {:?}\nstripe-over = [{}]\nretries = 1\nstripe-timeout = \"5s\"\n{}",
            self.path("place"),
            over.join(", "),
            self.options
        );
        fs::write(&config, text).unwrap();
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let args = [&["--config", config.to_str().unwrap(), "--segment-duration", "2s"], more].concat();
        Server::start_with(&args, &env)
    }

    /// Changes a byte in the middle of each unit of a store.
    fn hurt(&self, store: &str) {
        for (name, mut bytes) in units(&self.path(store)).into_iter().filter(|(name, _)| !name.ends_with("/sums")) {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x20;
            fs::write(Path::new(&self.path(store)).join(name), bytes).unwrap();
        }
    }

    /// Scrubs the film's map. Returns whether all copies are good in the end, and the output.
    fn scrub(&self, over: &[String], more: &[&str]) -> (bool, String) {
        let (map, over) = (self.path("place/film.mp4.stripe"), over.join(","));
        let output = millpond(&[&["stripe", "--scrub", &map, "--over", &over][..], more].concat(), &[]);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// Web servers with the units that the folders of the stores have, and the stores' locations.
    fn web(&self) -> (Vec<Origin>, Vec<String>) {
        let servers: Vec<_> = self.stores.iter().map(|name| Origin::start(units(&self.path(name)))).collect();
        let over = self.stores.iter().zip(&servers).map(|(name, server)| format!("{name}={}", server.url())).collect();
        (servers, over)
    }
}

/// The units and checksums of a store that is a folder, by path.
pub(crate) fn units(store: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(store).unwrap().map(Result::unwrap) {
        for unit in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let name = format!("{}/{}", folder.file_name().display(), unit.file_name().display());
            found.push((name, fs::read(unit.path()).unwrap()));
        }
    }
    found
}

fn millpond(args: &[&str], env: &[(&str, String)]) -> Output {
    let env = env.iter().map(|(name, value)| (*name, value.as_str()));
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).env("RUST_LOG", "off").envs(env).output().unwrap()
}

/// Replies to players of the film: both outputs, and ranges of the file.
fn played(server: &Server) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in ["v1/init.mp4", "v1/1.m4s", "v1/2.m4s", "v1/3.m4s", "a1/1.m4s", "ts/v1/2.ts"] {
        let reply = server.get(&format!("films/film.mp4/{path}"));
        assert_eq!(reply.status, 200, "{path}: {}", server.log_text());
        all.push(reply.body);
    }
    let range = [("Range", "bytes=100000-400000")];
    all.push(support::get(server.port, "/films/film.mp4", &range).body);
    all.push(server.get("films/film.mp4").body);
    all
}

#[test]
fn a_striped_film_plays_as_its_file_and_is_read_back() {
    let scene = Scene::new(&["a", "b", "c", "d"]);
    let bucket = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let Some((_s3, port)) = origins::versitygw(empty.path(), bucket.path()) else { return };
    let endpoint = format!("http://127.0.0.1:{port}");
    let env: Vec<_> =
        origins::credentials("http://127.0.0.1:1", origins::SECRET).into_iter().collect::<Vec<(&str, String)>>();
    // Two folders, a bucket with its own endpoint, and a folder that the server reaches as a web server.
    let mut over = scene.folders();
    over[3] = format!("d=s3://media/units?endpoint={endpoint}");
    scene.stripe(&over, &[], &env);
    let web = Origin::start(units(&scene.path("c")));
    let mut reached = over.clone();
    reached[2] = format!("c={}", web.url());
    let server = scene.server(&reached, &env);
    let plain = Server::start(&[&format!("films={}", scene.path("plain")), "--segment-duration", "2s"]);
    let (striped, whole) = (played(&server), played(&plain));
    assert!(whole.iter().filter(|body| body.len() > 10_000).count() >= 5);
    assert_eq!(whole.last(), Some(&fs::read(sample()).unwrap()));
    assert!(striped == whole, "a player gets other bytes");
    for store in ["a", "b", "c", "d"] {
        assert!(server.metric("millpond_stripe_bytes_total", &format!("store=\"{store}\"")) > 0.0, "{store}");
    }
    // The map itself is not served, and its object is listed.
    assert_eq!(server.get("films/film.mp4.stripe").status, 404);
    assert!(server.get("films/film.mp4/index.m3u8").text().contains("#EXTM3U"));

    let (map, file) = (scene.path("place/film.mp4.stripe"), scene.path("again.mp4"));
    let args = ["unstripe", &map, "--over", &over.join(","), "-o", &file, "--remove"];
    let output = millpond(&args, &env);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(&file).unwrap() == fs::read(sample()).unwrap());
    assert!(!Path::new(&map).exists());
    assert!(units(&scene.path("a")).is_empty() && units(&scene.path("b")).is_empty());
    let output = millpond(&args, &env);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the file exists"));
}

#[test]
fn a_store_that_is_killed_is_an_error_that_names_the_unit_or_nothing_with_copies() {
    for copies in ["1", "2"] {
        let scene = Scene::new(&["a", "b", "c"]);
        scene.stripe(&scene.folders(), &["--copies", copies], &[]);
        let (stores, over) = scene.web();
        let server = scene.server(&over, &[]);
        let whole = fs::read(sample()).unwrap();
        assert_eq!(server.get("films/film.mp4/v1/1.m4s").status, 200);
        stores[1].behaves(Manner::Fails);
        if copies == "2" {
            assert!(server.get("films/film.mp4").body == whole, "{}", server.log_text());
            assert!(server.metric("millpond_stripe_failures_total", "store=\"b\"") >= 1.0);
            continue;
        }
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        write!(stream, "GET /films/film.mp4 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = Vec::new();
        // The connection may be reset.
        let _ = stream.read_to_end(&mut reply);
        assert!(reply.len() < whole.len());
        let log = server.log_text();
        assert!(log.contains("unit ") && log.contains(&stores[1].url()), "{log}");
        assert!(log.contains("/stripe-") || log.contains("stripe-"), "{log}");
        stores[1].behaves(Manner::Honest);
        assert!(server.get("films/film.mp4").body == whole, "it is back");
    }
}

/// The bytes of the film that one connection receives, without the head of the reply.
fn film_of(server: &Server) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    write!(stream, "GET /films/film.mp4 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    // The connection may be reset.
    let _ = stream.read_to_end(&mut reply);
    let head = reply.windows(4).position(|end| end == b"\r\n\r\n").map_or(reply.len(), |at| at + 4);
    reply.split_off(head)
}

#[test]
fn wrong_bytes_of_a_store_reach_no_viewer() {
    let whole = fs::read(sample()).unwrap();
    for copies in ["1", "2"] {
        let scene = Scene::new(&["a", "b", "c"]);
        scene.stripe(&scene.folders(), &["--copies", copies], &[]);
        scene.hurt("b");
        // By HTTP and as folders: the last one's damage is found when all stores are damaged.
        let (_web, mut over) = scene.web();
        over[0] = scene.folders()[0].clone();
        let server = scene.server(&over, &[]);
        let body = film_of(&server);
        if copies == "2" {
            assert!(body == whole, "the other copies are read: {}", server.log_text());
        } else {
            assert!(body.len() < whole.len() && (whole.starts_with(&body) || !body.starts_with(&whole[..1000])));
        }
        let log = server.log_text();
        assert!(log.contains("a unit of a striped file is damaged at a store"), "{log}");
        assert!(log.contains("block 0 with the CRC32C"), "{log}");
        assert!(server.metric("millpond_stripe_damaged_reads_total", "store=\"b\"") >= 1.0);
        assert!(server.metric("millpond_stripe_damaged_reads_total", "store=\"c\"") == 0.0);
        assert!(server.metric("millpond_stripe_resting", "store=\"b\"") == 0.0);
        drop(server);
        // No copy is good.
        ["a", "c"].iter().for_each(|store| scene.hurt(store));
        let server = scene.server(&scene.folders(), &[]);
        assert_eq!(server.get("films/film.mp4/index.m3u8").status, 502, "{}", server.log_text());
        assert!(server.log_text().contains("block 0 with the CRC32C"));
    }
}

#[test]
fn damaged_units_are_repaired_by_reads_and_by_a_scrub() {
    let mut scene = Scene::new(&["a", "b", "c"]);
    scene.options = "stripe-repair = true\n";
    let folders = scene.folders();
    scene.stripe(&folders, &["--copies", "2"], &[]);
    let sorted = |store: &str| {
        let mut units = units(&scene.path(store));
        units.sort();
        units
    };
    let good = sorted("b");
    scene.hurt("b");
    let server = scene.server(&folders, &[]);
    assert!(film_of(&server) == fs::read(sample()).unwrap(), "{}", server.log_text());
    // Each damage that the log tells is repaired.
    let count = |text: &str| server.log_text().matches(text).count();
    let began = Instant::now();
    while count("a damaged unit is repaired") < count("a unit of a striped file is damaged at a store").max(1) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    let repaired = server.metric("millpond_stripe_repaired_units_total", "store=\"b\"");
    assert_eq!(repaired, sorted("b").iter().zip(&good).filter(|(now, good)| now == good).count() as f64 - 1.0);
    drop(server);

    good.iter().for_each(|(name, bytes)| fs::write(Path::new(&scene.path("b")).join(name), bytes).unwrap());
    scene.hurt("b");
    let (is_good, text) = scene.scrub(&folders, &[]);
    assert!(!is_good && text.contains(" on b: ") && text.contains("another copy is good"), "{text}");
    let (is_good, text) = scene.scrub(&folders, &["--repair"]);
    assert!(is_good && text.contains(": repaired"), "{text}");
    assert!(sorted("b") == good);
    let (is_good, text) = scene.scrub(&folders, &[]);
    assert!(is_good && text.contains(" copies verified, 0 at fault, 0 repaired"), "{text}");

    // The checksums of one store, then a unit whose copies are all damaged.
    let sums = good.iter().find(|(name, _)| name.ends_with("/sums")).unwrap();
    fs::write(Path::new(&scene.path("b")).join(&sums.0), &sums.1[..sums.1.len() - 1]).unwrap();
    let (is_good, text) = scene.scrub(&folders, &["--repair"]);
    assert!(is_good && text.contains("the checksums on b: ") && sorted("b") == good, "{text}");
    ["a", "b", "c"].iter().for_each(|store| scene.hurt(store));
    let (is_good, text) = scene.scrub(&folders, &["--repair"]);
    assert!(!is_good && text.contains("no copy is good") && text.contains("copies are still at fault"), "{text}");
    let args = ["stripe", &scene.path("plain/film.mp4"), "--scrub", "x.stripe", "--over", "a"];
    assert!(!millpond(&args, &[]).status.success(), "either a file or a map");
}

#[test]
fn a_map_without_checksums_is_served_and_told_of() {
    let scene = Scene::new(&["a", "b"]);
    scene.stripe(&scene.folders(), &[], &[]);
    let map = scene.path("place/film.mp4.stripe");
    let text = fs::read_to_string(&map).unwrap().replace("\"millpond-stripe\": 2", "\"millpond-stripe\": 1");
    let text: Vec<_> = text.lines().filter(|line| !line.contains("\"sums\"")).collect();
    fs::write(&map, text.join("\n")).unwrap();
    let server = scene.server(&scene.folders(), &[]);
    assert!(film_of(&server) == fs::read(sample()).unwrap());
    assert_eq!(server.log_text().matches("a stripe map has no checksums").count(), 1, "{}", server.log_text());
    drop(server);
    let free = ["--http", "127.0.0.1:0", "--rtsp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cache-size", "0"];
    let config = scene.path("config.toml");
    let doctor = millpond(&[&["doctor", "--config", &config, "--object", "film.mp4"][..], &free].concat(), &[]);
    let told = String::from_utf8_lossy(&doctor.stdout);
    assert!(told.contains("its stripe map has no checksums"), "{told}");
    let (is_good, text) = scene.scrub(&scene.folders(), &[]);
    assert!(!is_good && text.contains("the map has no checksums: stripe the file again"), "{text}");
}

#[test]
fn a_map_of_a_stranger_reaches_nothing() {
    let scene = Scene::new(&["a", "b"]);
    scene.stripe(&scene.folders(), &[], &[]);
    let map = scene.path("place/film.mp4.stripe");
    let text = fs::read_to_string(&map).unwrap();
    let host = Origin::start([]);
    let server = scene.server(&scene.folders(), &[]);
    for other in [host.url(), scene.path("plain"), "..".into()] {
        fs::write(&map, &text).unwrap();
        becomes(&server, 200, &other);
        fs::write(&map, text.replace("\"a\"", &format!("{other:?}"))).unwrap();
        becomes(&server, 502, &other);
    }
    assert!(server.log_text().contains("which stripe-over does not have"));
    for hostile in ["", "{", "[]", &text.replace("65536", "1"), &text.replace("65536", "99999999999")] {
        fs::write(&map, hostile).unwrap();
        becomes(&server, 502, hostile);
        fs::write(&map, &text).unwrap();
        becomes(&server, 200, hostile);
    }
}

/// Waits until the film has a status: a version is trusted for a second.
fn becomes(server: &Server, status: u16, why: &str) {
    let began = Instant::now();
    while server.get("films/film.mp4").status != status {
        assert!(began.elapsed() < Duration::from_secs(60), "no {status}: {why}: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stream_of_a_striped_film_starts_only_with_bandwidth_of_its_stores() {
    let Some(etcd) = Etcd::start() else { return };
    let scene = Scene::new(&["a", "b"]);
    scene.stripe(&scene.folders(), &[], &[]);
    let limits = ["--cluster-store-mbps", "2", "--trusted-proxies", "127.0.0.1"];
    let (members, args) = (etcd.addresses(), [&["--node", "one"][..], &limits].concat());
    let server = scene.server_with(&scene.folders(), &[], &[&["--cluster", &members][..], &args].concat());
    // A client books a title once.
    let begins = |client: u32| {
        let client = format!("192.0.2.{client}");
        support::get(server.port, "/films/film.mp4/index.m3u8?_millpond_node=x", &[("X-Forwarded-For", &client)])
    };
    let refused = (1..250).map(begins).find(|reply| reply.status != 200).expect("a refusal");
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("storage:films/a"), "{}", refused.text());

    // Each store has half of the stream, and the answers name both.
    let explained = api(server.admin, "explain?url=films/film.mp4/v1/1.m4s");
    let book = explained["cluster"]["book"].as_array().unwrap();
    let rate = explained["cluster"]["rate-bps"].as_u64().unwrap();
    for store in ["storage:films/a", "storage:films/b"] {
        let room = book.iter().find(|room| room["resource"] == store).unwrap_or_else(|| panic!("{explained}"));
        assert_eq!(
            (&room["wanted-bps"], &room["bound-bps"], &room["fits"]),
            (&rate.div_ceil(2).into(), &2_000_000.into(), &false.into())
        );
    }
    let address = format!("127.0.0.1:{}", server.admin);
    let shown = millpond(&["cluster", "assign", "films/film.mp4", "--admin", &address], &[]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("storage:films/b: ") && shown.contains("does not fit"), "{shown}");
}
