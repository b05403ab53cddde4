//! An etcd of three members.

use super::{Running, free_port, have, memory_folder};
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// An etcd of three members, which can be killed and started again.
pub struct Etcd {
    members: Vec<(Option<Running>, Vec<String>)>,
    ports: Vec<u16>,
    /// Arguments of `etcdctl` for TLS.
    tls: Vec<String>,
    _data: tempfile::TempDir,
}

impl Etcd {
    /// Starts three members; nothing where etcd is not installed, which the test says.
    pub fn start() -> Option<Self> {
        if !have("etcd") || !have("etcdctl") {
            return None;
        }
        let data = memory_folder();
        let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let peers: Vec<String> = (0..3).map(|_| format!("http://127.0.0.1:{}", free_port())).collect();
        let all: Vec<_> = peers.iter().enumerate().map(|(n, peer)| format!("m{n}={peer}")).collect();
        let member = |n: usize| {
            let client = format!("http://127.0.0.1:{}", ports[n]);
            let folder = data.path().join(format!("m{n}"));
            let mut args: Vec<String> =
                ["--name", &format!("m{n}"), "--data-dir", folder.to_str().unwrap()].map(String::from).into();
            for (flag, value) in [
                ("--listen-client-urls", &client),
                ("--advertise-client-urls", &client),
                ("--listen-peer-urls", &peers[n]),
                ("--initial-advertise-peer-urls", &peers[n]),
                ("--initial-cluster", &all.join(",")),
            ] {
                args.extend([flag.to_owned(), value.clone()]);
            }
            (None, args)
        };
        let members = (0..3).map(member).collect();
        let mut etcd = Self { members, ports, tls: Vec::new(), _data: data };
        (0..3).for_each(|n| etcd.revive(n));
        etcd.wait();
        Some(etcd)
    }

    /// Starts one member with TLS and users, whose keys below `/millpond/` the user `edge` with the password `word` may read and
    /// write. Nothing where a program is missing, which the test says.
    pub fn start_secure() -> Option<(Self, Vec<String>)> {
        if !have("etcd") || !have("etcdctl") || !have("openssl") {
            return None;
        }
        let data = memory_folder();
        let file = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
        certificates(data.path());
        std::fs::write(file("password"), "word\n").unwrap();
        let (port, peer) = (free_port(), format!("http://127.0.0.1:{}", free_port()));
        let client = format!("https://127.0.0.1:{port}");
        let cluster = format!("m0={peer}");
        let (folder, cert, key, ca) = (file("m0"), file("peer.crt"), file("peer.key"), file("ca.crt"));
        let args = [
            ["--name", "m0"],
            ["--data-dir", &folder],
            ["--listen-client-urls", &client],
            ["--advertise-client-urls", &client],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster],
            ["--cert-file", &cert],
            ["--key-file", &key],
            ["--trusted-ca-file", &ca],
        ];
        let args = args.into_iter().flatten().chain(["--client-cert-auth"]).map(String::from).collect();
        let tls = [["--cacert", &ca], ["--cert", &cert], ["--key", &key]].concat();
        let tls: Vec<String> = tls.into_iter().map(String::from).collect();
        let mut etcd = Self { members: vec![(None, args)], ports: vec![port], tls, _data: data };
        etcd.revive(0);
        etcd.wait();
        let words = [
            "user add root:secret",
            "user grant-role root root",
            "user add edge:word",
            "role add pond",
            "role grant-permission pond readwrite /millpond/ --prefix=true",
            "user grant-role edge pond",
            "auth enable",
        ];
        // Some versions give root its role themselves.
        let done: Vec<bool> = words.iter().map(|words| etcd.ctl(&words.split(' ').collect::<Vec<_>>())).collect();
        assert!(done.last() == Some(&true), "{done:?}");
        let file = |name: &str| etcd._data.path().join(name).to_str().unwrap().to_owned();
        let settings = [
            ["--cluster", &client],
            ["--cluster-user", "edge"],
            ["--cluster-password-file", &file("password")],
            ["--cluster-ca", &file("ca.crt")],
            ["--cluster-cert", &file("peer.crt")],
            ["--cluster-key", &file("peer.key")],
        ];
        let settings = settings.concat().into_iter().map(String::from).collect();
        Some((etcd, settings))
    }

    /// Addresses of the members, as the setting `cluster` has them.
    pub fn addresses(&self) -> String {
        let scheme = if self.tls.is_empty() { "http" } else { "https" };
        let each: Vec<_> = self.ports.iter().map(|port| format!("{scheme}://127.0.0.1:{port}")).collect();
        each.join(",")
    }

    /// Kills a member with SIGKILL.
    pub fn kill(&mut self, member: usize) {
        self.members[member].0 = None;
    }

    /// Starts a member that was killed.
    pub fn revive(&mut self, member: usize) {
        let (running, args) = &mut self.members[member];
        let child = Command::new("etcd").args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        *running = Some(Running(child.unwrap()));
    }

    /// Runs `etcdctl`; tells whether it succeeded.
    pub fn ctl(&self, args: &[&str]) -> bool {
        let mut ctl = Command::new("etcdctl");
        ctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.addresses(), "--command-timeout", "20s"]);
        ctl.args(&self.tls).args(args);
        ctl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Whether there are keys with a prefix.
    pub fn has(&self, prefix: &str) -> bool {
        !self.text(prefix).is_empty()
    }

    /// The keys with a prefix and their values; empty where there are none, or etcd does not answer.
    pub fn text(&self, prefix: &str) -> String {
        let mut ctl = Command::new("etcdctl");
        ctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.addresses(), "get", prefix, "--prefix"]);
        let output = ctl.args(&self.tls).stderr(Stdio::null()).output();
        output
            .ok()
            .filter(|output| output.status.success())
            .map_or_else(String::new, |output| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits until writes succeed.
    pub fn wait(&self) {
        let began = Instant::now();
        while !self.ctl(&["put", "/ready", "yes"]) {
            assert!(began.elapsed() < Duration::from_secs(60), "etcd does not begin");
        }
    }
}

/// Makes `ca.crt`, and `peer.crt` with `peer.key` for both ends. etcd's gateway refuses client certificates with a common name.
fn certificates(folder: &std::path::Path) {
    let run = |args: &str| {
        let args = args.replace("KEY", "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes");
        let mut openssl = Command::new("openssl");
        let status = openssl.current_dir(folder).args(args.split(' ')).stderr(Stdio::null()).status();
        assert!(status.unwrap().success(), "{args}");
    };
    std::fs::write(folder.join("ext"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        .unwrap();
    run("req -x509 KEY -days 2 -subj /O=authority -keyout ca.key -out ca.crt");
    run("req KEY -subj /O=peer -keyout peer.key -out peer.csr");
    run("x509 -req -in peer.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out peer.crt");
}
