//! Copies of a stream's window, for other nodes of a cluster.

use super::{
    super::{Context, Front, Reply, ReplyInfo, target::LiveTarget},
    playlist,
};
use crate::{
    http::{AnswerError, HttpMetrics, Kind},
    live::{WATCH_MARK, is_for_relay},
    storage::PlaceBytes,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::{
    body::{Body, BodyError, ChunkStream},
    wire::Held,
};
use millpond_library::uri;
use millpond_package::live::{CopyCursor, CopyRecord};
use millpond_stream::{Manager, live::LiveWindow};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// Interval of signs of life: a node that sends none for longer is probed.
const BEAT: Duration = Duration::from_millis(500);
/// Most copies that are sent to clients which are not known to be nodes: as many as one node has. They cost a connection each, and are endless.
const MOST_STRANGE: i64 = 64;
/// Interval between looks for a window.
const LOOK: Duration = Duration::from_millis(100);

/// Answers a request of another node. One that has viewers opens the stream, and keeps its window. Others get the window of viewers, and neither
/// open the stream nor keep it.
///
/// # Errors
/// The request is not that of a node, this node has the stream from another one, or it can't be opened.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let front = context.front;
    info.kind = Kind::Other;
    // A node that copies is no viewer.
    info.in_flight = None;
    let stranger = admitted(context, live, info.is_of_node)?;
    if front.sources.is_relayed(&live.stream) {
        return Err(live.without("this node has the stream from another one"));
    }
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !uri::parameter(context.query(), WATCH_MARK).is_empty() {
        let window = playlist::own_window_for_copies(front, live).await?;
        window.renew();
        return Ok(Reply::without_body(StatusCode::NO_CONTENT, headers));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let body = match context.request.method {
        Method::HEAD => Body::unmade(),
        _ => {
            info.counts_itself = true;
            Body::stream(Box::new(CopyStream::new(front, live, (stranger, info.place.clone()))))
        }
    };
    Ok(Reply::new(StatusCode::OK, headers, body))
}

/// Checks that a request is one of a node. With a secret, or with listeners for nodes, it must prove that. Otherwise all who send the marks may be nodes:
/// those at other addresses are counted by what is returned.
///
/// # Errors
/// It is none of a node, or there are too many of strangers.
fn admitted(context: &Context<'_>, live: &LiveTarget, is_of_node: bool) -> Result<Option<Held>, AnswerError> {
    let front = context.front;
    let cluster = front.cluster().filter(|_| is_for_relay(context.query()));
    let none = || live.without("window.copy is for nodes of a cluster");
    let cluster = cluster.ok_or_else(none)?;
    if is_of_node {
        return Ok(None);
    }
    if cluster.nodes_have_proof() {
        return Err(none());
    }
    if cluster.addresses().contains(context.client()) {
        return Ok(None);
    }
    let counted = Held::new(&front.lasting.strange_copies);
    if front.lasting.strange_copies.get() > MOST_STRANGE {
        let why = format!("{MOST_STRANGE} copies are sent to addresses of no node: set cluster-secret");
        return Err(AnswerError::Busy { path: live.stream.to_string(), why });
    }
    Ok(Some(counted))
}

/// The records of a copy, as chunks of a body.
struct CopyStream {
    manager: Arc<Manager>,
    path: Box<str>,
    window: Option<Arc<LiveWindow>>,
    cursor: CopyCursor,
    ready: VecDeque<Bytes>,
    stop: watch::Receiver<bool>,
    is_over: bool,
    /// Whether all that the window had was sent. Bytes before are no sign of the node's load.
    has_caught_up: bool,
    metrics: Arc<HttpMetrics>,
    /// Counter of the stream's place.
    place: Option<PlaceBytes>,
    /// Counts it among those of clients that are not known to be nodes.
    _stranger: Option<Held>,
}

impl CopyStream {
    fn new(front: &Front, live: &LiveTarget, (stranger, place): (Option<Held>, Option<PlaceBytes>)) -> Self {
        let (manager, path) = (front.sources.manager().clone(), Box::from(&*live.stream));
        let (window, cursor, ready) = Default::default();
        let (stop, metrics) = (front.lasting.stop.subscribe(), front.metrics.clone());
        let (is_over, has_caught_up, _stranger) = (false, false, stranger);
        Self { manager, path, window, cursor, ready, stop, is_over, has_caught_up, metrics, place, _stranger }
    }

    /// Waits for the next records, and appends them. They are those of a sign of life where there is nothing new.
    async fn advance(&mut self) {
        let known = self.window.clone().or_else(|| self.manager.window_to_copy(&self.path));
        let records = match known {
            None => {
                let manager = &self.manager;
                let found = async {
                    loop {
                        sleep(LOOK).await;
                        if let Some(window) = manager.window_to_copy(&self.path) {
                            break window;
                        }
                    }
                };
                self.window = timeout(BEAT, found).await.ok();
                vec![CopyRecord::Alive]
            }
            Some(window) => {
                let mut versions = window.version();
                let records = self.look(&window);
                self.window = Some(window.clone());
                if !records.is_empty() || self.is_over {
                    records
                } else {
                    let _ = timeout(BEAT, versions.changed()).await;
                    let records = self.look(&window);
                    if records.is_empty() && !self.is_over { vec![CopyRecord::Alive] } else { records }
                }
            }
        };
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        self.ready.extend(bytes);
    }

    /// Returns the records that the copy lacks.
    fn look(&mut self, window: &LiveWindow) -> Vec<CopyRecord> {
        let is_over = window.is_over();
        let mut records = Vec::new();
        let has_more = window.look(|of| self.cursor.advance(of, window.run(), &mut records));
        self.has_caught_up |= records.is_empty();
        // Where the server ends, or gives way, another one goes on in the window: that end is not told.
        if is_over && !has_more {
            self.is_over = true;
            if !*self.stop.borrow() && !window.is_displaced() {
                records.push(CopyRecord::Ended);
            }
        }
        records
    }
}

impl ChunkStream for CopyStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Box::pin(async {
            loop {
                if let Some(chunk) = self.ready.pop_front() {
                    self.metrics.copied(self.place.as_ref(), chunk.len() as u64, self.has_caught_up);
                    return Ok(Some(chunk));
                }
                if self.is_over || *self.stop.borrow() {
                    return Ok(None);
                }
                self.advance().await;
            }
        })
    }
}
