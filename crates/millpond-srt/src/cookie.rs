//! Cookies: a caller that returns one has the address that it sends from.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::{net::SocketAddr, time::Duration};

/// Time for which a cookie is made; it is good for one to two of these.
const PERIOD: u64 = 30;

/// Makes and checks cookies with a secret, so that nothing is kept for callers that have not returned one.
#[derive(Clone)]
pub(crate) struct Cookies(Hmac<Sha1>);

impl Cookies {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let mut block = [0; 64];
        block[..secret.len()].copy_from_slice(&secret);
        Self(Hmac::new(&block.into()))
    }

    fn of_period(&self, from: SocketAddr, period: u64) -> u32 {
        let mut hash = self.0.clone();
        match from.ip().to_canonical() {
            std::net::IpAddr::V4(v4) => hash.update(&v4.octets()),
            std::net::IpAddr::V6(v6) => hash.update(&v6.octets()),
        }
        hash.update(&from.port().to_be_bytes());
        hash.update(&period.to_be_bytes());
        let hash = hash.finalize().into_bytes();
        hash.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
    }

    /// Makes the cookie of an address.
    pub(crate) fn make(&self, from: SocketAddr, now: Duration) -> u32 {
        self.of_period(from, now.as_secs() / PERIOD)
    }

    /// Tells whether a cookie is that of an address, made not long ago.
    pub(crate) fn is_good(&self, cookie: u32, from: SocketAddr, now: Duration) -> bool {
        let period = now.as_secs() / PERIOD;
        cookie == self.of_period(from, period) || period > 0 && cookie == self.of_period(from, period - 1)
    }
}
