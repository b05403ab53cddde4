//! Channels of a connection (RFC 2326 10.12). Each belongs to one track, of any session.

use crate::rtsp::session::Session;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::Mutex;

/// Tracks that are sent on a connection, by their channels. There are at most 256 channels.
#[derive(Default)]
pub(super) struct Channels(HashMap<u8, Owner>);

struct Owner {
    id: u64,
    track: usize,
    session: Weak<Mutex<Session>>,
}

impl Channels {
    /// Returns the channels of RTP and RTCP for a session's track: the requested ones, else the first free pair.
    /// Returns `None` where another track has one of them, or no pair is free.
    pub(super) fn find(&self, asked: Option<(u8, u8)>, id: u64, track: usize) -> Option<(u8, u8)> {
        let is_free = |channel: u8| {
            self.0
                .get(&channel)
                .is_none_or(|owner| (owner.id, owner.track) == (id, track) || owner.session.strong_count() == 0)
        };
        let fits = |(rtp, rtcp): &(u8, u8)| rtp != rtcp && is_free(*rtp) && is_free(*rtcp);
        match asked {
            Some(channels) => Some(channels).filter(fits),
            None => (0..=254).step_by(2).map(|rtp| (rtp, rtp + 1)).find(fits),
        }
    }

    /// Assigns channels to a session's track, in place of its earlier ones.
    pub(super) fn give(&mut self, (rtp, rtcp): (u8, u8), id: u64, track: usize, session: &Arc<Mutex<Session>>) {
        self.0.retain(|_, owner| (owner.id, owner.track) != (id, track) && owner.session.strong_count() > 0);
        for channel in [rtp, rtcp] {
            self.0.insert(channel, Owner { id, track, session: Arc::downgrade(session) });
        }
    }

    /// Returns the session that has a channel.
    pub(super) fn session(&self, channel: u8) -> Option<Arc<Mutex<Session>>> {
        self.0.get(&channel)?.session.upgrade()
    }
}
