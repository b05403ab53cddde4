//! The members of etcd.

use super::{Finding, PATIENCE};
use crate::config::ClusterSettings;
use futures_util::future::join_all;
use millpond_etcd::{EtcdClient, EtcdOptions};
use std::time::{Duration, Instant};
use url::Url;

const AREA: &str = "etcd";

/// Time of a reply above which leases are in danger on a busy machine.
const SLOW: Duration = Duration::from_millis(200);

pub(super) async fn findings(settings: &ClusterSettings) -> Vec<Finding> {
    if settings.etcd.is_empty() {
        return Vec::new();
    }
    let options = match settings.client_options() {
        Ok(options) => options,
        Err(error) => return vec![Finding::error(AREA, error, "check the files of the settings cluster-*")],
    };
    let asked = options.members.iter().map(|member| ask(member, &options, &settings.prefix));
    join_all(asked).await
}

/// Asks one member for a key.
async fn ask(member: &Url, options: &EtcdOptions, prefix: &str) -> Finding {
    let advice = "check that etcd runs there, its client port (2379), cluster-ca, and cluster-user";
    let options = EtcdOptions { members: vec![member.clone()], timeout: PATIENCE, ..options.clone() };
    let client = match EtcdClient::new(options) {
        Ok(client) => client,
        Err(error) => return Finding::error(AREA, error, advice),
    };
    let began = Instant::now();
    match client.range(prefix.as_bytes(), 1).await {
        Err(error) => Finding::error(AREA, error.to_string(), advice),
        Ok(_) => reply(member, began.elapsed()),
    }
}

fn reply(member: &Url, taken: Duration) -> Finding {
    let text = format!("{} replies in {} ms", member.as_str().trim_end_matches('/'), taken.as_millis());
    if taken <= SLOW {
        return Finding::fine(AREA, text);
    }
    Finding::warning(AREA, text, "check etcd's disk (etcd_disk_wal_fsync_duration_seconds), or raise cluster-lease")
}
