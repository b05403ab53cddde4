//! Bits of a frame, the most significant first.

/// Appends bits to bytes.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The last bits, of which the lowest `count` are not in `out` yet.
    held: u64,
    /// Always less than 32 between two calls.
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, count: 0 }
    }

    /// Appends the lowest `count` bits of `value`, at most 32. All higher bits of `value` must be 0.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        self.held = self.held << count | u64::from(value);
        self.count += count;
        if self.count >= 32 {
            self.count -= 32;
            self.out.extend_from_slice(&((self.held >> self.count) as u32).to_be_bytes());
        }
    }

    /// Appends a number in two's complement with `count` bits, 1 to 32.
    pub(super) fn put_signed(&mut self, value: i32, count: u32) {
        self.put(value as u32 & u32::MAX >> (32 - count), count);
    }

    /// Appends `count` zero bits.
    pub(super) fn zeros(&mut self, mut count: u32) {
        while count > 32 {
            self.put(0, 32);
            count -= 32;
        }
        self.put(0, count);
    }

    /// Appends a number in the Rice code of `parameter`, which is at most 30: zero bits for the quotient, a one bit, the remainder.
    pub(super) fn rice(&mut self, value: u32, parameter: u32) {
        let quotient = value >> parameter;
        let end = 1 << parameter | value & ((1 << parameter) - 1);
        let length = quotient.saturating_add(parameter + 1);
        if length <= 32 {
            self.put(end, length);
        } else {
            self.zeros(quotient);
            self.put(end, parameter + 1);
        }
    }

    /// Appends zero bits up to a whole byte, and all bytes that are held.
    pub(super) fn finish(self) {
        let whole = self.count.next_multiple_of(8);
        let bytes = ((self.held << (whole - self.count)) as u32).to_be_bytes();
        let used = (whole / 8) as usize;
        self.out.extend_from_slice(&bytes[bytes.len() - used..]);
    }
}
