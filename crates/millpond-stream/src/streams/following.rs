//! Viewers of a ladder: each gets the frames of one of its streams, by a module of his own.

use crate::{
    Feed,
    cannot_open::CannotOpen,
    graph::{Closed, Fork, Graph, QueueLimits, Shared},
    live::{Follower, LiveFeed, Program, area, can_follow},
    modules::LadderFollower,
    registry::Registry,
    report::Reporter,
};
use futures_util::future::join_all;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

/// Longest wait for the first frame.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the frames of a ladder for one viewer: those of the best stream that the viewer's network carries. Frames wait for the
/// viewer for `span`. Cancel safe.
///
/// # Errors
/// There is no stream, or the best one has no key frame for long.
pub(crate) async fn follow(
    registry: &Registry,
    path: &str,
    mut feeds: Vec<Arc<LiveFeed>>,
    span: Duration,
) -> Result<Program, CannotOpen> {
    feeds.sort_by_cached_key(|feed| (std::cmp::Reverse(area(feed.formats())), feed.path().to_owned()));
    let Some(best) = feeds.first().cloned() else { return Err(CannotOpen::Ended) };
    feeds.retain(|feed| feed.path() == best.path() || can_follow(feed.formats(), best.formats()));
    let follower = Follower::new(feeds.len(), best.formats(), span).filter(|_| feeds.len() > 1);
    let Some(follower) = follower else { return Ok(Program::live(&best)) };
    let node = registry.add(LadderFollower::KIND.name, path);
    let programs: Vec<_> = feeds.iter().map(Program::live).collect();
    let limits = QueueLimits::MODULE;
    let branches = join_all(programs.iter().map(|program| program.shared.branch(node.id(), None, limits))).await;
    // A stream without a key frame is left out as one that has ended.
    let inputs: Vec<_> = branches.into_iter().map(|branch| branch.ok().map(|branch| branch.reader)).collect();
    if inputs.first().is_none_or(Option::is_none) {
        return Err(CannotOpen::Ended);
    }
    let reporter = Reporter::default();
    let fork = Arc::new(Fork::uncounted(registry, &node, reporter.splicer().lead().clone()));
    let absent = (0..).zip(&inputs).filter(|(_, input)| input.is_none()).map(|(at, _)| at).collect();
    let module = LadderFollower::new(follower, feeds, reporter.clone(), absent);
    let inputs = inputs.into_iter().flatten().collect();
    let graph = Graph::of_module(fork, node, (Box::new(module), inputs), path);
    let shared = Arc::new(Shared::new(Arc::new(graph), Duration::ZERO));
    let mut epochs = reporter.epochs();
    let first = async { epochs.wait_for(|epochs| !epochs.is_empty()).await.map(|epochs| epochs.first().cloned()) };
    let epoch = tokio::time::timeout(PATIENCE, first)
        .await
        .map_err(|_| Closed)
        .and_then(|epoch| epoch.ok().flatten().ok_or(Closed));
    let epoch = epoch.map_err(|Closed| CannotOpen::Ended)?;
    // All viewers of one run of the best stream are told the same formats.
    let mut id = DefaultHasher::new();
    (path, best.id()).hash(&mut id);
    Ok(Program::live(&Arc::new(LiveFeed::new(path.into(), id.finish(), epoch, &reporter, shared))))
}
