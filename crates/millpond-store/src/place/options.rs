//! Options of an origin, as an operator sets them for a place.

use std::fmt;
use std::time::Duration;

use url::Url;

use crate::origin::Timeouts;
use crate::stripe::StripeStore;

/// The rule by which media files of a folder are renditions of one title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Titles {
    /// Files with matching names and content are one title.
    #[default]
    Alike,
    /// All files of a folder are one title.
    Folder,
    /// Each file is a title.
    File,
}

impl Titles {
    /// The names of all rules, as operators write them.
    pub const NAMES: [&'static str; 3] = ["alike", "folder", "file"];

    /// Returns the rule of a name.
    pub fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        [Self::Alike, Self::Folder, Self::File].get(place).copied()
    }
}

/// Options of an origin. Those that do not apply to an origin are ignored.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginOptions {
    /// Time limit for connecting, name lookup and TLS included.
    pub connect_timeout: Duration,
    /// Time limit from the request to the head of the reply.
    pub first_byte_timeout: Duration,
    /// Longest pause of a body. The whole has no limit.
    pub stall_timeout: Duration,
    /// Number of further attempts after a transient failure.
    pub retries: u32,
    /// Longest first pause before a further attempt. It doubles each time; the real one is random below it.
    pub retry_base: Duration,
    /// Hosts, as `host` or `host:port`, to which an HTTP origin may redirect besides itself.
    pub follow_redirects_to: Vec<String>,
    /// Base URLs of sibling caches, asked for a range before the origin.
    pub siblings: Vec<Url>,
    /// Time limit for the first byte of a sibling's reply.
    pub sibling_timeout: Duration,
    /// Stores that the maps of striped objects may name. Without one, maps are files like others.
    pub stripe_over: Vec<StripeStore>,
    /// Units of a striped object that are read at the same time; 0 is twice the number of its stores.
    pub stripe_batch: usize,
    /// Longest pause of a store while another copy of its unit is left.
    pub stripe_timeout: Duration,
    /// Longest delay of the start of a stream of a striped object.
    pub stripe_start: Duration,
    /// Whether files and folders whose names begin with a dot can be read; by default not. They are never listed.
    pub hidden_files: Option<bool>,
    /// The rule by which files of a folder are one title.
    pub titles: Titles,
    /// The URL of an S3 service; by default that of the environment, the profile, or AWS.
    pub s3_endpoint: Option<String>,
    /// The region of the bucket; by default that of the environment, the profile, or `us-east-1`.
    pub s3_region: Option<String>,
    /// Whether the bucket is named in the path rather than the host name; by default with an endpoint.
    pub s3_path_style: Option<bool>,
    /// Whether S3 requests are unsigned.
    pub s3_anonymous: bool,
    /// The base URL of a service compatible with Google Cloud Storage.
    pub gs_endpoint: Option<String>,
    /// Whether Google Cloud Storage requests are unsigned.
    pub gs_anonymous: bool,
    /// The Azure storage account; by default that of the environment.
    pub az_account: Option<String>,
    /// The URL of a service compatible with Azure Blob Storage.
    pub az_endpoint: Option<String>,
    /// Whether Azure requests are unsigned.
    pub az_anonymous: bool,
    /// Whether the machine's cloud role is asked for keys where none are configured. By default only if the environment
    /// names the service that provides them.
    pub instance_credentials: bool,
}

impl Default for OriginOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(10),
            retries: 2,
            retry_base: Duration::from_millis(100),
            follow_redirects_to: Vec::new(),
            siblings: Vec::new(),
            sibling_timeout: Duration::from_millis(100),
            stripe_over: Vec::new(),
            stripe_batch: 0,
            stripe_timeout: Duration::from_secs(1),
            stripe_start: Duration::from_secs(5),
            hidden_files: None,
            titles: Titles::default(),
            s3_endpoint: None,
            s3_region: None,
            s3_path_style: None,
            s3_anonymous: false,
            gs_endpoint: None,
            gs_anonymous: false,
            az_account: None,
            az_endpoint: None,
            az_anonymous: false,
            instance_credentials: false,
        }
    }
}

impl fmt::Debug for OriginOptions {
    /// Omits the endpoints, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("stall_timeout", &self.stall_timeout)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl OriginOptions {
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts { connect: self.connect_timeout, first_byte: self.first_byte_timeout, stall: self.stall_timeout }
    }
}
