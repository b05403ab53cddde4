//! Bookings of several nodes.

use super::*;

const NOW: Duration = Duration::from_secs(1_790_000_000);

fn ledger(name: &str, node: u64, storage: u64) -> Ledger {
    let rate = |mbps| (mbps > 0).then(|| Bitrate::from_mbps(mbps));
    Ledger::new(name.parse().unwrap(), Limits { node: rate(node), storage: rate(storage), store: None })
}

fn film(mbps: u64) -> Demand {
    let length = Some(Duration::from_secs(5000));
    Demand { storage: Some("s3".into()), rate: Bitrate::from_mbps(mbps), length, ..Demand::default() }
}

/// A film whose units are on stores with names of a letter.
fn striped(mbps: u64, stores: &str) -> Demand {
    Demand { stores: stores.chars().map(|name| name.to_string().into()).collect(), ..film(mbps) }
}

/// A ledger of a node where only the stores of striping groups are bounded.
fn of_stores(name: &str, store: u64) -> Ledger {
    let store = Some(Bitrate::from_mbps(store));
    Ledger::new(name.parse().unwrap(), Limits { store, ..Limits::default() })
}

fn book(ledger: &mut Ledger, demands: &[Demand], now: Duration) -> Vec<Result<Slot, Shortage>> {
    let plan = ledger.plan(demands, now);
    let answers = plan.answers.clone();
    ledger.written(plan, demands);
    answers
}

#[test]
fn many_streams_are_few_bookings_and_few_writes() {
    let mut ledger = ledger("a", 1000, 0);
    let (mut writes, mut admitted) = (0, 0);
    for stream in 0..300 {
        let demand = Demand { storage: None, ..film(4) };
        let now = NOW + Duration::from_secs(stream);
        let is_in = ledger.take(&demand, now).is_some() || {
            writes += 1;
            book(&mut ledger, std::slice::from_ref(&demand), now)[0].is_ok()
        };
        admitted += usize::from(is_in);
    }
    assert_eq!(admitted, 250, "all that fit");
    assert!(writes < 120, "{writes} writes, of which 50 are refusals");
    let plan = ledger.plan(&[], NOW);
    assert!(plan.value.len() < 500 && !plan.is_changed, "{}", plan.value);
}

#[test]
fn a_booking_does_not_end_before_its_stream() {
    let mut ledger = ledger("a", 10, 0);
    let demand = Demand { storage: None, length: Some(Duration::from_millis(300_100)), ..film(4) };
    let now = NOW - Duration::from_secs(NOW.as_secs() % 300) + Duration::from_millis(700);
    let slot = book(&mut ledger, std::slice::from_ref(&demand), now)[0].clone().unwrap();
    assert!(!slot.is_over(now + Duration::from_millis(300_100)));
    assert!(slot.is_over(now + Duration::from_secs(601)));
}

#[test]
fn streams_that_fit_are_admitted_whenever_they_end() {
    for seconds in [1, 60, 400, 1000] {
        let mut ledger = ledger("a", 29, 29);
        let admitted = (0..20).filter(|stream| {
            let now = NOW + Duration::from_secs(stream * seconds);
            let demand =
                Demand { rate: Bitrate::from_bps(2_055_400), length: Some(Duration::from_secs(30_000)), ..film(0) };
            ledger.take(&demand, now).is_some() || book(&mut ledger, &[demand], now)[0].is_ok()
        });
        assert_eq!(admitted.count(), 14, "one each {seconds} s: bookings that are rounded up leave no room unused");
    }
}

#[test]
fn two_nodes_do_not_take_the_same_bandwidth_of_a_storage() {
    let (mut a, mut b) = (ledger("a", 0, 100), ledger("b", 0, 100));
    let plan = a.plan(&[film(60)], NOW);
    assert_eq!(plan.storages.iter().map(|name| &**name).collect::<Vec<_>>(), ["s3"]);
    // Both plan at once; only one is written. The other one reads it and plans again.
    let late = b.plan(&[film(60)], NOW);
    assert!(late.answers[0].is_ok());
    let value = plan.value.clone();
    a.written(plan, &[film(60)]);
    assert!(b.set_other(b"/book/a/1", 5, value.as_bytes()));
    let again = b.plan(&[film(60), film(30)], NOW);
    let shortage = again.answers[0].as_ref().unwrap_err();
    assert_eq!((&shortage.resource, shortage.wanted), (&Resource::Storage("s3".into()), Bitrate::from_mbps(60)));
    assert!(again.answers[1].is_ok());
    // The node is gone with its lease.
    b.keep_others(&BTreeSet::new());
    assert!(b.plan(&[film(60)], NOW).answers[0].is_ok());
    assert!(!b.set_other(b"/book/c/1", 6, b"[{}]") && b.set_other(b"/book/c/1", 6, b"x"), "the same again");
}

#[test]
fn each_store_of_a_striped_film_gives_an_equal_part() {
    let mut a = of_stores("a", 10);
    assert!(a.is_bounded());
    let demands = [striped(16, "ab"), striped(8, "cb"), striped(30, "cd"), striped(12, "cd")];
    let plan = a.plan(&demands, NOW);
    let refused = |index: usize| plan.answers[index].as_ref().unwrap_err().clone();
    assert_eq!((refused(1).resource.to_string(), refused(1).wanted.bps()), ("storage:s3/b".to_owned(), 4_000_000));
    assert_eq!(refused(2).resource.to_string(), "storage:s3/c", "more than a store has, of a store without bookings");
    assert!(plan.answers[0].is_ok() && plan.answers[3].is_ok());
    assert_eq!(plan.storages.len(), 1, "two nodes that take of stores of one place decide one after the other");
    let value = plan.value.clone();
    a.written(plan, &demands);

    // Another node reads the parts.
    let mut b = of_stores("b", 10);
    assert!(b.set_other(b"/book/a/1", 5, value.as_bytes()), "{value}");
    let booked = b.all_booked(NOW);
    let of = |store: &str| booked[&Resource::store("s3", store)].bps();
    assert!(of("a") == of("b") && (8_000_000..=8_500_000).contains(&of("a")), "{booked:?}");
    assert!(of("c") == of("d") && (6_000_000..=6_500_000).contains(&of("c")), "{booked:?}");
    let plan = b.plan(&[striped(8, "cb"), striped(6, "cd")], NOW);
    assert_eq!(plan.answers[0].as_ref().unwrap_err().resource, Resource::store("s3", "b"));
    assert!(plan.answers[1].is_ok());
    // A film that is not striped needs none of them.
    assert!(b.plan(&[film(1000)], NOW).answers[0].is_ok());
}

#[test]
fn stores_without_a_limit_are_not_booked() {
    let mut ledger = ledger("a", 100, 100);
    let plan = ledger.plan(&[striped(60, "ab")], NOW);
    assert!(plan.answers[0].is_ok() && !plan.value.contains("s3/"), "{}", plan.value);
}

#[test]
fn the_room_of_a_stream_is_that_of_its_node_and_its_storages() {
    let mut ledger = ledger("a", 100, 50);
    ledger.limits.store = Some(Bitrate::from_mbps(20));
    let mbps = Bitrate::from_mbps;
    book(&mut ledger, &[striped(32, "ab")], NOW)[0].as_ref().unwrap();
    let shown = |node: &str, bound| -> Vec<_> {
        let room = ledger.room(&node.parse().unwrap(), bound, &striped(10, "ab"), NOW);
        let rooms = ledger.storage_rooms(&striped(10, "ab"), NOW);
        std::iter::once(room)
            .chain(rooms)
            .map(|room| (room.resource.to_string(), room.wanted, room.bound, room.fits()))
            .collect()
    };
    let stores = || ["storage:s3/a", "storage:s3/b"].map(|name| (name.to_owned(), mbps(5), Some(mbps(20)), false));
    let storage = ("storage:s3".to_owned(), mbps(10), Some(mbps(50)), true);
    let own = ("node:a".to_owned(), mbps(10), Some(mbps(100)), true);
    assert_eq!(shown("a", None), [&[own, storage.clone()][..], &stores()].concat());
    let other = |bound, fits| ("node:b".to_owned(), mbps(10), bound, fits);
    assert_eq!(shown("b", None), [&[other(None, true), storage.clone()][..], &stores()].concat());
    assert_eq!(shown("b", Some(mbps(5)))[0], other(Some(mbps(5)), false));
    // Bookings that end before the stream begins do not count.
    let later = NOW + Duration::from_secs(4 * 3600);
    let room = ledger.room(&"a".parse().unwrap(), None, &striped(40, "ab"), later);
    let rooms = [&[room][..], &ledger.storage_rooms(&striped(40, "ab"), later)].concat();
    assert!(rooms.iter().all(|room| room.booked == Bitrate::ZERO && room.fits()), "{rooms:?}");
}

#[test]
fn a_stream_that_needs_more_than_a_storage_has_is_refused() {
    assert!(ledger("a", 0, 30).plan(&[film(60)], NOW).answers[0].is_err());
}

#[test]
fn bookings_of_the_only_place_can_be_read() {
    let mut one = ledger("a", 0, 100);
    let plan = one.plan(&[Demand { storage: Some("".into()), ..film(6) }], NOW);
    assert!(ledger("b", 0, 100).set_other(b"/m/book/nodes/a/1", 1, plan.value.as_bytes()), "{}", plan.value);
}

#[test]
fn what_is_given_back_is_free_again_and_ends_are_kept() {
    let mut ledger = ledger("a", 100, 0);
    let slots: Vec<_> = book(&mut ledger, &[film(50), film(50)], NOW).into_iter().map(Result::unwrap).collect();
    assert!(book(&mut ledger, &[film(1)], NOW)[0].is_err());
    ledger.give_back(&slots[0], Bitrate::from_mbps(50));
    assert!(ledger.take(&film(50), NOW).is_some(), "it is still booked");
    for slot in &slots {
        ledger.give_back(slot, Bitrate::from_mbps(50));
    }
    let plan = ledger.plan(&[], NOW);
    assert!(plan.is_changed && plan.value == "[]", "{}", plan.value);
    ledger.written(plan, &[]);
    assert_eq!(ledger.booked(&"a".parse().unwrap(), NOW), Bitrate::ZERO);
    // Streams that nobody gives back end.
    assert!(book(&mut ledger, &[film(100)], NOW)[0].is_ok());
    assert!(book(&mut ledger, &[film(100)], NOW + Duration::from_secs(3000))[0].is_err());
    assert!(book(&mut ledger, &[film(100)], NOW + Duration::from_secs(9000))[0].is_ok());
}

#[test]
fn the_bookings_of_many_storages_can_be_read() {
    let mut one = ledger("a", 0, 1_000_000);
    let stream = |number: u64| Demand {
        storage: Some(format!("storage-{}", number % 200).into()),
        rate: Bitrate::from_mbps(1),
        length: Some(Duration::from_secs(number * 10)),
        ..Demand::default()
    };
    let demands: Vec<_> = (0..8000).map(stream).collect();
    let plan = one.plan(&demands, NOW);
    assert!(plan.answers.iter().all(Result::is_ok));
    let mut other = ledger("b", 0, 1_000_000);
    assert!(other.set_other(b"/m/book/nodes/a/1", 1, plan.value.as_bytes()));
    let booked: Bitrate = other
        .all_booked(NOW)
        .into_iter()
        .filter(|(name, _)| matches!(name, Resource::Storage(_)))
        .map(|(_, rate)| rate)
        .sum();
    assert!(booked >= Bitrate::from_mbps(8000), "{booked}");
}

#[test]
fn a_booking_lasts_until_its_period_ends() {
    let mut ledger = ledger("a", 1000, 0);
    let demand = Demand { storage: None, ..film(4) };
    let slot = book(&mut ledger, std::slice::from_ref(&demand), NOW).remove(0).unwrap();
    let later = NOW + Duration::from_secs(4 * 3600);
    assert!(ledger.lasts(&slot, &demand, NOW) && !ledger.lasts(&slot, &demand, later));
    assert!(!slot.is_over(NOW) && slot.is_over(later));
    let endless = Demand { length: None, ..demand };
    assert!(!ledger.lasts(&slot, &endless, NOW));
    let slot = book(&mut ledger, std::slice::from_ref(&endless), NOW).remove(0).unwrap();
    assert!(ledger.lasts(&slot, &endless, later) && !slot.is_over(later));
}

#[test]
fn what_is_read_and_not_sent_is_booked_of_the_storage_alone() {
    let mut ledger = ledger("a", 100, 100);
    let read = Demand { is_read_only: true, length: None, ..film(80) };
    let demands = [film(15), read.clone()];
    assert!(book(&mut ledger, &demands, NOW).iter().all(Result::is_ok));
    let mbps = Bitrate::from_mbps;
    assert_eq!((ledger.needed(None), ledger.needed(Some("s3"))), (mbps(15), mbps(95)));
    let booked = ledger.all_booked(NOW);
    let of = |resource: &str| booked[&resource.parse().unwrap()];
    assert!(of("node:a") <= mbps(17) && of("storage:s3") >= mbps(95), "{booked:?}");
    // Without a limit of storages it is nothing that other nodes would have to read.
    let mut of_node = self::ledger("b", 100, 0);
    let plan = of_node.plan(&[read], NOW);
    assert_eq!((plan.value.as_str(), plan.answers[0].is_ok()), ("[]", true));
}

#[test]
fn a_lost_lease_is_written_again() {
    let mut ledger = ledger("a", 100, 0);
    book(&mut ledger, &[film(50)], NOW);
    assert!(!ledger.plan(&[], NOW).is_changed);
    ledger.set_written(false);
    let plan = ledger.plan(&[], NOW);
    assert!(plan.is_changed && plan.value.contains("node:a"), "{}", plan.value);
    ledger.written(plan, &[]);
    ledger.set_written(true);
    assert!(!ledger.plan(&[], NOW).is_changed);
}
