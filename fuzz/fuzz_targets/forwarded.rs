//! Chains of proxies in `X-Forwarded-For` and `Forwarded`: what a proxy appends decides, whatever its client wrote before.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_connections::proxies::forwarded::{Hop, client, ends_with_https, forwarded, x_forwarded_for};
use millpond_fuzz::fuzz_target;
use std::{
    iter::once,
    net::{IpAddr, Ipv4Addr},
};

const REAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn old(line: &[u8]) -> Vec<Hop> {
    x_forwarded_for(once(line))
}

fn standard(line: &[u8]) -> Vec<Hop> {
    forwarded(once(line))
}

/// A reader of a field, and what a proxy appends to the field.
type Case = (fn(&[u8]) -> Vec<Hop>, &'static [u8]);

const CASES: [Case; 3] = [(old, b", 192.0.2.1"), (standard, b", for=192.0.2.1"), (standard, b", for=\"192.0.2.1:80\"")];

fuzz_target!(|bytes: &[u8]| {
    let _ = ends_with_https(bytes);
    for (read, appended) in CASES {
        assert!(read(bytes).len() <= bytes.len() + 1);
        let line = [bytes, appended].concat();
        let found = client(&read(&line), |_| false).expect("an entry");
        // A quoted string of the client that does not end hides the address, but never gives another one.
        assert!(found.address.is_none_or(|address| address == REAL), "{found:?}");
    }
});
