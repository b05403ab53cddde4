//! The segments of titles as objects of the store.

use super::{error::RemoteError, titles::RemoteTitles};
use bytes::Bytes;
use futures_util::stream;
use millpond_store::{
    At, BoxFuture, Fetched, Freshness, Listing, ObjectMeta, ObjectPath, Origin, OriginBody, OriginError, OriginFacts,
    SentBy, StatedTags, Version,
};
use std::{
    hash::{DefaultHasher, Hasher as _},
    ops::Range,
    sync::Arc,
    time::Duration,
};

/// Bytes of one piece of a body.
const PIECE: usize = 64 << 10;
/// Time for which a segment is trusted: its path has the version of the title.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// The origin of a place with titles of RTSP servers: reading a segment plays it. Its objects are named by [`segment_path`].
#[derive(Debug)]
pub(crate) struct TitleOrigin {
    place: Arc<str>,
    titles: Arc<RemoteTitles>,
}

/// Returns the path of a segment, from 0, in its place; `None` where the name of the title can't be that of an object.
pub(super) fn segment_path(name: &str, version: &str, number: u64) -> Option<ObjectPath> {
    ObjectPath::parse(joined(name, &format!("~{version}/{number}")).as_str()).ok()
}

impl TitleOrigin {
    pub(crate) fn new(place: Arc<str>, titles: Arc<RemoteTitles>) -> Self {
        Self { place, titles }
    }

    fn at(&self, path: &ObjectPath) -> At {
        At::new(&self.describe(), path.as_str())
    }

    async fn fetch(&self, path: &ObjectPath) -> Result<(Bytes, ObjectMeta), OriginError> {
        let not_found = || OriginError::NotFound { at: self.at(path) };
        let (rest, number) = path.as_str().rsplit_once('/').ok_or_else(not_found)?;
        let alone = || Some(("", rest.strip_prefix('~')?));
        let (name, version) = rest.rsplit_once("/~").or_else(alone).ok_or_else(not_found)?;
        let number = number.parse().map_err(|_| not_found())?;
        let title = self.titles.known(&joined(&self.place, name)).await;
        let title = title.filter(|title| title.version() == version).ok_or_else(not_found)?;
        let bytes = title.fetch(number).await.map_err(|error: RemoteError| error.of_origin(self.at(path)))?;
        let meta = meta(&bytes);
        Ok((bytes, meta))
    }
}

/// Joins two parts of a path, one of which may be empty.
pub(super) fn joined(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", only) | (only, "") => only.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// Returns the metadata of a segment. The version is a hash of its bytes: servers round times, so that a segment that is fetched again may
/// differ by a tick.
fn meta(bytes: &Bytes) -> ObjectMeta {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let etag = format!("\"{:016x}\"", hasher.finish());
    ObjectMeta {
        len: bytes.len() as u64,
        version: Version::new(&etag),
        etag: Some(etag),
        modified: None,
        content_type: None,
        content_disposition: None,
        content_language: None,
        content_encoding: None,
        freshness: Freshness { fresh: Some(FRESH), ..Freshness::default() },
        tags: StatedTags::default(),
    }
}

fn body(mut bytes: Bytes) -> OriginBody {
    Box::pin(stream::iter(std::iter::from_fn(move || {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        (!piece.is_empty()).then_some(Ok(piece))
    })))
}

impl Origin for TitleOrigin {
    fn describe(&self) -> String {
        format!("RTSP titles of {}", self.place)
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async move { self.fetch(path).await.map(|(_, meta)| meta) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            let (bytes, meta) = self.fetch(path).await?;
            if let Some(expected) = expected.filter(|expected| expected.version != meta.version) {
                let (at, expected, found) = (self.at(path), expected.version.clone(), Some(meta.version));
                return Err(OriginError::Changed { at, expected, found });
            }
            let end = range.end.min(meta.len);
            if range.start > end {
                return Err(OriginError::OutOfRange { at: self.at(path), start: range.start, len: Some(meta.len) });
            }
            // Both ends are at most the length, which is a usize.
            let part = bytes.slice(range.start as usize..end as usize);
            Ok(Fetched { meta, range: range.start..end, body: body(part), sender: SentBy::Origin })
        })
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { has_versions_in_paths: true, stores_whole: true, ..OriginFacts::default() }
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { Err(OriginError::Unsupported { at: self.at(folder), what: "listing an RTSP server" }) })
    }
}
