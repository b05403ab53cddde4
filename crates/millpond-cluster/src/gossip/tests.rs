//! Copies of several nodes that tell each other changes: late, in any order, repeatedly, and with clocks that differ.

use super::*;
use crate::{NodeName, PurgeEntry, PurgeList, PurgedObjects};
use proptest::prelude::*;
use std::{collections::BTreeSet, time::Duration};

const WALL: Duration = Duration::from_secs(1_790_000_000);

fn moment(millis: u64) -> GossipMoment {
    let elapsed = Duration::from_millis(millis);
    GossipMoment { wall: WALL + elapsed, elapsed }
}

fn map(node: &str) -> GossipMap {
    let run = GossipRun { node: node.parse().unwrap(), incarnation: 1 };
    GossipMap::new(run, "/m/", GossipOrder { folder: "/m/purge/".into(), except: "/m/purge/floor".into() })
}

fn put(key: &str, value: &str, lease: Option<u64>) -> Vec<GossipChange> {
    vec![GossipChange::Put { key: key.into(), value: value.into(), lease }]
}

/// Tells one copy all that another one knows.
fn tell(from: &GossipMap, to: &mut GossipMap, now: GossipMoment) {
    let mut since = 0;
    loop {
        let reply = GossipReply::from_json(from.reply(since).to_json().as_bytes()).unwrap();
        let has_more = reply.has_more;
        since = reply.sequence;
        to.merge(reply, now);
        if !has_more {
            return;
        }
    }
}

fn keys(map: &mut GossipMap) -> Vec<(String, String)> {
    let (pairs, is_cut) = map.range("/m/", 1000);
    assert!(!is_cut);
    pairs.into_iter().map(|pair| (pair.key, pair.value.to_string())).collect()
}

fn named(keys: &[(String, String)]) -> Vec<&str> {
    keys.iter().map(|(key, _)| key.as_str()).collect()
}

#[test]
fn a_change_needs_its_conditions_and_is_heard_by_others() {
    let (mut a, mut b) = (map("a"), map("b"));
    let absent = [GossipCondition::Absent("/m/k".into()), GossipCondition::NoneBelow("/m/".into())];
    let first = a.commit(&absent, put("/m/k", "1", None), moment(0)).unwrap().unwrap();
    assert_eq!(a.commit(&absent, put("/m/k", "2", None), moment(0)), Ok(None));
    let same = [GossipCondition::Unchanged("/m/k".into(), first)];
    tell(&a, &mut b, moment(1));
    let (pairs, _) = b.range("/m/", 10);
    assert_eq!((pairs[0].revision, pairs[0].created), (first, first));
    // Both change it: the greater stamp counts at both.
    let later = b.commit(&same, put("/m/k", "b", None), moment(5)).unwrap().unwrap();
    assert!(a.commit(&same, put("/m/k", "a", None), moment(3)).unwrap().unwrap() < later);
    tell(&a, &mut b, moment(6));
    tell(&b, &mut a, moment(6));
    assert_eq!((keys(&mut a), keys(&mut b)), (vec![("/m/k".into(), "b".into())], vec![("/m/k".into(), "b".into())]));
    assert_eq!(b.range("/m/", 10).0[0].created, first);
    a.commit(&[], vec![GossipChange::Delete("/m/k".into())], moment(9)).unwrap();
    tell(&a, &mut b, moment(9));
    assert!(keys(&mut b).is_empty());
    // A copy that missed the deletion does not bring it back.
    let mut late = map("c");
    tell(&b, &mut late, moment(9));
    assert!(keys(&mut late).is_empty());
}

#[test]
fn a_lease_ends_without_heartbeats_and_revives_with_them() {
    let (mut a, mut b) = (map("a"), map("b"));
    let (lease, ttl) = a.grant(Duration::from_secs(5), moment(0)).unwrap();
    assert_eq!(ttl, Duration::from_secs(5));
    a.commit(&[], put("/m/nodes/a/1", "{}", Some(lease)), moment(0)).unwrap();
    tell(&a, &mut b, moment(100));
    let from = b.sequence() + 1;
    assert_eq!(named(&keys(&mut b)), ["/m/nodes/a/1"]);
    for millis in (0..5600).step_by(500) {
        b.tick(moment(millis));
    }
    assert!(keys(&mut b).is_empty());
    assert_eq!(b.changes("/m/", from), Ok(vec![GossipEvent::Delete("/m/nodes/a/1".into())]));
    // The heartbeat that b passes on does not renew the lease elsewhere.
    let mut c = map("c");
    tell(&b, &mut c, moment(5200));
    assert!(keys(&mut c).is_empty());
    for millis in [2000, 4000, 6000] {
        assert_eq!(a.keep_alive(lease, moment(millis)), Some(ttl));
    }
    let from = b.sequence() + 1;
    tell(&a, &mut b, moment(6000));
    assert_eq!(b.changes("/m/", from).unwrap().len(), 1);
    assert_eq!(named(&keys(&mut b)), ["/m/nodes/a/1"]);
    // By another node it lives on too.
    tell(&b, &mut c, moment(6000));
    assert_eq!(named(&keys(&mut c)), ["/m/nodes/a/1"]);
    a.revoke(lease, moment(6100)).unwrap();
    assert_eq!(a.revoke(lease, moment(6100)), Err(GossipError::NoLease));
    assert_eq!(a.keep_alive(lease, moment(6100)), None);
    assert_eq!(a.commit(&[], put("/m/k", "1", Some(lease)), moment(6100)), Err(GossipError::NoLease));
    tell(&a, &mut b, moment(6100));
    tell(&c, &mut b, moment(6100));
    assert!(keys(&mut a).is_empty() && keys(&mut b).is_empty());
}

#[test]
fn a_node_notices_that_others_ended_its_lease() {
    let (mut a, mut b) = (map("a"), map("b"));
    let ttl = Duration::from_secs(60);
    let (number, _) = a.grant(ttl, moment(0)).unwrap();
    a.commit(&[], put("/m/nodes/a", "1", Some(number)), moment(0)).unwrap();
    tell(&a, &mut b, moment(1));
    // By a mistake, b takes the lease for one that has ended.
    let lease = GossipLease { node: "a".parse().unwrap(), incarnation: 1, number };
    b.ended(lease.clone(), moment(2));
    assert!(keys(&mut b).is_empty() && a.keep_alive(number, moment(3)).is_some());
    tell(&b, &mut a, moment(4));
    assert!(keys(&mut a).is_empty() && a.keep_alive(number, moment(5)).is_none(), "a knows that it is over");
    // It registers again under another lease.
    let (next, _) = a.grant(ttl, moment(6)).unwrap();
    a.commit(&[], put("/m/nodes/a", "2", Some(next)), moment(6)).unwrap();
    tell(&a, &mut b, moment(7));
    tell(&b, &mut a, moment(8));
    for map in [&mut a, &mut b] {
        assert_eq!(keys(map), [("/m/nodes/a".to_owned(), "2".to_owned())]);
    }
    assert!(a.keep_alive(next, moment(9)).is_some());
}

#[test]
fn renewals_exceed_a_count_that_others_made_up() {
    let (mut a, mut b) = (map("a"), map("b"));
    let (number, ttl) = a.grant(Duration::from_secs(5), moment(0)).unwrap();
    a.commit(&[], put("/m/k", "1", Some(number)), moment(0)).unwrap();
    let lease = GossipLease { node: "a".parse().unwrap(), incarnation: 1, number };
    let mut reply = a.reply(0);
    reply.heartbeats = vec![GossipHeartbeat { lease, counter: 1000, ttl }];
    b.merge(reply, moment(1));
    tell(&b, &mut a, moment(2));
    for second in 1..10 {
        a.keep_alive(number, moment(second * 1000)).unwrap();
        tell(&a, &mut b, moment(second * 1000));
        b.tick(moment(second * 1000));
        assert_eq!(keys(&mut b).len(), 1, "after {second} s");
    }
}

#[test]
fn a_pause_of_the_own_process_ends_only_own_leases() {
    let (mut a, mut b) = (map("a"), map("b"));
    let [(of_a, _), (of_b, _)] = [&mut a, &mut b].map(|map| map.grant(Duration::from_secs(5), moment(0)).unwrap());
    a.commit(&[], put("/m/nodes/a/1", "{}", Some(of_a)), moment(0)).unwrap();
    b.commit(&[], put("/m/nodes/b/1", "{}", Some(of_b)), moment(0)).unwrap();
    tell(&a, &mut b, moment(0));
    b.tick(moment(0));
    b.tick(moment(60_000));
    assert_eq!(named(&keys(&mut b)), ["/m/nodes/a/1"]);
    assert_eq!(b.keep_alive(of_b, moment(60_000)), None);
    for millis in (60_000..66_000).step_by(500) {
        b.tick(moment(millis));
    }
    assert!(keys(&mut b).is_empty());
    // After long silence all is forgotten, and replies are read from their beginning.
    for seconds in 66..700 {
        b.tick(moment(seconds * 1000));
    }
    assert_eq!(b.restarts(), 1);
    assert!(b.reply(0).entries.is_empty());
}

#[test]
fn what_is_too_much_is_refused() {
    let mut a = map("a");
    let long = "x".repeat(257 << 10);
    assert!(matches!(
        a.commit(&[], put("/m/k", &long, None), moment(0)),
        Err(GossipError::TooLong { field: "value", .. })
    ));
    assert!(matches!(
        a.commit(&[], put(&long[..2000], "", None), moment(0)),
        Err(GossipError::TooLong { field: "key", .. })
    ));
    let value = &long[..200 << 10];
    let mut filled = 0;
    while let Ok(Some(_)) = a.commit(&[], put(&format!("/m/{filled}"), value, None), moment(0)) {
        filled += 1;
    }
    assert_eq!(filled, (32 << 20) / (value.len() + 6));
    // Pages tell all of it, and none is too long.
    let (mut b, mut since, mut pages) = (map("b"), 0, 0);
    loop {
        let reply = a.reply(since);
        assert!(reply.to_json().len() <= GossipReply::LONGEST);
        (since, pages) = (reply.sequence, pages + 1);
        let has_more = reply.has_more;
        b.merge(reply, moment(1));
        if !has_more {
            break;
        }
    }
    assert!(pages > 50 && keys(&mut a) == keys(&mut b));
    let stranger = GossipEntry { key: "/other/k".into(), ..a.reply(0).entries[0].clone() };
    b.merge(GossipReply { entries: vec![stranger], ..a.reply(0) }, moment(1));
    assert_eq!(b.range("/other/", 10).0, []);
}

#[test]
fn deleted_keys_are_forgotten_after_a_day_or_when_there_are_too_many() {
    let mut a = map("a");
    a.commit(&[], put("/m/k", "1", None), moment(0)).unwrap();
    a.commit(&[], vec![GossipChange::Delete("/m/k".into())], moment(0)).unwrap();
    a.tick(moment(1000));
    assert_eq!(a.reply(0).entries.len(), 1);
    a.tick(moment(24 * 3_600_000 + 1000));
    assert_eq!(a.reply(0).entries.len(), 0);
    for n in 0..17_000 {
        let key = format!("/m/{n}");
        a.commit(&[], put(&key, "", None), moment(n)).unwrap();
        a.commit(&[], vec![GossipChange::Delete(key)], moment(n)).unwrap();
    }
    a.tick(moment(20_000));
    assert_eq!(a.all_entries().len(), 16_384);
}

#[test]
fn a_clock_far_ahead_moves_no_other_one() {
    let (mut a, mut b) = (map("a"), map("b"));
    let ahead = GossipMoment { wall: WALL + Duration::from_secs(3600), elapsed: Duration::ZERO };
    a.commit(&[], put("/m/drain/x", "{}", None), ahead).unwrap();
    a.commit(&[], put("/m/purge/1", "{}", None), ahead).unwrap();
    tell(&a, &mut b, moment(0));
    let far = b.range("/m/purge/", 1).0[0].created;
    let near = b.commit(&[], put("/m/k", "1", None), moment(0)).unwrap().unwrap();
    assert!(near < far);
    // Its keys can be changed nevertheless, and purges go on above the greatest one.
    b.commit(&[], vec![GossipChange::Delete("/m/drain/x".into())], moment(0)).unwrap();
    tell(&b, &mut a, moment(0));
    assert_eq!(named(&keys(&mut a)), ["/m/k", "/m/purge/1"]);
    assert!(b.commit(&[], put("/m/purge/2", "{}", None), moment(0)).unwrap().unwrap() > far);
}

#[test]
fn readers_that_are_far_behind_begin_anew() {
    let mut a = map("a");
    for n in 0..20_000 {
        a.commit(&[], put("/m/k", &n.to_string(), None), moment(n)).unwrap();
    }
    assert!(matches!(a.changes("/m/", 1), Err(GossipError::Forgotten(_))));
    let last = a.sequence();
    assert_eq!(a.changes("/m/", last).unwrap().len(), 1);
    assert_eq!(a.changes("/m/", last + 1), Ok(vec![]));
}

impl GossipMap {
    fn all_entries(&self) -> Vec<GossipEntry> {
        let (mut since, mut all) = (0, Vec::new());
        loop {
            let reply = self.reply(since);
            since = reply.sequence;
            all.extend(reply.entries);
            if !reply.has_more {
                all.sort();
                return all;
            }
        }
    }
}

/// A node with its purges, as the cluster's tasks apply them.
struct Reader {
    map: GossipMap,
    applied: u64,
    purged: BTreeSet<String>,
    /// Difference of its clock.
    skew: u64,
}

impl Reader {
    fn now(&self, millis: u64) -> GossipMoment {
        GossipMoment { wall: WALL + Duration::from_millis(millis + self.skew), elapsed: Duration::from_millis(millis) }
    }

    fn purge(&mut self, name: &str, millis: u64) {
        let objects = PurgedObjects::Path(name.to_owned());
        let entry = PurgeEntry { place: Some("p".into()), objects, is_soft: false, at: Duration::ZERO };
        let key = format!("/m/purge/{name}");
        let now = self.now(millis);
        assert!(self.map.commit(&[], put(&key, &entry.to_json().unwrap(), None), now).unwrap().is_some());
    }

    fn look(&mut self) {
        let (pairs, _) = self.map.range("/m/", 10_000);
        let purges = pairs.iter().map(|pair| {
            let epoch = u64::try_from(pair.created.number()).unwrap();
            (epoch, PurgeEntry::from_json(pair.value.as_bytes()).ok())
        });
        if let Some(due) = PurgeList::new(0, purges.collect()).due(self.applied) {
            assert!(due.epoch > self.applied);
            self.applied = due.epoch;
            for entry in due.purges.unwrap() {
                let PurgedObjects::Path(path) = entry.objects else { panic!("a path") };
                self.purged.insert(path);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Purge(usize),
    Tell(usize, usize),
    Look(usize),
}

fn step(nodes: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..nodes).prop_map(Step::Purge),
        (0..nodes, 0..nodes).prop_map(|(from, to)| Step::Tell(from, to)),
        (0..nodes).prop_map(Step::Look),
    ]
}

fn entry() -> impl Strategy<Value = GossipEntry> {
    let lease = GossipLease { node: "a".parse().unwrap(), incarnation: 1, number: 1 };
    (0_u8..4, 1_i64..6, 0_usize..3, proptest::option::of("[xy]"), any::<bool>()).prop_map(
        move |(key, stamp, by, value, is_leased)| {
            let by: NodeName = ["a", "b", "c"][by].parse().unwrap();
            let stamp = GossipStamp::from_number(stamp).unwrap();
            let lease = is_leased.then(|| lease.clone());
            GossipEntry { key: format!("/m/{key}"), stamp, by, created: stamp, lease, value: value.map(Into::into) }
        },
    )
}

fn merged(entries: &[GossipEntry]) -> Vec<GossipEntry> {
    let mut map = map("z");
    for entry in entries {
        map.merge(GossipReply { entries: vec![entry.clone()], ..self::map("y").reply(0) }, moment(0));
    }
    map.all_entries()
}

proptest! {
    /// A merge is the greatest of each key: the order of changes, their grouping and repetitions make no difference.
    #[test]
    fn copies_that_heard_the_same_are_the_same(entries in proptest::collection::vec(entry(), 0..12), seed: u64) {
        let first = merged(&entries);
        let mut other = entries.clone();
        other.extend(entries.iter().rev().cloned());
        let middle = usize::try_from(seed).unwrap_or(0) % (other.len() + 1);
        other.rotate_left(middle);
        prop_assert_eq!(&merged(&other), &first);
        prop_assert_eq!(&merged(&[first.clone(), first.clone()].concat()), &first);
    }

    /// No purge is lost, whichever node has purged, heard or looked in whichever order, and whatever their clocks say.
    #[test]
    fn every_node_applies_every_purge(
        steps in proptest::collection::vec(step(3), 1..60),
        skews in proptest::collection::vec(0_u64..600_000, 3),
    ) {
        let mut nodes: Vec<_> = ["a", "b", "c"].iter().zip(skews).map(|(name, skew)| Reader {
            map: map(name), applied: 0, purged: BTreeSet::new(), skew,
        }).collect();
        let tell_one = |nodes: &mut Vec<Reader>, from: usize, to: usize, millis: u64| {
            if from != to {
                let reply = nodes[from].map.reply(0);
                let now = nodes[to].now(millis);
                nodes[to].map.merge(reply, now);
            }
        };
        let mut all = BTreeSet::new();
        for (number, step) in steps.iter().enumerate() {
            let millis = number as u64;
            match *step {
                Step::Purge(node) => {
                    let name = format!("{number}");
                    nodes[node].purge(&name, millis);
                    all.insert(name);
                }
                Step::Tell(from, to) => tell_one(&mut nodes, from, to, millis),
                Step::Look(node) => nodes[node].look(),
            }
        }
        // Then all of them hear all, some rounds long.
        for round in 0..6_u64 {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)] {
                tell_one(&mut nodes, from, to, 1000 + round);
                nodes[to].look();
            }
        }
        for node in &nodes {
            prop_assert_eq!(&node.purged, &all);
        }
        let first = nodes[0].map.all_entries();
        for node in &nodes[1..] {
            prop_assert_eq!(&node.map.all_entries(), &first);
        }
    }
}
