//! Rules over views: what all of them promise, and what each one does.

use super::*;
use crate::{Load, Node, NodeName, Print, Prints, RangeGroup, Role, View, homes};
use proptest::prelude::*;
use std::{collections::HashMap, sync::Arc, time::Duration};

const RATE: Bitrate = Bitrate::from_mbps(4);

fn node(name: &str, mbps: u64) -> Node {
    Node::new(name.parse().unwrap(), Bitrate::from_mbps(mbps))
}

fn loads(nodes: impl IntoIterator<Item = Node>) -> Loads {
    Loads::new(Arc::new(View::of(1, nodes)))
}

fn first(rule: &dyn Assignment, loads: &mut Loads, key: &ObjectKey, turn: u64) -> NodeName {
    let answer = rule.assign(loads, &Request { key, rate: RATE, turn, rooms: None });
    answer.best().unwrap().name.clone()
}

fn objects(count: u32) -> impl Iterator<Item = ObjectKey> {
    (0..count).map(|number| ObjectKey::new("films", &format!("{number}.mp4")))
}

#[test]
fn every_rule_leaves_out_who_drains_and_puts_full_nodes_last() {
    for name in AssignmentName::ALL {
        let rule = name.rule();
        let mut nodes: Vec<_> = (0..20).map(|number| node(&format!("n{number}"), 100)).collect();
        nodes[3].draining = true;
        nodes[5].roles = [Role::Manager].into_iter().collect();
        nodes[7].load.rate = Bitrate::from_mbps(97);
        let mut all = loads(nodes);
        for (turn, key) in objects(200).enumerate() {
            let answer = rule.assign(&mut all, &Request { key: &key, rate: RATE, turn: turn as u64, rooms: None });
            assert_eq!((answer.candidates.len(), answer.compared), (8, 18), "{name}");
            assert!(answer.candidates.iter().all(|found| !["n3", "n5", "n7"].contains(&found.name.as_str())));
            assert_eq!(
                answer,
                rule.assign(&mut all, &Request { key: &key, rate: RATE, turn: turn as u64, rooms: None })
            );
        }
        let mut full = loads([Node { load: Load { rate: Bitrate::from_mbps(99), sessions: 1 }, ..node("a", 100) }]);
        let key = ObjectKey::new("", "a");
        let answer = rule.assign(&mut full, &Request { key: &key, rate: RATE, turn: 1, rooms: None });
        assert!(answer.best().is_none() && answer.candidates[0].standing == Standing::Full, "{name}");
        let nobody = rule.assign(&mut loads([]), &Request { key: &key, rate: RATE, turn: 1, rooms: None });
        assert_eq!((nobody.best(), nobody.to_string().as_str()), (None, "no dispenser takes streams"));
        assert_eq!(name.as_str().parse(), Ok(name));
    }
}

#[test]
fn round_robin_takes_turns() {
    let mut all = loads(["a", "b", "c"].map(|name| node(name, 100)));
    let key = ObjectKey::new("", "x");
    let found: Vec<_> = (0..5).map(|turn| first(&RoundRobin, &mut all, &key, turn).to_string()).collect();
    assert_eq!(found, ["a", "b", "c", "a", "b"]);
}

#[test]
fn an_object_stays_and_objects_spread_by_capacity() {
    let sosd = Sosd::default();
    let mut all = loads([node("a", 100), node("b", 200), node("c", 100)]);
    let mut counts: HashMap<String, u32> = HashMap::new();
    for key in objects(4000) {
        *counts.entry(first(&sosd, &mut all, &key, 0).to_string()).or_default() += 1;
    }
    assert!((1880..2120).contains(&counts["b"]) && (900..1100).contains(&counts["a"]), "{counts:?}");
}

#[test]
fn few_objects_move_when_a_node_comes_or_goes() {
    for count in [2, 10, 100] {
        let nodes: Vec<_> = (0..=count).map(|number| node(&format!("n{number}"), 1000)).collect();
        let (mut with, mut without) = (loads(nodes.clone()), loads(nodes[1..].to_vec()));
        let mut moved = 0;
        for key in objects(20_000) {
            let (before, after) =
                (first(&Sosd::default(), &mut with, &key, 0), first(&Sosd::default(), &mut without, &key, 0));
            assert!(before == after || before.as_str() == "n0");
            moved += u32::from(before != after);
        }
        let share = f64::from(moved) / 20_000.0 * f64::from(count + 1);
        assert!((0.7..1.3).contains(&share), "{count}: {share}");
    }
}

#[test]
fn a_popular_object_comes_to_have_several_dispensers() {
    let mut all = loads((0..10).map(|number| node(&format!("n{number}"), 1000)));
    let key = ObjectKey::new("films", "hit.mp4");
    let mut seen: Vec<NodeName> = Vec::new();
    for stream in 0..1250 {
        let name = first(&Sosd::default(), &mut all, &key, 0);
        all.add(&name, RATE, Duration::ZERO);
        if !seen.contains(&name) {
            seen.push(name);
        }
        // An eighth of the capacity of one node is within its idle share: nobody else is needed.
        assert!(stream >= 31 || seen.len() == 1, "{stream}");
    }
    assert_eq!(seen.len(), 10);
    let most = seen.iter().map(|name| all.load(name).unwrap()).max().unwrap();
    assert!(most <= Bitrate::from_mbps(563), "{most}");
    // The second dispenser is the one that the first one's answer named.
    let mut fresh = loads((0..10).map(|number| node(&format!("n{number}"), 1000)));
    let answer = Sosd::default().assign(&mut fresh, &Request { key: &key, rate: RATE, turn: 0, rooms: None });
    let order: Vec<_> = answer.candidates.iter().map(|candidate| candidate.name.clone()).collect();
    assert_eq!(seen[..8], order);
    // An object that one node should have stays there, whatever the load.
    let mut owners = |holders: &[NodeName]| -> Vec<_> {
        Sosd::owners(&mut all, &key, holders).candidates.into_iter().map(|found| found.name).collect()
    };
    assert_eq!(owners(&[]), order);
    // Where nodes have it already, they come first, in the same order on each node. A node that has left does not count.
    let holders = [order[5].clone(), seen[9].clone(), "gone".parse().unwrap(), order[2].clone()];
    let found = owners(&holders);
    let rest = order.iter().filter(|name| !holders.contains(name));
    let expected: Vec<_> = [&order[2], &order[5], &seen[9]].into_iter().chain(rest).take(8).cloned().collect();
    assert_eq!(found, expected);
    assert!(answer.to_string().starts_with(&format!("1. {}: has room, load 0 bit/s of at most 125.0 Mbit/s", seen[0])));
}

/// A node with the settings `films` of the place of all objects here.
fn with_settings(name: &str, films: u8) -> Node {
    let prints = Prints::new(Print::of(["4s"]), [("films".to_owned(), Print::of([films.to_string().as_str()]))].into());
    Node { version: Some("1".into()), prints: Some(prints.into()), ..node(name, 100) }
}

#[test]
fn every_rule_leaves_out_who_differs_in_the_place() {
    let nodes: Vec<_> = (0..9).map(|number| with_settings(&format!("n{number}"), u8::from(number == 4))).collect();
    for name in AssignmentName::ALL {
        let rule = name.rule();
        for own in &nodes {
            let view = View::of(1, nodes.clone()).seen_by(own);
            let mut all = Loads::new(view.into());
            let mut firsts: HashMap<String, u32> = HashMap::new();
            for (turn, key) in objects(800).enumerate() {
                let answer = rule.assign(&mut all, &Request { key: &key, rate: RATE, turn: turn as u64, rooms: None });
                let is_odd = own.name.as_str() == "n4";
                assert_eq!((answer.candidates.len(), answer.compared), if is_odd { (1, 1) } else { (8, 8) }, "{name}");
                assert!(answer.candidates.iter().all(|found| (found.name.as_str() == "n4") == is_odd), "{name}");
                *firsts.entry(answer.candidates[0].name.to_string()).or_default() += 1;
            }
            // Nobody gets the turns of the one that is left out.
            assert!(firsts.len() == 1 || firsts.values().all(|count| (60..150).contains(count)), "{name}: {firsts:?}");
            // Other places are served by all.
            let key = ObjectKey::new("music", "a.mp4");
            assert_eq!(rule.assign(&mut all, &Request { key: &key, rate: RATE, turn: 1, rooms: None }).compared, 9);
        }
    }
}

#[test]
fn few_nodes_with_the_same_settings_find_each_other_among_many() {
    let nodes: Vec<_> = (0..1000).map(|number| with_settings(&format!("n{number}"), u8::from(number < 3))).collect();
    let mut all = Loads::new(View::of(1, nodes.clone()).seen_by(&nodes[0]).into());
    for key in objects(50) {
        let mut names: Vec<_> =
            Sosd::owners(&mut all, &key, &[]).candidates.into_iter().map(|one| one.name.to_string()).collect();
        let answer = Sosd::default().assign(&mut all, &Request { key: &key, rate: RATE, turn: 0, rooms: None });
        assert!(answer.candidates.iter().map(|one| one.name.as_str()).eq(names.iter().map(String::as_str)));
        names.sort();
        assert_eq!(names, ["n0", "n1", "n2"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nodes that agree on a place give the same answers, in which nobody else is; a node without prints and one of another version are in all.
    #[test]
    fn nodes_that_agree_give_the_same_answers(settings in proptest::collection::vec(0_u8..4, 1..12), object in 0_u32..100) {
        let mut nodes: Vec<_> = settings.iter().enumerate().map(|(at, films)| with_settings(&format!("n{at}"), *films)).collect();
        nodes.push(node("old", 100));
        nodes.push(Node { version: Some("2".into()), ..with_settings("newer", 9) });
        let key = ObjectKey::new("films", &object.to_string());
        let mut answers: HashMap<u8, Vec<Vec<NodeName>>> = HashMap::new();
        for (own, films) in nodes.iter().zip(&settings) {
            let view = View::of(1, nodes.clone()).seen_by(own);
            let homes: Vec<_> = homes(&view, &key, RangeGroup::of(0), 20).iter().map(|home| home.name.clone()).collect();
            let mut all = Loads::new(view.into());
            let names = |answer: Answer| answer.candidates.into_iter().map(|found| found.name).collect::<Vec<_>>();
            let assigned = names(Sosd::default().assign(&mut all, &Request { key: &key, rate: RATE, turn: 0, rooms: None }));
            let owners = names(Sosd::owners(&mut all, &key, &[]));
            let alike = settings.iter().filter(|other| *other == films).count();
            prop_assert_eq!((homes.len(), assigned.len()), (alike + 2, (alike + 2).min(8)));
            prop_assert!(homes.contains(&own.name));
            let answer = vec![homes, assigned, owners];
            prop_assert_eq!(&answer, answers.entry(*films).or_insert_with(|| answer.clone()));
        }
    }
}
