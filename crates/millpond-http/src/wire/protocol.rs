//! Versions of HTTP.

/// Version of HTTP that carried a request, as logs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Returns the version of a request of HTTP/1.
    pub fn of_http1(is_http10: bool) -> Self {
        if is_http10 { Self::Http10 } else { Self::Http11 }
    }

    /// Returns the name in logs and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}
