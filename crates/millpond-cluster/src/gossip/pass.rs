//! The pass of one question between nodes, and the words that proofs of questions and answers are made of. Proofs are made elsewhere, by the
//! secret of the cluster.

use std::{fmt, str::FromStr, time::Duration};

/// Time around that of a pass in which it is valid: clocks of nodes may differ by it.
pub const PASS_VALID: Duration = Duration::from_secs(600);
/// Most bytes of a pass as text.
const LONGEST: usize = 512;
/// Bytes of a proof.
const BYTES: usize = 32;

/// A proof of a question or an answer: its keyed hash. As text it is hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GossipProof(pub [u8; BYTES]);

/// The pass of one question: it holds at one address, for one target, once. As text, its fields have spaces between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipPass {
    /// Number of the question among those of the run that asks.
    pub number: u64,
    /// Time of the asker in whole milliseconds, since 1970.
    pub time: Duration,
    /// Host and port at which the node is asked.
    pub asked: String,
    /// Proof of the question.
    pub proof: GossipProof,
}

/// A text that is no pass or no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NUMBER MILLISECONDS HOST:PORT PROOF, the proof as 64 hexadecimal digits")]
pub struct InvalidPass;

impl GossipPass {
    /// The words that the proof of a question is made of. `target` is its path and query.
    #[must_use]
    pub fn question(&self, method: &str, target: &str) -> String {
        self.words("question", &format!("{method} {target}"))
    }

    /// The words before the body of which the proof of an answer to the question is made.
    #[must_use]
    pub fn answer(&self, target: &str, status: u16) -> String {
        self.words("answer", &format!("{status} {target}"))
    }

    /// No field has an end of a line, so two passes never have the same words.
    fn words(&self, kind: &str, subject: &str) -> String {
        let Self { number, time, asked, .. } = self;
        format!("millpond-registry {kind}\n{number}\n{}\n{asked}\n{subject}\n", time.as_millis())
    }
}

impl fmt::Display for GossipPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, time, asked, proof } = self;
        write!(f, "{number} {} {asked} {proof}", time.as_millis())
    }
}

impl FromStr for GossipPass {
    type Err = InvalidPass;

    fn from_str(text: &str) -> Result<Self, InvalidPass> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().filter(|_| text.len() <= LONGEST).ok_or(InvalidPass);
        let number = |text: &str| text.parse().map_err(|_| InvalidPass);
        let (count, time, asked, proof) = (number(next()?)?, number(next()?)?, next()?, next()?.parse()?);
        let is_address = !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_graphic());
        match is_address && parts.next().is_none() {
            true => Ok(Self { number: count, time: Duration::from_millis(time), asked: asked.to_owned(), proof }),
            false => Err(InvalidPass),
        }
    }
}

impl fmt::Display for GossipProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for GossipProof {
    type Err = InvalidPass;

    fn from_str(text: &str) -> Result<Self, InvalidPass> {
        let is_hexadecimal = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut bytes = [0; BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2).filter(|_| is_hexadecimal).ok_or(InvalidPass)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidPass)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass() -> GossipPass {
        let proof = GossipProof([0xab; 32]);
        GossipPass { number: 7, time: Duration::from_millis(1_790_000_000_123), asked: "[::1]:8080".into(), proof }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = pass().to_string();
        assert_eq!(text, format!("7 1790000000123 [::1]:8080 {}", "ab".repeat(32)));
        assert_eq!(text.parse(), Ok(pass()));
        let long = format!("7 1 {} {}", "a".repeat(512), "ab".repeat(32));
        let (short, more, foreign) = (&text[..text.len() - 1], format!("{text} x"), text.replace("ab", "ü"));
        for bad in ["", "7", "7 1 a", "x 1 a b", "-1 1 a b", short, &more, &foreign, &long] {
            assert_eq!(bad.parse::<GossipPass>(), Err(InvalidPass), "{bad}");
        }
    }

    #[test]
    fn words_name_all_that_a_proof_holds_for() {
        let (own, target) = (pass(), "/.millpond/registry?since=0");
        let others = [
            GossipPass { number: 8, ..own.clone() },
            GossipPass { time: Duration::from_secs(1), ..own.clone() },
            GossipPass { asked: "10.0.0.2:8080".into(), ..own.clone() },
        ];
        for other in others {
            assert_ne!(other.question("GET", target), own.question("GET", target));
            assert_ne!(other.answer(target, 200), own.answer(target, 200));
        }
        assert_ne!(own.question("GET", target), own.question("GET", "/.millpond/registry?since=1"));
        assert_ne!(own.question("GET", target), own.answer(target, 200));
        assert_ne!(own.answer(target, 403), own.answer(target, 200));
    }
}
