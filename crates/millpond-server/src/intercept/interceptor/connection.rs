//! One intercepted connection, from its first byte to its end.

use super::{
    Intercept,
    listen::canonical,
    metrics::Outcome,
    relay::{Passed, relay},
    request::{First, classify, container},
    translation::{Translated, Unfound},
};
use crate::{
    http::{AnswerError, Intercepted, TranslatedMedia, answer_intercepted},
    rtsp::{FirstRequest, SharedStream, first_request},
};
use bytes::BytesMut;
use millpond_http::{request::head::RequestHead, wire::closed};
use socket2::SockRef;
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    task::consume_budget,
    time::{Instant as Deadline, timeout, timeout_at},
};

/// Time for the first byte of a client. Behind it the protocol is one in which the server speaks first.
const SILENCE: Duration = Duration::from_secs(1);
/// Room for one read of a request head, in bytes.
const READ: usize = 2048;

/// A connection, and the bytes that were read from it.
struct Connection<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    /// The original destination.
    server: SocketAddr,
    read: BytesMut,
    intercept: &'a Intercept,
}

/// Serves a connection.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, intercept: &Intercept) {
    let Ok(server) = stream.local_addr() else { return };
    let server = canonical(server);
    let began = Instant::now();
    let outcome = match refusal(peer, server, intercept) {
        Some(outcome) => outcome,
        None => Connection { stream, peer, server, read: BytesMut::new(), intercept }.run().await,
    };
    if intercept.access_log {
        let ms = began.elapsed().as_millis() as u64;
        tracing::info!(target: millpond_logging::ACCESS, %peer, %server, outcome = outcome.label(), ms, "intercepted connection ended");
    }
    intercept.metrics.count(outcome);
}

/// Returns why a connection is closed without a look at its bytes.
fn refusal(peer: SocketAddr, server: SocketAddr, intercept: &Intercept) -> Option<Outcome> {
    if intercept.own.contains(server.ip()) {
        tracing::warn!(%peer, %server, "intercepted connection closed: its server is this machine");
        return Some(Outcome::Loop);
    }
    if intercept.own.contains(peer.ip()) {
        let hint = "leave out packets with intercept-mark in the rules of the firewall";
        tracing::warn!(%peer, %server, hint, "intercepted connection closed: its client is this machine");
        return Some(Outcome::Loop);
    }
    if !intercept.settings.networks.iter().any(|network| network.contains(server.ip())) {
        tracing::warn!(%peer, %server, "intercepted connection closed: its server is outside of intercept-networks");
        return Some(Outcome::Outside);
    }
    None
}

impl Connection<'_> {
    async fn run(mut self) -> Outcome {
        if self.server.port() == self.intercept.settings.rtsp_port {
            return self.rtsp().await;
        }
        let head = match self.first(classify, |first| matches!(first, First::Partial)).await {
            Ok(Some(First::Get(head))) => head,
            Ok(_) => return self.pass(Outcome::Passed, None).await,
            Err(_) => return Outcome::Left,
        };
        let started = Instant::now();
        match Box::pin(self.intercept.translate(&self.stream, self.server.ip(), &head.request)).await {
            Translated::Found(media) => {
                self.answer(*head, started, Ok(media)).await;
                Outcome::Translated
            }
            Translated::Failed(error) => {
                self.answer(*head, started, Err(error)).await;
                Outcome::Failed
            }
            Translated::NotFound(fallback) => {
                let unfound = fallback.map(|error| Unfound { head, started, error });
                self.pass(Outcome::Passed, unfound).await
            }
            Translated::Left => Outcome::Left,
        }
    }

    /// Serves a connection to a server's RTSP port: with a stream that others share, or by passing it on.
    async fn rtsp(mut self) -> Outcome {
        if !self.intercept.settings.shares_rtsp {
            return self.pass(Outcome::Rtsp, None).await;
        }
        let first = self.first(first_request, |first| matches!(first, FirstRequest::Partial)).await;
        let (path, target) = match first {
            Ok(Some(FirstRequest::Stream { path, target })) => (path, target),
            Ok(_) => return self.pass(Outcome::Rtsp, None).await,
            Err(_) => return Outcome::Left,
        };
        let program = tokio::select! {
            biased;
            program = Box::pin(self.intercept.share(self.server.ip(), &target)) => program,
            () = closed(&self.stream) => return Outcome::Left,
        };
        let Some(program) = program else { return self.pass(Outcome::Rtsp, None).await };
        let rtsp = self.intercept.rtsp.load_full();
        let served = rtsp.serve_shared((self.stream, self.read), self.peer, SharedStream { path, program });
        if let Err(error) = Box::pin(served).await {
            tracing::debug!(peer = %self.peer, server = %self.server, %error, "shared RTSP connection ended");
        }
        Outcome::Shared
    }

    /// Reads until the class of the first bytes is known; `None` where they have none: a client that says nothing.
    async fn first<T>(
        &mut self,
        classify: impl Fn(&[u8]) -> T,
        is_partial: impl Fn(&T) -> bool,
    ) -> io::Result<Option<T>> {
        let mut limit = Deadline::now() + SILENCE;
        loop {
            match timeout_at(limit, self.read_more()).await {
                Ok(Ok(0)) if self.read.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok(0)) | Err(_) => return Ok(None),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(count)) if count == self.read.len() => {
                    limit = Deadline::now() + self.intercept.service.timeouts().head;
                }
                Ok(Ok(_)) => {}
            }
            let first = classify(&self.read);
            if !is_partial(&first) {
                return Ok(Some(first));
            }
        }
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        loop {
            consume_budget().await;
            self.stream.readable().await?;
            self.read.reserve(READ);
            match self.stream.try_read_buf(&mut self.read) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    async fn answer(self, head: RequestHead, started: Instant, media: Result<TranslatedMedia, AnswerError>) {
        let container = container(head.request.split().0, &head.request.headers);
        let intercepted = Intercepted { stream: self.stream, peer: self.peer, head, started, container };
        // The box keeps the task of a connection that is passed on small.
        Box::pin(answer_intercepted(intercepted, media, &self.intercept.service)).await;
    }

    /// Passes the connection on to its server, or to another one of its group. Where none can be reached, the client gets what RTSP
    /// said of its request, or a reset as it would without this server.
    async fn pass(self, outcome: Outcome, unfound: Option<Unfound>) -> Outcome {
        let (peer, server, intercept) = (self.peer, self.server, self.intercept);
        let Some((mut upstream, _passage)) = intercept.reach(server, peer).await else {
            if let Some(Unfound { head, started, error }) = unfound {
                self.answer(*head, started, Err(error)).await;
                return Outcome::Failed;
            }
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
            return Outcome::Unreachable;
        };
        let idle = intercept.settings.idle;
        let passed = Passed { to_server: &intercept.metrics.to_servers, to_client: &intercept.metrics.to_clients };
        let Self { stream, read: early, .. } = self;
        passed.to_server.inc_by(early.len() as u64);
        let relayed = match timeout(idle, upstream.write_all(&early)).await {
            Ok(Ok(())) => {
                drop(early);
                relay(stream, upstream, idle, passed, &intercept.threads).await
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        if let Err(error) = relayed {
            tracing::debug!(%peer, %server, %error, "intercepted connection broken off");
        }
        outcome
    }
}
