//! Names of programmes: the service description table (SDT, ETSI EN 300 468 5.2.3).

use super::{
    descriptor, dvb_text,
    packet::{Packet, SIZE},
    section::{LongSection, Sections},
};
use std::collections::BTreeMap;

/// PID of the table.
const PID: u16 = 0x11;
/// `table_id` of the services of this stream.
const THIS_STREAM: u8 = 0x42;
/// Tag of a service descriptor (6.2.33).
const SERVICE: u8 = 0x48;
/// Most names that are kept.
const MOST_NAMES: usize = 256;

/// Collects the names of a stream's services. The number of a service is the number of its programme.
#[derive(Debug, Default)]
pub(crate) struct ServiceNames {
    sections: Sections,
    names: BTreeMap<u16, String>,
}

impl ServiceNames {
    /// Takes a packet of any PID.
    pub(crate) fn packet(&mut self, bytes: &[u8; SIZE]) {
        let packet = Packet::parse(bytes);
        if packet.pid != PID || packet.is_damaged || packet.is_scrambled {
            return;
        }
        let mut found = Vec::new();
        // A section that lacks packets has a wrong checksum.
        self.sections.packet(&packet, false, &mut found);
        for section in found.iter().filter_map(|section| LongSection::parse(section)) {
            if section.table == THIS_STREAM && section.is_current {
                self.section(section.body);
            }
        }
    }

    /// Returns the names by the numbers of the programmes.
    pub(crate) fn finish(self) -> BTreeMap<u16, String> {
        self.names
    }

    fn section(&mut self, body: &[u8]) {
        // `original_network_id`, and a reserved byte.
        let [_, _, _, services @ ..] = body else { return };
        let mut rest = services;
        while let [n0, n1, _, l0, l1, after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([l0 & 0x0f, *l1]));
            let Some((descriptors, after)) = after.split_at_checked(length) else { return };
            rest = after;
            let name = descriptor::find(descriptors, SERVICE).and_then(name);
            if let Some(name) = name.filter(|_| self.names.len() < MOST_NAMES) {
                self.names.insert(u16::from_be_bytes([*n0, *n1]), name);
            }
        }
    }
}

/// Returns the name in a service descriptor, which follows the type of the service and the name of its provider.
fn name(descriptor: &[u8]) -> Option<String> {
    let [_, provider, rest @ ..] = descriptor else { return None };
    let [length, rest @ ..] = rest.get(usize::from(*provider)..)? else { return None };
    dvb_text::decode(rest.get(..usize::from(*length)).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::mux::Mux;

    fn names(bytes: &[u8]) -> Vec<(u16, String)> {
        let mut names = ServiceNames::default();
        for packet in bytes.as_chunks::<SIZE>().0 {
            names.packet(packet);
        }
        names.finish().into_iter().collect()
    }

    #[test]
    fn services_have_names() {
        let long = "n".repeat(120);
        let mut mux = Mux::default();
        mux.services(&[(7, b"Das Erste"), (8, long.as_bytes()), (9, b""), (10, b"\x05\xc7\xfcl")]);
        // The table of another stream, and a table of events.
        mux.section(PID, 0x46, 2, 0, &[0, 1, 0xff, 0, 7, 0xfc, 0x80, 0]);
        let found = names(&mux.bytes);
        assert_eq!(found, [(7, "Das Erste".to_owned()), (8, long), (10, "Çül".to_owned())]);
    }

    #[test]
    fn damaged_tables_have_no_names() {
        let mut mux = Mux::default();
        mux.services(&[(7, b"Das Erste"), (8, b"ZDF")]);
        let whole = mux.bytes;
        let known = names(&whole);
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            let found = names(&bytes);
            assert!(found.is_empty() || found == known, "byte {place}: {found:?}");
        }
        let too_long: [&[u8]; 2] = [&[0, 1, 0xff, 0, 7, 0xfc, 0x80, 9], &[0, 1, 0xff, 0, 7, 0xfc, 0x80, 3, 0x48, 1, 1]];
        let short: [&[u8]; 2] = [&[], &[0, 1, 0xff]];
        for body in short.into_iter().chain(too_long) {
            let mut mux = Mux::default();
            mux.section(PID, THIS_STREAM, 1, 0, body);
            assert!(names(&mux.bytes).is_empty());
        }
    }
}
