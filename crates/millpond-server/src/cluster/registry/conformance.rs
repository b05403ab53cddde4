//! The tests that every registry passes. A registry adds a line to [`registries!`].

use super::{Registry, StaticRegistry};
use millpond_cluster::{PurgeEntry, PurgeList, PurgedObjects};
use millpond_etcd::{Compare, EtcdClient, EtcdOptions, KeyEvent, KeyValue, LeaseId, Operation, Tls, Transaction};
use std::{
    fs::OpenOptions,
    io::Write as _,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

const PREFIX: &str = "/m/";
/// Time to live of leases. etcd gives no shorter ones than two seconds.
const TTL: Duration = Duration::from_secs(3);
/// Time limit of what comes by itself. A busy disk may delay etcd for seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes the tests of each registry. `$make` gives a registry and what keeps it, or `None` where its program is not installed.
macro_rules! registries {
    ($($name:ident $make:expr;)*) => {
        $(mod $name {
            registries! { @tests $make;
                keys_are_read_and_followed
                a_condition_that_does_not_hold_changes_nothing
                keys_end_with_their_lease
                a_lease_that_is_revoked_is_over
                a_name_is_registered_once
                garbage_is_kept_and_too_much_is_refused
                purges_have_epochs_in_their_order
            }
        })*
    };
    (@tests $make:expr; $($case:ident)*) => {
        $(#[tokio::test]
        async fn $case() {
            if let Some((registry, _kept)) = $make.await {
                super::$case(&registry).await;
            }
        })*
    };
}

registries! {
    of_nodes super::of_nodes();
    etcd super::etcd();
}

/// The registry of a single node.
async fn of_nodes() -> Option<(Registry, ())> {
    Some((Registry::Static(StaticRegistry::new("a".parse().unwrap(), 1, PREFIX, false)), ()))
}

/// A real etcd of one member.
struct Member {
    process: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts etcd; `None` where it is not installed, which the test says.
async fn etcd() -> Option<(Registry, Member)> {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let [client, peer] = [free(), free()].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(folder.path().join("data"));
    for flag in ["--listen-client-urls", "--advertise-client-urls"] {
        command.args([flag, &client]);
    }
    for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
        command.args([flag, &peer]);
    }
    command.args(["--initial-cluster", &format!("default={peer}")]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(process) = command.spawn() else {
        skip("etcd is not installed (scripts/setup installs it)");
        return None;
    };
    let member = Member { process, _folder: folder };
    let (members, tls) = (vec![client.parse().unwrap()], Tls { authorities: None, identity: None });
    let options = EtcdOptions { members, user: None, tls, timeout: Duration::from_secs(5) };
    let registry = Registry::Etcd(EtcdClient::new(options).unwrap());
    let end = Instant::now() + PATIENCE;
    while let Err(error) = registry.range(PREFIX.as_bytes(), 1).await {
        assert!(Instant::now() < end, "etcd does not begin: {error}");
        sleep(Duration::from_millis(100)).await;
    }
    Some((registry, member))
}

/// Says that the running test leaves something out. `scripts/test` names the file that gathers these lines.
fn skip(why: &str) {
    let line = format!("SKIPPED: {}: {why}", std::thread::current().name().unwrap_or("a test"));
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("MILLPOND_TEST_SKIPS") {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}, and CI is true");
}

fn put(key: &str, value: &str, lease: Option<LeaseId>) -> Operation {
    Operation::Put { key: key.into(), value: value.into(), lease }
}

fn transaction(conditions: Vec<Compare>, changes: Vec<Operation>) -> Transaction {
    Transaction { conditions, changes }
}

async fn write(registry: &Registry, key: &str, value: &str, lease: Option<LeaseId>) {
    assert!(registry.commit(&transaction(Vec::new(), vec![put(key, value, lease)])).await.unwrap());
}

async fn below(registry: &Registry, prefix: &str) -> Vec<KeyValue> {
    registry.range(prefix.as_bytes(), 1000).await.unwrap().pairs
}

fn texts(pairs: &[KeyValue]) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    pairs.iter().map(|pair| (text(&pair.key), text(&pair.value))).collect()
}

/// The next changes of a watch, as keys with their values; of deleted keys only the key.
async fn next(changes: &mut super::KeyChanges, count: usize) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    while found.len() < count {
        let (events, _) = timeout(PATIENCE, changes.next()).await.expect("a change").unwrap();
        found.extend(events.into_iter().map(|event| match event {
            KeyEvent::Put(pair) => (String::from_utf8(pair.key).unwrap(), Some(String::from_utf8(pair.value).unwrap())),
            KeyEvent::Delete { key, .. } => (String::from_utf8(key).unwrap(), None),
        }));
    }
    found
}

async fn keys_are_read_and_followed(registry: &Registry) {
    write(registry, "/m/a", "1", None).await;
    let range = registry.range(b"/m/", 1000).await.unwrap();
    assert!(texts(&range.pairs) == [("/m/a", "1")] && !range.is_cut && !range.cluster.is_empty());
    let mut changes = registry.watch(b"/m/", range.revision + 1).await.unwrap();
    write(registry, "/m/b", "2", None).await;
    write(registry, "/other", "0", None).await;
    write(registry, "/m/a", "3", None).await;
    assert!(registry.commit(&transaction(Vec::new(), vec![Operation::Delete(b"/m/b".to_vec())])).await.unwrap());
    let told = next(&mut changes, 3).await;
    let expected = [("/m/b", Some("2")), ("/m/a", Some("3")), ("/m/b", None)];
    assert_eq!(told, expected.map(|(key, value)| (key.to_owned(), value.map(str::to_owned))));
    let after = registry.range(b"/m/", 1000).await.unwrap();
    assert_eq!(texts(&after.pairs), [("/m/a", "3")]);
    assert!(after.revision > range.revision && after.cluster == range.cluster);
    // A key keeps the revision at which it was made.
    let (old, new) = (&range.pairs[0], &after.pairs[0]);
    assert!(new.created == old.created && new.revision > old.revision);
    write(registry, "/m/b", "4", None).await;
    let cut = registry.range(b"/m/", 1).await.unwrap();
    assert!(cut.is_cut && texts(&cut.pairs) == [("/m/a", "3")]);
    assert!(below(registry, "/m/").await[1].created > new.revision);
}

async fn a_condition_that_does_not_hold_changes_nothing(registry: &Registry) {
    let absent = || Compare::Absent(b"/m/a".to_vec());
    let first = registry.commit_at(&transaction(vec![absent()], vec![put("/m/a", "1", None)])).await.unwrap();
    let revision = first.unwrap();
    assert_eq!(below(registry, "/m/a").await[0].revision, revision);
    let none = Compare::NoneBelow(b"/m/".to_vec());
    for condition in [absent(), none, Compare::Unchanged(b"/m/a".to_vec(), revision - 1)] {
        let changes = vec![put("/m/a", "2", None), put("/m/b", "2", None)];
        let done = registry.commit_at(&transaction(vec![condition.clone()], changes)).await.unwrap();
        assert_eq!(done, None, "{condition:?}");
    }
    assert_eq!(texts(&below(registry, "/m/").await), [("/m/a", "1")]);
    let same = Compare::Unchanged(b"/m/a".to_vec(), revision);
    let both = vec![Operation::Delete(b"/m/a".to_vec()), put("/m/b", "2", None)];
    assert!(registry.commit(&transaction(vec![same.clone()], both)).await.unwrap());
    assert_eq!(texts(&below(registry, "/m/").await), [("/m/b", "2")]);
    assert!(!registry.commit(&transaction(vec![same], vec![put("/m/c", "", None)])).await.unwrap());
    let gone = vec![absent(), Compare::NoneBelow(b"/m/a".to_vec())];
    assert!(registry.commit(&transaction(gone, vec![put("/m/a", "3", None)])).await.unwrap());
}

async fn keys_end_with_their_lease(registry: &Registry) {
    let (lease, ttl) = registry.grant(TTL).await.unwrap();
    let (other, _) = registry.grant(Duration::from_secs(60)).await.unwrap();
    assert!(ttl >= TTL && lease != other);
    write(registry, "/m/a", "1", Some(lease)).await;
    write(registry, "/m/b", "1", Some(other)).await;
    write(registry, "/m/c", "1", None).await;
    let range = registry.range(b"/m/", 1000).await.unwrap();
    let mut changes = registry.watch(b"/m/", range.revision + 1).await.unwrap();
    // It is renewed for longer than it would live.
    let end = Instant::now() + ttl * 2;
    while Instant::now() < end {
        assert_eq!(registry.keep_alive(lease).await.unwrap(), Some(ttl));
        sleep(ttl / 4).await;
    }
    assert_eq!(below(registry, "/m/").await.len(), 3);
    assert_eq!(next(&mut changes, 1).await, [("/m/a".to_owned(), None)]);
    assert_eq!(texts(&below(registry, "/m/").await), [("/m/b", "1"), ("/m/c", "1")]);
    assert_eq!(registry.keep_alive(lease).await.unwrap(), None);
    let late = registry.commit(&transaction(Vec::new(), vec![put("/m/a", "2", Some(lease))])).await;
    assert!(late.unwrap_err().is_not_found());
}

async fn a_lease_that_is_revoked_is_over(registry: &Registry) {
    let (lease, _) = registry.grant(Duration::from_secs(60)).await.unwrap();
    write(registry, "/m/a", "1", Some(lease)).await;
    let range = registry.range(b"/m/", 1000).await.unwrap();
    let mut changes = registry.watch(b"/m/", range.revision + 1).await.unwrap();
    registry.revoke(lease).await.unwrap();
    assert_eq!(next(&mut changes, 1).await, [("/m/a".to_owned(), None)]);
    assert!(below(registry, "/m/").await.is_empty());
    assert_eq!(registry.keep_alive(lease).await.unwrap(), None);
    assert!(registry.revoke(lease).await.unwrap_err().is_not_found());
    // The key can be made anew, without the lease.
    write(registry, "/m/a", "2", None).await;
    assert_eq!(texts(&below(registry, "/m/").await), [("/m/a", "2")]);
}

async fn a_name_is_registered_once(registry: &Registry) {
    let folder = b"/m/nodes/a/".to_vec();
    let register = |run: &str| {
        let conditions = vec![Compare::NoneBelow(folder.clone())];
        transaction(conditions, vec![put(&format!("/m/nodes/a/{run}"), "{}", None)])
    };
    assert!(registry.commit(&register("1")).await.unwrap());
    assert!(!registry.commit(&register("2")).await.unwrap());
    // A later run replaces the key that it has read.
    let found = below(registry, "/m/nodes/a/").await;
    let conditions = vec![Compare::Unchanged(found[0].key.clone(), found[0].revision)];
    let changes = vec![Operation::Delete(found[0].key.clone()), put("/m/nodes/a/2", "{}", None)];
    let replace = transaction(conditions, changes);
    assert!(registry.commit(&replace).await.unwrap());
    assert!(!registry.commit(&replace).await.unwrap());
    assert_eq!(texts(&below(registry, "/m/nodes/").await), [("/m/nodes/a/2", "{}")]);
}

async fn garbage_is_kept_and_too_much_is_refused(registry: &Registry) {
    for (key, value) in [("/m/nodes/", "{"), ("/m/nodes/a b", "\u{1}é\"\\"), ("/m/é", "")] {
        write(registry, key, value, None).await;
    }
    assert_eq!(below(registry, "/m/").await.len(), 3);
    assert_eq!(texts(&below(registry, "/m/nodes/a b").await), [("/m/nodes/a b", "\u{1}é\"\\")]);
    let long = "x".repeat(3 << 20);
    let refused = registry.commit(&transaction(Vec::new(), vec![put("/m/long", &long, None)])).await;
    assert!(!refused.unwrap_err().is_unsure());
    assert!(below(registry, "/m/long").await.is_empty());
}

async fn purges_have_epochs_in_their_order(registry: &Registry) {
    let mut epochs = Vec::new();
    for (key, path) in [("9", "first"), ("1", "second"), ("5", "third")] {
        let objects = PurgedObjects::Path(path.to_owned());
        let entry = PurgeEntry { place: Some("p".into()), objects, is_soft: false, at: Duration::ZERO };
        let key = format!("/m/purge/{key}");
        let condition = Compare::Absent(key.clone().into_bytes());
        let written = transaction(vec![condition], vec![put(&key, &entry.to_json().unwrap(), None)]);
        epochs.push(u64::try_from(registry.commit_at(&written).await.unwrap().unwrap()).unwrap());
    }
    assert!(epochs.is_sorted_by(|one, other| one < other), "{epochs:?}");
    let entry = |pair: &KeyValue| (u64::try_from(pair.created).unwrap(), PurgeEntry::from_json(&pair.value).ok());
    let list = PurgeList::new(0, below(registry, "/m/purge/").await.iter().map(entry).collect());
    let due = list.due(epochs[0]).unwrap();
    let paths: Vec<_> = due.purges.unwrap().into_iter().map(|purge| purge.objects).collect();
    assert_eq!(due.epoch, epochs[2]);
    assert_eq!(paths, ["second", "third"].map(|path| PurgedObjects::Path(path.to_owned())));
}
