//! Transport packets: header, adaptation field, payload (ISO/IEC 13818-1, 2.4.3).

/// Length of a transport packet in bytes.
pub(super) const SIZE: usize = 188;
/// Length of the packet header in bytes.
const HEADER: usize = 4;
/// Bytes of a packet after its header.
const BODY: usize = SIZE - HEADER;
/// Bytes of the adaptation field in a unit's first packet: length, flags and space for a PCR. Streams without the clock
/// fill that space with stuffing, so packet counts don't depend on which stream carries the clock.
const FIRST_FIELD: usize = 8;

/// Returns the number of packets for a PES packet of `len` bytes, header included.
pub(super) fn count(len: u64) -> u32 {
    let packets = len.saturating_add(FIRST_FIELD as u64).div_ceil(BODY as u64);
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// Content of the adaptation field in the first transport packet of a PES packet (2.4.3.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// `discontinuity_indicator`.
    pub(super) discontinuity: bool,
    /// `random_access_indicator`.
    pub(super) random_access: bool,
    /// Program clock reference base (90 kHz); `None` unless this stream carries the clock.
    pub(super) clock: Option<i64>,
}

impl Start {
    /// Returns the field's flags and its clock, if any (2.4.3.4).
    fn field(self) -> ([u8; 7], usize) {
        let mut flags = 0;
        if self.discontinuity {
            flags |= 0x80;
        }
        if self.random_access {
            flags |= 0x40;
        }
        let Some(clock) = self.clock else { return ([flags, 0, 0, 0, 0, 0, 0], 1) };
        // 33 bits of base, 6 reserved bits, 9 bits of extension (always 0).
        let [_, _, _, b0, b1, b2, b3, b4] = ((clock as u64 & super::pes::CLOCK_MASK) << 7 | 0x7e).to_be_bytes();
        ([flags | 0x10, b0, b1, b2, b3, b4, 0], 7)
    }
}

/// Divides the PES packets of one stream into transport packets, and appends these to an output.
///
/// [`begin`](Self::begin) announces the length of a PES packet and its number of transport packets. Then
/// [`write`](Self::write) takes exactly that many bytes, in pieces of any size. A transport packet may begin in one
/// output and end in the next.
#[derive(Debug)]
pub(super) struct PacketWriter {
    pid: u16,
    counter: u8,
    start: Option<Start>,
    /// Bytes of the PES packet that are not written yet.
    payload: usize,
    /// Transport packets of the PES packet that have not begun yet.
    packets: usize,
    /// Payload bytes for which the current transport packet still has space.
    room: usize,
}

impl PacketWriter {
    /// Creates a writer whose first packet has the given continuity counter.
    pub(super) fn new(pid: u16, counter: u8) -> Self {
        Self { pid, counter: counter & 0x0f, start: None, payload: 0, packets: 0, room: 0 }
    }

    /// Continuity counter of the next packet.
    pub(super) fn counter(&self) -> u8 {
        self.counter
    }

    /// Begins a PES packet of `len` bytes, header included, in `packets` transport packets. `packets` is the result of [`count`]
    /// for `len`, or for slightly more bytes.
    pub(super) fn begin(&mut self, len: usize, packets: u32, start: Start, out: &mut Vec<u8>) {
        self.start = Some(start);
        self.payload = len;
        self.packets = packets as usize;
        self.room = 0;
        out.reserve(self.packets.saturating_mul(SIZE));
    }

    /// Appends a packet with only a PCR, between two PES packets. It has no payload, so the counter stays (2.4.3.3).
    pub(super) fn clock(&self, clock: i64, out: &mut Vec<u8>) {
        let [high, low] = self.pid.to_be_bytes();
        out.extend_from_slice(&[0x47, high, low, 0x20 | self.counter.wrapping_sub(1) & 0x0f]);
        write_field(Some(Start { discontinuity: false, random_access: false, clock: Some(clock) }), BODY, out);
    }

    /// Appends bytes of the PES packet.
    pub(super) fn write(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.room == 0 {
                bytes = self.write_full(bytes, out);
                if bytes.is_empty() {
                    break;
                }
                self.open(out);
            }
            let (now, later) = bytes.split_at(self.room.min(bytes.len()));
            out.extend_from_slice(now);
            self.room -= now.len();
            bytes = later;
        }
    }

    /// Writes packets that contain only payload (the hot path), and returns the remaining bytes.
    fn write_full<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        if self.start.is_some() {
            return bytes;
        }
        // Each later packet needs at least one byte of payload, because the counter can't advance without.
        let full = (self.payload.saturating_sub(self.packets) / (BODY - 1)).min(bytes.len() / BODY);
        let (now, later) = bytes.split_at(full * BODY);
        let [high, low] = self.pid.to_be_bytes();
        // Space for all packets at once: one check of the output's capacity, and copies of a constant size.
        let begin = out.len();
        out.resize(begin + full * SIZE, 0);
        for (packet, body) in out[begin..].as_chunks_mut::<SIZE>().0.iter_mut().zip(now.as_chunks::<BODY>().0) {
            packet[..HEADER].copy_from_slice(&[0x47, high, low, 0x10 | self.counter]);
            packet[HEADER..].copy_from_slice(body);
            self.counter = (self.counter + 1) & 0x0f;
        }
        self.payload -= now.len();
        self.packets = self.packets.saturating_sub(full);
        later
    }

    /// Begins a transport packet: the header, and an adaptation field where the payload does not fill the packet.
    fn open(&mut self, out: &mut Vec<u8>) {
        let start = self.start.take();
        let most = if start.is_some() { BODY - FIRST_FIELD } else { BODY };
        self.packets = self.packets.saturating_sub(1);
        self.room = self.payload.saturating_sub(self.packets).clamp(1, most);
        self.payload = self.payload.saturating_sub(self.room);
        let field = BODY - self.room;
        let unit_start = if start.is_some() { 0x40 } else { 0 };
        let control = if field > 0 { 0x30 } else { 0x10 };
        let [high, low] = self.pid.to_be_bytes();
        out.extend_from_slice(&[0x47, unit_start | high, low, control | self.counter]);
        self.counter = (self.counter + 1) & 0x0f;
        write_field(start, field, out);
    }
}

/// Writes an adaptation field of `len` bytes in all. With a start, `len` is at least [`FIRST_FIELD`].
fn write_field(start: Option<Start>, len: usize, out: &mut Vec<u8>) {
    let Some(rest) = len.checked_sub(1) else { return };
    out.push(rest as u8);
    let (flags, used) = start.map_or(([0; 7], 1), Start::field);
    let used = used.min(rest);
    out.extend_from_slice(&flags[..used]);
    out.resize(out.len() + rest - used, 0xff);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Start = Start { discontinuity: false, random_access: false, clock: None };

    fn packetise(payload: &[u8], packets: u32, piece: usize, start: Start) -> Vec<u8> {
        let mut writer = PacketWriter::new(0x101, 14);
        let mut out = Vec::new();
        writer.begin(payload.len(), packets, start, &mut out);
        for piece in payload.chunks(piece) {
            writer.write(piece, &mut out);
        }
        out
    }

    /// Returns the payload of packets, and checks sync bytes, PID, counters and the start indicator.
    fn payload_of(packets: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        for (n, p) in packets.as_chunks::<SIZE>().0.iter().enumerate() {
            assert_eq!((p[0], p[1] & 0x1f, p[2]), (0x47, 0x01, 0x01));
            assert_eq!(p[1] & 0x40 != 0, n == 0);
            assert_eq!(usize::from(p[3] & 0x0f), (14 + n) % 16);
            let skip = if p[3] & 0x20 != 0 { 1 + usize::from(p[4]) } else { 0 };
            assert!(skip < BODY, "packet {n} has no payload");
            payload.extend_from_slice(&p[4 + skip..]);
        }
        payload
    }

    #[test]
    fn every_length_in_any_pieces_comes_back() {
        for len in (1..1200).chain([40_000]) {
            let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            for piece in [1, 7, 184, 185, 100_000] {
                let packets = count(len as u64);
                let out = packetise(&payload, packets, piece, PLAIN);
                assert_eq!(out.len(), packets as usize * SIZE, "length {len} in pieces of {piece}");
                assert_eq!(payload_of(&out), payload);
            }
        }
    }

    #[test]
    fn a_shortfall_is_stuffed_without_changing_the_count() {
        for planned in 30_usize..1200 {
            for missing in 1..=7 {
                let packets = count(planned as u64);
                let payload = vec![9; planned - missing];
                let out = packetise(&payload, packets, 50, PLAIN);
                assert_eq!(out.len(), packets as usize * SIZE, "{missing} of {planned}");
                assert_eq!(payload_of(&out), payload);
            }
        }
    }

    #[test]
    fn the_first_field_has_flags_and_clock() {
        let start = Start { discontinuity: true, random_access: true, clock: Some(0x1_2345_6789) };
        let out = packetise(&[1; 176], 1, 200, start);
        assert_eq!(out[..12], [0x47, 0x41, 0x01, 0x3e, 7, 0xd0, 0x91, 0xa2, 0xb3, 0xc4, 0xfe, 0x00]);
        let out = packetise(&[1; 176], 1, 200, PLAIN);
        assert_eq!(out[..12], [0x47, 0x41, 0x01, 0x3e, 7, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_packet_of_the_clock_alone_has_no_payload() {
        let mut out = packetise(&[1; 10], 1, 200, PLAIN);
        PacketWriter { counter: 15, ..PacketWriter::new(0x101, 0) }.clock(0x1_2345_6789, &mut out);
        assert_eq!(out.len(), 2 * SIZE);
        assert_eq!(out[3] & 0x0f, 14);
        assert_eq!(out[SIZE..SIZE + 12], [0x47, 0x01, 0x01, 0x2e, 183, 0x10, 0x91, 0xa2, 0xb3, 0xc4, 0xfe, 0x00]);
        assert!(out[SIZE + 12..].iter().all(|byte| *byte == 0xff));
    }

    #[test]
    fn the_clock_wraps_at_33_bits() {
        let start = Start { clock: Some(-1), ..PLAIN };
        let out = packetise(&[1; 10], 1, 200, start);
        assert_eq!(out[5..12], [0x10, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x00]);
    }
}
