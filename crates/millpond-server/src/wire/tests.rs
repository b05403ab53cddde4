use super::*;
use millpond_connections::tls::{Certificates, TlsSource};
use rustls_pki_types::ServerName;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs},
};

/// The client's end of a connection.
trait Client: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Client for T {}

async fn plain() -> (Box<dyn Client>, Arc<Wire>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (Box::new(client), Arc::new(Wire::new(listener.accept().await.unwrap().0)))
}

async fn secure() -> (Box<dyn Client>, Arc<Wire>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let certificates = Certificates::open(&TlsSource::Files { cert, key }).unwrap();
    let acceptor = TlsAcceptor::from(certificates.server_config(&[]).unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let (server, client) = tokio::join!(
        async { acceptor.accept(listener.accept().await.unwrap().0).await },
        connector.connect(name, stream)
    );
    (Box::new(client.unwrap()), Arc::new(Wire::secure(server.unwrap())))
}

/// Returns slices of many sizes, all different.
fn pieces() -> Vec<Vec<u8>> {
    let sizes = [0, 1, 100, 1400, 70_000, 16_384, 200_000];
    sizes.iter().map(|size| (0..*size).map(|_| fastrand::u8(..)).collect()).collect()
}

async fn carries(client: Box<dyn Client>, wire: Arc<Wire>) {
    let pieces = pieces();
    let each: Vec<u8> = pieces.concat();
    let (mut reads, mut writes) = tokio::io::split(client);
    let draining = tokio::spawn({
        let wire = wire.clone();
        async move { wire.drain(Duration::from_secs(60)).await }
    });
    const ROUNDS: usize = 20;
    let reading = tokio::spawn(async move {
        let mut got = vec![0; ROUNDS * (each.len() + 5)];
        reads.read_exact(&mut got).await.unwrap();
        let expected = [&b"reply"[..], &each].concat().repeat(ROUNDS);
        assert!(got == expected, "other bytes");
    });
    for _ in 0..ROUNDS {
        while wire.backlog() != Backlog::Low {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        wire.send(|pending| pending.extend_from_slice(b"reply"));
        for piece in &pieces {
            assert_ne!(wire.send_bytes(piece), Backlog::Stuck);
        }
    }
    timeout(Duration::from_secs(20), reading).await.unwrap().unwrap();
    // The other direction.
    let mut input = BytesMut::new();
    writes.write_all(&[7; 100_000]).await.unwrap();
    writes.flush().await.unwrap();
    while input.len() < 100_000 {
        assert!(wire.read(&mut input).await.unwrap() > 0);
    }
    assert!(input.iter().all(|byte| *byte == 7));
    writes.shutdown().await.unwrap();
    assert_eq!(wire.read(&mut input).await.unwrap(), 0);
    draining.abort();
}

#[tokio::test]
async fn every_byte_arrives_in_order() {
    let (client, wire) = plain().await;
    carries(client, wire).await;
    let (client, wire) = secure().await;
    assert!(wire.is_secure());
    carries(client, wire).await;
}

async fn fills(client: Box<dyn Client>, wire: Arc<Wire>) {
    let piece = vec![1; 64 << 10];
    let mut seen = Vec::new();
    for _ in 0..1000 {
        let room = wire.send_bytes(&piece);
        if seen.last() != Some(&room) {
            seen.push(room);
        }
        if room == Backlog::Stuck {
            break;
        }
    }
    assert_eq!(seen, [Backlog::Low, Backlog::Medium, Backlog::High, Backlog::Stuck]);
    assert!(wire.lock().pending.len() < MOST + 2 * piece.len(), "what waits is bounded");
    drop(client);
    assert!(timeout(Duration::from_secs(5), wire.drain(Duration::from_secs(60))).await.unwrap().is_err());
}

#[tokio::test]
async fn a_client_that_does_not_read_is_found_out() {
    let (client, wire) = plain().await;
    fills(client, wire).await;
    let (client, wire) = secure().await;
    fills(client, wire).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_let_go_in_time() {
    for (client, wire) in [plain().await, secure().await] {
        // The queue stays below the size that ends a connection at once.
        while wire.backlog() == Backlog::Low && wire.lock().pending.is_empty() {
            wire.send(|pending| pending.resize(pending.len() + 64_000, 0));
        }
        assert_ne!(wire.backlog(), Backlog::Stuck);
        let drained = timeout(Duration::from_secs(60), wire.drain(Duration::from_millis(200))).await.unwrap();
        assert_eq!(drained.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
