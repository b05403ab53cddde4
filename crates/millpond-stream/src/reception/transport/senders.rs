//! Choice of one sender, where several send to the address of a transport stream.

use std::{net::SocketAddr, time::Duration};

/// Silence of the sender after which another one takes its place.
const SILENCE: Duration = Duration::from_secs(1);

/// Takes the datagrams of one sender at a time, because two senders would damage each other's stream.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// The sender, and the arrival of its last datagram with transport packets.
    current: Option<(SocketAddr, Duration)>,
    /// A sender whose datagrams are dropped, and that was not told yet.
    stranger: Option<SocketAddr>,
    was_told: bool,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It continues the stream.
    Same,
    /// It is the first datagram of another stream.
    Anew,
    /// It is a stranger's.
    Dropped,
}

impl Senders {
    /// Decides on a datagram; `is_stream` tells whether it has whole transport packets and nothing else. Bytes that are no such
    /// packets are taken until a sender of some is known, as streams may be cut anywhere.
    pub(super) fn admit(&mut self, from: Option<SocketAddr>, is_stream: bool, now: Duration) -> Admission {
        let Some(from) = from else { return Admission::Same };
        match &mut self.current {
            Some((current, heard)) if *current == from => {
                if is_stream {
                    *heard = now;
                }
                Admission::Same
            }
            Some((_, heard)) if !is_stream || now < *heard + SILENCE => {
                self.stranger.get_or_insert(from);
                Admission::Dropped
            }
            current => {
                let was_known = current.is_some();
                if is_stream {
                    *current = Some((from, now));
                    (self.stranger, self.was_told) = (None, false);
                }
                if was_known { Admission::Anew } else { Admission::Same }
            }
        }
    }

    /// Returns the present sender, and one whose datagrams are dropped; once for each present sender.
    pub(super) fn stranger(&mut self) -> Option<(SocketAddr, SocketAddr)> {
        let (current, _) = self.current?;
        let stranger = self.stranger.filter(|_| !self.was_told)?;
        self.was_told = true;
        Some((current, stranger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_is_heard_until_it_is_silent() {
        let mut senders = Senders::default();
        let at = |port: u16| Some(SocketAddr::from(([192, 0, 2, 1], port)));
        let mut admit = |port, is_stream, now| senders.admit(at(port), is_stream, Duration::from_millis(now));
        assert_eq!(admit(1, false, 0), Admission::Same, "nothing is known yet");
        assert_eq!(admit(2, true, 10), Admission::Same);
        assert_eq!(admit(1, false, 20), Admission::Dropped);
        assert_eq!(admit(1, true, 1009), Admission::Dropped);
        assert_eq!(admit(2, false, 1009), Admission::Same);
        assert_eq!(admit(1, false, 1010), Admission::Dropped, "garbage takes no place");
        assert_eq!(admit(1, true, 1010), Admission::Anew);
        assert_eq!(admit(2, true, 1020), Admission::Dropped);
        assert_eq!(senders.stranger(), at(1).zip(at(2)));
        assert_eq!(senders.stranger(), None);
    }
}
