//! Copies of a stream's window, for other nodes of a cluster.

use super::{
    super::{Context, Front, Reply, ReplyInfo, target::LiveTarget},
    playlist,
};
use crate::{
    http::{AnswerError, Kind},
    live::{WATCH_MARK, is_for_relay},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::body::{Body, BodyError, ChunkStream};
use millpond_library::uri;
use millpond_package::live::{CopyCursor, CopyRecord};
use millpond_stream::{Manager, live::LiveWindow};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// Longest silence: a node that sends nothing is taken for dead.
const BEAT: Duration = Duration::from_secs(1);
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
    if !is_for_relay(context.query()) {
        return Err(live.without("window.copy is for nodes of a cluster"));
    }
    if front.sources.is_relayed(&live.stream) {
        return Err(live.without("this node has the stream from another one"));
    }
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !uri::parameter(context.query(), WATCH_MARK).is_empty() {
        playlist::own_window(front, live).await?.renew();
        return Ok(Reply::without_body(StatusCode::NO_CONTENT, headers));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let body = match context.request.method {
        Method::HEAD => Body::unmade(),
        _ => Body::stream(Box::new(CopyStream::new(front, live))),
    };
    Ok(Reply::new(StatusCode::OK, headers, body))
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
}

impl CopyStream {
    fn new(front: &Front, live: &LiveTarget) -> Self {
        let (manager, path) = (front.sources.manager().clone(), Box::from(&*live.stream));
        let (window, cursor, ready) = Default::default();
        Self { manager, path, window, cursor, ready, stop: front.lasting.stop.subscribe(), is_over: false }
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
        // Where the server ends, another one goes on in the window: that end is not told.
        if is_over && !has_more {
            self.is_over = true;
            if !*self.stop.borrow() {
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
