//! The machine's clock, beside those of origins.

use super::{Finding, PATIENCE};
use crate::config::{Config, PlaceConfig};
use futures_util::future::join_all;
use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};
use url::Url;

const AREA: &str = "clock";

/// Difference up to which clocks are the same: `Date` has whole seconds.
const SAME: Duration = Duration::from_secs(2);

/// Difference from which object stores refuse signed requests, with some room: theirs is 15 minutes.
const REFUSED: Duration = Duration::from_secs(10 * 60);

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let urls: BTreeSet<_> = config.places.iter().filter_map(server).collect();
    let Ok(client) = client() else { return Vec::new() };
    let asked = urls.iter().map(|url| ask(&client, url));
    join_all(asked).await.into_iter().flatten().collect()
}

fn client() -> Result<reqwest::Client, reqwest::Error> {
    let none = reqwest::redirect::Policy::none();
    reqwest::Client::builder().no_proxy().redirect(none).timeout(PATIENCE).build()
}

/// Returns the root of the server of a place, without secrets.
fn server(place: &PlaceConfig) -> Option<Url> {
    let url = place.spec.server(&place.options.remote.bucket)?;
    let mut root = Url::parse(&format!("{}://{}/", url.scheme(), url.host_str()?)).ok()?;
    root.set_port(url.port()).ok()?;
    Some(root)
}

/// Asks a server for the time. Servers that can't be reached are findings of their places.
async fn ask(client: &reqwest::Client, url: &Url) -> Option<Finding> {
    let began = SystemTime::now();
    let reply = client.head(url.clone()).send().await.ok()?;
    let taken = began.elapsed().unwrap_or_default();
    let date = httpdate::parse_http_date(reply.headers().get("date")?.to_str().ok()?).ok()?;
    Some(compare(url.host_str().unwrap_or_default(), began + taken / 2, date))
}

fn compare(host: &str, now: SystemTime, theirs: SystemTime) -> Finding {
    let (difference, way) = match now.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    if difference <= SAME {
        return Finding::fine(AREA, format!("the same as that of {host}"));
    }
    let text = format!("{} s {way} that of {host}", difference.as_secs());
    let advice = "synchronize the clock: timedatectl set-ntp true, or chrony";
    if difference >= REFUSED {
        return Finding::error(
            AREA,
            format!("{text}: object stores refuse requests, and tokens begin and end at wrong times"),
            advice,
        );
    }
    Finding::warning(
        AREA,
        format!("{text}: times of tokens and lifetimes in caches are wrong by that difference"),
        advice,
    )
}

#[cfg(test)]
mod tests {
    use super::super::Severity::{Error, Fine, Warning};
    use super::*;

    #[test]
    fn clocks_are_compared_both_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (theirs, severity) in
            [(999_999, Fine), (1_000_001, Fine), (1_000_030, Warning), (999_900, Warning), (990_000, Error)]
        {
            let found = compare("media.example", now, SystemTime::UNIX_EPOCH + Duration::from_secs(theirs));
            assert_eq!(found.severity, severity, "{theirs}: {found:?}");
        }
    }
}
