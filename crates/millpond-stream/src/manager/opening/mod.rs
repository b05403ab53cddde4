//! Opens requests: finds a graph that can be shared, forks it, or builds one.

mod live;
mod past;
mod remote;
mod seek;
mod stored;

use super::{Options, Request, Subscriber, opened::Opened};
use crate::{
    Feed,
    admission::{Admission, Full, OriginLoad, Origins},
    cannot_open::CannotOpen,
    live::Windows,
    registry::Registry,
    resources::Resources,
    stored::{StoredMedia, Subject},
};
use millpond_package::PresentedTrack;
use std::{sync::Arc, time::Duration};

/// Blocks between a loader and a transmission, beside the one that is being sent.
const DEPTH: usize = 1;

/// The parts that requests are opened with.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a> {
    pub(super) options: &'a Options,
    pub(super) admission: &'a Arc<Admission>,
    pub(super) origins: &'a Origins,
    pub(super) registry: &'a Registry,
    pub(super) resources: &'a Resources,
    pub(super) windows: &'a Windows,
}

impl Opening<'_> {
    /// Opens a request for a subscriber.
    ///
    /// # Errors
    /// The part is empty, admission refuses it, or the channel has ended.
    pub(super) async fn open(self, subscriber: &mut Subscriber, request: Request) -> Result<Opened, CannotOpen> {
        subscriber.recover();
        match request {
            Request::Stored { media, from, to, scale, speed } => {
                self.open_stored(subscriber, media, (from, to), (scale, speed), None)
            }
            Request::Phased { media, from, speed, phases } => {
                self.open_stored(subscriber, media, (from, None), (1.0, speed), Some(phases))
            }
            Request::Remote { title, from, to, speed } => self.open_remote(subscriber, title, (from, to), speed).await,
            Request::Channel(program) => self.open_channel(subscriber, &program).await,
            Request::Past { program, from, to, speed } => self.open_past(subscriber, &program, (from, to), speed).await,
        }
    }

    /// Books bandwidth of the machine, and of an origin. A subscriber that plays books its origin later too, when it goes where
    /// no frames are in memory.
    fn book(
        &self,
        subscriber: &mut Subscriber,
        media: &StoredMedia,
        origin: Option<Arc<OriginLoad>>,
    ) -> Result<(), Full> {
        let origin = origin.as_ref();
        if let Some(booking) = &mut subscriber.booking {
            let has_it = origin.is_none_or(|origin| booking.add_origin(origin));
            return has_it.then_some(()).ok_or(Full::Origin);
        }
        let feed: &dyn Feed = media;
        let rate = feed.rate(subscriber.tracks.iter().map(|sender| sender.track));
        subscriber.booking = Some(self.admission.book(rate, origin)?);
        Ok(())
    }

    /// The origin of a title; `None` where its files are local.
    fn origin_of(&self, media: &StoredMedia) -> Option<Arc<OriginLoad>> {
        self.origins.of(media.remote_place()?)
    }

    /// The origin from which the tracks of a title must be read, if it can refuse a session. `None` if the tracks are local,
    /// cached, or read by another session that is a little ahead.
    pub(super) fn read_from(&self, media: &StoredMedia, tracks: &Arc<[u16]>, at: f64) -> Option<Arc<OriginLoad>> {
        let origin = self.origin_of(media).filter(|origin| origin.is_scarce())?;
        let subject = Subject::of(media, tracks.clone());
        let position = Duration::try_from_secs_f64(at).unwrap_or_default();
        let objects = tracks.iter().filter_map(|track| media.track(*track)).flat_map(PresentedTrack::objects);
        let mut objects = objects.filter_map(|object| media.object(object));
        let Resources { reader, intervals, .. } = self.resources;
        let reads = !intervals.is_led(&subject, position)
            && objects.any(|object| !reader.store.is_near(object, &(0..object.meta().len)));
        reads.then_some(origin)
    }
}
