//! Channels of a connection (RFC 2326 10.12): each is one track's, whichever session that is of.

use std::collections::HashMap;

/// The tracks that are sent on a connection, by their channels: no more than there are numbers.
#[derive(Debug, Default)]
pub(super) struct Channels(HashMap<u8, Owner>);

#[derive(Debug, PartialEq, Eq)]
struct Owner {
    /// Name of the session.
    session: String,
    track: usize,
}

impl Owner {
    fn is(&self, session: &str, track: usize) -> bool {
        self.session == session && self.track == track
    }
}

impl Channels {
    /// Returns the channels of RTP and RTCP for a session's track: those that are asked for, else the first pair that is free, as
    /// some clients ask for the same pair for each track. Nothing where there is none. `is_open` tells whether a session is
    /// still there.
    pub(super) fn find(
        &self,
        asked: Option<(u8, u8)>,
        session: &str,
        track: usize,
        is_open: impl Fn(&str) -> bool,
    ) -> Option<(u8, u8)> {
        let is_free =
            |channel: u8| self.0.get(&channel).is_none_or(|owner| owner.is(session, track) || !is_open(&owner.session));
        let fits = |(rtp, rtcp): &(u8, u8)| rtp != rtcp && is_free(*rtp) && is_free(*rtcp);
        asked.filter(fits).or_else(|| (0..=254).step_by(2).map(|rtp| (rtp, rtp + 1)).find(fits))
    }

    /// Gives channels to a session's track, in place of those that it had.
    pub(super) fn give(&mut self, (rtp, rtcp): (u8, u8), session: &str, track: usize, is_open: impl Fn(&str) -> bool) {
        self.0.retain(|_, owner| !owner.is(session, track) && is_open(&owner.session));
        for channel in [rtp, rtcp] {
            self.0.insert(channel, Owner { session: session.to_owned(), track });
        }
    }

    /// The name of the session that has a channel.
    pub(super) fn session(&self, channel: u8) -> Option<&str> {
        self.0.get(&channel).map(|owner| owner.session.as_str())
    }
}
