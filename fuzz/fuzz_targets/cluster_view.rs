//! Registrations, bookings and purges of a cluster: what is read and written again is the same, no entry spoils a view, and every view gives
//! answers. An input is one value, or several that a byte 0 ends.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_cluster::{
    AssignmentName, Bitrate, Book, Booking, Demand, Entry, Ledger, Limits, Loads, Node, ObjectKey, PurgeEntry,
    RangeGroup, Request, View, homes, node_key,
};
use millpond_fuzz::fuzz_target;
use std::{collections::BTreeSet, time::Duration};

const PREFIX: &str = "/millpond/";

fuzz_target!(|bytes: &[u8]| {
    let values: Vec<&[u8]> = bytes.split(|byte| *byte == 0).take(64).collect();
    let mut keys = Vec::new();
    // Clocks agree: otherwise bookings that fit one after the other may not fit all at once.
    let mut book = Book::new(Duration::ZERO);
    for (number, value) in values.iter().enumerate() {
        // A key of the node's own name, and one that is whatever the input says.
        keys.push((String::from_utf8_lossy(value).into_owned(), *value));
        if let Ok(node) = Node::from_json(value) {
            assert_eq!(Node::from_json(node.to_json().as_bytes()).expect("what was written"), node);
            keys.push((node_key(PREFIX, &node.name, number as u64), *value));
        }
        if let Ok(purge) = PurgeEntry::from_json(value) {
            let json = purge.to_json().expect("a purge that was read is not too long");
            assert_eq!(PurgeEntry::from_json(json.as_bytes()).expect("what was written"), purge);
        }
        if let Ok(booking) = Booking::from_json(value) {
            assert_eq!(Booking::from_json(booking.to_json().as_bytes()).expect("what was written"), booking);
            book.set_capacity(booking.shares[0].0.clone(), Some(Bitrate::from_mbps(100)));
            if book.fits(&booking).is_ok() {
                book.insert(booking);
            }
        }
    }
    for booking in book.bookings().filter(|booking| booking.until != Some(booking.from)) {
        assert!(book.fits(booking).is_ok(), "it fits beside the others");
    }
    let entries = keys.iter().enumerate();
    let view = View::read(PREFIX, 1, entries.map(|(at, (key, value))| Entry { key, value, created: at as u64 % 3 }));
    assert_eq!(view.nodes().len() + view.problem_count(), keys.len());
    assert!(view.nodes().is_sorted_by(|one, other| one.name < other.name));
    // As one of its nodes sees it: without nodes of other clusters, and with its own settings.
    let own = view.nodes().first().cloned();
    let view = match &own {
        Some(own) => view.within(own.cluster.as_deref()).seen_by(own),
        None => view,
    };
    assert_eq!(view.nodes().len() + view.problem_count(), keys.len());
    assert!(view.differences().iter().all(|found| !found.differing.is_empty() || !found.lacking.is_empty()));
    let key = ObjectKey::new("films", "a.mp4");
    assert!(homes(&view, &key, RangeGroup::of(0), 2).len() <= 2);
    let mut loads = Loads::new(view.into());
    for name in AssignmentName::ALL {
        let request = Request { key: &key, rate: Bitrate::from_mbps(4), turn: values.len() as u64, rooms: None };
        let answer = name.rule().assign(&mut loads, &request);
        assert!(
            answer
                .candidates
                .iter()
                .all(|found| loads.view().node(found.name.as_str()).is_some_and(|node| !node.draining))
        );
        assert!(answer.candidates.is_sorted_by_key(|found| found.standing));
    }
    ledger(&values);
});

/// Bookings of other nodes: none of them gives this node more than it has, and all are gone with their keys.
fn ledger(values: &[&[u8]]) {
    let (rate, now) = (Bitrate::from_mbps(100), Duration::from_secs(1_790_000_000));
    let limits = Limits { node: Some(rate), storage: Some(rate), store: Some(rate) };
    let mut ledger = Ledger::new("a".parse().expect("a name"), limits);
    for (number, value) in values.iter().enumerate() {
        ledger.set_other(format!("key {}", number % 3).as_bytes(), number as u64 + 1, value);
    }
    let length = Some(Duration::from_secs(values.len() as u64 * 1000));
    let stores = ["x".into(), "y".into()].into();
    let demand = Demand {
        storage: Some("s3".into()),
        stores,
        rate: Bitrate::from_mbps(60),
        length,
        is_read_only: values.len().is_multiple_of(2),
    };
    let demands = [demand.clone(), demand];
    let plan = ledger.plan(&demands, now);
    assert!(plan.answers.iter().filter(|answer| answer.is_ok()).count() <= 1);
    ledger.written(plan, &demands);
    ledger.keep_others(&BTreeSet::new());
    assert!(ledger.all_booked(now).values().all(|booked| *booked <= rate));
}
