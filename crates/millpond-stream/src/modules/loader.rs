//! Loads the frames of a stored title through the store, ahead of their due times, a block at a time.

use crate::{
    Run,
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    resources::Resources,
    stored::{Courses, Lanes, LoadError, MediaReader, PlannedBlock, PoolReader, StoredMedia, Subject},
};
use futures_util::future::{BoxFuture, join_all};
use millpond_store::{Store, Watch, schedule::PlaySpan};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) const KIND: ModuleKind =
    ModuleKind { name: "loader", about: "loads the frames of a stored title", inputs: 0, outputs: 1 };

/// Called when the first frames are in the pipe.
pub(crate) type OnFirst = Box<dyn FnOnce() + Send>;

/// Gives the frames of a stored title in the order of their due times, up to its end.
pub(crate) struct Loader {
    pub(super) reader: MediaReader,
    pub(super) media: Arc<StoredMedia>,
    /// Its tracks by index, and the next sample of each.
    pub(super) tracks: Arc<[u16]>,
    pub(super) next: Vec<u32>,
    /// Frames that are due later are not loaded.
    pub(super) to: Duration,
    pub(super) pool: PoolReader,
    pub(super) on_first: Option<OnFirst>,
    pub(super) begins: Begins,
}

/// How a session begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begins {
    /// The moment at which it was asked for.
    asked: Instant,
    /// Longest wait of its first frames for what a slow link lacks.
    longest: Duration,
    /// Seconds of media in a second.
    speed: f64,
}

impl Loader {
    /// Begins with a sample of each track, at a due time, and ends before another one.
    pub(crate) fn new(
        resources: &Resources,
        media: Arc<StoredMedia>,
        (tracks, next): (Arc<[u16]>, Vec<u32>),
        (from, to): (Duration, Duration),
        on_first: Option<OnFirst>,
    ) -> Self {
        let pool = resources.intervals.enter(Subject::of(&media, tracks.clone()), from);
        Self {
            reader: resources.reader.clone(),
            media,
            tracks,
            next,
            to,
            pool,
            on_first,
            begins: Begins { asked: Instant::now(), longest: Duration::ZERO, speed: 1.0 },
        }
    }

    /// Lets the first frames wait for what a slow link lacks at a speed: for at most this time, from now on.
    pub(crate) fn waits(self, longest: Duration, speed: f64) -> Self {
        Self { begins: Begins { asked: Instant::now(), longest, speed }, ..self }
    }

    /// Gives all frames to `output`, each block as `shift` returns it. Returns the number of frames; `None` if the reader of the
    /// pipe was dropped.
    ///
    /// # Errors
    /// The origin's, and frames that can't be sent at all.
    pub(super) async fn load(
        self,
        output: &Output,
        shift: &(dyn Fn(&Run) -> Run + Sync),
    ) -> Result<Option<usize>, LoadError> {
        let Self { reader, media, tracks, mut next, to, mut pool, mut on_first, begins } = self;
        for object in media.objects() {
            reader.store.prepare(object).await?;
        }
        let length = pool.length();
        let mut lanes = Lanes::new(&media, length, &tracks, &next);
        let mut follower = Follower::default();
        let mut given = 0;
        let mut is_told = false;
        let mut following = lanes.following();
        // Blocks are the same for all sessions from the end of the first one on, or from the very beginning.
        let mut is_shared = next.iter().all(|next| *next == 0);
        while let Some(number) = following.filter(|number| length.begin_of(*number) < to) {
            if output.ready().await.is_err() {
                return Ok(None);
            }
            let mut read = async |lanes: &mut Lanes<'_>| {
                let planned = lanes.plan(number)?;
                follower.follow(&reader.store, &media, &tracks, length.begin_of(number), &planned);
                if planned.left_out > 0 && !mem::replace(&mut is_told, true) {
                    tell(&media, length.begin_of(number), planned.left_out);
                }
                Ok::<_, LoadError>(planned.read(&reader, &media).await?)
            };
            let block = if is_shared {
                let load = async || {
                    if lanes.next() != next {
                        lanes = Lanes::new(&media, length, &tracks, &next);
                    }
                    read(&mut lanes).await
                };
                pool.take(number, load).await?
            } else {
                Arc::new(read(&mut lanes).await?)
            };
            is_shared = true;
            if given == 0 {
                // Where another session has read the block, the watches of this one end with the wait.
                let mut led = Follower::default();
                if follower.watches.is_empty()
                    && let Ok(planned) = Lanes::new(&media, length, &tracks, &next).plan(number)
                {
                    led.follow(&reader.store, &media, &tracks, length.begin_of(number), &planned);
                }
                let lasts = to.saturating_sub(length.begin_of(number)).as_secs_f64();
                let playing = PlaySpan { speed: begins.speed, lasts };
                let left = begins.longest.saturating_sub(begins.asked.elapsed());
                let watches = follower.watches.iter().chain(&led.watches);
                join_all(watches.map(|watch| watch.is_ready(playing, left))).await;
            }
            next.clone_from(&block.next);
            following = block.following;
            given += block.frames.len();
            if output.send(shift(&block.frames)).await.is_err() {
                return Ok(None);
            }
            if let Some(on_first) = on_first.take() {
                on_first();
            }
        }
        Ok(Some(given))
    }
}

impl Module for Loader {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            self.load(&output, &Run::clone).await?;
            Ok(())
        })
    }
}

/// Logs that a title has more frames in a block than a session can be sent.
fn tell(media: &StoredMedia, at: Duration, left_out: u64) {
    let (asset, at) = (media.path(), at.as_secs_f64());
    tracing::warn!(asset, at, left_out, "more than 20,480 frames of a track in a second: the rest is left out");
}

/// Tells the fetch scheduler a session's position in each object, so that the next slices arrive in time.
#[derive(Default)]
struct Follower {
    courses: Courses,
    watches: Vec<Watch>,
}

impl Follower {
    /// Moves to a block that begins at a time of the title.
    fn follow(&mut self, store: &Store, media: &StoredMedia, tracks: &[u16], at: Duration, planned: &PlannedBlock) {
        for (index, span) in &planned.spans {
            let Some(object) = media.object(*index).filter(|object| object.file().is_none()) else { continue };
            self.courses.moves(media, tracks, at);
            let length = object.meta().len;
            let rate = length as f64 / media.duration().max(0.001);
            let course = self.courses.course(*index, span.start, at, (length, rate));
            match self.watches.iter().find(|watch| Arc::ptr_eq(watch.object(), object)) {
                Some(watch) => watch.moves(course, span.end),
                None => {
                    let watch = store.watch(object);
                    watch.moves(course, span.end);
                    self.watches.push(watch);
                }
            }
        }
    }
}
