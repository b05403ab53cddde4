//! The receiver of a session's media: the receiving thread, or the connection's own task.

use super::{
    connection::Frames,
    figures::MediaFigures,
    media::{Event, Media},
    receiver::Reception,
};
use std::{cell::RefCell, rc::Rc, time::Duration};

/// One session's media.
pub(crate) enum Sink {
    /// It is not read.
    None,
    /// By UDP.
    Udp(Reception),
    /// On the connection.
    Tcp(Interleaved),
}

impl Sink {
    /// See [`Media::play`].
    pub(crate) fn play(&mut self, now: Duration) {
        match self {
            Self::None => {}
            Self::Udp(reception) => reception.play(now),
            Self::Tcp(interleaved) => interleaved.media.play(now),
        }
    }

    /// See [`Media::pause`].
    pub(crate) fn pause(&mut self) {
        match self {
            Self::None => {}
            Self::Udp(reception) => reception.pause(),
            Self::Tcp(interleaved) => interleaved.media.pause(),
        }
    }
}

impl Frames for Sink {
    fn frame(&mut self, arrival: Duration, channel: u8, bytes: &[u8]) {
        if let Self::Tcp(interleaved) = self {
            interleaved.frame(arrival, channel, bytes);
        }
    }
}

/// Media that arrives on the connection.
pub(crate) struct Interleaved {
    media: Media,
    /// Channels of RTP and RTCP, track by track.
    channels: Vec<(u8, u8)>,
    /// Shared by the sessions of a thread; none holds it over a wait.
    figures: Rc<RefCell<MediaFigures>>,
}

impl Interleaved {
    pub(crate) fn new(media: Media, channels: Vec<(u8, u8)>, figures: Rc<RefCell<MediaFigures>>) -> Self {
        Self { media, channels, figures }
    }

    /// Returns what happened.
    pub(crate) fn event(&mut self) -> Option<Event> {
        self.media.event().map(|(_, event)| event)
    }

    /// Checks whether packets still arrive. Gives the receiver reports that are to be sent, with their channels.
    pub(crate) fn look(&mut self, now: Duration) -> Vec<(u8, Vec<u8>)> {
        self.media.check(now);
        let all = self.channels.iter().enumerate();
        all.filter_map(|(track, (_, rtcp))| Some((*rtcp, self.media.report(track, now)?))).collect()
    }
}

impl Frames for Interleaved {
    fn frame(&mut self, arrival: Duration, channel: u8, bytes: &[u8]) {
        let track = self.channels.iter().position(|(rtp, rtcp)| *rtp == channel || *rtcp == channel);
        let Some(track) = track else { return };
        if self.channels[track].0 == channel {
            self.media.rtp(track, bytes, bytes.len(), arrival, &mut self.figures.borrow_mut());
        } else {
            self.media.rtcp(track, bytes, arrival);
        }
    }
}

impl Drop for Interleaved {
    fn drop(&mut self) {
        self.media.finish(&mut self.figures.borrow_mut());
    }
}
