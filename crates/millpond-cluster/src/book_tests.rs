//! Books against a plain count of all bookings at all times.

use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

fn stream(id: &str, mbps: u64, from: u64, seconds: Option<u64>) -> Booking {
    let (rate, from) = (Bitrate::from_mbps(mbps), Duration::from_secs(from));
    Booking::new(id.into(), &"a".parse().unwrap(), &["s".into()], rate, from, seconds.map(Duration::from_secs))
}

fn book(node: u64, storage: u64) -> Book {
    let mut book = Book::new(Duration::ZERO);
    book.set_capacity(resource("node:a"), Some(Bitrate::from_mbps(node)));
    book.set_capacity(resource("storage:s"), Some(Bitrate::from_mbps(storage)));
    book
}

#[test]
fn a_stream_fits_for_its_whole_playback_or_not_at_all() {
    let mut book = book(10, 8);
    book.insert(stream("now", 4, 0, Some(100)));
    book.insert(stream("later", 6, 50, Some(100)));
    assert_eq!(book.fits(&stream("x", 4, 0, Some(50))), Ok(()));
    let shortage = book.fits(&stream("x", 4, 0, Some(51))).unwrap_err();
    assert_eq!((shortage.resource, shortage.after.as_secs()), (resource("node:a"), 50));
    assert_eq!(shortage.free, Bitrate::ZERO);
    // The storage has less than the node.
    let shortage = book.fits(&stream("x", 3, 120, None)).unwrap_err();
    assert_eq!(shortage.to_string(), "storage:s: 3.0 Mbit/s wanted, 2.0 Mbit/s free");
    let later = |millis| Shortage { after: Duration::from_millis(millis), ..shortage.clone() }.to_string();
    assert!(later(7001).ends_with("2.0 Mbit/s free after 8 s"), "{}", later(7001));
    assert!(later(5_000_000).ends_with("2.0 Mbit/s free after 84 min"), "{}", later(5_000_000));
    assert_eq!(book.fits(&stream("x", 8, 150, None)), Ok(()));
}

#[test]
fn nothing_counts_twice() {
    let mut book = book(10, 10);
    for _ in 0..3 {
        book.insert(stream("x", 6, 0, Some(100)));
    }
    assert_eq!(book.booked(&resource("node:a"), Duration::from_secs(99)), Bitrate::from_mbps(6));
    assert_eq!(book.booked(&resource("node:a"), Duration::from_secs(100)), Bitrate::ZERO);
    // A stream that plays on beside its own booking; another one does not fit.
    assert_eq!(book.fits(&stream("x", 6, 50, Some(100))), Ok(()));
    assert!(book.fits(&stream("y", 6, 50, Some(10))).is_err());
    assert_eq!(book.expire(Duration::from_secs(99)), 0);
    assert_eq!((book.expire(Duration::from_secs(100)), book.bookings().count()), (1, 0));
    assert_eq!(book.remove("x"), None);
}

#[test]
fn clocks_may_differ() {
    let mut book = Book::default();
    book.set_capacity(resource("node:a"), Some(Bitrate::from_mbps(10)));
    book.insert(stream("x", 8, 1000, Some(100)));
    for (at, is_free) in [(600, true), (800, false), (1300, false), (1401, true)] {
        assert_eq!(book.fits(&stream("y", 8, at, Some(10))).is_ok(), is_free, "{at}");
    }
}

#[test]
fn bad_bookings_are_errors() {
    let good = stream("x", 4, 5, None);
    assert_eq!(Booking::from_json(good.to_json().as_bytes()).unwrap(), good);
    for bad in [
        r#"{"id":"","shares":[["node:a",1]],"from":1}"#,
        r#"{"id":"a/b","shares":[["node:a",1]],"from":1}"#,
        r#"{"id":"a","shares":[],"from":1}"#,
        r#"{"id":"a","shares":[["disk:a",1]],"from":1}"#,
        r#"{"id":"a","shares":[["node:a",10000000000000000]],"from":1}"#,
        r#"{"id":"a","shares":[["node:a",-1]],"from":1}"#,
        r#"{"id":"a","shares":[["node:a",1]],"from":2,"until":1}"#,
        "[]",
    ] {
        assert!(Booking::from_json(bad.as_bytes()).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn a_book_is_never_overbooked(
        wanted in prop::collection::vec((0_u64..8, 1_u64..6, 0_u64..40, prop::option::of(0_u64..20), any::<bool>()), 0..60)
    ) {
        let mut book = book(10, 12);
        let mut plain: Vec<Booking> = Vec::new();
        for (id, mbps, from, length, is_removed) in wanted {
            let booking = stream(&id.to_string(), mbps, from, length);
            if is_removed {
                prop_assert_eq!(book.remove(&booking.id).is_some(), plain.iter().any(|other| other.id == booking.id));
                plain.retain(|other| other.id != booking.id);
                continue;
            }
            let sum = |at: u64| {
                let at = Duration::from_secs(at);
                let others = plain.iter().filter(|other| other.id != booking.id && other.from <= at);
                others.filter(|other| other.until.is_none_or(|until| at < until)).map(|other| other.shares[0].1).sum::<Bitrate>()
            };
            let end = length.map_or(100, |length| from + length.max(1));
            let fits = (from..end).all(|at| sum(at).plus(booking.shares[0].1) <= Bitrate::from_mbps(10));
            prop_assert_eq!(book.fits(&booking).is_ok(), fits);
            if fits {
                plain.retain(|other| other.id != booking.id);
                plain.push(booking.clone());
                book.insert(booking);
            }
        }
    }
}
