//! The page's announcement on the local network, found by python-zeroconf from another namespace.

use crate::support::{
    Running, missing,
    namespaces::{Namespace, is_alone, shell},
    wait_for_port,
};
use std::{fs::File, process::Command};

/// Prints name, host, addresses, port and path of each web page that is announced. The script ends when a name is taken back.
const BROWSER: &str = r#"
import threading
from zeroconf import ServiceBrowser, Zeroconf
gone = threading.Event()
class Listener:
    def add_service(self, zeroconf, kind, name):
        found = zeroconf.get_service_info(kind, name)
        addresses = ",".join(sorted(found.parsed_addresses()))
        print("came", name, found.server, addresses, found.port, found.properties, flush=True)
    def update_service(self, *_): pass
    def remove_service(self, zeroconf, kind, name):
        print("left", name, flush=True)
        gone.set()
zeroconf = Zeroconf(interfaces=["10.3.0.2"])
ServiceBrowser(zeroconf, "_http._tcp.local.", Listener())
gone.wait(40)
"#;

#[test]
fn devices_of_the_network_find_the_page_by_its_name() {
    if !is_alone((module_path!(), "devices_of_the_network_find_the_page_by_its_name"), &["python3"]) {
        return;
    }
    if !Command::new("/usr/bin/python3")
        .args(["-c", "import zeroconf"])
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return missing("python3-zeroconf");
    }
    let device = Namespace::new();
    shell(&format!(
        "ip link add lan type veth peer name eth0 netns {of}; ip addr add 10.3.0.1/24 dev lan; ip link set lan up
         nsenter -t {of} -n sh -ec 'ip link set lo up; ip addr add 10.3.0.2/24 dev eth0; ip link set eth0 up'",
        of = device.id()
    ));
    let folder = tempfile::tempdir().unwrap();
    let (log, found) = (folder.path().join("log.txt"), folder.path().join("found.txt"));
    let mut browser = device.command("/usr/bin/python3");
    let browser = browser.args(["-c", BROWSER]).stdout(File::create(&found).unwrap()).spawn().unwrap();
    let mut browser = Running(browser);

    let mut server = Command::new(env!("CARGO_BIN_EXE_millpond"));
    server.args(["serve", "--http", "0.0.0.0:8080", "--admin", "127.0.0.1:8380", "--mdns-name", "Films, all"]);
    server.arg("--cache").arg(folder.path().join("cache")).stderr(File::create(&log).unwrap());
    let mut server = Running(server.spawn().unwrap());
    wait_for_port(8080, &log);
    let told = || std::fs::read_to_string(&found).unwrap();
    for _ in 0..200 {
        if told().contains("came") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let expected = "came Films, all._http._tcp.local. films-all.local. 10.3.0.1 8080 {b'path': b'/'}";
    assert!(told().starts_with(expected), "{}\n{}", told(), std::fs::read_to_string(&log).unwrap());

    // A server that ends takes its name back.
    shell(&format!("kill -TERM {}", server.0.id()));
    assert!(server.0.wait().unwrap().success());
    assert!(browser.0.wait().unwrap().success());
    assert!(told().contains("left Films, all._http._tcp.local."), "{}", told());
}
