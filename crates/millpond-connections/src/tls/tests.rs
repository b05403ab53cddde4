use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustls_pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::tls::TlsSource;

struct Pair {
    cert: String,
    key: String,
}

fn pair() -> Pair {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    Pair { cert: made.cert.pem(), key: made.signing_key.serialize_pem() }
}

fn dated(from: i32, to: i32) -> Pair {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(to, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    Pair { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(cert: &str, key: &str) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.write("cert.pem", cert);
        files.write("key.pem", key);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file by another one, as renewal tools do.
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("new"), text).unwrap();
        std::fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn source(&self) -> TlsSource {
        TlsSource::Files { cert: self.path("cert.pem"), key: self.path("key.pem") }
    }

    fn error(&self) -> String {
        let error = Certificates::open(&self.source()).expect_err("should be refused");
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

#[test]
fn a_pair_loads() {
    let pair = pair();
    let files = Files::new(&pair.cert, &pair.key);
    let certificates = Certificates::open(&files.source()).unwrap();
    let config = certificates.server_config(&[b"h2", b"http/1.1"]).unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    assert!(certificates.server_config(&[]).unwrap().alpn_protocols.is_empty());
}

#[test]
fn a_key_of_another_pair_is_refused() {
    let files = Files::new(&pair().cert, &pair().key);
    assert_eq!(files.error(), "key.pem: this private key does not belong to the first certificate in cert.pem");
}

#[test]
fn each_mistake_has_its_words() {
    let pair = pair();
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n\
               -----END EC PRIVATE KEY-----\n";
    for (cert, key, says) in [
        ("", pair.key.as_str(), "cert.pem: expected a certificate (BEGIN CERTIFICATE), found an empty file"),
        (&pair.key, &pair.cert, "cert.pem: expected a certificate (BEGIN CERTIFICATE), found a private key"),
        (&pair.cert, &pair.cert, "key.pem: expected a private key (BEGIN PRIVATE KEY), found a certificate"),
        (&pair.cert, "hello", "key.pem: expected a private key (BEGIN PRIVATE KEY), found no PEM"),
        (&pair.cert, locked, "key.pem: expected a private key (BEGIN PRIVATE KEY), found a private key locked by"),
        (&pair.cert, old, "key.pem: expected a private key (BEGIN PRIVATE KEY), found a private key locked by"),
        (old, &pair.key, "cert.pem: expected a certificate (BEGIN CERTIFICATE), found a private key locked by"),
        ("-----BEGIN CERTIFICATE-----\nAAAA", &pair.key, "cert.pem: not valid PEM"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &pair.key,
            "cert.pem: certificate can't be used",
        ),
        (
            &pair.cert,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "key.pem: private key can't be used",
        ),
    ] {
        let error = Files::new(cert, key).error();
        assert!(error.starts_with(says), "{error:?} should start with {says:?}");
    }
    let files = Files::new(&pair.cert, &pair.key);
    std::fs::remove_file(files.path("key.pem")).unwrap();
    assert!(files.error().starts_with("key.pem: cannot read the private key: No such file"), "{}", files.error());
}

#[test]
fn dates_are_warned_about() {
    let pair = dated(2020, 2021);
    let files = Files::new(&pair.cert, &pair.key);
    let certificates = Certificates::open(&files.source()).unwrap();
    let at = |unix: u64| certificates.date_warning(UNIX_EPOCH + Duration::from_secs(unix));
    // 2020-01-01 and 2021-01-01
    let (from, to) = (1_577_836_800, 1_609_459_200);
    assert_eq!(
        at(from - 86_400).unwrap(),
        "the certificate is not valid before 2 days from now; check the machine's clock too"
    );
    assert_eq!(at(from), None);
    assert_eq!(at(to - 3 * 86_400).unwrap(), "the certificate expires in 3 days");
    assert_eq!(at(to + 2 * 86_400).unwrap(), "the certificate expired 2 days ago");
}

#[test]
fn changed_files_take_over_and_broken_ones_do_not() {
    let first = dated(2020, 2030);
    let files = Files::new(&first.cert, &first.key);
    let certificates = Certificates::open(&files.source()).unwrap();
    assert_eq!(certificates.reload(), Ok(false), "nothing changed");
    let before = certificates.validity();

    let second = dated(2020, 2040);
    files.write("cert.pem", &second.cert);
    assert!(matches!(certificates.reload(), Err(TlsError::Mismatch { .. })), "half of the renewal");
    assert_eq!(certificates.validity(), before, "the last good one stays");
    assert_eq!(certificates.reload(), Ok(false), "the same mistake is not reported again");

    files.write("key.pem", &second.key);
    assert_eq!(certificates.reload(), Ok(true));
    assert_ne!(certificates.validity(), before);
}

#[tokio::test]
async fn a_self_signed_certificate_makes_a_handshake() {
    let certificates = Certificates::open(&TlsSource::SelfSigned).unwrap();
    assert_eq!(certificates.reload(), Ok(false));
    let acceptor = TlsAcceptor::from(certificates.server_config(&[b"h2", b"http/1.1"]).unwrap());
    let (client, server) = tokio::io::duplex(16 << 10);
    let server = tokio::spawn(async move { acceptor.accept(server).await.unwrap() });

    let mut roots = RootCertStore::empty();
    roots.add(own_certificate(&certificates)).unwrap();
    let mut config = ClientConfig::builder_with_provider(load::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), client).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    server.await.unwrap();
}

fn own_certificate(certificates: &Certificates) -> rustls_pki_types::CertificateDer<'static> {
    certificates.current().cert[0].clone()
}
