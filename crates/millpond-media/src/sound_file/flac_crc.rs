//! Checksums of FLAC: CRC-8 of frame headers, CRC-16 of frames (RFC 9639 9.1.8 and 9.3).

/// Polynomials without their highest term.
const POLYNOMIAL_8: u8 = 0x07;
const POLYNOMIAL_16: u16 = 0x8005;
/// Bytes that are taken together.
const SLICE: usize = 8;

const TABLE_8: [u8; 256] = table_8();
/// Of each byte the checksum, followed by as many zero bytes as the table's place.
const TABLES_16: [[u16; 256]; SLICE] = tables_16();

/// Returns the CRC-8 of `bytes`.
#[must_use]
pub fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| TABLE_8[usize::from(crc ^ byte)])
}

/// Returns the CRC-16 of bytes with checksum `crc` that `bytes` follow. That of a whole frame with its checksum is 0.
#[must_use]
pub fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    let (slices, rest) = bytes.as_chunks::<SLICE>();
    let crc = slices.iter().fold(crc, |crc, slice| {
        let [high, low] = crc.to_be_bytes();
        let mut mixed = *slice;
        mixed[0] ^= high;
        mixed[1] ^= low;
        mixed.iter().zip(TABLES_16.iter().rev()).fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)])
    });
    rest.iter().fold(crc, |crc, byte| step_16(crc, *byte))
}

const fn step_16(crc: u16, byte: u8) -> u16 {
    crc << 8 ^ TABLES_16[0][(crc >> 8) as usize ^ byte as usize]
}

const fn table_8() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u8, 0);
        while bit < 8 {
            crc = if crc & 0x80 != 0 { crc << 1 ^ POLYNOMIAL_8 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

const fn tables_16() -> [[u16; 256]; SLICE] {
    let mut tables = [[0; 256]; SLICE];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL_16 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut place = 1;
    while place < SLICE {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[place - 1][byte];
            tables[place][byte] = before << 8 ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_catalogue() {
        // CRC-8/SMBUS and CRC-16/UMTS of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc8(b"123456789"), 0xf4);
        assert_eq!(crc16(0, b"123456789"), 0xfee8);
        let long: Vec<u8> = (0..100_u8).collect();
        for cut in 0..long.len() {
            assert_eq!(crc16(crc16(0, &long[..cut]), &long[cut..]), crc16(0, &long), "{cut}");
        }
        let whole = [&b"123456789"[..], &[0xfe, 0xe8]].concat();
        assert_eq!(crc16(0, &whole), 0);
    }
}
