//! Media that another node of the cluster serves.

use super::Connection;
use crate::{
    cluster::{MARK, Protocol, marked},
    rtsp::{party::Party, signalling::SetUp},
};

impl Connection<'_> {
    /// The URL of the request at the node that serves its medium; `None` where that is this one.
    pub(super) async fn steer(&self, path: &str, query: &str) -> Option<String> {
        let cluster = self.rtsp.cluster.as_ref().filter(|_| self.shared.is_none())?;
        if marked(query) {
            return None;
        }
        let (key, start) = self.rtsp.sources.object_key(&self.rtsp.sources.find(path))?;
        let base = cluster.elsewhere(&key, start, (Protocol::Rtsp, self.inlet.is_secure())).await?;
        self.dialogue.moved(&base, &format!("{MARK}={}", cluster.name()))
    }

    /// The same for the track of a SETUP. Tracks of a medium that was described here are set up here.
    pub(super) async fn steer_set_up(&self, set_up: &SetUp<Party>) -> Option<String> {
        if self.has_described || set_up.session.is_some() {
            return None;
        }
        self.steer(&set_up.path, &set_up.query).await
    }
}
