//! Seeing and steering the cache: `/cache`, `/cache/objects`, `/cache/purge` and the like, and `/explain`.

use super::{AdminState, Reply, bad, parameter, refuse, show};
use crate::{http::AnswerError, problem::Problem, settings::value};
use http::Method;
use millpond_store::{Object, Selection, Stats, Store, policy::PolicyName, schedule::Mode};
use serde_json::{Value, json};
use std::{ops::Range, sync::Arc, time::Duration};

/// Bounds of the time that `first` pins of a title.
const FIRST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// Answers a request below `/cache` or to `/explain`; nothing where it is another.
pub(super) async fn answer(method: &Method, path: &str, query: &str, state: &AdminState) -> Option<Reply> {
    let change = *method == Method::POST;
    let action = match path {
        "/cache" if !change => {
            let store = state.front.store();
            return Some(show(&stats(&store.stats(), store.prefetch_mode())));
        }
        "/cache/objects" if !change => return Some(show(&objects(state))),
        "/explain" if !change => return Some(explain(state, query).await),
        "/cache/set" if change => return Some(set(state, query)),
        _ => path.strip_prefix("/cache/").filter(|_| change)?,
    };
    let Some(object) = parameter(query, "object") else {
        return Some(bad("?object=PATH says which object, as its path is in a URL"));
    };
    Some(match action {
        "purge" => purge(state, &object),
        "pin" => pin(state, &object, query).await,
        "unpin" => unpin(state, &object).await,
        "warm" => warm(state, &object).await,
        _ => return None,
    })
}

fn purge(state: &AdminState, object: &str) -> Reply {
    let Some((_, place, inside)) = state.front.place(object) else { return bad("there is no such place") };
    let selection = Selection { place: place.to_string(), path: inside.to_owned() };
    let slices = state.front.store().purge(&selection);
    tracing::info!(object, slices, "purged");
    show(&json!({ "purged-slices": slices }))
}

async fn pin(state: &AdminState, path: &str, query: &str) -> Reply {
    if let Some(text) = parameter(query, "first") {
        return match value::duration_in(&text, FIRST.0, FIRST.1) {
            Ok(first) => pin_first(state, path, first).await,
            Err(_) => bad("first: a time from 1s to 1h such as 30s"),
        };
    }
    match state.front.objects(path).await {
        Ok(objects) => {
            let kept = objects.iter().fold(0, |_, object| {
                let whole = 0..object.meta().len;
                state.front.store().keep(object, std::slice::from_ref(&whole))
            });
            show(&json!({ "objects": objects.len(), "pinned-bytes": kept }))
        }
        Err(error) => failed(&error),
    }
}

/// Pins the beginning of a title, and fetches it in the background.
async fn pin_first(state: &AdminState, path: &str, first: Duration) -> Reply {
    match state.front.opening(path, first).await {
        Ok(ranges) => {
            let store = state.front.store().clone();
            let kept = ranges.iter().fold(0, |_, (object, ranges)| store.keep(object, ranges));
            let bytes: u64 = ranges.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum();
            let reply = show(&json!({ "objects": ranges.len(), "bytes": bytes, "pinned-bytes": kept }));
            fetch(store, ranges);
            reply
        }
        Err(error) => failed(&error),
    }
}

async fn unpin(state: &AdminState, path: &str) -> Reply {
    match state.front.objects(path).await {
        Ok(objects) => {
            let kept = objects.iter().fold(0, |_, object| state.front.store().release(object));
            show(&json!({ "objects": objects.len(), "pinned-bytes": kept }))
        }
        Err(error) => failed(&error),
    }
}

async fn warm(state: &AdminState, path: &str) -> Reply {
    match state.front.objects(path).await {
        Ok(objects) => {
            let bytes: u64 = objects.iter().map(|object| object.meta().len).sum();
            let count = objects.len();
            let ranges = objects.into_iter().map(|object| {
                let whole = 0..object.meta().len;
                (object, vec![whole])
            });
            fetch(state.front.store().clone(), ranges.collect());
            show(&json!({ "objects": count, "bytes": bytes }))
        }
        Err(error) => failed(&error),
    }
}

/// Reads ranges of objects in the background, so that the cache has them.
fn fetch(store: Store, ranges: Vec<(Arc<Object>, Vec<Range<u64>>)>) {
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

/// Changes the cache without a restart; at a restart the configuration counts. All or nothing.
fn set(state: &AdminState, query: &str) -> Reply {
    let store = state.front.store();
    let mut sizes = [None, None];
    for (name, size) in ["size", "memory"].into_iter().zip(&mut sizes) {
        match parameter(query, name).map(|text| value::size(&text)) {
            Some(Err(_)) => return bad(&format!("{name}: a number of bytes such as 10GiB")),
            Some(Ok(bytes)) => *size = Some(bytes),
            None => {}
        }
    }
    let mode = match parameter(query, "prefetch").map(|text| text.parse::<Mode>()) {
        Some(Err(error)) => return bad(&error.to_string()),
        Some(Ok(mode)) => Some(mode),
        None => None,
    };
    let [size, memory] = sizes;
    let policy = match parameter(query, "policy").map(|text| text.parse::<PolicyName>()).transpose() {
        Ok(policy) => policy,
        Err(error) => return bad(&error.to_string()),
    };
    store.set_disk(size, policy);
    mode.into_iter().for_each(|mode| store.set_prefetch_mode(mode));
    memory.into_iter().for_each(|bytes| store.set_memory(bytes));
    show(&stats(&store.stats(), store.prefetch_mode()))
}

async fn explain(state: &AdminState, query: &str) -> Reply {
    let Some(url) = parameter(query, "url") else { return bad("?url=PATH says which request") };
    match state.front.explain(url.trim_start_matches('/')).await {
        Ok(explanation) => show(&json!(explanation)),
        Err(error) => failed(&error),
    }
}

fn objects(state: &AdminState) -> Value {
    let objects = state.front.store().cached();
    let slice = state.front.store().slice_size();
    objects
        .iter()
        .map(|object| {
            json!({
                "place": object.place, "path": object.path, "version": object.version, "bytes": object.len,
                "slices": object.len.div_ceil(slice), "in-memory": object.in_memory, "on-disk": object.on_disk,
                "pinned": object.pinned, "hit-bytes": object.hit_bytes, "miss-bytes": object.miss_bytes,
            })
        })
        .collect()
}

fn stats(stats: &Stats, prefetch: Mode) -> Value {
    let disk = stats.disk.as_ref().map(|disk| {
        json!({
            "bytes": disk.ledger.bytes, "limit-bytes": disk.capacity, "slices": disk.ledger.entries,
            "policy": disk.policy.as_str(), "hits": disk.ledger.hits, "misses": disk.ledger.misses,
            "evictions": disk.ledger.evictions, "pinned-bytes": disk.ledger.pinned, "written": disk.written,
            "passed-over": disk.passed_over, "errors": disk.errors, "damaged": disk.damaged,
            "verified": disk.verified, "failure": disk.failure,
        })
    });
    let kinds: serde_json::Map<String, Value> = stats
        .memory
        .iter()
        .map(|(kind, c)| {
            let value = json!({
                "bytes": c.weight, "entries": c.entries, "hits": c.hits, "misses": c.misses, "evictions": c.evictions,
            });
            ((*kind).to_owned(), value)
        })
        .collect();
    let places: serde_json::Map<String, Value> = stats
        .places
        .iter()
        .map(|place| {
            let value = json!({
                "origin-requests": place.origin_requests, "origin-bytes": place.origin_bytes,
                "memory-hit-bytes": place.memory_hit_bytes, "disk-hit-bytes": place.disk_hit_bytes, "miss-bytes": place.miss_bytes, "file-bytes": place.file_bytes,
                "collapsed": place.collapsed, "retries": place.retries, "stale": place.stale,
                "prefetched-bytes": place.prefetched_bytes, "prefetched-unused-bytes": place.prefetched_unused_bytes,
                "watched-tracks": place.watched, "bandwidth": place.link_bandwidth,
            });
            (place.name.clone(), value)
        })
        .collect();
    json!({
        "memory": { "bytes": stats.memory_used, "limit-bytes": stats.cache.budget, "kinds": kinds },
        "disk": disk,
        "prefetch": prefetch.to_string(),
        "places": places,
    })
}

fn failed(error: &AnswerError) -> Reply {
    refuse(Problem::new(error.status()).detail(error.to_string()))
}
