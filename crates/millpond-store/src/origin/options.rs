//! Options of origins on a network.

use std::fmt;
use std::time::Duration;

use crate::origin::retry::RetryPolicy;

/// Time limits of origins on a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time limit for connecting, name lookup and TLS included.
    pub connect: Duration,
    /// Time limit from the request to the head of the reply.
    pub first_byte: Duration,
    /// Longest pause of a body. The whole has no limit.
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), first_byte: Duration::from_secs(10), stall: Duration::from_secs(10) }
    }
}

/// Options of a web server or a bucket. Those that do not apply to one are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Time limits.
    pub timeouts: Timeouts,
    /// Attempts after a transient failure.
    pub retry: RetryPolicy,
    /// Hosts, as `host` or `host:port`, to which a web server may redirect besides itself.
    pub follow_redirects_to: Vec<String>,
    /// Options of a bucket.
    pub bucket: BucketOptions,
    /// Whether a web server that ignores ranges is refused at once. Otherwise, the beginning of an object can be read from it.
    pub requires_ranges: bool,
}

/// Options of a bucket.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BucketOptions {
    /// The URL of a compatible service. By default it comes from the environment or the profile, else the cloud's own URL is
    /// used.
    pub endpoint: Option<String>,
    /// The S3 region of the bucket. By default it comes from the environment or the profile, else it is `us-east-1`.
    pub region: Option<String>,
    /// Whether the S3 bucket is named in the path rather than the host name; by default with an endpoint.
    pub path_style: Option<bool>,
    /// The Azure storage account. By default it comes from the environment.
    pub account: Option<String>,
    /// Whether requests are unsigned.
    pub anonymous: bool,
    /// Whether the machine's cloud role is asked for keys where none are configured. By default only if the environment
    /// names the service that provides them.
    pub instance_credentials: bool,
}

impl fmt::Debug for BucketOptions {
    /// Omits the endpoint, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketOptions").field("region", &self.region).finish_non_exhaustive()
    }
}
