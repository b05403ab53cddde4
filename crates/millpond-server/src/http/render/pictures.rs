//! Thumbnails as JPEG images: key frames that are decoded as jobs, once for all requests that wait for them.

mod coded;
mod snapshots;

use super::{
    error::AnswerError,
    resource::{self, Image},
};
use crate::{
    library::{Asset, Library, LibraryError, Resource},
    work::JobKind,
};
use bytes::Bytes;
use coded::CodedPicture;
use millpond_http::body::Body;
use millpond_media::{Codec, TrackKind, Work};
use millpond_package::{
    PresentedTrack,
    thumbnails::{self, KeyFrame},
};
use millpond_picture::{DecodeError, Picture};
use millpond_store::{Cache, Memory, SingleFlight, Store};
use millpond_stream::NewestKeyFrame;
use snapshots::Snapshots;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Width of a single thumbnail in pixels. A smaller picture keeps its own.
const WIDTH: u32 = 320;
/// Longest key frame that is decoded, in bytes.
const MOST_BYTES: u64 = 8 << 20;
/// Time for which a picture that can't be decoded is not tried again.
const UNDECODABLE: Duration = Duration::from_secs(60);
/// Memory that a remembered failure takes, in bytes.
const FAILURE: u64 = 512;
/// Least variance of luma of a picture that is not blank: a standard deviation of ten.
const SHOWS_SOMETHING: u64 = 100;
/// Quality of the images, from 1 to 100.
const QUALITY: u8 = 72;

type Key = (u64, Resource);

/// Makes and keeps images.
pub(super) struct Pictures {
    store: Store,
    library: Arc<Library>,
    known: Cache<Key, Bytes>,
    failures: Failures,
    flights: SingleFlight<Key, Result<Bytes, AnswerError>>,
    snapshots: Snapshots,
}

/// Width and height in pixels.
type Size = (u32, u32);

impl Pictures {
    /// Keeps images in the memory of `store`.
    pub(super) fn new(store: Store, library: Arc<Library>) -> Self {
        let known = Cache::of(store.memory(), "pictures");
        let failures = Failures::new(store.memory());
        let snapshots = Snapshots::new(store.memory(), library.clone());
        Self { store, library, known, failures, flights: SingleFlight::new(), snapshots }
    }

    /// Returns the body of an image. The list of the track's key frames is made already.
    ///
    /// # Errors
    /// An image that the asset does not have, a picture that can't be decoded, a failing origin, or a worker pool without room.
    pub(super) async fn body(&self, asset: &Arc<Asset>, key: Key, fresh: bool) -> Result<Body, AnswerError> {
        if let Some(bytes) = self.known.get(&key).filter(|_| !fresh) {
            return Ok(Body::bytes(bytes));
        }
        let making = Making {
            store: self.store.clone(),
            library: self.library.clone(),
            asset: asset.clone(),
            version: key.0,
            failures: self.failures.clone(),
        };
        let wanted = key.1.clone();
        let bytes = self.flights.run(&key, || async move { making.image(&wanted).await }).await.0?;
        let weight = bytes.len() as u64 + 256;
        self.known.insert(key, bytes.clone(), weight);
        Ok(Body::bytes(bytes))
    }

    /// Returns the image of the newest key frame of a live stream.
    ///
    /// # Errors
    /// A picture that can't be decoded, or a worker pool without room.
    pub(super) async fn snapshot(
        &self,
        path: &str,
        newest: NewestKeyFrame,
    ) -> Result<super::SnapshotImage, AnswerError> {
        self.snapshots.image(path, newest).await
    }
}

/// Pictures that can't be decoded, for [`UNDECODABLE`]. They have a share of the memory for images.
#[derive(Clone)]
struct Failures(Cache<Undecodable, (DecodeError, Instant)>);

/// The number of a picture in a track of a version of an asset.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Undecodable {
    version: u64,
    track: String,
    number: u32,
}

impl Failures {
    fn new(memory: &Arc<Memory>) -> Self {
        Self(Cache::of(memory, "undecodable_pictures"))
    }

    /// Returns why a picture could not be decoded a short time ago.
    fn known(&self, picture: &Undecodable, now: Instant) -> Option<DecodeError> {
        let (error, since) = self.0.get(picture)?;
        (now.saturating_duration_since(since) < UNDECODABLE).then_some(error)
    }

    fn remember(&self, picture: Undecodable, error: DecodeError, now: Instant) {
        self.0.insert(picture, (error, now), FAILURE);
    }
}

/// Work on an image.
struct Making {
    store: Store,
    library: Arc<Library>,
    asset: Arc<Asset>,
    version: u64,
    failures: Failures,
}

impl Making {
    async fn image(&self, resource: &Resource) -> Result<Bytes, AnswerError> {
        let profile = resource::profile(resource);
        match profile.image() {
            Some(Image::Sheet) => self.sheet(profile.track, profile.number).await,
            Some(Image::Picture) => {
                let track = self.track(profile.track)?;
                let picture = self.picture(track, profile.number, single(track), |picture| picture).await?;
                self.coded(picture).await
            }
            Some(Image::Poster) => self.poster(profile.track).await,
            None => Err(self.none("it is no image".to_owned())),
        }
    }

    /// Makes a poster from the first of a few pictures that is not blank. If all are, it takes the one of the strongest contrasts.
    async fn poster(&self, name: &str) -> Result<Bytes, AnswerError> {
        let (thumbnails, track) = (resource::of_track(&self.asset, name)?, self.track(name)?);
        let (mut best, mut failed) = (None, None);
        for number in thumbnails.posters() {
            let judge = |picture: Picture| (picture.variance(), picture);
            let (variance, picture) = match self.picture(track, number, single(track), judge).await {
                Ok(judged) => judged,
                Err(error @ AnswerError::Library(LibraryError::NoResource { .. })) => {
                    failed.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if best.as_ref().is_none_or(|(most, _)| variance > *most) {
                best = Some((variance, picture));
            }
            if variance >= SHOWS_SOMETHING {
                break;
            }
        }
        match best {
            Some((_, picture)) => self.coded(picture).await,
            None => Err(failed.unwrap_or_else(|| self.none(format!("no picture in track {name}")))),
        }
    }

    /// Makes a sheet, one picture after the other: few of them are in memory, and others get their turn on the pool.
    async fn sheet(&self, name: &str, number: u32) -> Result<Bytes, AnswerError> {
        let thumbnails = resource::of_track(&self.asset, name)?;
        let none = || self.none(format!("no sheet {number} of thumbnails"));
        let numbers = thumbnails.pictures(number).ok_or_else(none)?;
        let (size, track) = (thumbnails.size(), self.track(name)?);
        let side = |pixels: u32, places: u32| usize::try_from(pixels * places).unwrap_or(0);
        let ((columns, rows), (width, height)) = (thumbnails::LAYOUT, size);
        let mut sheet = Picture::black(side(width, columns), side(height, rows));
        let mut last: Option<(u32, Picture)> = None;
        for (place, picture) in (0..).zip(numbers) {
            let known = last.take().filter(|(number, _)| *number == picture);
            let shown = match known {
                Some((_, shown)) => Some(shown),
                // One that can't be decoded stays black.
                None => match self.picture(track, picture, size, |picture| picture).await {
                    Ok(shown) => Some(shown),
                    Err(AnswerError::Library(LibraryError::NoResource { .. })) => None,
                    Err(error) => return Err(error),
                },
            };
            if let Some(shown) = shown {
                sheet.put(&shown, (side(width, place % columns), side(height, place / columns)));
                last = Some((picture, shown));
            }
        }
        self.coded(sheet).await
    }

    /// Decodes key frame `number` of a track, in a size. Returns what `with` makes of the picture in the same job.
    async fn picture<T: Send + 'static>(
        &self,
        track: &PresentedTrack,
        number: u32,
        size: Size,
        with: fn(Picture) -> T,
    ) -> Result<T, AnswerError> {
        let none = || self.none(format!("no picture {number} in track {}", track.name()));
        let frame = thumbnails::key_frame(track, number).ok_or_else(none)?;
        let KeyFrame { place: frame, codec } = frame;
        let (Codec::Avc(config), Some(source)) = (codec.clone(), track.source_track()) else {
            return Err(self.none(format!("pictures of {} are not decoded here", track.codec_parameter())));
        };
        let TrackKind::Video { width, height, orientation, .. } = source.kind else { return Err(none()) };
        let object = self.asset.objects.get(usize::from(frame.object.0)).ok_or_else(none)?;
        let undecodable = Undecodable { version: self.version, track: track.name().to_owned(), number };
        let why = |error: DecodeError| self.none(format!("picture {number} of track {}: {error}", track.name()));
        if let Some(error) = self.failures.known(&undecodable, Instant::now()) {
            return Err(why(error));
        }
        let length = frame.range.len();
        if length > MOST_BYTES {
            return Err(self.none(format!("picture {number} has {length} bytes, expected at most {MOST_BYTES}")));
        }
        let memory = coded::memory((width, height), length);
        let _charge = self.library.pool().charge(memory).await.map_err(|error| self.refused(error))?;
        let read = self.store.read_all(object, frame.range.start..frame.range.end).await;
        let bytes = read.map_err(LibraryError::from)?;
        let coded = CodedPicture { config, bytes, orientation, size, coded_size: (width, height) };
        let decode = move || coded.decode().map(with);
        let decoded = self.library.pool().run_kind(JobKind::Picture, &Work::unlimited(), decode).await;
        decoded.map_err(|error| self.refused(error))?.map_err(|error| {
            tracing::debug!(asset = %self.asset.path, number, %error, "no thumbnail");
            self.failures.remember(undecodable, error, Instant::now());
            why(error)
        })
    }

    /// Codes an image.
    async fn coded(&self, picture: Picture) -> Result<Bytes, AnswerError> {
        let job = move || picture.jpeg(QUALITY);
        let coded = self.library.pool().run_kind(JobKind::Picture, &Work::unlimited(), job).await;
        let coded = coded.map_err(|error| self.refused(error))?;
        coded.map(Bytes::from).map_err(|error| self.none(error.to_string()))
    }

    fn track(&self, name: &str) -> Result<&PresentedTrack, AnswerError> {
        self.asset.presentation.track(name).ok_or_else(|| self.none(format!("no track {name}")))
    }

    fn none(&self, what: String) -> AnswerError {
        resource::no_resource(&self.asset, what).into()
    }

    fn refused(&self, error: crate::work::PoolError) -> AnswerError {
        LibraryError::Refused { asset: self.asset.path.clone(), error }.into()
    }
}

/// Returns the size of a single thumbnail of a track.
fn single(track: &PresentedTrack) -> Size {
    let (width, height) = track.display_size().unwrap_or((WIDTH, WIDTH));
    fitted(width, height)
}

/// Returns the size of a single thumbnail of a picture.
fn fitted(width: u32, height: u32) -> Size {
    let small = width.clamp(1, WIDTH);
    let high = (u64::from(small) * u64::from(height) / u64::from(width.max(1))).clamp(1, 4 * u64::from(WIDTH));
    (small, u32::try_from(high).unwrap_or(WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::StoreOptions;

    #[test]
    fn a_failure_is_known_for_a_minute() {
        let store = Store::new(&StoreOptions::default()).unwrap();
        let failures = Failures::new(store.memory());
        let picture = |number| Undecodable { version: 1, track: "v1".to_owned(), number };
        let error = DecodeError::Truncated("a slice");
        let now = Instant::now();
        failures.remember(picture(1), error, now);
        assert_eq!(failures.known(&picture(1), now + UNDECODABLE / 2), Some(error));
        assert_eq!(failures.known(&picture(2), now), None);
        assert_eq!(failures.known(&picture(1), now + UNDECODABLE), None);
    }
}
