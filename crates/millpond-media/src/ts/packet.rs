//! Transport packets: header and adaptation field (ISO/IEC 13818-1 2.4.3).

/// Length of a packet in bytes.
pub(crate) const SIZE: usize = 188;
/// First byte of each packet.
pub(crate) const SYNC: u8 = 0x47;
/// PID of packets without content.
pub(super) const NULL_PID: u16 = 0x1fff;

/// Fields of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) pid: u16,
    /// `transport_error_indicator`, or an adaptation field that does not fit.
    pub(super) is_damaged: bool,
    /// `payload_unit_start_indicator`.
    pub(super) starts_unit: bool,
    /// Whether `transport_scrambling_control` is not 0.
    pub(super) is_scrambled: bool,
    /// `continuity_counter`.
    pub(super) counter: u8,
    /// `discontinuity_indicator`.
    pub(super) is_discontinuous: bool,
    /// `random_access_indicator`.
    pub(super) is_random_access: bool,
    /// Programme clock reference in ticks of 27 MHz.
    pub(super) clock: Option<u64>,
    /// Payload; `None` where the packet has only an adaptation field.
    pub(super) payload: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// Reads a packet whose first byte is [`SYNC`].
    pub(super) fn parse(bytes: &'a [u8; SIZE]) -> Self {
        let [_, second, third, fourth, body @ ..] = bytes;
        let mut packet = Self {
            pid: u16::from_be_bytes([second & 0x1f, *third]),
            is_damaged: second & 0x80 != 0,
            starts_unit: second & 0x40 != 0,
            is_scrambled: fourth & 0xc0 != 0,
            counter: fourth & 0x0f,
            is_discontinuous: false,
            is_random_access: false,
            clock: None,
            payload: None,
        };
        let mut payload = &body[..];
        if fourth & 0x20 != 0 {
            let length = usize::from(body[0]);
            match body[1..].split_at_checked(length) {
                Some((field, rest)) => {
                    packet.adaptation(field);
                    payload = rest;
                }
                None => packet.is_damaged = true,
            }
        }
        packet.payload = (fourth & 0x10 != 0).then_some(payload);
        packet
    }

    /// Reads the adaptation field after its length (2.4.3.4).
    fn adaptation(&mut self, field: &[u8]) {
        let Some((flags, rest)) = field.split_first() else { return };
        self.is_discontinuous = flags & 0x80 != 0;
        self.is_random_access = flags & 0x40 != 0;
        if flags & 0x10 != 0
            && let Some([b0, b1, b2, b3, b4, b5]) = rest.first_chunk()
        {
            // 33 bits of base in 90 kHz, 6 reserved bits, 9 bits of extension in 27 MHz.
            let base = u64::from(u32::from_be_bytes([*b0, *b1, *b2, *b3])) << 1 | u64::from(b4 >> 7);
            let extension = u64::from(b4 & 1) << 8 | u64::from(*b5);
            self.clock = Some(base * 300 + extension);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(front: &[u8]) -> [u8; SIZE] {
        let mut bytes = [0xff; SIZE];
        bytes[..front.len()].copy_from_slice(front);
        bytes
    }

    #[test]
    fn fields_of_a_packet_with_a_clock() {
        let bytes = packet(&[0x47, 0x41, 0x23, 0x3a, 7, 0xd0, 0x80, 0, 0, 0, 0xff, 0x05, 1, 2, 3]);
        let found = Packet::parse(&bytes);
        assert_eq!((found.pid, found.counter, found.starts_unit), (0x123, 10, true));
        assert!(found.is_discontinuous && found.is_random_access && !found.is_scrambled && !found.is_damaged);
        assert_eq!(found.clock, Some(((1 << 32) + 1) * 300 + 0x105));
        assert_eq!(found.payload.unwrap().len(), 176);
        assert_eq!(found.payload.unwrap()[..3], [1, 2, 3]);
    }

    #[test]
    fn a_field_longer_than_the_packet_is_damage() {
        assert!(Packet::parse(&packet(&[0x47, 0, 0x20, 0x30, 184])).is_damaged);
        let full = packet(&[0x47, 0, 0x20, 0x30, 183, 0]);
        assert_eq!(Packet::parse(&full).payload, Some(&[][..]));
        assert!(Packet::parse(&packet(&[0x47, 0x80, 0x20, 0x10])).is_damaged);
        // A clock that the field has no space for.
        assert_eq!(Packet::parse(&packet(&[0x47, 0, 0x20, 0x30, 1, 0x10])).clock, None);
        assert!(Packet::parse(&packet(&[0x47, 0, 0x20, 0x20, 183, 0])).payload.is_none());
    }
}
