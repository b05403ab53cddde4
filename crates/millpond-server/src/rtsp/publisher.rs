//! A session whose client pushes a stream.

use super::{
    record::{End, Record},
    signalling::Signs,
};
use crate::wire::Wire;
use bytes::Bytes;
use millpond_stream::{
    Admitted, Conflict, LiveRequest, Manager, Observer as _, Publication, PublicationEnd, PublishRefused,
    PublishRequest, PublishedMedia, SentTotals, reception::AnnouncedMedia,
};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

/// A session of a publisher, from its first SETUP on. The publication ends when it is dropped.
pub(super) struct Publisher {
    /// A lock: held while a request of the session is performed, and while a packet waits for room.
    state: Mutex<State>,
    /// Start of the clock of sessions.
    clock: Instant,
    /// Time of the last request or packet on the connection, in milliseconds of that clock.
    heard: AtomicU64,
    record: Record,
    wire: Weak<Wire>,
}

/// A publisher's state.
pub(super) struct State {
    stream: LiveRequest,
    course: Course,
    admitted: Admitted,
    /// Transport for the log.
    transport: &'static str,
}

enum Course {
    /// Streams are set up.
    Announced(Box<AnnouncedMedia>),
    /// Media is received.
    Publishing(Publication),
    /// The publication was refused.
    Over,
}

/// Why a RECORD is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRecord {
    #[error("no stream was set up, or it is published already")]
    State,
    #[error(transparent)]
    Refused(#[from] PublishRefused),
}

impl Publisher {
    pub(super) fn new(
        (stream, media): (LiveRequest, Box<AnnouncedMedia>),
        admitted: Admitted,
        (record, wire): (Record, &Arc<Wire>),
        clock: Instant,
    ) -> Arc<Self> {
        let state = State { stream, course: Course::Announced(media), admitted, transport: "udp" };
        let heard = AtomicU64::new(clock.elapsed().as_millis() as u64);
        Arc::new(Self { state: Mutex::new(state), clock, heard, record, wire: Arc::downgrade(wire) })
    }

    /// Gives a packet of a channel to the reception. Waits while its queue is full. Packets before RECORD are ignored.
    ///
    /// # Errors
    /// The publication has ended.
    pub(super) async fn push(&self, channel: u8, packet: Bytes) -> Result<(), PublicationEnd> {
        match &self.state.lock().await.course {
            Course::Publishing(publication) => {
                publication.push(channel, packet).await.inspect_err(|end| self.ended(end))
            }
            Course::Announced(_) | Course::Over => Ok(()),
        }
    }

    /// Calls a function with the announced media, to set up a stream; `None` once it is published.
    pub(super) async fn set_up<T>(
        &self,
        transport: &'static str,
        set_up: impl FnOnce(&mut AnnouncedMedia) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.state.lock().await;
        state.transport = transport;
        match &mut state.course {
            Course::Announced(media) => set_up(media),
            Course::Publishing(_) | Course::Over => None,
        }
    }

    /// Begins to receive.
    ///
    /// # Errors
    /// Nothing was set up, or the engine refuses the publication. The session is then over.
    pub(super) async fn record(&self, manager: &Arc<Manager>, conflict: Conflict) -> Result<(), NoRecord> {
        let mut state = self.state.lock().await;
        if !matches!(&state.course, Course::Announced(media) if media.is_set_up()) {
            return Err(NoRecord::State);
        }
        let Course::Announced(media) = std::mem::replace(&mut state.course, Course::Over) else {
            return Err(NoRecord::State);
        };
        let (stream, media) = (state.stream.clone(), PublishedMedia::Rtp(media));
        state.course = Course::Publishing(manager.publish(PublishRequest { stream, media, conflict })?);
        state.admitted.play();
        self.record.publishes(state.transport);
        Ok(())
    }

    /// The session's record, and the bytes that were received; 0 while a request of it is performed.
    pub(super) fn record_of(&self) -> (&Record, u64) {
        let state = self.state.try_lock();
        let bytes = state.ok().and_then(|state| match &state.course {
            Course::Publishing(publication) => Some(publication.received().1),
            Course::Announced(_) | Course::Over => None,
        });
        (&self.record, bytes.unwrap_or(0))
    }

    /// Ends the connection of the publisher.
    pub(super) fn disconnect(&self) {
        if let Some(wire) = self.wire.upgrade() {
            wire.shut();
        }
    }

    pub(super) fn signs(&self) -> Option<Signs> {
        let state = self.state.try_lock().ok()?;
        let mut heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        let mut is_stuck = matches!(state.course, Course::Over);
        if let Course::Publishing(publication) = &state.course {
            heard = heard.max(self.clock.elapsed().saturating_sub(publication.silence()));
            let ended = publication.ended();
            is_stuck = ended.inspect(|end| self.ended(end)).is_some();
        }
        Some(Signs { heard, is_stuck, is_sent: false, has_played: state.admitted.has_played() })
    }

    pub(super) fn heard(&self, now: Duration) {
        self.heard.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn ends(&self, why: End) {
        self.record.ends(why);
    }

    fn ended(&self, end: &PublicationEnd) {
        self.ends(match end {
            PublicationEnd::Replaced => End::Replaced,
            PublicationEnd::HandedOver => End::HandedOver,
            PublicationEnd::Failed(_) | PublicationEnd::Closed => End::Unreceivable,
        });
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Course::Publishing(publication) = &self.state.get_mut().course {
            let (packets, bytes) = publication.received();
            self.record.stopped(SentTotals { packets, bytes, lost: 0 });
        }
    }
}
