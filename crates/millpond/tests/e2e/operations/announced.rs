//! The page's announcement on the local network, found by python-zeroconf from another namespace.

use super::upgrade::{LONG, Successor, eventually, upgrade};
use crate::support::{
    Running, missing,
    namespaces::{Namespace, is_alone, shell},
    wait_for_port,
};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Prints name, host, addresses, port and path of each page of a type that is announced, and the names that are taken back.
const BROWSER: &str = r#"
import sys, threading
from zeroconf import ServiceBrowser, Zeroconf
class Listener:
    def add_service(self, zeroconf, kind, name):
        # A busy machine may answer later than the three seconds of a question.
        while not (found := zeroconf.get_service_info(kind, name)): pass
        addresses = ",".join(sorted(found.parsed_addresses()))
        print("came", name, found.server, addresses, found.port, found.properties, flush=True)
    def update_service(self, *_): pass
    def remove_service(self, zeroconf, kind, name):
        print("left", name, flush=True)
zeroconf = Zeroconf(interfaces=["10.3.0.2"])
ServiceBrowser(zeroconf, sys.argv[1], Listener())
threading.Event().wait()
"#;

/// Has the name "Films, all" and its host. python-zeroconf does not answer the questions for hosts (`ANY`) of those that look for
/// conflicts: the address is sent all the time.
const OTHER: &str = r#"
import socket, time
from zeroconf import DNSAddress, DNSOutgoing, ServiceInfo, Zeroconf
kind, host, address = "_http._tcp.local.", "films-all.local.", socket.inet_aton("10.3.0.2")
info = ServiceInfo(kind, "Films, all." + kind, 80, server=host, addresses=[address])
zeroconf = Zeroconf(interfaces=["10.3.0.2"])
zeroconf.register_service(info)
print("registered", flush=True)
while True:
    out = DNSOutgoing(0x8400)
    out.add_answer_at_time(DNSAddress(host, 1, 0x8001, 120, address), 0)
    zeroconf.send(out)
    time.sleep(0.1)
"#;

/// Keeps the port of multicast DNS, and shares it with nobody.
const KEEPER: &str = r#"
import socket, threading
kept = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
kept.bind(("0.0.0.0", 5353))
print("kept", flush=True)
threading.Event().wait()
"#;

const PYTHON: &str = "/usr/bin/python3";
const NAMED: &[&str] = &["--http", "0.0.0.0:8080", "--mdns-name", "Films, all"];
const ADMIN: u16 = 8380;
const CAME: &str = "came Films, all._http._tcp.local. films-all.local. 10.3.0.1 8080 {b'path': b'/'}";
const LEFT: &str = "left Films, all._http._tcp.local.";
const ANNOUNCED: &str = "the page is announced on the local network";

/// Whether the test is alone and has zeroconf.
fn can_browse(test: &str) -> bool {
    if !is_alone((module_path!(), test), &["python3"]) {
        return false;
    }
    let has_zeroconf =
        Command::new(PYTHON).args(["-c", "import zeroconf"]).output().is_ok_and(|done| done.status.success());
    if !has_zeroconf {
        missing("python3-zeroconf");
    }
    has_zeroconf
}

/// Waits until a file shows something. A failure tells what it shows.
#[track_caller]
fn until_shown(file: &Path, what: &str, is_shown: impl Fn(&str) -> bool) {
    let (began, mut text) = (Instant::now(), String::new());
    while !is_shown(&text) {
        assert!(began.elapsed() < LONG, "not shown: {what}\n{text}");
        std::thread::sleep(Duration::from_millis(20));
        text = fs::read_to_string(file).unwrap();
    }
}

/// A script that runs, and the lines that it has printed.
struct Script {
    lines: PathBuf,
    _process: Running,
}

impl Script {
    fn run(mut command: Command, script: &str, arguments: &[&str], lines: PathBuf) -> Self {
        let process = command.args(["-c", script]).args(arguments).stdout(File::create(&lines).unwrap()).spawn();
        Self { lines, _process: Running(process.unwrap()) }
    }

    fn has_said(&self, what: &str) -> bool {
        fs::read_to_string(&self.lines).unwrap().lines().any(|line| line == what)
    }

    #[track_caller]
    fn eventually_says(&self, what: &str) {
        until_shown(&self.lines, what, |said| said.lines().any(|line| line == what));
    }
}

/// A device of the network, and a server in the test's own namespace.
struct Network {
    device: Namespace,
    folder: TempDir,
}

impl Network {
    /// Two namespaces without a link.
    fn new() -> Self {
        Self { device: Namespace::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn linked() -> Self {
        let network = Self::new();
        network.link();
        network
    }

    fn link(&self) {
        shell(&format!(
            "ip link add lan type veth peer name eth0 netns {of}; ip addr add 10.3.0.1/24 dev lan; ip link set lan up
             nsenter -t {of} -n sh -ec 'ip link set lo up; ip addr add 10.3.0.2/24 dev eth0; ip link set eth0 up'",
            of = self.device.id()
        ));
    }

    fn browse(&self, service_type: &str, file: &str) -> Script {
        Script::run(self.device.command(PYTHON), BROWSER, &[service_type], self.folder.path().join(file))
    }

    fn serve(&self, settings: &[&str]) -> Server {
        let log = self.folder.path().join("log.txt");
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["serve", "--admin", &format!("127.0.0.1:{ADMIN}")]).args(settings);
        command.arg("--cache").arg(self.folder.path().join("cache")).stderr(File::create(&log).unwrap());
        let server = Server { process: Running(command.spawn().unwrap()), log };
        wait_for_port(8080, &server.log);
        wait_for_port(ADMIN, &server.log);
        server
    }
}

struct Server {
    process: Running,
    log: PathBuf,
}

impl Server {
    fn logged(&self, what: &str) -> usize {
        fs::read_to_string(&self.log).unwrap().matches(what).count()
    }

    #[track_caller]
    fn eventually_logs(&self, what: &str) {
        until_shown(&self.log, what, |log| log.contains(what));
    }

    /// Ends it, and waits for that.
    fn end(&mut self) {
        shell(&format!("kill -TERM {}", self.process.0.id()));
        assert!(self.process.0.wait().unwrap().success());
    }
}

fn reload() {
    let admin = format!("127.0.0.1:{ADMIN}");
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["reload", "--admin", &admin]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn configure(file: &Path, port: u16, name: Option<&str>) {
    let name = name.map(|name| format!("mdns-name = \"{name}\"\n")).unwrap_or_default();
    fs::write(file, format!("http = \"0.0.0.0:{port}\"\nconfig-watch = false\n{name}")).unwrap();
}

#[test]
fn devices_of_the_network_find_the_page_by_its_name() {
    if !can_browse("devices_of_the_network_find_the_page_by_its_name") {
        return;
    }
    let network = Network::linked();
    let browser = network.browse("_http._tcp.local.", "found.txt");
    let mut server = network.serve(NAMED);
    browser.eventually_says(CAME);
    server.eventually_logs(ANNOUNCED);
    assert_eq!(server.logged("http://films-all.local:8080/"), 1);
    // A server that ends takes its name back.
    server.end();
    browser.eventually_says(LEFT);
}

#[test]
fn the_name_that_the_page_has_got_is_told() {
    if !can_browse("the_name_that_the_page_has_got_is_told") {
        return;
    }
    let network = Network::linked();
    let other = Script::run(network.device.command(PYTHON), OTHER, &[], network.folder.path().join("other.txt"));
    other.eventually_says("registered");
    let browser = network.browse("_http._tcp.local.", "found.txt");
    let mut server = network.serve(NAMED);
    server.eventually_logs("http://films-all-2.local:8080/");
    assert_eq!((server.logged("http://films-all.local:8080/"), server.logged("Films, all (2)")), (0, 1));
    let came = CAME.replace("Films, all", "Films, all (2)").replace("films-all", "films-all-2");
    browser.eventually_says(&came);
    server.end();
    let left = LEFT.replace("Films, all", "Films, all (2)");
    browser.eventually_says(&left);
}

#[test]
fn an_obstacle_to_the_announcement_is_told() {
    if !can_browse("an_obstacle_to_the_announcement_is_told") {
        return;
    }
    let network = Network::new();
    let keeper = Script::run(Command::new(PYTHON), KEEPER, &[], network.folder.path().join("keeper.txt"));
    keeper.eventually_says("kept");
    let server = network.serve(NAMED);
    server.eventually_logs("another program has UDP port 5353");
    drop(keeper);
    reload();
    server.eventually_logs("no network interface with multicast is up");
    assert_eq!(server.logged(ANNOUNCED), 0);
    network.link();
    server.eventually_logs(ANNOUNCED);
    let browser = network.browse("_http._tcp.local.", "found.txt");
    browser.eventually_says(CAME);
}

#[test]
fn a_server_of_https_alone_is_found() {
    if !can_browse("a_server_of_https_alone_is_found") {
        return;
    }
    let network = Network::linked();
    let browser = network.browse("_https._tcp.local.", "found.txt");
    let server = network.serve(&[
        "--http",
        "127.0.0.1:8080",
        "--https",
        "0.0.0.0:8443",
        "--tls-self-signed",
        "--mdns-name",
        "Films, all",
    ]);
    server.eventually_logs("https://films-all.local:8443/");
    let came = CAME.replace("_http.", "_https.").replace("8080", "8443");
    browser.eventually_says(&came);
}

#[test]
fn the_name_passes_to_a_new_process_or_is_taken_back() {
    if !can_browse("the_name_passes_to_a_new_process_or_is_taken_back") {
        return;
    }
    let network = Network::linked();
    let browser = network.browse("_http._tcp.local.", "found.txt");
    let file = network.folder.path().join("millpond.toml");
    configure(&file, 8080, Some("Films, all"));
    let server = network.serve(&["--config", file.to_str().unwrap()]);
    browser.eventually_says(CAME);
    let first = Successor::of(&upgrade(ADMIN));
    eventually("the new process announces", || server.logged(ANNOUNCED) == 2);
    // Longer than a name is remembered that was taken back.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!browser.has_said(LEFT), "the name was always there");

    // Another port would be a conflict if the old process still had the name.
    configure(&file, 8081, Some("Films, all"));
    let second = Successor::of(&upgrade(ADMIN));
    let came = CAME.replace("8080", "8081");
    browser.eventually_says(&came);
    assert!(browser.has_said(LEFT) && server.logged("another name") == 0);

    let browser = network.browse("_http._tcp.local.", "later.txt");
    browser.eventually_says(&came);
    configure(&file, 8081, None);
    let third = Successor::of(&upgrade(ADMIN));
    browser.eventually_says(LEFT);

    configure(&file, 8080, Some("Films, all"));
    reload();
    browser.eventually_says(CAME);
    let browser = network.browse("_http._tcp.local.", "last.txt");
    browser.eventually_says(CAME);
    configure(&file, 8080, None);
    reload();
    browser.eventually_says(LEFT);
    drop((first, second, third));
}
