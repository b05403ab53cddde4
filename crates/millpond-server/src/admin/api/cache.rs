//! The cache: its state, its objects, and changes.

use super::{
    super::AdminState,
    Outcome, Reply, absent, bad,
    page::{Page, fits, page},
    request::ApiRequest,
    show,
};
use crate::{
    http::{AnswerError, objects_at, remote_title_at},
    library::PlacePath,
    problem::Problem,
    reload::Reloader,
};
use http::StatusCode;
use millpond_settings::value;
use millpond_store::{
    CachedObject, Glob, Object, Purge, PurgeTag, Selection, Store, policy::PolicyName, schedule::Mode,
};
use millpond_stream::{Feed as _, remote::RemoteTitle};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Range, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// State and counters of the cache.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CacheState {
    /// Size of a slice.
    slice_bytes: u64,
    /// When upcoming slices are fetched.
    prefetch: String,
    /// Memory.
    memory: MemoryState,
    /// Disk; null without a disk cache.
    disk: Option<DiskState>,
    /// Reason why there is no disk cache; null if there is one.
    no_disk: Option<&'static str>,
}

/// Memory of the cache.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MemoryState {
    /// Bytes in use.
    bytes: u64,
    /// Limit.
    limit_bytes: u64,
    /// Each kind of entries.
    kinds: BTreeMap<String, KindState>,
}

/// Entries of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct KindState {
    bytes: u64,
    entries: u64,
    hits: u64,
    misses: u64,
    evictions: u64,
}

/// The disk cache.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct DiskState {
    /// Bytes in use.
    bytes: u64,
    /// Limit.
    limit_bytes: u64,
    /// Slices.
    slices: u64,
    /// Eviction policy.
    policy: String,
    hits: u64,
    misses: u64,
    evictions: u64,
    /// Bytes that are protected from eviction.
    pinned_bytes: u64,
    /// Slices written.
    written: u64,
    /// Slices that were not written because too many waited.
    passed_over: u64,
    /// Failed writes and reads.
    errors: u64,
    /// Slices whose bytes differed from the written bytes.
    damaged: u64,
    /// Slices compared with their checksum.
    verified: u64,
    /// The failure because of which the disk is unused; else null.
    failure: Option<String>,
}

/// An object with cached slices.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CachedFile {
    /// Name of the place.
    place: String,
    /// Path inside the place.
    path: String,
    /// Version.
    version: String,
    /// Length.
    bytes: u64,
    /// Number of the object's slices, cached or not.
    slices: u64,
    /// Its slices in memory.
    in_memory: u64,
    /// Its slices on the disk.
    on_disk: u64,
    /// Whether slices of the object are pinned.
    pinned: bool,
    /// Bytes read from complete slices.
    hit_bytes: u64,
    /// Bytes read as they arrived.
    miss_bytes: u64,
}

/// Filters of cached objects.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ObjectQuery {
    /// Name of a place.
    place: Option<String>,
    /// Beginning of the path, with the place.
    prefix: Option<String>,
    /// Whether slices are pinned.
    pinned: Option<bool>,
    /// Part of the path.
    q: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next-cursor` of the page before.
    cursor: Option<String>,
}

/// Changes of the running cache.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CacheChange {
    /// Limit of the disk, such as 10GiB, at most the configured one.
    size: Option<String>,
    /// Limit of the memory, such as 1GiB.
    memory: Option<String>,
    /// Eviction policy of the disk.
    policy: Option<String>,
    /// When upcoming slices are fetched.
    prefetch: Option<String>,
}

/// A file, asset or folder.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Its path, as in URLs, but not percent-encoded.
    pub(super) path: String,
}

/// Objects whose cached bytes are purged: a path, a pattern or a tag.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeRequest {
    /// Path of a file, or of a folder with all below it, as in URLs, but not percent-encoded.
    path: Option<String>,
    /// Pattern of paths, such as films/**/*.ts: `*` and `?` match within a component, `**` across components. Other characters stand for
    /// themselves.
    pattern: Option<String>,
    /// Tag that the origin states for objects, in `Surrogate-Key` or `Cache-Tag`.
    tag: Option<String>,
    /// Place of the objects with that tag; all places without it.
    place: Option<String>,
    /// Whether bytes stay if their version is the same when they are needed next.
    #[serde(default)]
    soft: bool,
}

/// Slices that were removed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Purged {
    /// Their number.
    purged_slices: u64,
}

/// Objects that are fetched.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Warmed {
    /// Their number.
    objects: usize,
    /// Their bytes; 0 where they are not known before the fetch, as of stored titles of RTSP servers.
    bytes: u64,
}

impl ObjectQuery {
    /// Selects pinned objects only.
    pub(super) fn set_pinned(&mut self) {
        self.pinned = Some(true);
    }
}

impl CachedFile {
    fn of(object: CachedObject, slice: u64) -> Self {
        let CachedObject { place, path, version, len, in_memory, on_disk, pinned, hit_bytes, miss_bytes } = object;
        let slices = len.div_ceil(slice.max(1));
        Self { place, path, version, bytes: len, slices, in_memory, on_disk, pinned, hit_bytes, miss_bytes }
    }

    /// The path with the place.
    fn whole_path(&self) -> String {
        if self.place.is_empty() { self.path.clone() } else { format!("{}/{}", self.place, self.path) }
    }
}

/// Returns why a server has no disk cache.
fn no_disk(state: &AdminState) -> &'static str {
    let loaded = state.reloader.as_ref().map(Reloader::loaded);
    match loaded.as_ref().map(|loaded| &loaded.config) {
        Some(config) if !config.has_remote() => "all places are local, and their files are read where they are",
        Some(config) if config.storage.cache_size == 0 => "the setting cache-size is 0",
        _ => "the folder of the setting cache can't be used; the log says why",
    }
}

fn state_of(state: &AdminState) -> CacheState {
    let store = state.front.store();
    let stats = store.stats();
    let disk = stats.disk.map(|disk| DiskState {
        bytes: disk.ledger.bytes,
        limit_bytes: disk.capacity,
        slices: disk.ledger.entries,
        policy: disk.policy.as_str().to_owned(),
        hits: disk.ledger.hits,
        misses: disk.ledger.misses,
        evictions: disk.ledger.evictions,
        pinned_bytes: disk.ledger.pinned,
        written: disk.written,
        passed_over: disk.passed_over,
        errors: disk.errors,
        damaged: disk.damaged,
        verified: disk.verified,
        failure: disk.failure,
    });
    let kinds = stats.memory.iter().map(|(kind, c)| {
        let state =
            KindState { bytes: c.weight, entries: c.entries, hits: c.hits, misses: c.misses, evictions: c.evictions };
        ((*kind).to_owned(), state)
    });
    let memory = MemoryState { bytes: stats.memory_used, limit_bytes: stats.cache.budget, kinds: kinds.collect() };
    let (slice_bytes, prefetch) = (store.slice_size(), store.prefetch_mode().to_string());
    let no_disk = disk.is_none().then(|| no_disk(state));
    CacheState { slice_bytes, prefetch, memory, disk, no_disk }
}

/// Shows state and counters of the cache.
#[utoipa::path(get, path = "/api/v1/cache", tag = "cache", responses((status = 200, body = CacheState)))]
pub(super) fn get_cache(state: &AdminState) -> Reply {
    show(&state_of(state))
}

/// Changes the running cache until the next restart. All or nothing.
#[utoipa::path(patch, path = "/api/v1/cache", tag = "cache", request_body = CacheChange, responses((status = 200, body = CacheState)))]
pub(super) fn change_cache(request: &ApiRequest, state: &AdminState) -> Outcome {
    let CacheChange { size, memory, policy, prefetch } = request.json()?;
    let bytes = |name: &str, text: Option<String>| {
        let bytes = text.map(|text| value::size(&text)).transpose();
        bytes.map_err(|_| bad(format!("{name}: a number of bytes such as 10GiB")))
    };
    let (size, memory) = (bytes("size", size)?, bytes("memory", memory)?);
    let policy = policy.map(|text| text.parse::<PolicyName>()).transpose().map_err(|error| bad(error.to_string()))?;
    let mode = prefetch.map(|text| text.parse::<Mode>()).transpose().map_err(|error| bad(error.to_string()))?;
    let store = state.front.store();
    store.set_disk(size, policy);
    mode.into_iter().for_each(|mode| store.set_prefetch_mode(mode));
    memory.into_iter().for_each(|bytes| store.set_memory(bytes));
    Ok(show(&state_of(state)))
}

/// Returns the page of the objects that a query selects.
pub(super) fn objects(state: &AdminState, query: ObjectQuery) -> Result<Page<CachedFile>, Problem> {
    let ObjectQuery { place, prefix, pinned, q, limit, cursor } = query;
    let store = state.front.store();
    let slice = store.slice_size();
    let wanted = |file: &CachedFile| {
        let path = file.whole_path();
        place.as_deref().is_none_or(|place| file.place == place)
            && pinned.is_none_or(|pinned| file.pinned == pinned)
            && prefix.as_deref().is_none_or(|prefix| path.starts_with(prefix.trim_start_matches('/')))
            && fits(q.as_deref(), [&*path])
    };
    let files = store.cached().into_iter().map(|object| CachedFile::of(object, slice)).filter(wanted).collect();
    // Several versions of one path may be cached.
    page(files, |file| format!("{}\n{}", file.whole_path(), file.version), (limit, cursor.as_deref()))
}

/// Lists the objects that have cached slices.
#[utoipa::path(get, path = "/api/v1/cache/objects", tag = "cache", params(ObjectQuery),
    responses((status = 200, body = Page<CachedFile>)))]
pub(super) fn list_objects(request: &ApiRequest, state: &AdminState) -> Outcome {
    Ok(show(&objects(state, request.query()?)?))
}

/// Removes the cached slices of a file, of all below a folder, or of all files that match a pattern or carry a tag.
#[utoipa::path(post, path = "/api/v1/cache/purge", tag = "cache", request_body = PurgeRequest, responses((status = 200, body = Purged)))]
pub(super) async fn purge(request: &ApiRequest, state: &AdminState) -> Outcome {
    let (purge, object) = purge_of(request, state)?;
    let store = state.front.store().clone();
    // A large disk takes its time.
    let purged = tokio::task::spawn_blocking(move || store.purge(&[purge])).await;
    let purged_slices = purged.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE))?;
    tracing::info!(object, slices = purged_slices, "purged");
    Ok(show(&Purged { purged_slices }))
}

/// The purge that a request asks for, and its path, pattern or tag.
pub(super) fn purge_of(request: &ApiRequest, state: &AdminState) -> Result<(Purge, String), Problem> {
    let PurgeRequest { path, pattern, tag, place, soft } = request.json()?;
    let (text, is_pattern) = match (path, pattern, tag) {
        (None, None, Some(tag)) => return tagged(state, &tag, place, soft),
        (Some(_), None, None) | (None, Some(_), None) if place.is_some() => {
            return Err(bad("place stands beside a tag only: a path or pattern begins with its place"));
        }
        (Some(path), None, None) => (path, false),
        (None, Some(pattern), None) => (pattern, true),
        _ => return Err(bad("expected path, pattern or tag, and one of them only")),
    };
    let text = text.trim_start_matches('/');
    let Some(PlacePath { name, inside, .. }) = state.front.place(text) else {
        return Err(absent(state.front.without_place(text).to_string()));
    };
    let place = name.to_string();
    let selection = match is_pattern {
        true => Selection::Matching { place, glob: Glob::parse(inside).map_err(|error| bad(error.to_string()))? },
        false => Selection::Below { place, path: inside.to_owned() },
    };
    Ok((Purge { selection, is_soft: soft }, text.to_owned()))
}

/// The purge of a tag, of a place or of all, and its words for the log.
fn tagged(state: &AdminState, tag: &str, place: Option<String>, is_soft: bool) -> Result<(Purge, String), Problem> {
    let tag = PurgeTag::parse(tag).map_err(|error| bad(error.to_string()))?;
    let is_known = |place: &String| state.front.store().places().any(|(name, _)| name == *place);
    if let Some(place) = place.as_ref().filter(|place| !is_known(place)) {
        return Err(absent(format!("no place {place} has cached objects: `millpond places ls` lists the places")));
    }
    let words = format!("{} tag {}", place.as_deref().unwrap_or_default(), tag.as_str()).trim_start().to_owned();
    Ok((Purge { selection: Selection::Tagged { place, tag }, is_soft }, words))
}

/// Fetches a file, an asset or a stored title of an RTSP server in the background.
#[utoipa::path(post, path = "/api/v1/cache/warm", tag = "cache", request_body = Named, responses((status = 200, body = Warmed)))]
pub(super) async fn warm(request: &ApiRequest, state: &AdminState) -> Outcome {
    let Named { path } = request.json()?;
    let path = path.trim_start_matches('/');
    if let Some(title) = remote_title_at(&state.front, path).await.map_err(|error| failed(&error))? {
        let objects = usize::try_from(title.segments()).unwrap_or(usize::MAX);
        fetch_title(state.front.store().clone(), title);
        return Ok(show(&Warmed { objects, bytes: 0 }));
    }
    let objects = objects_at(&state.front, path).await.map_err(|error| failed(&error))?;
    let warmed = Warmed { objects: objects.len(), bytes: objects.iter().map(|object| object.meta().len).sum() };
    let ranges = objects.into_iter().map(|object| {
        let whole = 0..object.meta().len;
        (object, vec![whole])
    });
    fetch(state.front.store().clone(), ranges.collect());
    Ok(show(&warmed))
}

/// Reads ranges of objects in the background, to fill the cache.
pub(super) fn fetch(store: Store, ranges: Vec<(Arc<Object>, Vec<Range<u64>>)>) {
    // One object after the other: it is not to take the link from viewers.
    tokio::spawn(async move {
        for (object, ranges) in ranges {
            for range in ranges {
                let mut reader = store.read(&object, range);
                while let Some(chunk) = reader.next().await {
                    if let Err(error) = chunk {
                        tracing::warn!(path = %object.path(), %error, "warming broken off");
                        break;
                    }
                }
            }
        }
    });
}

/// Fetches the segments of a stored title of an RTSP server in the background, one after the other. Those that are cached stay.
fn fetch_title(store: Store, title: Arc<RemoteTitle>) {
    tokio::spawn(async move {
        let mut segments = 0;
        while segments < title.segments() {
            match title.media(&store, segments).await {
                Ok(_) => segments += 1,
                // The title was found to be shorter than its description says.
                Err(_) if segments >= title.segments() => break,
                Err(error) => {
                    tracing::warn!(path = title.path(), segments, %error, "warming broken off");
                    return;
                }
            }
        }
        tracing::info!(path = title.path(), segments, "warmed");
    });
}

/// The problem of an asset or file that can't be opened.
pub(super) fn failed(error: &AnswerError) -> Problem {
    Problem::new(error.status()).detail(error.to_string())
}
