//! Connections to sources, encrypted where their URL demands it.

use crate::cluster::LaterCluster;
use futures_util::future::BoxFuture;
use millpond_connections::tls;
use millpond_stream::reception::{Connection, ConnectionEnds, Connector, Endpoint, TcpConnector};
use rustls_pki_types::ServerName;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore},
};

/// Connects to sources by TCP, and by TLS for `rtsps`.
///
/// Certificates must be trusted by the system, or listed in the file that the environment variable `SSL_CERT_FILE` names. Those of nodes of
/// the cluster must be of the nodes' authority, where one is set.
#[derive(Debug, Default)]
pub(crate) struct SourceConnector {
    tcp: TcpConnector,
    /// The cluster, whose nodes may have certificates of their own authority.
    cluster: LaterCluster,
    /// Read at the first connection with TLS to a server that is no such node.
    config: OnceCell<Arc<ClientConfig>>,
}

impl SourceConnector {
    /// Creates one whose packets have a mark, and which knows the nodes of a cluster.
    pub(crate) fn new(mark: Option<u32>, cluster: LaterCluster) -> Self {
        Self { tcp: TcpConnector { mark }, cluster, config: OnceCell::new() }
    }

    /// The configuration that trusts the system's authorities.
    async fn system(&self) -> io::Result<Arc<ClientConfig>> {
        let config = self.config.get_or_try_init(async || {
            // It reads files.
            tokio::task::spawn_blocking(system_config).await.map_err(io::Error::other)?
        });
        Ok(config.await?.clone())
    }

    async fn secure(&self, endpoint: &Endpoint, stream: TcpStream) -> io::Result<SecureConnection> {
        let host = endpoint.host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let of_node = self.cluster.get().and_then(|cluster| cluster.relay_tls(host, endpoint.port));
        let config = match of_node {
            Some(config) => config,
            None => self.system().await?,
        };
        let connector = TlsConnector::from(config);
        Ok(SecureConnection(Box::new(connector.connect(name, stream).await?)))
    }
}

impl Connector for SourceConnector {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = self.tcp.open(endpoint).await?;
            if endpoint.is_tls {
                return Ok(Box::new(self.secure(endpoint, stream).await?) as Box<dyn Connection>);
            }
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// Returns a configuration that trusts what the system trusts.
fn system_config() -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a trusted certificate is unreadable");
    }
    roots.add_parsable_certificates(found.certs);
    config(roots)
}

fn config(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// A connection with TLS.
struct SecureConnection(Box<TlsStream<TcpStream>>);

impl Connection for SecureConnection {
    fn addresses(&self) -> io::Result<ConnectionEnds> {
        self.0.get_ref().0.addresses()
    }
}

impl AsyncRead for SecureConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for SecureConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_connections::tls::{Certificates, TlsSource};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    /// Answers one connection; returns its port.
    async fn server(certificates: &Arc<Certificates>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(certificates.server_config(&[]).unwrap());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                stream.write_all(b"hello").await.unwrap();
                stream.flush().await.unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn trusted_servers_are_connected_to() {
        let certificates = Certificates::open(&TlsSource::SelfSigned).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificates.current().cert[0].clone()).unwrap();
        let connector =
            SourceConnector { config: OnceCell::new_with(Some(config(roots).unwrap())), ..Default::default() };
        let endpoint = |port| Endpoint { host: "127.0.0.1".into(), port, is_tls: true };
        let port = server(&certificates).await;
        let mut connection = connector.connect(&endpoint(port)).await.unwrap();
        assert_eq!(connection.addresses().unwrap().peer.port(), port);
        let mut greeting = [0; 5];
        connection.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"hello");

        let distrusting = SourceConnector {
            config: OnceCell::new_with(Some(config(RootCertStore::empty()).unwrap())),
            ..Default::default()
        };
        let refused = distrusting.connect(&endpoint(server(&certificates).await)).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("certificate")));
    }
}
