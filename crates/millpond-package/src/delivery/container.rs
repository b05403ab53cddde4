//! Containers of segments.

/// Container format of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// Fragmented MP4 (CMAF).
    Fmp4,
    /// MPEG-2 transport streams.
    Ts,
}
