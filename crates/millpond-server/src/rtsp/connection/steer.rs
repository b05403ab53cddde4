//! Media that another node of the cluster serves.

use super::Connection;
use crate::{
    cluster::{MARK, Protocol, marked},
    rtsp::{party::Party, session::stored_demand, signalling::SetUp},
};
use millpond_cluster::Demand;
use millpond_stream::Feed;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for opening a title before its viewer is steered.
const OPENING: Duration = Duration::from_secs(1);

impl Connection<'_> {
    /// The URL of the request at the node that serves its medium; `None` where that is this one.
    pub(super) async fn steer(&self, path: &str, query: &str) -> Option<String> {
        let cluster = self.rtsp.cluster.as_ref().filter(|_| self.shared.is_none())?;
        if marked(query) {
            return None;
        }
        let (key, start) = self.rtsp.sources.object_key(&self.rtsp.sources.find(path))?;
        if !cluster.redirects(start, Protocol::Rtsp) {
            return None;
        }
        let demand = if cluster.needs_demand(start) { self.demand(path).await } else { None };
        let base =
            cluster.elsewhere((&key, start), demand.as_ref(), (Protocol::Rtsp, self.dialogue.is_secure())).await?;
        self.dialogue.moved(&base, &format!("{MARK}={}", cluster.name()))
    }

    /// The demand of a stored title, as players play it; `None` where it can't be opened in time.
    async fn demand(&self, path: &str) -> Option<Demand> {
        let (asset, rendition) = timeout(OPENING, self.rtsp.sources.open(path)).await.ok()?.ok()?;
        let media = self.rtsp.sources.media(&asset);
        let chosen = (&*media as &dyn Feed).chosen(rendition.as_deref(), None);
        let tracks: Vec<u16> = chosen.into_iter().filter_map(|(track, _)| u16::try_from(track).ok()).collect();
        Some(stored_demand(&media, self.rtsp.sources.place(path), &tracks))
    }

    /// The URL of a SETUP at another node. Tracks of a medium that was described here are set up here.
    pub(super) async fn steer_set_up(&self, set_up: &SetUp<Party>) -> Option<String> {
        if self.has_described || set_up.session.is_some() {
            return None;
        }
        self.steer(&set_up.path, &set_up.query).await
    }
}
