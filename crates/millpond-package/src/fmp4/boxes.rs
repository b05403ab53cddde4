//! Boxes written into a buffer (ISO/IEC 14496-12 4.2).

/// A buffer for nested boxes. A box's size is filled in when the box ends.
#[derive(Default)]
pub(crate) struct BoxWriter {
    pub(crate) out: Vec<u8>,
}

impl BoxWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// Writes a box whose content `content` writes.
    pub(crate) fn put(&mut self, kind: &[u8; 4], content: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.u32(0);
        self.bytes(kind);
        content(self);
        // Only headers are written here, far less than 4 GiB.
        let size = u32::try_from(self.out.len() - start).unwrap_or(u32::MAX);
        self.out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    /// Writes a full box: with a version and 24 bits of flags.
    pub(crate) fn full(&mut self, kind: &[u8; 4], version: u8, flags: u32, content: impl FnOnce(&mut Self)) {
        self.put(kind, |w| {
            w.u32(u32::from(version) << 24 | flags & 0x00ff_ffff);
            content(w);
        });
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }
}
