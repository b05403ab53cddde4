//! libCacheSim's oracleGeneral: records of 24 bytes, little-endian: seconds (u32), object (u64), bytes (u32), and the
//! record of the object's next request (i64), which is not needed here.

use super::TraceError;
use crate::simulate::workload::{Visit, Workload};

const RECORD: usize = 24;

/// Reads a trace.
///
/// # Errors
///
/// Where a record is cut off.
pub fn read(bytes: &[u8]) -> Result<Workload, TraceError> {
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if !rest.is_empty() {
        let found = format!("{} bytes", rest.len());
        return Err(TraceError { unit: "record", number: records.len() as u64 + 1, expected: "24 bytes", found });
    }
    let visit = |record: &[u8; RECORD]| {
        let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let object = u64::from(word(4)) | u64::from(word(8)) << 32;
        let len = u64::from(word(12)).max(1);
        Visit { at: f64::from(word(0)), object, len, from: 0, to: len, rate: f64::INFINITY }
    };
    Ok(Workload { name: "trace".to_owned(), visits: records.iter().map(visit).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_a_cut_one_is_named() {
        let mut bytes = Vec::new();
        for (time, object, size) in [(5_u32, 1_u64 << 40, 100_u32), (6, 2, 0)] {
            bytes.extend(time.to_le_bytes());
            bytes.extend(object.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend((-1_i64).to_le_bytes());
        }
        let trace = read(&bytes).unwrap();
        assert_eq!((trace.visits[0].at, trace.visits[0].object, trace.visits[0].len), (5.0, 1 << 40, 100));
        assert_eq!(trace.visits[1].len, 1);
        assert_eq!(read(&bytes[..47]).unwrap_err().number, 2);
    }
}
