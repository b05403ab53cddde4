//! The captions of one picture: `cc_data()` (ATSC A/53 part 4 6.2.3, CEA-708 4.4).
//!
//! Each picture is read alone. Pictures arrive in decoding order, and captions continue in order of presentation. A packet of
//! CEA-708 that continues in other pictures still names its first service in the picture in which it begins.

use super::{CaptionChannel, CaptionChannels};

/// `process_cc_data_flag`.
const HAS_DATA: u8 = 0x40;
/// `cc_valid`.
const VALID: u8 = 4;
/// Bytes of a construct.
const CONSTRUCT: usize = 3;
/// Second bytes of the commands of CEA-608 that begin or show captions: RCL, RU2, RU3, RU4, RDC and EOC.
const COMMANDS: [u8; 6] = [0x20, 0x25, 0x26, 0x27, 0x29, 0x2f];
/// Service number that stands for an extended one in the next byte.
const EXTENDED: u8 = 7;

/// Adds the channels that `cc_data()` has data of. Returns whether it has other bytes of CEA-608, which may be captions.
pub(super) fn read(cc_data: &[u8], found: &mut CaptionChannels) -> bool {
    let [flags, _, constructs @ ..] = cc_data else { return false };
    let count = if flags & HAS_DATA == 0 { 0 } else { usize::from(flags & 0x1f) };
    let (mut packet, mut has_others) = (Vec::new(), false);
    for construct in constructs.chunks_exact(CONSTRUCT).take(count) {
        let &[head, first, second] = construct else { continue };
        match head & 3 {
            _ if head & VALID == 0 => {}
            2 if packet.is_empty() => {}
            2 => packet.extend([first, second]),
            3 => {
                services(&packet, found);
                packet = vec![first, second];
            }
            field => has_others |= !line_21(field, [first, second], found),
        }
    }
    services(&packet, found);
    has_others
}

/// Reads two bytes of a field, 0 or 1 (CEA-608). Returns whether they are padding or tell the channel.
fn line_21(field: u8, pair: [u8; 2], found: &mut CaptionChannels) -> bool {
    let [first, second] = pair.map(|byte| byte & 0x7f);
    let has_parity = pair.iter().all(|byte| byte.count_ones() % 2 == 1);
    // 0x14 for the first channel of a field, 0x1c for the second. The second field may have 0x15 and 0x1d.
    let is_command = has_parity && first & 0x76 == 0x14 && COMMANDS.contains(&second);
    if is_command {
        found.insert(CaptionChannel::Cea608(1 + 2 * field + (first >> 3 & 1)));
    }
    is_command || [first, second] == [0, 0]
}

/// Adds the services of a packet of CEA-708, which may be truncated (5, 6.2).
fn services(packet: &[u8], found: &mut CaptionChannels) {
    let Some((header, blocks)) = packet.split_first() else { return };
    let size = match usize::from(header & 0x3f) {
        0 => 127,
        code => code * 2 - 1,
    };
    let mut rest = blocks.get(..size).unwrap_or(blocks);
    while let Some((block, mut after)) = rest.split_first() {
        let (mut number, size) = (block >> 5, usize::from(block & 0x1f));
        if number == EXTENDED && size > 0 {
            let Some((extended, behind)) = after.split_first() else { return };
            (number, after) = (extended & 0x3f, behind);
        }
        // The null service fills the packet.
        if number == 0 {
            return;
        }
        if size > 0 {
            found.insert(CaptionChannel::Cea708(number));
        }
        rest = after.get(size..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads constructs; returns the names of channels, and whether there are other bytes.
    fn names(constructs: &[[u8; 3]]) -> (Vec<String>, bool) {
        let mut cc_data = vec![0xc0 | constructs.len() as u8, 0xff];
        cc_data.extend(constructs.iter().flatten());
        cc_data.push(0xff);
        let mut found = CaptionChannels::default();
        let has_others = read(&cc_data, &mut found);
        (found.iter().map(|channel| channel.to_string()).collect(), has_others)
    }

    #[test]
    fn commands_tell_the_channel_of_a_field() {
        let commands = [
            ([0xfc, 0x94, 0x20], "CC1"),
            ([0xfc, 0x94, 0x2f], "CC1"),
            ([0xfc, 0x1c, 0x25], "CC2"),
            ([0xfd, 0x15, 0x26], "CC3"),
            ([0xfd, 0x94, 0xa7], "CC3"),
            ([0xfd, 0x9d, 0x29], "CC4"),
        ];
        for (command, expected) in commands {
            assert_eq!(names(&[command]), (vec![expected.to_owned()], false), "{command:x?}");
        }
    }

    #[test]
    fn padding_is_no_caption() {
        let nothing = (Vec::new(), false);
        assert_eq!(names(&[[0xfc, 0x80, 0x80], [0xfd, 0x80, 0x80], [0xfa, 0, 0], [0xf8, 0x94, 0x20]]), nothing);
        // Letters, a time of XDS, a command to erase, one without parity, and one of text mode.
        for other in
            [[0xfc, 0xc8, 0xe9], [0xfd, 0x01, 0x83], [0xfc, 0x94, 0x2c], [0xfc, 0x14, 0x20], [0xfc, 0x94, 0xab]]
        {
            assert_eq!(names(&[other]), (Vec::new(), true), "{other:x?}");
        }
    }

    #[test]
    fn packets_name_their_services() {
        // Service 1 with a letter, service 2 with two, then the null service.
        let packet = [[0xff, 0x04, 0x21], [0xfe, 0x41, 0x42], [0xfe, 0x41, 0x42], [0xfe, 0, 0]];
        assert_eq!(names(&packet), (vec!["SERVICE1".to_owned(), "SERVICE2".to_owned()], false));
        // An extended service, in a packet whose rest is in another picture.
        let extended = [[0xff, 0x42, 0xe3], [0xfe, 0x09, 0x41]];
        assert_eq!(names(&extended).0, ["SERVICE9"]);
        // Rest of a packet, an empty block, an invalid start, and a packet that ends before a second service.
        assert_eq!(names(&[[0xfe, 0x21, 0x41]]).0, [] as [&str; 0]);
        assert_eq!(names(&[[0xff, 0x02, 0x20], [0xfe, 0, 0]]).0, [] as [&str; 0]);
        assert_eq!(names(&[[0xfb, 0x02, 0x21], [0xfa, 0x41, 0]]).0, [] as [&str; 0]);
        assert_eq!(names(&[[0xff, 0x01, 0x21], [0xfe, 0x41, 0x41], [0xfe, 0x41, 0]]).0, ["SERVICE1"]);
        // Two packets.
        let two = [[0xff, 0x02, 0x22], [0xfe, 0x41, 0x42], [0xff, 0x42, 0x61], [0xfe, 0x41, 0]];
        assert_eq!(names(&two).0, ["SERVICE1", "SERVICE3"]);
    }

    #[test]
    fn truncated_bytes_are_no_fault() {
        let whole = [0xc3, 0xff, 0xfc, 0x94, 0x20, 0xff, 0x42, 0xe3, 0xfe, 0x09, 0x41];
        for end in 0..whole.len() {
            let mut found = CaptionChannels::default();
            assert!(!read(&whole[..end], &mut found));
            assert_eq!(found.is_empty(), end < 5, "{end}");
        }
        // The flag that there is data is off.
        let mut found = CaptionChannels::default();
        assert!(!read(&[0x81, 0xff, 0xfc, 0x94, 0x20], &mut found) && found.is_empty());
    }
}
