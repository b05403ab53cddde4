//! An etcd of three members.

use super::{Running, free_port, have};
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// An etcd of three members, which can be killed and started again.
pub struct Etcd {
    members: Vec<(Option<Running>, Vec<String>)>,
    ports: Vec<u16>,
    _data: tempfile::TempDir,
}

impl Etcd {
    /// Starts three members; nothing where etcd is not installed, which the test says.
    pub fn start() -> Option<Self> {
        if !have("etcd") || !have("etcdctl") {
            return None;
        }
        let data = tempfile::tempdir().unwrap();
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
        let mut etcd = Self { members, ports, _data: data };
        (0..3).for_each(|n| etcd.revive(n));
        etcd.wait();
        Some(etcd)
    }

    /// Addresses of the members, as the setting `cluster` has them.
    pub fn addresses(&self) -> String {
        let each: Vec<_> = self.ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
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
        ctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.addresses(), "--command-timeout", "2s"]).args(args);
        ctl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Waits until writes succeed.
    pub fn wait(&self) {
        let began = Instant::now();
        while !self.ctl(&["put", "/ready", "yes"]) {
            assert!(began.elapsed() < Duration::from_secs(60), "etcd does not begin");
        }
    }
}
