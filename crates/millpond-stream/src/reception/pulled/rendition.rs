//! The rendition of a pulled stream, as HLS and DASH each implement it.

use super::{PulledSource, event::Event};
use crate::{
    reception::{fetching::Fetcher, rtsp::link::Stopwatch},
    source_health::SourceError,
};
use tokio::sync::mpsc;

/// One rendition of a source, whose pieces are requested as they appear.
pub(super) trait Rendition: Send + Sized {
    /// Reads what a source lists, and chooses its renditions. The first one leads: without it the source is lost.
    ///
    /// # Errors
    /// It can't be read.
    fn open(
        source: &PulledSource,
        fetcher: &Fetcher,
        watch: Stopwatch,
    ) -> impl Future<Output = Result<Vec<Self>, SourceError>> + Send;

    /// Goes on from where the rendition in the same place was in the session before.
    fn following(self, before: Self) -> Self;

    /// Language that the source states.
    fn language(&self) -> Option<&str>;

    /// Gives all pieces, until the source is lost.
    fn run(
        &mut self,
        fetcher: &Fetcher,
        events: &mpsc::Sender<Event>,
        watch: Stopwatch,
    ) -> impl Future<Output = SourceError> + Send;
}
