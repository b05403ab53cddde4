//! A file or a URL of one object, as the tools take it.

use millpond_library::{IndexError, is_manifest, is_playlist};
use millpond_media::{Foreign, Indexer, MediaError, Movie, Step};
use millpond_place::PlaceSpec;
use millpond_store::{Object, ObjectPath, OriginOptions, Store, StoreOptions};
use std::{error::Error, sync::Arc};

/// Bytes that tell the format of a file.
const HEAD: u64 = 1024;

/// A store with one place: the folder of the object, or the place itself.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) path: ObjectPath,
}

/// Opens the place that an object or a folder lies in.
pub(crate) fn open(target: &str) -> Result<Opened, Box<dyn Error>> {
    if target.trim_matches('/').is_empty() && !target.starts_with('/') {
        return Err("expected a file, a folder or a URL, found an empty text".into());
    }
    let (folder, name) = split(target);
    let store = Store::new(&StoreOptions::default())?;
    // Whoever runs the command may name any file.
    let options = OriginOptions { hidden_files: true, ..OriginOptions::default() };
    store.add_place("", PlaceSpec::parse(&folder)?.origin(&options, None)?);
    let path = if name.is_empty() { ObjectPath::root() } else { ObjectPath::parse(&name)? };
    Ok(Opened { store, path })
}

/// Splits a target into its place and the name there, which is empty for a folder.
pub(crate) fn split(target: &str) -> (String, String) {
    let local = !target.contains("://");
    let whole = target.trim_end_matches('/');
    // `s3://bucket` and `http://host` have no path: they are whole places.
    let is_place = target.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    let is_folder = is_place || (local && std::path::Path::new(target).is_dir()) || target.ends_with('/');
    let (folder, name) = match whole.rsplit_once('/') {
        _ if is_folder => (if whole.is_empty() { "/" } else { whole }, ""),
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None => (".", whole),
    };
    let folder = if local && !folder.starts_with(['/', '.']) { format!("./{folder}") } else { folder.to_owned() };
    (folder, name.to_owned())
}

/// An index and what it took to make it.
pub(crate) struct Indexed {
    pub(crate) movie: Movie,
    pub(crate) ranges: usize,
    pub(crate) batches: usize,
    pub(crate) bytes: u64,
}

/// Reads the index of an object.
pub(crate) async fn index(store: &Store, object: &Arc<Object>) -> Result<Indexed, Box<dyn Error>> {
    index_of_programme(store, object, None).await
}

/// Reads the index of an object. A number chooses a programme of a transport stream.
pub(crate) async fn index_of_programme(
    store: &Store,
    object: &Arc<Object>,
    programme: Option<u16>,
) -> Result<Indexed, Box<dyn Error>> {
    let mut indexer = Indexer::new(object.meta().len).of_programme(programme);
    let (mut ranges, mut batches, mut bytes) = (0, 0, 0);
    loop {
        match indexer.poll() {
            Err(error) => return Err(unreadable(store, object, &error).await.into()),
            Ok(Step::Done(movie)) => {
                if let Some(number) = programme.filter(|_| movie.programmes.is_empty()) {
                    return Err(format!(
                        "{}: found no transport stream, expected one with programme {number}",
                        object.path()
                    )
                    .into());
                }
                return Ok(Indexed { movie, ranges, batches, bytes });
            }
            Ok(Step::Need(needed)) => {
                batches += 1;
                for range in needed {
                    ranges += 1;
                    bytes += range.len();
                    indexer.supply(range, store.read_all(object, range.start..range.end).await?);
                }
            }
        }
    }
}

/// Describes the fault of an object: its format, if its first bytes are those of another one.
async fn unreadable(store: &Store, object: &Arc<Object>, error: &MediaError) -> String {
    let path = object.path();
    if error.offset() == 0 {
        let head = store.read_all(object, 0..object.meta().len.min(HEAD)).await;
        if let Some(format) = head.ok().and_then(|head| Foreign::of_bytes(&head)) {
            let what = match format {
                Foreign::Text if is_manifest(path.file_name()) => Some("a server manifest"),
                Foreign::Playlist if is_playlist(path.file_name()) => Some("an HLS playlist"),
                _ => None,
            };
            if let Some(what) = what {
                return format!(
                    "{path}: is {what}, which lists media files, expected one of these files. `millpond serve` plays it at its path, as \
                     PATH/index.m3u8"
                );
            }
            return format!("{path}: {}", IndexError::explained(path.file_name(), format));
        }
    }
    if error.is_cut_short(object.meta().len) {
        return format!("{path}: {error}; if it is still being copied, try again when all of it is there");
    }
    format!("{path}: {error}{}", IndexError::cure(path.file_name(), error))
}
