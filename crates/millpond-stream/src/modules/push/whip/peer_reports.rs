//! The reports of the server, which are encrypted.

use millpond_rtp::{
    rtcp::{self, RtcpItem},
    srtp::{MasterKey, Unprotector},
};
use std::collections::HashMap;

/// Sources of a server whose reports are read: some report from one for each section.
const SOURCES: usize = 8;

/// Decrypts the reports of a server.
#[derive(Debug)]
pub(super) struct PeerReports {
    key: MasterKey,
    sources: HashMap<u32, Unprotector>,
}

impl PeerReports {
    pub(super) fn new(key: MasterKey) -> Self {
        Self { key, sources: HashMap::new() }
    }

    /// Returns the parts of a compound; none where it is not authentic.
    pub(super) fn open(&mut self, compound: &mut [u8]) -> Vec<RtcpItem> {
        let Some(source) = compound.get(4..8).and_then(|source| source.try_into().ok()).map(u32::from_be_bytes) else {
            return Vec::new();
        };
        let (mut stranger, is_full) = (None, self.sources.len() == SOURCES);
        let unprotector = match self.sources.get_mut(&source) {
            Some(known) => known,
            None if is_full => return Vec::new(),
            None => stranger.insert(Unprotector::new(&self.key, 0)),
        };
        let items = match unprotector.rtcp(compound) {
            Ok(opened) => rtcp::parse(opened).unwrap_or_default(),
            Err(_) => return Vec::new(),
        };
        // Only who has the key makes an entry.
        self.sources.extend(stranger.map(|unprotector| (source, unprotector)));
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{
        feedback::GenericNack,
        srtp::{KEY, Protector},
    };

    #[test]
    fn requests_with_the_key_are_read_once() {
        let key = MasterKey::new(&[5; KEY]);
        let mut reports = PeerReports::new(key.clone());
        let request = |source: u32, key: &MasterKey| {
            let mut compound = rtcp::receiver_report(source, &[], "far");
            GenericNack::new(source, 7, [3, 4]).append_to(&mut compound);
            Protector::new(key).rtcp(&mut compound, 0).unwrap();
            compound
        };
        let good = request(1, &key);
        let [RtcpItem::Nack(nack)] = &reports.open(&mut good.clone())[..] else { panic!("no request") };
        assert_eq!((nack.source, nack.sequences().collect::<Vec<_>>()), (7, vec![3, 4]));
        assert!(reports.open(&mut good.clone()).is_empty(), "a repetition");
        assert!(reports.open(&mut request(2, &MasterKey::new(&[6; KEY]))).is_empty(), "another key");
        assert!(reports.open(&mut [0x80, 201, 0]).is_empty());
        for source in 1..100 {
            reports.open(&mut request(source, &key));
        }
        assert_eq!(reports.sources.len(), SOURCES);
    }
}
