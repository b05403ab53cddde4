//! Connections to servers, directly or by a proxy.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tower_service::Service;

use crate::guard::Guard;

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Opens connections, each behind a [`Guard`].
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    tls: Arc<ClientConfig>,
    proxies: Option<Arc<Matcher>>,
    limit: Duration,
}

impl Connector {
    pub(crate) fn new(tls: Arc<ClientConfig>, proxies: Option<Arc<Matcher>>, limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        // Each address of a name gets its share of it.
        tcp.set_connect_timeout(Some(limit));
        Self { tcp, tls, proxies, limit }
    }

    /// Returns the proxy of a URL, if one is set for it.
    pub(crate) fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.intercept(uri)
    }

    async fn connect(mut self, uri: Uri) -> Result<Guard, BoxError> {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let Some(proxy) = self.proxy(&uri) else {
            let tcp = self.tcp(uri.clone()).await?;
            return if is_tls { self.tls(tcp, &uri).await } else { Ok(Guard::new(Box::new(tcp), false, false)) };
        };
        if proxy.uri().scheme() != Some(&Scheme::HTTP) {
            return Err("only proxies by plain HTTP (http://) are supported".into());
        }
        if !is_tls {
            let tcp = self.tcp(proxy.uri().clone()).await?;
            return Ok(Guard::new(Box::new(tcp), false, true));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(basic) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(basic.clone());
        }
        let tcp = tunnel.call(uri.clone()).await?.into_inner();
        self.tls(tcp, &uri).await
    }

    async fn tcp(&mut self, uri: Uri) -> Result<TcpStream, BoxError> {
        Ok(self.tcp.call(uri).await.map(TokioIo::into_inner)?)
    }

    async fn tls(&self, tcp: TcpStream, uri: &Uri) -> Result<Guard, BoxError> {
        let host = uri.host().unwrap_or_default();
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, tcp).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(&b"h2"[..]);
        Ok(Guard::new(Box::new(stream), is_http2, false))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Guard>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connector, limit) = (self.clone(), self.limit);
        Box::pin(async move {
            let late = || io::Error::from(io::ErrorKind::TimedOut);
            timeout(limit, connector.connect(uri)).await.map_err(|_| late())?.map(TokioIo::new)
        })
    }
}
