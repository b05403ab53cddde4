//! The assets of a channel, one after the other, round and round.

use super::{Loader, loader};
use crate::{
    StoredMedia,
    graph::{Inputs, Module, ModuleError, Output},
    live::{AssetTurn, ChannelSource, FirstFrames, Joint, Lap, Schedule},
    report::Reporter,
    resources::Resources,
    source_health::{SourceError, SourceErrorKind},
};
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Time for which an asset is skipped that could not be played.
const REST: Duration = Duration::from_secs(10);
/// The same in a channel that has given no frame yet.
const FIRST_REST: Duration = Duration::from_secs(1);

/// Gives the frames of a channel's assets without an end. Times and numbers go on from turn to turn.
pub(crate) struct Laps {
    source: ChannelSource,
    resources: Resources,
    schedule: Arc<Schedule>,
    reporter: Reporter,
    /// `None` before the first asset.
    joint: Option<Joint>,
    /// Version of the asset that played last.
    last: Option<u64>,
    /// Number of the turn in the schedule that was told last.
    number: u32,
    /// Whether the duration of the asset that played last is known.
    has_end: bool,
}

impl Laps {
    pub(crate) fn new(
        source: ChannelSource,
        resources: &Resources,
        (schedule, reporter): (Arc<Schedule>, Reporter),
    ) -> Self {
        let resources = resources.clone();
        Self { source, resources, schedule, reporter, joint: None, last: None, number: 0, has_end: false }
    }

    /// Plays an asset once. Returns whether somebody still takes the frames.
    ///
    /// # Errors
    /// The asset can't be played, or only a part of it.
    async fn play(&mut self, asset: &str, output: &Output) -> Result<bool, SourceError> {
        let media = self.source.open(asset).await?;
        self.has_end = media.duration() > 0.0;
        let error = |kind, words: String| SourceError { kind, address: asset.to_owned(), words };
        let mut joint = match self.joint.take() {
            Some(joint) => joint,
            None => Joint::new(&media, self.source.rendition())
                .ok_or_else(|| error(SourceErrorKind::NoMedia, "it has no track that can be sent by RTP".to_owned()))?,
        };
        let is_same = self.last == Some(media.id());
        if !(is_same && self.schedule.has_seat()) {
            self.take_seat(&media).await.map_err(|words| error(SourceErrorKind::NoMedia, words.to_owned()))?;
        }
        let number = if is_same { self.number } else { self.number.wrapping_add(1) };
        let lap = match joint.lap(&media, number) {
            Ok(lap) => lap,
            Err(unfit) => {
                self.joint = Some(joint);
                return Err(error(SourceErrorKind::NoMedia, unfit.of_asset()));
            }
        };
        let begins = match self.source.start().filter(|_| self.last.is_none()) {
            None => None,
            Some(start) => {
                let begins = start.beginning(&media, &lap.tracks(), Instant::now().into_std());
                let begins = begins.ok_or_else(|| error(SourceErrorKind::NoMedia, "it is over".to_owned()))?;
                self.schedule.set_opens(begins.moment);
                Some(begins)
            }
        };
        if !is_same {
            let from = lap.begin() + begins.as_ref().map_or(Duration::ZERO, |begins| begins.at);
            self.schedule.add(AssetTurn { number, from, formats: lap.formats().clone() });
            (self.last, self.number) = (Some(media.id()), number);
        }
        self.schedule.begin_lap(lap.begin());
        let loaded = self.loader(&media, &lap, begins).load(output, &|run| lap.shift(run)).await;
        joint.end(lap, loaded.is_ok().then(|| media.duration()));
        self.joint = Some(joint);
        match loaded {
            Ok(Some(0)) => Err(error(SourceErrorKind::NoMedia, "it has no frames".to_owned())),
            Ok(given) => Ok(given.is_some()),
            Err(why) => {
                tracing::info!(asset, %why, "the frames of a channel's asset can't be read");
                Err(error(SourceErrorKind::Unreachable, why.for_viewers()))
            }
        }
    }

    /// Waits until the phase of the channel begins, where it is one.
    ///
    /// # Errors
    /// The title can't be played in phases.
    async fn take_seat(&self, media: &StoredMedia) -> Result<(), &'static str> {
        let Some(phase) = self.source.phase() else { return Ok(()) };
        let seat = self.resources.broadcasts.seat(phase, (media.id(), media.duration()));
        let seat = seat.ok_or("it has no duration, so that it can't play in phases")?;
        let now = Instant::now().into_std();
        let begins = seat.next_begin(now);
        if begins > now {
            self.reporter.scheduled(begins);
        }
        sleep_until(begins.into()).await;
        self.schedule.set_seat(Some(seat));
        Ok(())
    }

    fn loader(&self, media: &Arc<StoredMedia>, lap: &Lap, begins: Option<FirstFrames>) -> Loader {
        let tracks = lap.tracks();
        let (at, next) = match begins {
            Some(FirstFrames { at, next, .. }) => (at, next),
            None => (Duration::ZERO, vec![0; tracks.len()]),
        };
        Loader::new(&self.resources, media.clone(), (tracks, next), (at, Duration::MAX), None)
    }

    /// Plays the only asset once. The channel is silent after its end, until it is closed. It ends where the asset can't be played, or has no
    /// known end.
    async fn once(&mut self, asset: &str, output: &Output) {
        match self.play(asset, output).await {
            Ok(true) if self.has_end => std::future::pending().await,
            Ok(_) => {}
            Err(why) => self.fail(why),
        }
    }

    /// Tells that no asset can be played now.
    fn fail(&self, why: SourceError) {
        match self.last {
            Some(_) => self.reporter.lost(Arc::new(why)),
            None => self.reporter.failed(Arc::new(why)),
        }
    }

    /// Plays all assets that do not rest, once. Those that fail rest until `rests`. Returns whether somebody takes the frames.
    async fn round(&mut self, rests: &mut [Option<Instant>], output: &Output) -> bool {
        let assets: Vec<Box<str>> = self.source.assets().into();
        let (mut has_played, mut failure) = (false, None);
        for (asset, rest) in assets.iter().zip(rests.iter_mut()) {
            if rest.is_some_and(|rest| Instant::now() < rest) {
                continue;
            }
            let before = self.last;
            match self.play(asset, output).await {
                Ok(true) => (has_played, *rest) = (true, None),
                Ok(false) => return false,
                Err(why) => {
                    // A phase that failed begins again at its next turn.
                    self.schedule.set_seat(None);
                    tracing::warn!(asset = %asset, why = why.words, "a channel skips an asset");
                    *rest = Some(Instant::now() + if self.last.is_some() { REST } else { FIRST_REST });
                    has_played |= self.last != before;
                    failure = failure.or(Some(why));
                }
            }
        }
        if let Some(why) = failure.filter(|_| !has_played) {
            self.fail(why);
        }
        has_played || output.ready().await.is_ok()
    }
}

impl Module for Laps {
    fn kind(&self) -> &'static str {
        // It is a loader of several titles.
        loader::KIND.name
    }

    fn run(mut self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            if self.source.start().is_some_and(|start| !start.repeats) {
                let assets: Vec<Box<str>> = self.source.assets().into();
                if let [asset] = &*assets {
                    self.once(asset, &output).await;
                }
                return Ok(());
            }
            let mut rests = vec![None; self.source.assets().len()];
            while self.round(&mut rests, &output).await {
                // Where all rest, the first one that may be tried again is waited for.
                if let Some(first) =
                    rests.iter().copied().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().min())
                {
                    sleep_until(first).await;
                }
            }
            Ok(())
        })
    }
}
