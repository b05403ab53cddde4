//! Clusters: an etcd with TLS and users.

use super::{status, taking, wait_for};
use crate::support::{Server, clips, etcd::Etcd};

#[test]
fn etcd_with_tls_and_users() {
    let Some((etcd, settings)) = Etcd::start_secure() else { return };
    let folder = clips::folder().to_str().unwrap();
    let start = |name, settings: &[String]| {
        let settings = settings.iter().map(String::as_str);
        let args: Vec<_> = [folder, "--node", name, "--cluster-lease", "10s"].into_iter().chain(settings).collect();
        Server::start(&args)
    };
    let (first, second) = (start("a", &settings), start("b", &settings));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node) == 2));
    // Tokens of etcd are forgotten when it starts again; the nodes ask for new ones.
    let mut etcd = etcd;
    etcd.kill(0);
    wait_for("etcd is away", || status(&first)["etcd"]["state"] == "away");
    etcd.revive(0);
    wait_for("both are back", || {
        [&first, &second].iter().all(|node| status(node)["membership"] == "member" && taking(node) == 2)
    });
    drop(second);
    wait_for("the other one's lease is over", || taking(&first) == 1);
    // A wrong password is told, and the node serves alone.
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(wrong.path(), "wrong").unwrap();
    let path = wrong.path().to_str().unwrap().to_owned();
    let settings: Vec<_> =
        settings.iter().map(|value| if value.ends_with("/password") { path.clone() } else { value.clone() }).collect();
    let third = start("c", &settings);
    assert_eq!((taking(&third), third.get("h264_aac.mp4/index.m3u8").status), (0, 200));
    // The last error: a busy etcd may also have been too slow for once.
    let error = || status(&third)["etcd"]["error"].to_string();
    wait_for("the error", || error().contains("authentication failed"));
    assert!(!error().contains("wrong"), "{}", error());
}
