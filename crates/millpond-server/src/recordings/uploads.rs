//! Uploads recorded files to a bucket, one after the other, the oldest first.
//!
//! A note beside a file has the upload that is under way, with the tags of the parts that were written. So a process that was killed goes
//! on where it ended. A file is removed when the bucket has an object of its name and length.

use super::{folder::RecordedFile, name_pattern::numbered, shelf::Shelf};
use bytes::Bytes;
use millpond_store::{BucketWriter, ObjectPath, OriginError, PathError};
use serde::{Deserialize, Serialize};
use std::{fs::File, io, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// Length of a part, and the longest file that is written in one piece.
const PART: u64 = 16 << 20;
/// Most parts of an object; S3 takes 10,000.
const PARTS: u64 = 9000;
/// Longest wait for a complete file before the uploader asks the shelf for the next one.
const LOOK: Duration = Duration::from_secs(30);
/// Shortest and longest pause after a failure.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Interval between attempts to get the lock of the folder.
const LOCK: Duration = Duration::from_secs(2);
/// Most names that are tried where objects have them already.
const NAMES: u32 = 1000;

/// Why a file is not uploaded.
#[derive(Debug, thiserror::Error)]
enum UploadError {
    #[error(transparent)]
    Bucket(#[from] OriginError),
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Name(#[from] PathError),
    /// The object has another length.
    #[error("the bucket has {found:?} bytes, expected {expected}")]
    Differs { found: Option<u64>, expected: u64 },
    /// The bucket has forgotten the parts.
    #[error("the bucket does not know the upload any more: it begins again")]
    Forgotten,
    /// The file has another name now.
    #[error("the bucket has an object of this name, which is another one: the file is called {0} now")]
    Renamed(String),
}

/// The upload of a file, as its note has it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    /// The upload of parts, where one has begun.
    upload: Option<String>,
    /// Length of a part.
    part: u64,
    /// Tags of the parts that were written.
    tags: Vec<String>,
}

/// Uploads the files of a shelf.
pub(super) struct Uploads {
    shelf: Arc<Shelf>,
    writer: BucketWriter,
    /// The bucket and prefix, for events.
    location: String,
}

impl Uploads {
    pub(super) fn new(shelf: Arc<Shelf>, writer: BucketWriter, location: String) -> Arc<Self> {
        Arc::new(Self { shelf, writer, location: location.trim_end_matches('/').to_owned() })
    }

    /// Uploads without an end.
    pub(super) async fn run(self: Arc<Self>) {
        // The process before this one may still upload.
        let _lock = loop {
            match self.blocking(|uploads| lock(&uploads.shelf)).await {
                Ok(lock) => break lock,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(LOCK).await,
                Err(error) => {
                    tracing::error!(%error, "recorded files are not uploaded: the folder of recordings can't be locked");
                    sleep(LOOK).await;
                }
            }
        };
        let mut pause = PAUSE.0;
        loop {
            self.give_up_orphans().await;
            let Some(file) = self.shelf.next_upload() else {
                let _ = timeout(LOOK, self.shelf.changed()).await;
                continue;
            };
            match self.upload(&file).await {
                Ok(()) => {
                    pause = PAUSE.0;
                    let (done, url) = (file.clone(), format!("{}/{}", self.location, file.name));
                    self.blocking(move |uploads| uploads.shelf.uploaded(&done, &url)).await;
                }
                Err(UploadError::Disk(error)) if error.kind() == io::ErrorKind::NotFound => {
                    self.shelf.forget(&file.name);
                }
                // It is found again with the next look at the folder, and does not hold up the others.
                Err(error @ (UploadError::Disk(_) | UploadError::Name(_))) => {
                    tracing::warn!(file = file.name, %error, "a recorded file is not uploaded");
                    self.shelf.not_uploaded();
                    self.shelf.forget(&file.name);
                }
                Err(error) => {
                    self.shelf.not_uploaded();
                    tracing::warn!(file = file.name, %error, again_after = ?pause, "a recorded file is not uploaded");
                    if !matches!(error, UploadError::Renamed(_) | UploadError::Forgotten) {
                        sleep(pause).await;
                        pause = (pause * 2).min(PAUSE.1);
                    }
                }
            }
        }
    }

    /// Runs `work` on a thread that may wait for disks.
    async fn blocking<T: Send + 'static>(self: &Arc<Self>, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        let uploads = self.clone();
        match tokio::task::spawn_blocking(move || work(&uploads)).await {
            Ok(done) => done,
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives up the uploads of files that were deleted.
    async fn give_up_orphans(self: &Arc<Self>) {
        for name in self.shelf.orphans() {
            let of = name.clone();
            let note = self.blocking(move |uploads| uploads.note(&of)).await.ok().flatten();
            let upload = note.and_then(|note| note.upload);
            if let (Some(upload), Ok(path)) = (upload, ObjectPath::parse(&name))
                && let Err(error) = self.writer.abort(&path, &upload).await
            {
                tracing::warn!(file = name, %error, "the parts of an upload that was given up stay in the bucket");
                continue;
            }
            self.blocking(move |uploads| uploads.shelf.folder().remove_note(&name)).await;
        }
    }

    fn note(&self, name: &str) -> io::Result<Option<Note>> {
        let text = self.shelf.folder().note(name)?;
        // A note that can't be understood begins the upload again.
        Ok(text.map(|text| serde_json::from_slice(&text).unwrap_or_default()))
    }

    async fn save(self: &Arc<Self>, name: &str, note: &Note) -> io::Result<()> {
        let (name, text) = (name.to_owned(), serde_json::to_vec(note)?);
        self.blocking(move |uploads| uploads.shelf.folder().set_note(&name, &text)).await
    }

    async fn bytes(self: &Arc<Self>, name: &str, range: std::ops::Range<u64>) -> io::Result<Bytes> {
        let name = name.to_owned();
        self.blocking(move |uploads| uploads.shelf.folder().bytes(&name, range)).await.map(Bytes::from)
    }

    /// Uploads a file and checks its object.
    async fn upload(self: &Arc<Self>, file: &RecordedFile) -> Result<(), UploadError> {
        let (name, expected) = (file.name.as_str(), file.bytes);
        let path = ObjectPath::parse(name)?;
        let of = name.to_owned();
        let note = self.blocking(move |uploads| uploads.note(&of)).await?;
        let found = self.writer.length(&path).await?;
        let note = match (note, found) {
            // The process ended before the file was removed.
            (Some(_), Some(found)) if found == expected => return Ok(()),
            (Some(note), _) => note,
            (None, Some(_)) => return Err(UploadError::Renamed(self.rename(name).await?)),
            (None, None) => {
                let note = Note { part: PART.max(expected.div_ceil(PARTS)), ..Note::default() };
                self.save(name, &note).await?;
                note
            }
        };
        if expected <= PART {
            let bytes = self.bytes(name, 0..expected).await?;
            self.writer.put(&path, bytes).await?;
        } else {
            self.parts(&path, file, note).await?;
        }
        match self.writer.length(&path).await? {
            Some(found) if found == expected => Ok(()),
            found => Err(UploadError::Differs { found, expected }),
        }
    }

    /// Uploads a file in parts, from the first part on that is missing.
    async fn parts(
        self: &Arc<Self>,
        path: &ObjectPath,
        file: &RecordedFile,
        mut note: Note,
    ) -> Result<(), UploadError> {
        let RecordedFile { name, bytes, .. } = file;
        let part = note.part.max(PART);
        let upload = match note.upload.clone() {
            Some(upload) => upload,
            None => {
                let upload = self.writer.begin(path).await?;
                note = Note { upload: Some(upload.clone()), part, tags: Vec::new() };
                self.save(name, &note).await?;
                upload
            }
        };
        for number in note.tags.len()..usize::try_from(bytes.div_ceil(part)).unwrap_or(usize::MAX) {
            let from = part.saturating_mul(number as u64);
            let piece = self.bytes(name, from..from.saturating_add(part).min(*bytes)).await?;
            let written = self.writer.put_part(path, &upload, number, piece).await;
            note.tags.push(self.or_again(name, part, written).await?);
            self.save(name, &note).await?;
        }
        let finished = self.writer.finish(path, &upload, &note.tags).await;
        self.or_again(name, part, finished).await
    }

    /// Begins an upload again that the bucket has forgotten.
    async fn or_again<T>(
        self: &Arc<Self>,
        name: &str,
        part: u64,
        done: Result<T, OriginError>,
    ) -> Result<T, UploadError> {
        match done {
            Err(OriginError::NotFound { .. }) => {
                self.save(name, &Note { part, ..Note::default() }).await?;
                Err(UploadError::Forgotten)
            }
            done => Ok(done?),
        }
    }

    /// Gives a file a name that no object has.
    async fn rename(self: &Arc<Self>, name: &str) -> Result<String, UploadError> {
        for number in 2..=NAMES {
            let (old, new) = (name.to_owned(), numbered(name, number));
            if self.writer.length(&ObjectPath::parse(&new)?).await?.is_some() {
                continue;
            }
            let to = new.clone();
            match self.blocking(move |uploads| uploads.shelf.rename(&old, &to)).await {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return Ok(outcome.map(|()| new)?),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
    }
}

/// Locks the folder for uploads, for as long as the file is open.
fn lock(shelf: &Shelf) -> io::Result<File> {
    let file = File::create(shelf.folder().root().join(".uploads.lock"))?;
    file.try_lock()?;
    Ok(file)
}
