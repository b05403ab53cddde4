//! Homes: nodes of a cluster that read a part of each object from the origin for all others.
//!
//! Each range group of an object has a home. A node asks the home, which asks the origin, so that the origin sends each byte once for the
//! whole cluster. Requests to homes are HTTP with [`HOME_HEADER`]; a node that is not the home refuses them, so that nodes
//! with different views don't ask in circles. Where nodes are in zones, each range group has a home in each zone too: nodes ask that of their
//! zone, which asks the home of the cluster, which asks the origin. A home that fails is not asked for a while: the next home is asked, or the origin. A home that waits for a slow
//! origin has not failed: it shows a sign of life, and is waited for. Otherwise all nodes would ask an origin that is too slow already.

use crate::error::OriginError;
use crate::layout::Striping;
use crate::origin::neighbours::{NeighbourCounters, Sibling, is_a_miss};
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, OpenFile, Origin, OriginCounts, OriginFacts, SentBy};
use crate::path::ObjectPath;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use millpond_outbound::Client;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Header of requests to homes, with the [step](HomeStep). A node that is no home of the first byte refuses them.
pub const HOME_HEADER: &str = "millpond-home";

/// Header of requests to homes: the last purge of which the node that asks knows. A home that has not applied it refuses them.
pub const PURGED_HEADER: &str = "millpond-purged";

/// Most homes whose connections are kept. Beyond it, all are closed.
const MOST_HOMES: usize = 1024;
/// Time without a reply after which a home must show a sign of life, and the time that it has for that.
const PATIENCE: Duration = Duration::from_secs(1);

/// The kind of home as which a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HomeStep {
    /// The home of a zone, in which the asking node is too. It may ask the home of the cluster.
    Zone,
    /// The home of the cluster. It asks the origin.
    Cluster,
}

impl HomeStep {
    /// The value of [`HOME_HEADER`]. Versions without zones ask as for the cluster.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Cluster => "1",
        }
    }

    /// The step of a request with a value of [`HOME_HEADER`].
    pub fn of_header(value: &[u8]) -> Self {
        if value == Self::Zone.as_str().as_bytes() { Self::Zone } else { Self::Cluster }
    }
}

/// A home that is asked for bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HomeAddress {
    /// URL of the place at the home.
    pub url: Arc<str>,
    /// The kind of home as which it is asked.
    pub step: HomeStep,
    /// Whether its bytes come from another zone.
    pub crosses: bool,
}

/// The homes of the objects of a place.
pub trait Homes: fmt::Debug + Send + Sync {
    /// Returns the homes of a byte of an object, in the order in which they are asked; none where this node asks the origin itself.
    fn homes(&self, path: &ObjectPath, offset: u64) -> Vec<HomeAddress>;

    /// Returns the bytes around one that have the same home.
    fn group(&self, offset: u64) -> Range<u64>;

    /// Returns the number of the last purge that a home must have applied; `None` where there was none.
    fn purged(&self) -> Option<u64>;

    /// Creates a client that trusts the homes, with a time limit of connecting.
    ///
    /// # Errors
    /// A certificate can't be used, in words.
    fn client(&self, connect: Duration) -> Result<Client, String>;

    /// Notes that a home is asked for a range. The value is dropped once the bytes have been read, or the request has failed.
    fn begins(&self, path: &ObjectPath, range: &Range<u64>, step: HomeStep) -> Box<dyn Send + Sync>;

    /// Notes the end of a request to a home, and why it failed. A home that has no copy has not failed.
    fn ended(&self, home: &str, failure: Option<&str>);
}

/// Makes the cache of a home.
pub(crate) type MakeCache = Box<dyn Fn(&HomeAddress) -> Result<Arc<dyn Origin>, String> + Send + Sync>;

/// An origin whose homes are asked first.
#[derive(Clone)]
pub(crate) struct HomeOrigin(Arc<Inner>);

struct Inner {
    homes: Arc<dyn Homes>,
    origin: Arc<dyn Origin>,
    make: MakeCache,
    /// Caches by home. A lock, held for a look-up.
    known: Mutex<HashMap<HomeAddress, Arc<Sibling>>>,
    counters: Arc<NeighbourCounters>,
}

impl fmt::Debug for HomeOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HomeOrigin").field("origin", &self.0.origin).finish_non_exhaustive()
    }
}

impl HomeOrigin {
    pub(crate) fn new(homes: Arc<dyn Homes>, origin: Arc<dyn Origin>, make: MakeCache) -> Self {
        let (known, counters) = Default::default();
        Self(Arc::new(Inner { homes, origin, make, known, counters }))
    }
}

impl Inner {
    fn cache(&self, home: &HomeAddress) -> Option<Arc<Sibling>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sibling) = known.get(home) {
            return Some(sibling.clone());
        }
        if known.len() >= MOST_HOMES {
            known.clear();
        }
        // A node's pass changes, and its zone may. The client of the former one is closed.
        known.retain(|other, _| without_pass(&other.url) != without_pass(&home.url));
        let cache = (self.make)(home).inspect_err(|error| tracing::debug!(%error, "no client for a home")).ok()?;
        let sibling = Arc::new(Sibling::new(cache));
        known.insert(home.clone(), sibling.clone());
        Some(sibling)
    }

    /// Asks the homes of a range within one group.
    async fn ask(&self, path: &ObjectPath, range: &Range<u64>, expected: &ObjectMeta) -> Option<Fetched> {
        let range = &(range.start..range.end.min(expected.len));
        for address in self.homes.homes(path, range.start) {
            if let Some(fetched) = self.ask_one(&address, path, range, expected).await {
                return Some(fetched);
            }
        }
        None
    }

    async fn ask_one(
        &self,
        address: &HomeAddress,
        path: &ObjectPath,
        range: &Range<u64>,
        expected: &ObjectMeta,
    ) -> Option<Fetched> {
        let base = &address.url;
        let home = self.cache(address).filter(|home| !home.is_resting())?;
        let wait = self.homes.begins(path, range, address.step);
        match reply(&*home.cache, path, range, expected).await {
            Some(Ok(fetched)) if fetched.range == *range => {
                home.answered();
                self.homes.ended(base, None);
                let Fetched { meta, range, body, sender } = self.counters.counted(fetched, address.crosses);
                // The body holds it to its end.
                let body = body.inspect(move |_| _ = &wait).boxed();
                return Some(Fetched { meta, range, body, sender });
            }
            // It works, but knows another version or another home.
            Some(Ok(_)) => home.answered(),
            Some(Err(error)) if is_a_miss(&error) => home.answered(),
            failed => {
                let error =
                    failed.and_then(Result::err).map_or("no sign of life".to_owned(), |error| error.to_string());
                // Errors name the URL.
                let error = error.replace(&**base, without_pass(base));
                tracing::debug!(home = without_pass(base), error, "a home failed");
                self.counters.failure();
                home.failed();
                self.homes.ended(base, Some(&error));
                return None;
            }
        }
        self.homes.ended(base, None);
        self.counters.miss();
        None
    }

    /// Reads a range within one group.
    async fn read(&self, path: &ObjectPath, range: Range<u64>, expected: &ObjectMeta) -> Result<Fetched, OriginError> {
        if !range.is_empty()
            && let Some(fetched) = self.ask(path, &range, expected).await
        {
            return Ok(fetched);
        }
        self.origin.read(path, range, Some(expected)).await
    }

    /// The end of the part of a range that has one home.
    fn border(&self, range: &Range<u64>) -> u64 {
        range.end.min(self.homes.group(range.start).end).max(range.start)
    }
}

/// The URL of a home up to the pass, which stands behind `~`.
fn without_pass(base: &str) -> &str {
    base.split("/~").next().unwrap_or_default()
}

/// Reads from a home; `None` where it does not answer in time and shows no sign of life.
async fn reply(
    home: &dyn Origin,
    path: &ObjectPath,
    range: &Range<u64>,
    expected: &ObjectMeta,
) -> Option<Result<Fetched, OriginError>> {
    let mut reply = home.read(path, range.clone(), Some(expected));
    if let Ok(reply) = timeout(PATIENCE, &mut reply).await {
        return Some(reply);
    }
    // The reply itself is one.
    let is_alive = async { timeout(PATIENCE, home.is_alive()).await.unwrap_or(false) };
    tokio::select! {
        biased;
        reply = &mut reply => return Some(reply),
        is_alive = is_alive => if !is_alive { return None },
    }
    // The home's own time limits of the origin end this.
    Some(reply.await)
}

impl Origin for HomeOrigin {
    fn describe(&self) -> String {
        self.0.origin.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        self.0.origin.head(path)
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            // Only the origin knows the current version.
            let expected = match expected {
                Some(meta) => meta.clone(),
                None => {
                    self.0.counters.further();
                    self.0.origin.head(path).await?
                }
            };
            let border = self.0.border(&range);
            let first = self.0.read(path, range.start..border, &expected).await?;
            let end = range.end.min(expected.len);
            if border >= end {
                return Ok(Fetched { meta: expected, ..first });
            }
            // The rest has other homes. Each is asked when the part before it has been read.
            let (inner, path, meta) = (self.0.clone(), path.clone(), expected.clone());
            let rest = stream::try_unfold(border, move |start| {
                let (inner, path, meta) = (inner.clone(), path.clone(), meta.clone());
                async move {
                    if start >= end {
                        return Ok::<_, OriginError>(None);
                    }
                    let border = inner.border(&(start..end));
                    inner.counters.further();
                    let part = inner.read(&path, start..border, &meta).await?;
                    Ok(Some((part.body, border)))
                }
            });
            let body = first.body.chain(rest.try_flatten()).boxed();
            Ok(Fetched { range: first.range.start..end, meta: expected, body, sender: SentBy::Sibling })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.0.origin.list(folder)
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        self.0.origin.open_file(path)
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { has_neighbours: true, ..self.0.origin.facts() }
    }

    fn counts(&self) -> OriginCounts {
        OriginCounts { neighbours: Some(self.0.counters.snapshot()), ..self.0.origin.counts() }
    }

    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        self.0.origin.striping(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::memory::MemoryOrigin;

    const GROUP: u64 = 1000;

    /// Even groups have their home elsewhere.
    #[derive(Debug)]
    struct Halves;

    fn address(url: &str, step: HomeStep) -> HomeAddress {
        HomeAddress { url: url.into(), step, crosses: false }
    }

    impl Homes for Halves {
        fn homes(&self, _: &ObjectPath, offset: u64) -> Vec<HomeAddress> {
            let home = (offset / GROUP).is_multiple_of(2).then(|| address("http://home", HomeStep::Cluster));
            home.into_iter().collect()
        }

        fn group(&self, offset: u64) -> Range<u64> {
            let start = offset / GROUP * GROUP;
            start..start + GROUP
        }

        fn purged(&self) -> Option<u64> {
            None
        }

        fn client(&self, connect: Duration) -> Result<Client, String> {
            Client::new(&millpond_outbound::Options { connect, ..Default::default() })
        }

        fn begins(&self, _: &ObjectPath, _: &Range<u64>, _: HomeStep) -> Box<dyn Send + Sync> {
            Box::new(())
        }

        fn ended(&self, _: &str, _: Option<&str>) {}
    }

    async fn read(origin: &HomeOrigin, range: Range<u64>) -> Vec<u8> {
        let path = ObjectPath::parse("a").unwrap();
        let fetched = origin.read(&path, range.clone(), None).await.unwrap();
        let length = fetched.range.end - fetched.range.start;
        let pieces: Vec<bytes::Bytes> = fetched.body.try_collect().await.unwrap();
        let all = pieces.concat();
        assert_eq!(all.len() as u64, length);
        all
    }

    #[tokio::test]
    async fn each_part_of_a_range_comes_from_its_home() {
        let bytes: Vec<u8> = (0..3500_u32).map(|n| (n % 251) as u8).collect();
        let [home, storage] = [(); 2].map(|()| {
            let origin = MemoryOrigin::new("memory");
            origin.put("a", bytes.clone());
            Arc::new(origin)
        });
        let cache = home.clone();
        let origin = HomeOrigin::new(Arc::new(Halves), storage.clone(), Box::new(move |_| Ok(cache.clone())));
        for range in [0..3500, 10..20, 999..1001, 1500..9000, 3499..3500] {
            let found = read(&origin, range.clone()).await;
            assert_eq!(found, bytes[range.start as usize..(range.end as usize).min(bytes.len())], "{range:?}");
        }
        let stats = origin.counts().neighbours.unwrap();
        assert_eq!((stats.hits, stats.misses, stats.failures), (5, 0, 0));
        assert_eq!(stats.bytes, 2000 + 10 + 1 + 1000, "of the groups 0 and 2");
        assert_eq!(stats.further, 5 + 6, "a version for each read, and parts behind the first");
        let path = ObjectPath::parse("a").unwrap();
        for (range, sender) in [(10..20, SentBy::Sibling), (1500..1510, SentBy::Origin), (900..1100, SentBy::Sibling)] {
            assert_eq!(origin.read(&path, range, None).await.unwrap().sender, sender);
        }
        // Without the home the origin has all.
        home.remove("a");
        assert_eq!(read(&origin, 0..3500).await, bytes);
    }

    #[test]
    fn a_home_with_another_pass_is_the_same_home() {
        let make: MakeCache = Box::new(|_| Ok(Arc::new(MemoryOrigin::new("home"))));
        let origin = HomeOrigin::new(Arc::new(Halves), Arc::new(MemoryOrigin::new("memory")), make);
        for pass in 0..100 {
            for node in ["a", "b"] {
                let step = if pass < 50 { HomeStep::Zone } else { HomeStep::Cluster };
                let home = address(&format!("http://{node}/~{pass}/films"), step);
                let first = origin.0.cache(&home).unwrap();
                assert!(Arc::ptr_eq(&first, &origin.0.cache(&home).unwrap()));
            }
        }
        assert_eq!(origin.0.known.lock().unwrap().len(), 2);
    }

    /// A home in the zone for all bytes, and one of the cluster behind it.
    #[derive(Debug)]
    struct Zones;

    impl Homes for Zones {
        fn homes(&self, _: &ObjectPath, _: u64) -> Vec<HomeAddress> {
            let cluster = HomeAddress { crosses: true, ..address("http://far", HomeStep::Cluster) };
            vec![address("http://near", HomeStep::Zone), cluster]
        }

        fn group(&self, offset: u64) -> Range<u64> {
            Halves.group(offset)
        }

        fn purged(&self) -> Option<u64> {
            None
        }

        fn client(&self, connect: Duration) -> Result<Client, String> {
            Halves.client(connect)
        }

        fn begins(&self, _: &ObjectPath, _: &Range<u64>, _: HomeStep) -> Box<dyn Send + Sync> {
            Box::new(())
        }

        fn ended(&self, _: &str, _: Option<&str>) {}
    }

    /// Even groups have their home elsewhere. Counts the requests to it that are under way.
    #[derive(Debug, Default)]
    struct Awaiting(Arc<()>);

    impl Homes for Awaiting {
        fn homes(&self, path: &ObjectPath, offset: u64) -> Vec<HomeAddress> {
            Halves.homes(path, offset)
        }

        fn group(&self, offset: u64) -> Range<u64> {
            Halves.group(offset)
        }

        fn purged(&self) -> Option<u64> {
            None
        }

        fn client(&self, connect: Duration) -> Result<Client, String> {
            Halves.client(connect)
        }

        fn begins(&self, _: &ObjectPath, _: &Range<u64>, _: HomeStep) -> Box<dyn Send + Sync> {
            Box::new(self.0.clone())
        }

        fn ended(&self, _: &str, _: Option<&str>) {}
    }

    #[tokio::test]
    async fn a_home_is_awaited_until_its_bytes_are_read() {
        let [home, storage] = [(); 2].map(|()| {
            let origin = MemoryOrigin::new("memory");
            origin.put("a", vec![7; 2 * GROUP as usize]);
            Arc::new(origin)
        });
        let awaiting = Arc::new(Awaiting::default());
        let make: MakeCache = Box::new(move |_| Ok(home.clone()));
        let origin = HomeOrigin::new(awaiting.clone(), storage, make);
        let under_way = || Arc::strong_count(&awaiting.0) - 1;
        let path = ObjectPath::parse("a").unwrap();
        let fetched = origin.read(&path, 0..10, None).await.unwrap();
        assert_eq!(under_way(), 1);
        let pieces: Vec<bytes::Bytes> = fetched.body.try_collect().await.unwrap();
        assert_eq!((pieces.concat().len(), under_way()), (10, 0));
        // The origin is no home.
        let fetched = origin.read(&path, GROUP..GROUP + 10, None).await.unwrap();
        assert_eq!((fetched.range, under_way()), (GROUP..GROUP + 10, 0));
    }

    #[tokio::test]
    async fn the_home_of_the_cluster_is_asked_where_that_of_the_zone_has_nothing() {
        let [near, far, storage] = [(); 3].map(|()| {
            let origin = MemoryOrigin::new("memory");
            origin.put("a", vec![7; 3 * GROUP as usize]);
            Arc::new(origin)
        });
        let make: MakeCache = {
            let (near, far) = (near.clone(), far.clone());
            Box::new(move |home| {
                let cache = if home.step == HomeStep::Zone { near.clone() } else { far.clone() };
                Ok(cache)
            })
        };
        let origin = HomeOrigin::new(Arc::new(Zones), storage, make);
        let counts = || {
            let found = origin.counts().neighbours.unwrap();
            (found.hits, found.misses, found.bytes, found.zone_bytes)
        };
        assert_eq!(read(&origin, 0..GROUP).await.len(), 1000);
        assert_eq!(counts(), (1, 0, 1000, 0));
        near.remove("a");
        assert_eq!(read(&origin, 0..GROUP).await.len(), 1000);
        assert_eq!(counts(), (2, 1, 2000, 1000));
        far.remove("a");
        assert_eq!(read(&origin, 0..GROUP).await.len(), 1000);
        assert_eq!(counts(), (2, 3, 2000, 1000), "the origin has it");
    }

    #[test]
    fn versions_without_zones_ask_for_the_cluster() {
        for step in [HomeStep::Zone, HomeStep::Cluster] {
            assert_eq!(HomeStep::of_header(step.as_str().as_bytes()), step);
        }
        for other in [&b""[..], b"2", b"ZONE", b"zones", b"\xff"] {
            assert_eq!(HomeStep::of_header(other), HomeStep::Cluster);
        }
    }

    /// A home that is late, and works or hangs.
    #[derive(Debug)]
    struct Late(MemoryOrigin, bool);

    impl Origin for Late {
        fn describe(&self) -> String {
            self.0.describe()
        }

        fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
            self.0.head(path)
        }

        fn read<'a>(
            &'a self,
            path: &'a ObjectPath,
            range: Range<u64>,
            expected: Option<&'a ObjectMeta>,
        ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
            Box::pin(async move {
                tokio::time::sleep(PATIENCE * 10).await;
                self.0.read(path, range, expected).await
            })
        }

        fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
            self.0.list(folder)
        }

        fn is_alive(&self) -> BoxFuture<'_, bool> {
            Box::pin(async {
                if !self.1 {
                    std::future::pending::<()>().await;
                }
                true
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_home_that_waits_is_waited_for_and_one_that_hangs_costs_one_time_limit() {
        let storage = MemoryOrigin::new("memory");
        storage.put("a", vec![7; 3 * GROUP as usize]);
        for (is_alive, stats, took) in [(true, (2, 0), PATIENCE * 20), (false, (0, 1), PATIENCE * 2)] {
            let make: MakeCache = {
                let home = Arc::new(Late(storage.clone(), is_alive));
                Box::new(move |_| Ok(home.clone()))
            };
            let origin = HomeOrigin::new(Arc::new(Halves), Arc::new(storage.clone()), make);
            let began = tokio::time::Instant::now();
            assert_eq!(read(&origin, 0..GROUP).await.len() as u64, GROUP);
            // It is not asked for a while where it failed.
            assert_eq!(read(&origin, 2 * GROUP..3 * GROUP).await.len() as u64, GROUP);
            let found = origin.counts().neighbours.unwrap();
            assert_eq!((found.hits, found.failures), stats);
            assert_eq!(began.elapsed().as_secs(), took.as_secs(), "{is_alive}");
        }
    }
}
