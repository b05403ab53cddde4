//! Media that another node of the cluster serves.

use super::Connection;
use crate::{
    cluster::{MARK, Protocol, marked},
    encode,
    rtsp::{party::Party, signalling::SetUp},
};

impl Connection<'_> {
    /// The URL of a medium at the node that serves it; `None` where that is this one. `track` is appended to the path.
    pub(super) async fn steer(&self, path: &str, track: &str, query: &str) -> Option<String> {
        let cluster = self.rtsp.cluster.as_ref().filter(|_| self.shared.is_none())?;
        if marked(query) {
            return None;
        }
        let (key, start) = self.rtsp.sources.object_key(path)?;
        let base = cluster.elsewhere(&key, start, (Protocol::Rtsp, self.inlet.is_secure())).await?;
        let query = if query.is_empty() { String::new() } else { format!("{query}&") };
        Some(format!("{base}/{}{track}?{query}{MARK}={}", encode(path), cluster.name()))
    }

    /// The same for the track of a SETUP. Tracks of a medium that was described here are set up here.
    pub(super) async fn steer_set_up(&self, set_up: &SetUp<Party>) -> Option<String> {
        if self.has_described || set_up.session.is_some() {
            return None;
        }
        self.steer(&set_up.path, &format!("/{}", encode(&set_up.track)), &set_up.query).await
    }
}
