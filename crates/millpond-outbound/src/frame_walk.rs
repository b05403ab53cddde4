//! The frames of one direction of an HTTP/2 connection.

/// Length of a client's preface (RFC 9113 3.4).
const PREFACE: u32 = 24;

/// Kind of a frame (RFC 9113 6), as far as counters tell kinds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// DATA.
    Data,
    /// HEADERS.
    Headers,
    /// All others.
    Other,
}

/// Head of a frame (RFC 9113 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Kind.
    pub kind: FrameKind,
    /// Length of the payload in bytes.
    pub length: u32,
}

/// A walk over the heads of frames, as their bytes pass.
#[derive(Debug, Default)]
pub struct FrameWalk {
    head: [u8; 9],
    /// Bytes of the head that are here.
    have: usize,
    /// Bytes to skip before the next head.
    left: u32,
}

impl FrameWalk {
    /// Begins with a client's preface.
    #[must_use]
    pub fn of_client() -> Self {
        Self { left: PREFACE, ..Self::default() }
    }

    /// Visits each head that the bytes complete.
    pub fn each(&mut self, mut bytes: &[u8], mut visit: impl FnMut(FrameHead)) {
        while !bytes.is_empty() {
            let skipped = bytes.len().min(self.left as usize);
            bytes = &bytes[skipped..];
            self.left -= u32::try_from(skipped).unwrap_or(self.left);
            let taken = bytes.len().min(self.head.len() - self.have);
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == self.head.len() {
                let [a, b, c, kind, ..] = self.head;
                let length = u32::from_be_bytes([0, a, b, c]);
                let kind = match kind {
                    0 => FrameKind::Data,
                    1 => FrameKind::Headers,
                    _ => FrameKind::Other,
                };
                visit(FrameHead { kind, length });
                (self.have, self.left) = (0, length);
            }
        }
    }
}
