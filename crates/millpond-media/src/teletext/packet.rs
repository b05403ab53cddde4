//! Teletext packets (ETSI EN 300 706 7) in the data field of a PES packet (ETSI EN 300 472 4).

use super::hamming::{hamming_8_4, hamming_24_18};

/// Bytes of a teletext packet behind its framing code.
const PACKET: usize = 42;
/// Bytes of a packet behind its address.
pub(super) const BODY: usize = PACKET - 2;
/// Columns of a row.
pub(super) const COLUMNS: usize = 40;
/// `data_unit_id` of teletext, and of teletext subtitles.
const UNITS: [u8; 2] = [0x02, 0x03];
/// `data_unit_length` of teletext: field and line, framing code and packet.
const UNIT: usize = PACKET + 2;
/// `framing_code`, with its first bit as the most significant one.
const FRAMING: u8 = 0xe4;
/// Triplets of an enhancement packet.
pub(super) const TRIPLETS: usize = 13;

/// Number of a page: the magazine (1 to 8) and two digits, such as `0x888`. Digits may be hexadecimal ones.
pub(super) type Number = u16;

/// A packet of one magazine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Magazine, from 0; 0 stands for 8.
    pub(super) magazine: usize,
    pub(super) content: Content,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The header of a page.
    Header(Header),
    /// A row, with its number and its bytes.
    Row(u8, [u8; BODY]),
    /// Enhancements of a page (X/26), with the designation code.
    Enhancement(u8, [Option<u32>; TRIPLETS]),
    /// The first triplet of a packet that designates character sets: of the page (X/28/0) or of the magazine (M/29/0).
    Designation { of_page: bool, triplet: u32 },
}

/// Header of a page (9.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: Number,
    /// C4: the rows before are no part of the page.
    pub(super) erases: bool,
    /// C5 or C6: a newsflash or subtitles. Only text in boxes is shown.
    pub(super) is_boxed: bool,
    /// C6: subtitles.
    pub(super) is_subtitle: bool,
    /// C10: rows are not shown.
    pub(super) is_hidden: bool,
    /// C11: packets of all magazines are in one sequence.
    pub(super) is_serial: bool,
    /// C12 to C14 as a number: the national option.
    pub(super) option: u8,
}

/// Returns the packets in the data field of a PES packet. Data of other kinds are skipped, as are damaged addresses.
pub(super) fn packets(data: &[u8]) -> impl Iterator<Item = Packet> + '_ {
    let mut rest = match data {
        // `data_identifier` of EBU data.
        [0x10..=0x1f, rest @ ..] => rest,
        _ => &[],
    };
    let units = std::iter::from_fn(move || {
        let [id, length, after @ ..] = rest else { return None };
        let (unit, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        Some((*id, unit))
    });
    units.filter(|(id, _)| UNITS.contains(id)).filter_map(|(_, unit)| Packet::parse(unit))
}

impl Packet {
    /// Parses a data unit.
    fn parse(unit: &[u8]) -> Option<Self> {
        let [_, FRAMING, rest @ ..] = unit.get(..UNIT)? else { return None };
        // Teletext sends the least significant bit first.
        let mut bytes = [0; PACKET];
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = from.reverse_bits());
        let (address, body) = bytes.split_first_chunk::<2>()?;
        let [first, second] = address.map(hamming_8_4);
        let (first, second) = (first?, second?);
        let (magazine, number) = (usize::from(first & 7), first >> 3 | second << 1);
        let content = Content::parse(number, magazine, body.first_chunk()?)?;
        Some(Self { magazine, content })
    }
}

impl Content {
    /// Parses the body of packet `number` of a magazine. `None` for packets that subtitles do not need.
    fn parse(number: u8, magazine: usize, body: &[u8; BODY]) -> Option<Self> {
        match number {
            0 => Header::parse(magazine, body).map(Self::Header),
            1..=24 => Some(Self::Row(number, *body)),
            26 => {
                let (designation, triplets) = enhancement(body)?;
                Some(Self::Enhancement(designation, triplets))
            }
            28 | 29 => {
                let (designation, triplets) = enhancement(body)?;
                let triplet = triplets.first().copied().flatten().filter(|_| designation == 0)?;
                let of_page = number == 28;
                // Page function and coding: of X/28, only those of basic pages state sets.
                let is_basic = !of_page || triplet & 0x7f == 0;
                is_basic.then_some(Self::Designation { of_page, triplet: triplet >> 7 })
            }
            _ => None,
        }
    }
}

/// Returns the designation code and the triplets of a packet; `None` for those with more than one wrong bit.
fn enhancement(body: &[u8; BODY]) -> Option<(u8, [Option<u32>; TRIPLETS])> {
    let (designation, rest) = body.split_first()?;
    let mut triplets = [None; TRIPLETS];
    for (triplet, bytes) in triplets.iter_mut().zip(rest.as_chunks::<3>().0) {
        *triplet = hamming_24_18(*bytes);
    }
    Some((hamming_8_4(*designation)?, triplets))
}

impl Header {
    fn parse(magazine: usize, body: &[u8; BODY]) -> Option<Self> {
        let fields = body.first_chunk::<8>()?.map(hamming_8_4);
        let [Some(units), Some(tens), Some(_), Some(s2), Some(_), Some(s4), Some(c7), Some(c11)] = fields else {
            return None;
        };
        let magazine = if magazine == 0 { 8 } else { magazine as u16 };
        let bit = |field: u8, place: u8| field >> place & 1 == 1;
        Some(Self {
            number: magazine << 8 | u16::from(tens) << 4 | u16::from(units),
            erases: bit(s2, 3),
            is_boxed: bit(s4, 2) || bit(s4, 3),
            is_subtitle: bit(s4, 3),
            is_hidden: bit(c7, 3),
            is_serial: bit(c11, 0),
            // C12 is the most significant bit of the number.
            option: c11 << 1 & 4 | c11 >> 1 & 2 | c11 >> 3 & 1,
        })
    }
}

#[cfg(test)]
pub(crate) mod make {
    //! Writes packets, for tests.

    use super::{super::hamming::encode, *};

    /// A page header with control bits: `c[n]` is C(n + 4).
    pub(crate) fn header(number: Number, control: &[u8]) -> Vec<u8> {
        let has = |bit: u8| u8::from(control.contains(&bit));
        let fields = [
            number as u8 & 0xf,
            (number >> 4) as u8 & 0xf,
            0,
            has(4) << 3,
            0,
            has(5) << 2 | has(6) << 3,
            has(7) | has(8) << 1 | has(9) << 2 | has(10) << 3,
            has(11) | has(12) << 1 | has(13) << 2 | has(14) << 3,
        ];
        let mut body: Vec<u8> = fields.map(encode::hamming_8_4).to_vec();
        body.resize(BODY, encode::odd_parity(b' '));
        unit(number >> 8, 0, &body)
    }

    /// A row with bytes from its first column on.
    pub(crate) fn row(magazine: u16, number: u8, text: &[u8]) -> Vec<u8> {
        let mut body: Vec<u8> = text.iter().map(|byte| encode::odd_parity(*byte)).collect();
        body.resize(BODY, encode::odd_parity(b' '));
        unit(magazine, number, &body)
    }

    /// A packet of triplets.
    pub(crate) fn triplets(magazine: u16, number: u8, designation: u8, triplets: &[u32]) -> Vec<u8> {
        let mut body = vec![encode::hamming_8_4(designation)];
        // A termination marker.
        let padded = triplets.iter().copied().chain(std::iter::repeat(0x3_ffff)).take(TRIPLETS);
        body.extend(padded.flat_map(encode::hamming_24_18));
        unit(magazine, number, &body)
    }

    /// The data field of a PES packet.
    pub(crate) fn field(units: &[Vec<u8>]) -> Vec<u8> {
        [&[0x10][..], &units.concat()].concat()
    }

    fn unit(magazine: u16, number: u8, body: &[u8]) -> Vec<u8> {
        let address = [(magazine & 7) as u8 | number << 3 & 8, number >> 1].map(encode::hamming_8_4);
        let bytes = address.iter().chain(body).map(|byte| byte.reverse_bits());
        [0x03, UNIT as u8, 0xe7, FRAMING].into_iter().chain(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_state_their_page_and_its_control_bits() {
        let read = |control: &[u8]| match packets(&make::field(&[make::header(0x888, control)])).next().unwrap() {
            Packet { magazine: 0, content: Content::Header(header) } => header,
            other => panic!("{other:?}"),
        };
        let plain = read(&[]);
        assert_eq!(
            (plain.number, plain.erases, plain.is_boxed, plain.is_serial, plain.option),
            (0x888, false, false, false, 0)
        );
        let all = read(&[4, 6, 10, 11, 12, 14]);
        assert!(all.erases && all.is_boxed && all.is_subtitle && all.is_hidden && all.is_serial);
        assert_eq!((all.option, read(&[13]).option, read(&[14]).option), (5, 2, 1));
        assert!(read(&[5]).is_boxed && !read(&[5]).is_subtitle);
    }

    #[test]
    fn other_data_are_skipped() {
        let row = make::row(3, 22, b"text");
        let mut damaged = row.clone();
        damaged[4] ^= 0x81;
        let mut other = row.clone();
        other[0] = 0xff;
        let short = vec![0x03, 2, 0xe7, FRAMING];
        let found: Vec<_> = packets(&make::field(&[other, damaged, short, row.clone(), row[..20].to_vec()])).collect();
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0], Packet { magazine: 3, content: Content::Row(22, _) }));
        assert_eq!(packets(&row).count(), 0, "no EBU data");
        assert_eq!(packets(&[]).count(), 0);
    }

    #[test]
    fn designations_are_those_of_basic_pages() {
        let read = |number, designation, triplet| {
            let field = make::field(&[make::triplets(1, number, designation, &[triplet])]);
            packets(&field).next().map(|packet| packet.content)
        };
        let designation = |of_page| Some(Content::Designation { of_page, triplet: 0x24 });
        assert_eq!((read(28, 0, 0x24 << 7), read(29, 0, 0x24 << 7)), (designation(true), designation(false)));
        assert_eq!((read(28, 0, 0x24 << 7 | 2), read(28, 4, 0x24 << 7)), (None, None));
    }
}
