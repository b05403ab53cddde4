//! Snapshots of live streams: the newest key frame as an image, made once for all requests within a few seconds.

use super::{MOST_BYTES, QUALITY, coded::CodedPicture};
use crate::{
    http::render::{AnswerError, SnapshotImage},
    library::{Library, LibraryError},
    work::JobKind,
};
use bytes::Bytes;
use millpond_media::{Codec, TrackKind, Work};
use millpond_store::{Cache, Memory, SingleFlight};
use millpond_stream::NewestKeyFrame;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Time for which a snapshot is served before a new one is made.
const FRESH: Duration = Duration::from_secs(3);
/// Memory that a snapshot takes besides its image, in bytes.
const OVERHEAD: u64 = 512;

/// Makes and keeps snapshots, by the paths of streams.
pub(super) struct Snapshots {
    library: Arc<Library>,
    known: Cache<String, Snapshot>,
    flights: SingleFlight<String, Result<Image, AnswerError>>,
}

/// An image, or why the picture can't be decoded.
type Image = Result<SnapshotImage, String>;

/// The result of making a snapshot.
#[derive(Clone)]
struct Snapshot {
    made: Instant,
    image: Image,
}

impl Snapshots {
    /// Keeps snapshots in `memory`.
    pub(super) fn new(memory: &Arc<Memory>, library: Arc<Library>) -> Self {
        Self { library, known: Cache::of(memory, "snapshots"), flights: SingleFlight::new() }
    }

    /// Returns the image of a stream's newest key frame, or an image that was made less than [`FRESH`] ago.
    ///
    /// # Errors
    /// The picture can't be decoded, or the worker pool has no room.
    pub(super) async fn image(&self, path: &str, newest: NewestKeyFrame) -> Result<SnapshotImage, AnswerError> {
        let image = match self.known.get(path).filter(|snapshot| snapshot.made.elapsed() < FRESH) {
            Some(snapshot) => snapshot.image,
            None => {
                let (key, library, asked) = (path.to_owned(), self.library.clone(), path.to_owned());
                let making = || async move { image(&library, &asked, newest).await };
                let image = self.flights.run(&key, making).await.0?;
                let weight = image.as_ref().map_or(0, |image| image.jpeg.len()) as u64 + OVERHEAD;
                self.known.insert(key, Snapshot { made: Instant::now(), image: image.clone() }, weight);
                image
            }
        };
        image.map_err(|why| AnswerError::NoSnapshot { path: path.to_owned(), why })
    }
}

/// Decodes a key frame on the worker pool, and codes it as an image.
async fn image(library: &Library, path: &str, newest: NewestKeyFrame) -> Result<Image, AnswerError> {
    let NewestKeyFrame { format, data, wall } = newest;
    let name = format.track.codec.name();
    let (Codec::Avc(config), TrackKind::Video { width, height, orientation, .. }, false) =
        (format.track.codec, format.track.kind, format.is_encrypted)
    else {
        return Ok(Err(format!("no snapshot: found {name}, expected clear H.264")));
    };
    let length = data.len() as u64;
    if length > MOST_BYTES {
        return Ok(Err(format!("no snapshot: the key frame has {length} bytes, expected at most {MOST_BYTES}")));
    }
    let (shown_width, shown_height) = if orientation.is_sideways() { (height, width) } else { (width, height) };
    let size = super::fitted(shown_width.into(), shown_height.into());
    let coded = CodedPicture { config, bytes: data, orientation, size, coded_size: (width, height) };
    let refused = |error| AnswerError::from(LibraryError::Refused { asset: path.to_owned(), error });
    let _charge = library.pool().charge(coded.memory()).await.map_err(refused)?;
    let job = move || -> Image {
        let picture = coded.decode().map_err(|error| format!("no snapshot: {error}"))?;
        let jpeg = picture.jpeg(QUALITY).map(Bytes::from).map_err(|error| error.to_string())?;
        Ok(SnapshotImage { jpeg, wall })
    };
    library.pool().run_kind(JobKind::Picture, &Work::unlimited(), job).await.map_err(refused)
}
