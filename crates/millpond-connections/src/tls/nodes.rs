//! TLS between the nodes of a cluster: the authorities that a node trusts, and the certificate that it shows at both ends.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::sync::watch;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError, ServerConfig,
    SignatureScheme,
};

use super::{
    TlsError,
    faults::{names, reason},
    load,
};
use millpond_settings::files::{FileStamp, Looks};

/// PEM files of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTlsFiles {
    /// The authorities that are trusted.
    pub authorities: PathBuf,
    /// The certificate that is shown and its key; `None` shows none.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl NodeTlsFiles {
    fn stamps(&self) -> Vec<FileStamp> {
        let identity = self.identity.iter().flat_map(|(cert, key)| [cert, key]);
        std::iter::once(&self.authorities).chain(identity).map(|path| FileStamp::of(path)).collect()
    }
}

/// The hosts of a cluster's nodes. A certificate that is valid for one of them is that of a node.
pub trait NodeHosts: fmt::Debug + Send + Sync {
    /// Returns the hosts: names and IP addresses.
    fn hosts(&self) -> Vec<String>;
}

/// TLS of a node, for connections to other nodes and from them.
///
/// [`NodeTls::reload`] swaps in changed files; handshakes under way and open connections keep theirs. Files that can't be used
/// change nothing: the last good ones stay. No session is resumed, so each connection is checked by the files in force.
pub struct NodeTls {
    files: NodeTlsFiles,
    provider: Arc<CryptoProvider>,
    /// Read by every handshake, written when a file changed. Never held across a wait.
    current: RwLock<Arc<Current>>,
    /// Stamps of the files when they were last read, with or without success.
    seen: Mutex<Vec<FileStamp>>,
}

/// Content of the files.
struct Current {
    /// Checks the certificates of servers.
    servers: Arc<WebPkiServerVerifier>,
    /// Checks the certificates of clients.
    clients: Arc<dyn ClientCertVerifier>,
    own: Option<Arc<CertifiedKey>>,
}

impl Current {
    fn read(files: &NodeTlsFiles, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let setup = |error: &dyn fmt::Display| TlsError::BadCertificate {
            path: files.authorities.clone(),
            reason: error.to_string(),
        };
        let roots = Arc::new(load::authorities(&files.authorities)?);
        let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone());
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let own = files.identity.as_ref().map(|(cert, key)| load::files(provider, cert, key)).transpose()?;
        Ok(Self {
            servers: servers.build().map_err(|error| setup(&error))?,
            clients: clients.build().map_err(|error| setup(&error))?,
            own: own.map(Arc::new),
        })
    }
}

impl NodeTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file can't be used.
    pub fn open(files: &NodeTlsFiles) -> Result<Arc<Self>, TlsError> {
        let (provider, seen) = (load::provider(), files.stamps());
        let current = RwLock::new(Arc::new(Current::read(files, &provider)?));
        Ok(Arc::new(Self { files: files.clone(), provider, current, seen: Mutex::new(seen) }))
    }

    /// Reads the files again if one has changed since they were last read. Returns `true` where they have changed.
    ///
    /// Blocks on the disk.
    ///
    /// # Errors
    /// A file can't be used.
    pub fn reload(&self) -> Result<bool, TlsError> {
        {
            let now = self.files.stamps();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return Ok(false);
            }
            *seen = now;
        }
        let fresh = Arc::new(Current::read(&self.files, &self.provider)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(true)
    }

    /// The TLS side of a client of other nodes, with protocols for ALPN (RFC 7301). The name in a server's certificate is checked
    /// against the host of the address.
    ///
    /// # Errors
    /// The TLS library refuses the configuration.
    pub fn client_config(self: &Arc<Self>, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, TlsError> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Setup { reason: error.to_string() })?
            .dangerous()
            .with_custom_certificate_verifier(self.clone())
            .with_client_cert_resolver(self.clone());
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// The TLS side of a listener that serves nodes only: clients must show a certificate of the authorities that is valid for one of
    /// `hosts`.
    ///
    /// # Errors
    /// The TLS library refuses the configuration.
    pub fn server_config(
        self: &Arc<Self>,
        protocols: &[&[u8]],
        hosts: Arc<dyn NodeHosts>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let clients = NodeClients { tls: self.clone(), hosts };
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Setup { reason: error.to_string() })?
            .with_client_cert_verifier(Arc::new(clients))
            .with_cert_resolver(self.clone() as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Returns why other nodes, which trust the same authorities, would refuse the own certificate at a host; `None` where they accept
    /// it, and where there is none.
    pub fn own_fault(&self, host: &str, now: UnixTime) -> Option<String> {
        let current = self.current();
        let own = current.own.as_ref()?;
        let (first, chain) = own.cert.split_first()?;
        let Ok(name) = ServerName::try_from(host) else {
            return Some(format!("{host} can't be a name in a certificate"));
        };
        let as_server = current.servers.verify_server_cert(first, chain, &name, &[], now).map(drop);
        let as_client = || current.clients.verify_client_cert(first, chain, now).map(drop);
        as_server.and_then(|()| as_client()).err().map(|error| reason(&error))
    }

    fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A certificate of a trusted authority that is none of a node.
#[derive(Debug)]
struct NoNode {
    /// Names in the certificate, as the library tells them.
    names: Vec<String>,
}

impl fmt::Display for NoNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match names(&self.names) {
            None => f.write_str("the certificate names no host"),
            Some(names) => write!(f, "the certificate is for {names}, and no node of the cluster has such a host"),
        }
    }
}

impl StdError for NoNode {}

/// Checks that the clients of a listener are nodes.
#[derive(Debug)]
struct NodeClients {
    tls: Arc<NodeTls>,
    hosts: Arc<dyn NodeHosts>,
}

impl NodeClients {
    /// Checks the names of a certificate whose authority is trusted.
    fn check_names(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let mut names = Vec::new();
        for host in self.hosts.hosts() {
            let Ok(host) = ServerName::try_from(host.as_str()) else { continue };
            match verify_server_name(&certificate, &host) {
                Ok(()) => return Ok(()),
                Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })) => {
                    names = presented;
                }
                Err(_) => {}
            }
        }
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(NoNode { names })))))
    }
}

impl ClientCertVerifier for NodeClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // They change with the files. A node has one certificate, and needs no hint.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.tls.current().clients.verify_client_cert(end_entity, intermediates, now)?;
        self.check_names(end_entity)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls.current().clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls.current().clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.tls.current().clients.supported_verify_schemes()
    }
}

impl ServerCertVerifier for NodeTls {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.current().servers.verify_server_cert(end_entity, intermediates, server_name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().servers.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().servers.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().servers.supported_verify_schemes()
    }
}

impl ResolvesClientCert for NodeTls {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current().own.clone()
    }

    fn has_certs(&self) -> bool {
        self.files.identity.is_some()
    }
}

impl ResolvesServerCert for NodeTls {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().own.clone()
    }
}

/// Reloads the files of a node when they change. Ends on shutdown.
pub async fn watch_nodes(tls: Arc<NodeTls>, shutdown: watch::Receiver<bool>) {
    let mut looks = Looks::until(shutdown);
    while looks.next().await {
        let files = tls.clone();
        match tokio::task::spawn_blocking(move || files.reload()).await {
            Ok(Ok(true)) => tracing::info!("new certificates of nodes in force"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "a certificate of nodes on disk can't be used: the last good one \
                                                       stays in force")
            }
            Err(error) => tracing::error!(%error, "checking the certificates of nodes failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{HandshakeFault, handshake_fault};
    use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    use std::io;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new(name: &str) -> Self {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            Self { pem, issuer: Issuer::new(params, key) }
        }

        /// A node that trusts this authority and has its certificate for a name; without one, it shows none.
        fn node(&self, name: Option<&str>) -> Node {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            std::fs::write(path("ca.pem"), &self.pem).unwrap();
            let identity = name.map(|name| {
                self.write(name, folder.path());
                (path("node.pem"), path("node.key"))
            });
            let files = NodeTlsFiles { authorities: path("ca.pem"), identity };
            Node { tls: NodeTls::open(&files).unwrap(), folder }
        }

        fn write(&self, name: &str, folder: &std::path::Path) {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let key = KeyPair::generate().unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
            for (name, text) in [("node.pem", pem), ("node.key", key.serialize_pem())] {
                // Another file, as renewal tools make it.
                std::fs::write(folder.join("new"), text).unwrap();
                std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
            }
        }
    }

    struct Node {
        tls: Arc<NodeTls>,
        folder: tempfile::TempDir,
    }

    #[derive(Debug)]
    struct Hosts(&'static [&'static str]);

    impl NodeHosts for Hosts {
        fn hosts(&self) -> Vec<String> {
            self.0.iter().map(|host| (*host).to_owned()).collect()
        }
    }

    fn words(error: &io::Error) -> String {
        let (HandshakeFault::Certificate(words) | HandshakeFault::Protocol(words) | HandshakeFault::Ended(words)) =
            handshake_fault(error);
        words
    }

    /// Connects a node to another one at `host`. Returns the outcome at the client and at the server. The nodes of the cluster have `hosts`.
    async fn meet(client: &Node, server: &Node, host: &str, hosts: &'static [&'static str]) -> [Result<(), String>; 2] {
        let (near, far) = tokio::io::duplex(1 << 16);
        let acceptor = TlsAcceptor::from(server.tls.server_config(&[b"x"], Arc::new(Hosts(hosts))).unwrap());
        let connector = TlsConnector::from(client.tls.client_config(&[b"x"]).unwrap());
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let serve = async {
            let mut stream = acceptor.accept(far).await.map_err(|error| words(&error))?;
            stream.write_all(b"hello").await.unwrap();
            stream.shutdown().await.unwrap();
            Ok(())
        };
        let ask = async {
            let told = |error: io::Error| words(&error);
            let mut stream = connector.connect(name, near).await.map_err(told)?;
            // By TLS 1.3 the client learns here that its certificate is refused.
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.map_err(told)?;
            assert_eq!(all, b"hello");
            Ok(())
        };
        let (asked, served) = tokio::join!(ask, serve);
        [asked, served]
    }

    #[tokio::test]
    async fn nodes_of_one_authority_know_each_other_by_their_hosts() {
        let authority = Authority::new("authority");
        let (a, b) = (authority.node(Some("a.example")), authority.node(Some("b.example")));
        assert_eq!(meet(&a, &b, "b.example", &["a.example", "b.example"]).await, [Ok(()), Ok(())]);
        let numbered = authority.node(Some("10.0.0.7"));
        assert_eq!(meet(&numbered, &b, "b.example", &["b.example", "10.0.0.7"]).await, [Ok(()), Ok(())]);
        let all = authority.node(Some("*.nodes.example"));
        assert_eq!(meet(&all, &all, "c.nodes.example", &["d.nodes.example"]).await, [Ok(()), Ok(())]);
    }

    #[tokio::test]
    async fn all_others_are_refused_with_the_reason() {
        let (authority, other) = (Authority::new("authority"), Authority::new("other"));
        let node = authority.node(Some("a.example"));
        let told = |[asked, served]: [Result<(), String>; 2]| [asked.unwrap_err(), served.unwrap_err()];
        let hosts: &[&str] = &["a.example", "b.example"];
        let strange = authority.node(Some("c.example"));
        let [asked, served] = told(meet(&strange, &node, "a.example", hosts).await);
        assert!(served.contains("DNS:c.example,") && served.contains("no node of the cluster"), "{served}");
        assert!(asked.contains("it is for the host of no node that is known there"), "{asked}");
        let none = authority.node(None);
        let [asked, served] = told(meet(&none, &node, "a.example", hosts).await);
        assert_eq!(served, "it shows no certificate");
        assert!(asked.contains("none is shown"), "{asked}");
        // It trusts this authority and has a certificate of another one.
        let foreign = other.node(Some("b.example"));
        std::fs::copy(node.folder.path().join("ca.pem"), foreign.folder.path().join("ca.pem")).unwrap();
        assert_eq!(foreign.tls.reload(), Ok(true));
        let [asked, served] = told(meet(&foreign, &node, "a.example", hosts).await);
        assert!(served.contains("an authority that is not trusted"), "{served}");
        assert!(asked.contains("its authority is not trusted there"), "{asked}");
        // A client checks the host that it asked, and the authority.
        let b = authority.node(Some("b.example"));
        let [asked, _] = told(meet(&b, &node, "b.example", hosts).await);
        assert!(asked.contains("for DNS:a.example, and its subjectAltName must have DNS:b.example"), "{asked}");
        let [asked, _] = told(meet(&other.node(Some("b.example")), &node, "a.example", hosts).await);
        assert!(asked.contains("an authority that is not trusted"), "{asked}");
    }

    #[tokio::test]
    async fn changed_files_count_from_the_next_handshake_on() {
        let (old, new) = (Authority::new("old"), Authority::new("new"));
        let (a, b) = (old.node(Some("a.example")), old.node(Some("b.example")));
        let hosts: &[&str] = &["a.example", "b.example"];
        assert_eq!(meet(&a, &b, "b.example", hosts).await, [Ok(()), Ok(())]);
        assert_eq!(a.tls.reload(), Ok(false));
        // Both trust the new authority before one of them has its certificate.
        for node in [&a, &b] {
            std::fs::write(node.folder.path().join("ca.pem"), [old.pem.as_str(), &new.pem].concat()).unwrap();
            assert_eq!(node.tls.reload(), Ok(true));
            assert_eq!(meet(&a, &b, "b.example", hosts).await, [Ok(()), Ok(())]);
        }
        for (node, name) in [(&a, "a.example"), (&b, "b.example")] {
            new.write(name, node.folder.path());
            assert_eq!(node.tls.reload(), Ok(true));
            assert_eq!(meet(&a, &b, "b.example", hosts).await, [Ok(()), Ok(())], "{name}");
        }
        std::fs::write(a.folder.path().join("ca.pem"), "no PEM").unwrap();
        assert!(a.tls.reload().is_err());
        assert_eq!(meet(&a, &b, "b.example", hosts).await, [Ok(()), Ok(())], "the last good one stays");
    }

    #[test]
    fn an_own_certificate_that_others_refuse_is_found() {
        let (authority, other) = (Authority::new("authority"), Authority::new("other"));
        let (node, now) = (authority.node(Some("a.example")), UnixTime::now());
        assert_eq!(node.tls.own_fault("a.example", now), None);
        assert!(node.tls.own_fault("b.example", now).unwrap().contains("b.example"));
        assert_eq!(authority.node(None).tls.own_fault("a.example", now), None);
        other.write("a.example", node.folder.path());
        assert_eq!(node.tls.reload(), Ok(true));
        assert!(node.tls.own_fault("a.example", now).unwrap().contains("an authority that is not trusted"));
    }
}
