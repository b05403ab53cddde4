//! Ladders of live streams: opening their streams, and waiting for those that players can begin with.

use super::{
    super::{Front, ReplyInfo, target::LiveTarget},
    PATIENCE,
    playlist::{BEGINNING, stopped},
    program,
};
use crate::{
    http::AnswerError,
    library::LibraryError,
    live::{LadderAt, Sources},
};
use millpond_stream::{
    Program,
    live::{LadderId, LadderView, LiveWindow},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Interval between looks at streams that are opened.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which players wait for further streams when they could begin with one.
const LATE: Duration = Duration::from_secs(3);
/// Time after which a stream that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// Time after which a stream that nobody asks for is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Streams of ladders that have no window yet, by their paths.
#[derive(Debug, Default)]
pub(in crate::http::answer) struct Openings(Mutex<HashMap<String, Opening>>);

/// The attempts to open a stream.
#[derive(Debug)]
struct Opening {
    /// The first attempt, and the last request for the stream.
    began: Instant,
    asked: Instant,
    /// The end of the last attempt; `None` while it is under way.
    ended: Option<(Instant, Result<(), AnswerError>)>,
}

impl Openings {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Opening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream in the background, unless that is under way or failed just now. Returns whether players still wait for it,
    /// and the failure of the last attempt.
    fn open(self: &Arc<Self>, sources: &Arc<Sources>, path: &str) -> (bool, Option<AnswerError>) {
        let now = Instant::now();
        let mut all = self.lock();
        all.retain(|of, opening| of == path || opening.asked.elapsed() < FORGOTTEN);
        let opening = all.entry(path.to_owned()).or_insert_with(|| Opening {
            began: now,
            asked: now,
            ended: Some((now, Ok(()))),
        });
        opening.asked = now;
        let failure = opening.ended.as_ref().and_then(|(_, result)| result.as_ref().err().cloned());
        let is_due = opening.ended.as_ref().is_some_and(|(at, result)| result.is_ok() || at.elapsed() >= AGAIN);
        if is_due {
            opening.ended = None;
            let (openings, sources, path) = (self.clone(), sources.clone(), path.to_owned());
            tokio::spawn(async move {
                let result = open(&sources, &path).await;
                if let Some(opening) = openings.lock().get_mut(&path) {
                    opening.ended = Some((Instant::now(), result));
                }
            });
        }
        (opening.began.elapsed() < LATE && failure.is_none(), failure)
    }

    /// Forgets the attempts for a stream that runs. Returns whether players that could begin with another one still wait for it.
    fn runs(&self, path: &str, is_ready: bool) -> bool {
        let mut all = self.lock();
        if is_ready {
            all.remove(path);
            return false;
        }
        all.get(path).is_some_and(|opening| opening.began.elapsed() < LATE * 2)
    }
}

/// Opens a live stream and its window.
async fn open(sources: &Sources, path: &str) -> Result<(), AnswerError> {
    let named = || path.to_owned();
    let not_started = |error| AnswerError::NotStarted { path: named(), error };
    let at = sources.find(path);
    let request = sources.live(&at)?.ok_or_else(|| LibraryError::NoAsset(named()))?;
    let stream = sources.manager().live(request).map_err(not_started)?;
    let feed = sources.manager().live_feed(&stream, PATIENCE).await;
    let program = Program::live(&feed.map_err(|error| AnswerError::Source { path: named(), error })?);
    sources.manager().window(&program, sources.window_options(&at)).map(drop).map_err(not_started)
}

/// Returns the ladder at a path with those of its streams that run, when players can begin with one of them; `None` where
/// the path is that of a stream.
///
/// # Errors
/// None of its streams can be opened, or none has segments for long.
pub(super) async fn find(
    front: &Front,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Option<LadderView>, AnswerError> {
    let Some(ladder) = front.sources.ladder(&live.stream).filter(|_| live.is_source) else { return Ok(None) };
    let (began, mut stop) = (Instant::now(), front.lasting.stop.subscribe());
    let view = tokio::select! {
        biased;
        view = gather(front, live, &ladder) => view,
        _ = stop.wait_for(|stop| *stop) => Err(stopped(live)),
    };
    info.waited += began.elapsed();
    view
}

/// Waits for the streams of a ladder.
async fn gather(front: &Front, live: &LiveTarget, ladder: &LadderAt) -> Result<Option<LadderView>, AnswerError> {
    if *ladder == LadderAt::Folder && !is_folder(front, live).await? {
        return Ok(None);
    }
    let began = Instant::now();
    loop {
        let streams = match ladder {
            LadderAt::Named(streams) => streams.clone(),
            LadderAt::Folder => pushed(front, live),
        };
        let Gathered { ready, is_late, is_pending, failure } = look(front, live, &streams);
        if !ready.is_empty() && !is_late {
            return Ok(Some(LadderView::new(&live.stream, ready)));
        }
        match failure {
            Some(failure) if ready.is_empty() && !is_pending => return Err(failure),
            _ if began.elapsed() >= BEGINNING => {
                return Err(AnswerError::Stalled { path: live.stream.to_string(), waited: BEGINNING });
            }
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Looks at the streams of a ladder, and opens those that have no window.
fn look(front: &Front, live: &LiveTarget, streams: &[String]) -> Gathered {
    let windows = front.sources.manager().ladder(LadderId::of(&live.stream));
    let mut gathered = Gathered { ready: Vec::new(), is_late: false, is_pending: false, failure: None };
    for stream in streams {
        let known = windows.iter().find(|(of, _)| **of == **stream).map(|(_, window)| window);
        let is_late = match known {
            Some(window) => {
                window.renew();
                let is_ready = window.look(|window| window.is_ready());
                gathered.is_pending |= !is_ready;
                if is_ready {
                    gathered.ready.push((stream.clone(), window.clone()));
                }
                front.lasting.openings.runs(stream, is_ready)
            }
            None => {
                let (is_late, failure) = front.lasting.openings.open(&front.sources, stream);
                gathered.is_pending |= failure.is_none();
                gathered.failure = gathered.failure.or(failure);
                is_late
            }
        };
        gathered.is_late |= is_late;
    }
    gathered
}

/// Paths of the streams that run in a folder.
fn pushed(front: &Front, live: &LiveTarget) -> Vec<String> {
    front.sources.manager().running_in(&live.stream).iter().map(|path| path.to_string()).collect()
}

/// Waits until a stream runs at a path, or streams do in the folder of the path. Returns whether it is the folder.
///
/// # Errors
/// Those of the stream at the path.
async fn is_folder(front: &Front, live: &LiveTarget) -> Result<bool, AnswerError> {
    if front.sources.manager().is_running(&live.stream) {
        return Ok(false);
    }
    let pushed = async {
        while pushed(front, live).is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = pushed => Ok(true),
        program = program(front, live) => program.map(|_| false),
    }
}

/// The streams of a ladder at one moment.
struct Gathered {
    ready: Vec<(String, Arc<LiveWindow>)>,
    /// Whether players wait for one that is not ready.
    is_late: bool,
    /// Whether one is being opened, or waits for its first segments.
    is_pending: bool,
    /// The failure of one that can't be opened.
    failure: Option<AnswerError>,
}
