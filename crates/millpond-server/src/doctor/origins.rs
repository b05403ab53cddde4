//! Origins: whether they can be reached and read by ranges, and how fast they are.

use super::{Finding, PATIENCE, Probe, links};
use crate::{
    config::{Config, PlaceConfig},
    library::is_media,
};
use futures_util::{StreamExt as _, stream};
use millpond_place::LiveReach;
use millpond_store::{ObjectPath, Origin, OriginError, OriginOptions};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, time::timeout};

/// Places that are examined at the same time.
const TOGETHER: usize = 8;

/// Folders that are listed to find a media file.
const MOST_FOLDERS: usize = 20;

/// Time to the first byte above which starts are slow.
const LATE: Duration = Duration::from_millis(500);

/// Longest beginning of an object, in bytes, that a place skips where its server ignores ranges.
const SKIPPED: u64 = 1 << 20;

/// Rate below which a place is slow, in bits a second: that of one stream in high definition.
const SLOW: f64 = 8e6;

pub(super) async fn findings(config: &Config, probe: &Probe) -> Vec<Finding> {
    let examined = config.places.iter().map(|place| async move {
        let area = if place.spec.name.is_empty() { "place" } else { &place.spec.name };
        let Some(live) = place.spec.live() else {
            let keys = place.spec.credentials(&place.options.remote.bucket);
            let keys = keys.map(|text| Finding::fine(area, text));
            let links = place.spec.folder().and_then(|folder| links::finding(area, folder));
            return keys.into_iter().chain(links).chain(objects(area, place, probe).await).collect();
        };
        match live.kind().reach {
            LiveReach::Connects(_) => stream::iter(live.servers()).then(|server| connect(area, server)).collect().await,
            LiveReach::Pushed => vec![Finding::fine(area, "takes streams that are pushed".to_owned())],
            LiveReach::Calls => {
                vec![Finding::fine(area, format!("{live}: is called by UDP; the check did not wait for an answer"))]
            }
            LiveReach::Packets => vec![Finding::fine(
                area,
                format!(
                    "{live}: receives packets; the check did not wait \
                                                                    for one"
                ),
            )],
        }
    });
    let all: Vec<Vec<Finding>> = stream::iter(examined).buffered(TOGETHER).collect().await;
    all.into_iter().flatten().collect()
}

/// Connects to the server of a live source.
async fn connect(area: &str, (host, port): (String, u16)) -> Finding {
    let advice = "check the address, and that this machine may reach it";
    let began = Instant::now();
    match timeout(PATIENCE, TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => {
            Finding::fine(area, format!("{host}:{port} accepts connections, in {} ms", began.elapsed().as_millis()))
        }
        Ok(Err(error)) => Finding::error(area, format!("{host}:{port}: {error}"), advice),
        Err(_) => Finding::error(area, format!("{host}:{port}: no connection within {PATIENCE:?}"), advice),
    }
}

/// Reads a part of an object of a place.
async fn objects(area: &str, place: &PlaceConfig, probe: &Probe) -> Vec<Finding> {
    // The first answer counts, and that of the origin itself.
    let mut options = OriginOptions { siblings: Vec::new(), ..place.options.clone() };
    options.remote.retry.tries = 1;
    options.remote.requires_ranges = true;
    let origin = match place.spec.origin(&options, None) {
        Ok(origin) => origin,
        Err(error) => return vec![Finding::error(area, error.to_string(), "correct the place's URL or folder")],
    };
    let path = match object(&origin, area, probe).await {
        Ok(path) => path,
        Err(finding) => return vec![finding],
    };
    match timeout(PATIENCE * 2, read(&origin, &path, probe.bytes)).await {
        Ok(Ok(speed)) => std::iter::once(speed.finding(area, &path)).chain(unchecked(&origin, area, &path)).collect(),
        // Millpond reads short files of such a place all the same.
        Ok(Err(error @ OriginError::RangeIgnored { start: ..=SKIPPED, .. })) => {
            vec![Finding::warning(area, error.to_string(), advice(&error))]
        }
        Ok(Err(error)) => vec![Finding::error(area, error.to_string(), advice(&error))],
        Err(_) => {
            let text = format!("{path}: {} bytes take longer than {:?}", probe.bytes, PATIENCE * 2);
            vec![Finding::error(area, text, "check the network to the origin, and the origin's load")]
        }
    }
}

/// Warns of a striped file without checksums.
fn unchecked(origin: &Arc<dyn Origin>, area: &str, path: &ObjectPath) -> Option<Finding> {
    let text = || format!("{path}: its stripe map has no checksums: wrong bytes of a store would be served");
    let advice = "stripe the file again with millpond stripe";
    (origin.counts().unchecked_maps > 0).then(|| Finding::warning(area, text(), advice))
}

/// Returns the object to read.
async fn object(origin: &Arc<dyn Origin>, area: &str, probe: &Probe) -> Result<ObjectPath, Finding> {
    if let Some(path) = &probe.object {
        // As in URLs: the name of the place may come first.
        let inside = path.trim_matches('/');
        let inside = inside.strip_prefix(area).and_then(|rest| rest.strip_prefix('/')).unwrap_or(inside);
        return ObjectPath::parse(inside)
            .map_err(|error| Finding::error(area, format!("{path}: {error}"), "name a file as its URL does"));
    }
    match timeout(PATIENCE, first_media(origin)).await {
        Ok(Ok(Some(path))) => Ok(path),
        Ok(Ok(None)) => Err(Finding::warning(
            area,
            "the first folders of the origin have no media file".to_owned(),
            "name one: millpond doctor --object PATH",
        )),
        Ok(Err(error)) if !is_unlisted(&error) => Err(Finding::error(area, error.to_string(), advice(&error))),
        Ok(Err(error)) => Err(Finding::warning(
            area,
            format!("the origin does not list its folder: {error}"),
            "name a file: millpond doctor --object PATH",
        )),
        Err(_) => Err(Finding::error(
            area,
            format!("the origin did not list its folder within {PATIENCE:?}"),
            "check the network to the origin, and the origin's load",
        )),
    }
}

/// Tells whether an origin works but lists nothing, such as a web server without index pages.
fn is_unlisted(error: &OriginError) -> bool {
    matches!(
        error,
        OriginError::NotFound { .. }
            | OriginError::Unsupported { .. }
            | OriginError::BadReply { .. }
            | OriginError::Forbidden { .. }
            | OriginError::NotAFile { .. }
    )
}

/// Finds a media file, folder by folder.
async fn first_media(origin: &Arc<dyn Origin>) -> Result<Option<ObjectPath>, OriginError> {
    let mut folders = VecDeque::from([ObjectPath::root()]);
    for _ in 0..MOST_FOLDERS {
        let Some(folder) = folders.pop_front() else { break };
        let listing = origin.list(&folder).await?;
        for entry in listing.entries.iter().take(1000) {
            let Ok(path) = folder.join(&entry.name) else { continue };
            match entry.folder {
                true => folders.push_back(path),
                false if is_media(&entry.name) => return Ok(Some(path)),
                false => {}
            }
        }
    }
    Ok(None)
}

/// Measurements of a read of a part of an object.
struct Speed {
    /// Offset of the first byte. A range that begins at 0 is no test of ranges.
    start: u64,
    bytes: u64,
    first_byte: Duration,
    whole: Duration,
    is_local: bool,
}

/// Reads up to `most` bytes from the middle of an object: only a range can begin there.
async fn read(origin: &Arc<dyn Origin>, path: &ObjectPath, most: u64) -> Result<Speed, OriginError> {
    let meta = origin.head(path).await?;
    let start = meta.len / 2;
    let began = Instant::now();
    let mut fetched = origin.read(path, start..start.saturating_add(most).min(meta.len), Some(&meta)).await?;
    let (mut bytes, mut first_byte) = (0, None);
    while let Some(piece) = fetched.body.next().await {
        bytes += piece?.len() as u64;
        first_byte.get_or_insert_with(|| began.elapsed());
    }
    let whole = began.elapsed();
    Ok(Speed { start, bytes, first_byte: first_byte.unwrap_or(whole), whole, is_local: origin.facts().is_local })
}

impl Speed {
    fn finding(&self, area: &str, path: &ObjectPath) -> Finding {
        if self.start == 0 {
            let text = format!("{path}: the file is too short to test byte ranges");
            return Finding::warning(area, text, "name a longer file: millpond doctor --object PATH");
        }
        let rate = self.bytes as f64 * 8.0 / self.whole.as_secs_f64().max(1e-6);
        let (ms, mbps) = (self.first_byte.as_millis(), rate / 1e6);
        let text = format!("{path}: ranges work; first byte after {ms} ms, {mbps:.0} Mbit/s over {} bytes", self.bytes);
        let slow =
            "check the network to the origin (ping, mtr), and the origin's load; popular media come from the cache";
        match self {
            _ if self.first_byte > LATE => Finding::warning(area, text, slow),
            // Few bytes tell nothing of a rate.
            _ if rate < SLOW && self.bytes >= 1 << 18 && !self.is_local => Finding::warning(area, text, slow),
            _ => Finding::fine(area, text),
        }
    }
}

/// The remedy of a failure.
fn advice(error: &OriginError) -> &'static str {
    match error {
        OriginError::Dns { .. } => "check the name, and this machine's resolver (/etc/resolv.conf)",
        OriginError::Tls { .. } => {
            "the certificate must be valid, and this machine must trust its authority (package ca-certificates)"
        }
        OriginError::Connect { .. } => "check the address and port, and that no firewall is between",
        OriginError::Timeout { .. } => {
            "check the network to the origin, and the origin's load; connect-timeout and first-byte-timeout bound the wait"
        }
        OriginError::Unauthorized { .. } | OriginError::Credentials { .. } => {
            "set the keys (AWS_ACCESS_KEY_ID and so on), or credentials = \"instance\", or anonymous = true"
        }
        OriginError::Forbidden { .. } | OriginError::Outside { .. } => {
            "give the credentials, or the server's user, the right to read"
        }
        OriginError::NoSuchBucket { .. } => "check the name of the bucket, endpoint and region",
        OriginError::NotFound { .. } => "check the path of the place's URL, or of --object",
        OriginError::RangeIgnored { .. } => {
            "the server must support byte ranges: Accept-Ranges, without on-the-fly compression"
        }
        OriginError::TooManyRetries { last, .. } | OriginError::Unit { last, .. } => advice(last),
        _ => "read the log of the origin",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use millpond_store::{At, MemoryOrigin};

    const PROBE: Probe = Probe { object: None, bytes: 1 << 20 };

    #[tokio::test]
    async fn a_media_file_is_found_and_read_from_its_middle() {
        let origin = MemoryOrigin::new("films");
        origin.put("notes.txt", "none");
        origin.put("a/b/film.mp4", vec![7; 3 << 20]);
        let origin: Arc<dyn Origin> = Arc::new(origin);
        let path = object(&origin, "films", &PROBE).await.unwrap();
        assert_eq!(path.as_str(), "a/b/film.mp4");
        let speed = read(&origin, &path, PROBE.bytes).await.unwrap();
        assert_eq!(speed.bytes, 1 << 20);
        assert_eq!(speed.finding("films", &path).severity, Severity::Fine);
    }

    #[tokio::test]
    async fn a_named_object_may_carry_the_name_of_its_place() {
        let origin: Arc<dyn Origin> = Arc::new(MemoryOrigin::new("films"));
        for given in ["films/a.mp4", "/films/a.mp4", "a.mp4"] {
            let probe = Probe { object: Some(given.to_owned()), ..PROBE };
            assert_eq!(object(&origin, "films", &probe).await.unwrap().as_str(), "a.mp4", "{given}");
        }
        assert!(object(&origin, "films", &PROBE).await.is_err(), "there is none");
    }

    #[tokio::test]
    async fn ranges_of_an_object_of_one_byte_are_not_tested() {
        let origin = MemoryOrigin::new("films");
        origin.put("empty.mp4", "");
        origin.put("short.mp4", "1");
        origin.put("longer.mp4", "12");
        let origin: Arc<dyn Origin> = Arc::new(origin);
        for (name, severity) in
            [("empty.mp4", Severity::Warning), ("short.mp4", Severity::Warning), ("longer.mp4", Severity::Fine)]
        {
            let path = ObjectPath::parse(name).unwrap();
            let finding = read(&origin, &path, PROBE.bytes).await.unwrap().finding("films", &path);
            assert_eq!(finding.severity, severity, "{name}");
            assert_eq!(finding.text.contains("ranges work"), severity == Severity::Fine, "{name}");
        }
    }

    #[test]
    fn slow_origins_are_warnings() {
        let path = ObjectPath::parse("a.mp4").unwrap();
        let speed = |bytes, first, whole| Speed {
            start: bytes,
            bytes,
            first_byte: Duration::from_millis(first),
            whole: Duration::from_millis(whole),
            is_local: false,
        };
        for (speed, severity) in [
            (speed(4 << 20, 20, 100), Severity::Fine),
            (speed(4 << 20, 900, 1000), Severity::Warning),
            (speed(1 << 20, 20, 5000), Severity::Warning),
            (speed(100, 20, 25), Severity::Fine),
        ] {
            assert_eq!(speed.finding("films", &path).severity, severity, "{} bytes", speed.bytes);
        }
    }

    #[test]
    fn advice_is_that_of_the_last_failure() {
        let last = Box::new(OriginError::RangeIgnored { at: At::new("o", "p"), server: "x".into(), start: 1 });
        assert!(advice(&OriginError::TooManyRetries { tries: 1, last }).contains("byte ranges"));
    }
}
