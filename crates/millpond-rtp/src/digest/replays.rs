//! Counts of answers (RFC 7616 3.4, `nc`), which prevent that an answer is accepted twice.

use super::{Authorization, DigestRefusal};
use std::collections::BTreeMap;

/// Number of counts below the highest that are remembered: answers on several connections may be reordered.
const REACH: u32 = u64::BITS;

/// Counts seen for each nonce, for a bounded number of nonces.
///
/// Call [`admit`](Self::admit) after [`Guard::check`](super::Guard::check), so that only clients with a password take
/// memory. Nonces begin with their time of creation, so the oldest sorts first. Over the bound the oldest is forgotten.
/// Afterwards neither it nor any older unknown nonce is accepted.
#[derive(Debug)]
pub struct Replays {
    most: usize,
    seen: BTreeMap<String, Counts>,
    /// The newest nonce that was forgotten.
    forgotten: String,
}

/// The highest count, and which counts before it were seen: bit 0 is the highest itself.
#[derive(Clone, Copy, Debug)]
struct Counts {
    highest: u32,
    seen: u64,
}

impl Replays {
    /// Creates counts for at most `most` nonces, and at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), seen: BTreeMap::new(), forgotten: String::new() }
    }

    /// Admits a correct answer. An answer without `qop` has no count and is always admitted.
    ///
    /// # Errors
    /// The answer was admitted before, or its nonce was forgotten.
    pub fn admit(&mut self, answer: &Authorization) -> Result<(), DigestRefusal> {
        let Some(qop) = &answer.qop else { return Ok(()) };
        let nonce = answer.nonce.to_ascii_lowercase();
        if let Some(counts) = self.seen.get_mut(&nonce) {
            let is_new = counts.take(qop.count);
            return is_new
                .then_some(())
                .ok_or_else(|| DigestRefusal::Replayed { user: answer.user.clone(), count: qop.count });
        }
        if nonce <= self.forgotten {
            return Err(DigestRefusal::Stale);
        }
        self.seen.insert(nonce, Counts { highest: qop.count, seen: 1 });
        if self.seen.len() > self.most
            && let Some((oldest, _)) = self.seen.pop_first()
        {
            self.forgotten = oldest;
        }
        Ok(())
    }
}

impl Counts {
    /// Marks a count; returns `false` where it was seen, or is too old to know.
    fn take(&mut self, count: u32) -> bool {
        if count > self.highest {
            self.seen = self.seen.checked_shl(count - self.highest).unwrap_or(0) | 1;
            self.highest = count;
            return true;
        }
        let back = self.highest - count;
        let is_new = back < REACH && self.seen & (1 << back) == 0;
        if is_new {
            self.seen |= 1 << back;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Algorithm, Qop};

    fn answer(nonce: &str, count: Option<u32>) -> Authorization {
        Authorization {
            user: "ann".into(),
            realm: "r".into(),
            nonce: nonce.into(),
            uri: "/".into(),
            response: String::new(),
            algorithm: Algorithm::Md5,
            is_session: false,
            qop: count.map(|count| Qop { count, cnonce: "c".into() }),
            opaque: None,
        }
    }

    #[test]
    fn no_count_is_taken_twice() {
        let mut replays = Replays::new(10);
        let mut take = |count| replays.admit(&answer("a1", Some(count)));
        // In order, ahead, and late on another connection.
        for count in [1, 2, 5, 3, 4, 70, 7, 1000] {
            assert_eq!(take(count), Ok(()), "{count}");
        }
        for count in [1, 2, 3, 5, 70, 1000, 936, 0] {
            assert_eq!(take(count), Err(DigestRefusal::Replayed { user: "ann".into(), count }), "{count}");
        }
        assert_eq!(take(937), Ok(()), "within reach");
        assert!(replays.admit(&answer("A1", Some(1000))).is_err(), "the same nonce in other letters");
        assert_eq!(replays.admit(&answer("a2", Some(1))), Ok(()), "another nonce");
        for _ in 0..2 {
            assert_eq!(replays.admit(&answer("a1", None)), Ok(()), "RFC 2069 has no counts");
        }
    }

    #[test]
    fn nonces_are_bounded_and_forgotten_ones_are_stale() {
        let mut replays = Replays::new(3);
        for nonce in ["10", "11", "12", "13", "14"] {
            assert_eq!(replays.admit(&answer(nonce, Some(1))), Ok(()));
        }
        assert_eq!(replays.seen.len(), 3);
        for nonce in ["10", "11", "05"] {
            assert_eq!(replays.admit(&answer(nonce, Some(1))), Err(DigestRefusal::Stale), "{nonce}");
        }
        assert!(matches!(replays.admit(&answer("12", Some(1))), Err(DigestRefusal::Replayed { .. })));
        assert_eq!(replays.admit(&answer("12", Some(2))), Ok(()));
    }
}
