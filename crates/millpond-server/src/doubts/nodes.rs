//! Findings about the certificate that this node shows to other nodes.

use crate::{
    cluster::{node_host, open_node_tls},
    config::Config,
};
use millpond_connections::tls::{Certificates, TlsSource};
use rustls_pki_types::UnixTime;
use std::time::SystemTime;

/// Returns why other nodes refuse this node's certificate now, or will soon. Files that can't be used are an obstacle.
pub(super) fn doubts(config: &Config) -> Vec<String> {
    let cluster = &config.cluster;
    let Some((cert, key)) = cluster.node_tls().filter(|_| cluster.is_on()).and_then(|files| files.identity) else {
        return Vec::new();
    };
    let Ok(Some(tls)) = open_node_tls(cluster) else { return Vec::new() };
    let is_wildcard =
        cluster.node_url.is_none() && cluster.node_listen.is_some_and(|address| address.ip().is_unspecified());
    let fault = match node_host(cluster) {
        Some(host) => tls.own_fault(&host, UnixTime::now()).map(|fault| {
            let unset = match is_wildcard {
                true => "; set cluster-node-url, without which the node registers its address towards etcd",
                false => "",
            };
            format!(
                "cluster-node-cert: {}: other nodes will refuse it for {host}: {fault}: make one of an authority in cluster-node-ca, for \
                 clients and servers, that names the host of cluster-node-url{unset}",
                cert.display()
            )
        }),
        None => is_wildcard.then(|| {
            format!(
                "cluster-node-listen is a wildcard, and the node registers its address towards etcd, which {} may not name: set \
                 cluster-node-url, with a host of the certificate",
                cert.display()
            )
        }),
    };
    let source = TlsSource::Files { cert: cert.clone(), key };
    let date = Certificates::open(&source).ok().and_then(|pair| pair.date_warning(SystemTime::now()));
    let date = date.map(|warning| format!("cluster-node-cert: {}: {warning}: renew it", cert.display()));
    fault.into_iter().chain(date).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, Loaded, load};

    fn loaded(flags: &[(&str, &str)]) -> Result<Loaded, String> {
        let flags = [("cluster", "http://127.0.0.1:2379")].iter().chain(flags);
        let flags = flags.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load(&Inputs { flags, ..Inputs::default() }).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_certificate_that_other_nodes_refuse_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let made = rcgen::generate_simple_self_signed(vec!["edge1.example".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(vec!["edge2.example".to_owned()]).unwrap();
        std::fs::write(path("ca.pem"), other.cert.pem()).unwrap();
        std::fs::write(path("node.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("node.key"), made.signing_key.serialize_pem()).unwrap();
        let [ca, cert, key] = ["ca.pem", "node.pem", "node.key"].map(path);
        let files = [("cluster-node-ca", &*ca), ("cluster-node-cert", &*cert), ("cluster-node-key", &*key)];
        let listener = [("cluster-node-listen", ":8445"), ("cluster-node-url", "https://edge1.example:8445")];
        let told = |flags: &[(&str, &str)]| doubts(&loaded(flags).unwrap().config).join("\n");
        assert_eq!(told(&files), "", "no listener shows it");
        let all = [&files[..], &listener].concat();
        assert!(told(&all).contains("node.pem: other nodes will refuse it for edge1.example"), "{}", told(&all));
        std::fs::write(&ca, "nothing").unwrap();
        assert_eq!(told(&all), "", "an obstacle, which the check tells as an error");
        let loaded = loaded(&all).unwrap();
        let wrong = open_node_tls(&loaded.config.cluster).unwrap_err();
        assert!(wrong.starts_with("cluster-node-ca: ") && wrong.contains("ca.pem: expected a certificate"), "{wrong}");
    }

    #[test]
    fn a_wildcard_without_a_url_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let made = rcgen::generate_simple_self_signed(vec!["edge1.example".to_owned()]).unwrap();
        std::fs::write(path("node.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("node.key"), made.signing_key.serialize_pem()).unwrap();
        let [cert, key] = ["node.pem", "node.key"].map(path);
        let told = |etcd: &str| {
            let flags = [
                ("cluster", etcd),
                ("cluster-node-ca", &*cert),
                ("cluster-node-cert", &*cert),
                ("cluster-node-key", &*key),
                ("cluster-node-listen", ":8446"),
            ];
            doubts(&loaded(&flags).unwrap().config).join("\n")
        };
        let known = told("http://127.0.0.1:2379");
        assert!(known.contains("will refuse it for 127.0.0.1") && known.contains("set cluster-node-url"), "{known}");
        let unknown = told("http://etcd.example:2379");
        assert!(unknown.contains("may not name: set cluster-node-url"), "{unknown}");
    }

    #[test]
    fn settings_of_nodes_need_each_other() {
        for (name, value, needed) in [
            ("cluster-node-cert", "a.pem", "needs cluster-node-key"),
            ("cluster-node-key", "a.key", "needs cluster-node-cert"),
            ("cluster-node-listen", ":8445", "needs cluster-node-ca, cluster-node-cert and cluster-node-key"),
            ("cluster-node-url", "https://a:8445", "needs cluster-node-listen"),
            ("cluster-node-url", "http://a:8445", "such as \"https://"),
        ] {
            let told = loaded(&[(name, value)]).unwrap_err();
            assert!(told.contains(needed), "{name}: {told}");
        }
    }
}
