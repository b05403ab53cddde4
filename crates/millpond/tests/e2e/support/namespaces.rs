//! Network namespaces: a client's and a server's, with the test's own between them as a router.

use super::{Running, have, skip};
use std::{
    net::TcpStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Set where a test runs in a namespace of its own.
const ALONE: &str = "MILLPOND_TEST_ALONE";

/// Tells whether the test runs in a network namespace of its own. If not, it is run again in one, if the machine permits. `test` has its
/// module and its name.
pub fn is_alone((module, test): (&str, &str), programs: &[&str]) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    if !["unshare", "nsenter", "ip"].iter().chain(programs).all(|program| have(program)) {
        return false;
    }
    let this = std::env::current_exe().unwrap();
    let again = format!(
        "ip link set lo up && echo alone && exec {} --exact {}::{test} --nocapture",
        this.display(),
        in_program(module)
    );
    let output = Command::new("unshare").args(["-rn", "sh", "-c", &again]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !said.contains("alone") {
        skip(&format!("no network namespace can be made here: {}", said.trim().replace('\n', ", ")));
        return false;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Returns the path of a module as names of tests have it: without the program.
pub fn in_program(module: &str) -> &str {
    module.split_once("::").map_or(module, |(_, path)| path)
}

/// A network namespace that a process keeps.
pub struct Namespace(Running);

impl Namespace {
    pub fn new() -> Self {
        let keeper =
            Command::new("unshare").args(["-n", "sh", "-c", "echo; exec sleep 1000"]).stdout(Stdio::piped()).spawn();
        let mut keeper = Running(keeper.unwrap());
        // It is there once its process speaks.
        std::io::Read::read_exact(keeper.0.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        Self(keeper)
    }

    pub fn id(&self) -> String {
        self.0.0.id().to_string()
    }

    /// A command that runs in it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.id(), "-n", program]).stdin(Stdio::null());
        command
    }
}

/// Runs lines of a shell; all must succeed.
#[track_caller]
pub fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Client and server namespaces, and the test's own between them: 10.1.0.0/24 and fd00:1::/64 at `lan`, 10.2.0.0/16 and
/// fd00:2::/64 at `wan`. The server has the addresses 10.2.0.2 to 10.2.0.4 and fd00:2::2.
pub fn routed() -> (Namespace, Namespace) {
    let (client, server) = (Namespace::new(), Namespace::new());
    let (of_client, of_server) = (client.id(), server.id());
    shell(&format!(
        "ip link add lan type veth peer name eth0 netns {of_client}
         ip link add wan type veth peer name eth0 netns {of_server}
         for each in 'lan 10.1.0.1/24 fd00:1::1/64' 'wan 10.2.0.1/16 fd00:2::1/64'; do
           set -- $each; ip addr add $2 dev $1; ip addr add $3 dev $1 nodad; ip link set $1 up
         done
         sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
         nsenter -t {of_client} -n sh -ec '
           ip link set lo up; ip link set eth0 up; ip addr add 10.1.0.2/24 dev eth0; ip addr add fd00:1::2/64 dev eth0 nodad
           ip route add default via 10.1.0.1; ip -6 route add default via fd00:1::1'
         nsenter -t {of_server} -n sh -ec '
           ip link set lo up; ip link set eth0 up; ip addr add fd00:2::2/64 dev eth0 nodad
           for n in 2 3 4 5; do ip addr add 10.2.0.$n/16 dev eth0; done
           ip route add default via 10.2.0.1; ip -6 route add default via fd00:2::1'"
    ));
    ["[fd00:1::2]:9", "[fd00:2::2]:9", "10.1.0.2:9", "10.2.0.2:9"].into_iter().for_each(reachable);
    (client, server)
}

/// Waits until an address refuses connections: new links and neighbours are not there at once.
fn reachable(address: &str) {
    let (address, began) = (address.parse().unwrap(), Instant::now());
    let refuses = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    while !TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err_and(refuses) {
        assert!(began.elapsed() < Duration::from_secs(30), "{address} can't be reached");
        std::thread::sleep(Duration::from_millis(20));
    }
}
