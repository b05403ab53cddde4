//! The nodes of a cluster without etcd.

use super::{Finding, PATIENCE};
use crate::config::ClusterSettings;
use futures_util::future::join_all;
use std::{io, time::Instant};
use tokio::{net::TcpStream, time::timeout};
use url::Url;

const AREA: &str = "nodes";

pub(super) async fn findings(settings: &ClusterSettings) -> Vec<Finding> {
    join_all(settings.nodes.iter().map(ask)).await
}

/// Connects to one node. It may be this one, which does not run yet.
async fn ask(node: &Url) -> Finding {
    let shown = node.as_str().trim_end_matches('/');
    let began = Instant::now();
    match timeout(PATIENCE, connected(node)).await {
        Ok(Ok(())) => {
            Finding::fine(AREA, format!("{shown} accepts connections, after {} ms", began.elapsed().as_millis()))
        }
        Ok(Err(error)) => Finding::warning(AREA, format!("{shown}: {error}"), ADVICE),
        Err(_) => Finding::warning(AREA, format!("{shown}: no connection within {PATIENCE:?}"), ADVICE),
    }
}

const ADVICE: &str = "fine for a node that does not run yet, such as this one; else check cluster-nodes, and that nodes reach each other";

async fn connected(node: &Url) -> io::Result<()> {
    let host = node.host_str().unwrap_or("").trim_matches(['[', ']']);
    TcpStream::connect((host, node.port_or_known_default().unwrap_or(80))).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_node_that_does_not_run_is_a_warning() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        assert!(ask(&url).await.text.contains("accepts connections"));
        drop(listener);
        assert!(ask(&url).await.advice.is_some());
    }
}
