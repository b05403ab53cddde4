//! Locations of objects, from which origins are made.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::url_text::without_secrets;

/// Location of the objects of an origin. `Display` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum OriginLocation {
    /// A folder on disk, or one file, which is then the whole place.
    Folder(PathBuf),
    /// A base URL, `http` or `https`. User, password and query are secrets.
    Http(Url),
    /// A bucket of a cloud, or of a compatible service.
    Bucket(BucketPrefix),
}

/// A bucket, and a prefix of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketPrefix {
    /// The protocol of the service.
    pub cloud: Cloud,
    /// The name of the bucket; of the container at Azure.
    pub bucket: String,
    /// Common prefix of all keys, without slashes at its ends; may be empty.
    pub prefix: String,
}

/// The protocol of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon S3 and compatible services.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
}

impl Cloud {
    /// Returns the scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
        }
    }
}

impl OriginLocation {
    /// Returns the bucket, if it is one.
    pub fn bucket(&self) -> Option<&BucketPrefix> {
        match self {
            Self::Bucket(bucket) => Some(bucket),
            Self::Folder(_) | Self::Http(_) => None,
        }
    }
}

impl fmt::Display for BucketPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "{}://{}{slash}{}", self.cloud.scheme(), self.bucket, self.prefix)
    }
}

impl fmt::Display for OriginLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Http(url) => f.write_str(&without_secrets(url)),
            Self::Bucket(bucket) => bucket.fmt(f),
        }
    }
}

impl fmt::Debug for OriginLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
