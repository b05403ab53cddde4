//! Packets of Opus in an Ogg file (RFC 7845), which others decode.

/// Writes packets of 20 ms, of which no sample is skipped.
pub fn opus_file<'a>(channels: u8, packets: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let head = [&b"OpusHead\x01"[..], &[channels, 0, 0], &48_000_u32.to_le_bytes(), &[0, 0, 0]].concat();
    let tags = [&b"OpusTags"[..], &[0; 8]].concat();
    let mut file = [page(&head, 0, 0, 2), page(&tags, 0, 1, 0)].concat();
    for (packet, number) in packets.into_iter().zip(1_u32..) {
        file.extend(page(packet, 960 * u64::from(number), number + 1, 0));
    }
    file
}

fn page(packet: &[u8], position: u64, sequence: u32, flags: u8) -> Vec<u8> {
    let mut lengths = vec![255; packet.len() / 255];
    lengths.push((packet.len() % 255) as u8);
    let mut page = [&b"OggS\0"[..], &[flags], &position.to_le_bytes(), &1_u32.to_le_bytes()].concat();
    page.extend([sequence.to_le_bytes(), [0; 4]].concat());
    page.push(lengths.len() as u8);
    page.extend(lengths);
    page.extend(packet);
    let sum = page.iter().fold(0, |sum: u32, byte| {
        (0..8)
            .fold(sum ^ u32::from(*byte) << 24, |sum, _| if sum >> 31 == 1 { sum << 1 ^ 0x04c1_1db7 } else { sum << 1 })
    });
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}
