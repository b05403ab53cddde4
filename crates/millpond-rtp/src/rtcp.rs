//! RTCP packets (RFC 3550 6): writes and reads sender reports, receiver reports and BYE, and reads [`feedback`].

use crate::feedback::{self, GenericNack};

/// Packet types (RFC 3550 12.1).
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const SOURCE_DESCRIPTION: u8 = 202;
const BYE: u8 = 203;

/// Statistics of a sender about itself (RFC 3550 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport {
    /// Synchronization source.
    pub ssrc: u32,
    /// NTP time: seconds since 1900 in 32.32 bits.
    pub ntp: u64,
    /// The same moment in ticks of the payload's clock.
    pub timestamp: u32,
    /// Number of packets sent.
    pub packets: u32,
    /// Number of payload bytes sent.
    pub octets: u32,
}

impl SenderReport {
    /// Returns a compound packet of the report and the source's CNAME (RFC 3550 6.1).
    #[must_use]
    pub fn to_bytes(&self, cname: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        header(&mut bytes, 0, SENDER_REPORT, 24);
        bytes.extend_from_slice(&self.ssrc.to_be_bytes());
        bytes.extend_from_slice(&self.ntp.to_be_bytes());
        for word in [self.timestamp, self.packets, self.octets] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        description(&mut bytes, self.ssrc, cname);
        bytes
    }
}

/// Most blocks of one report, whose count has five bits.
const MOST_BLOCKS: usize = 31;

/// Returns a compound packet of the reports of receiver `ssrc` about sources (RFC 3550 6.4.2), and its CNAME. Only the
/// first 31 reports are included.
#[must_use]
pub fn receiver_report(ssrc: u32, receptions: &[ReportBlock], cname: &str) -> Vec<u8> {
    let receptions = &receptions[..receptions.len().min(MOST_BLOCKS)];
    let mut bytes = Vec::with_capacity(48 + 24 * receptions.len());
    header(&mut bytes, receptions.len() as u8, RECEIVER_REPORT, 4 + 24 * receptions.len());
    bytes.extend_from_slice(&ssrc.to_be_bytes());
    for reception in receptions {
        bytes.extend_from_slice(&reception.to_bytes());
    }
    description(&mut bytes, ssrc, cname);
    bytes
}

/// Returns a BYE for a source (RFC 3550 6.6), after its last report.
#[must_use]
pub fn bye(last: &SenderReport, cname: &str, reason: &str) -> Vec<u8> {
    let mut bytes = last.to_bytes(cname);
    let reason = &reason.as_bytes()[..reason.len().min(255)];
    let text = (1 + reason.len()).next_multiple_of(4);
    header(&mut bytes, 1, BYE, 4 + text);
    bytes.extend_from_slice(&last.ssrc.to_be_bytes());
    bytes.push(reason.len() as u8);
    bytes.extend_from_slice(reason);
    bytes.resize(bytes.len() + text - 1 - reason.len(), 0);
    bytes
}

/// Appends the CNAME (RFC 3550 6.5.1).
fn description(bytes: &mut Vec<u8>, ssrc: u32, cname: &str) {
    let name = &cname.as_bytes()[..cname.len().min(255)];
    // The item, its end, and zeros up to a whole word.
    let items = (2 + name.len() + 1).next_multiple_of(4);
    header(bytes, 1, SOURCE_DESCRIPTION, 4 + items);
    bytes.extend_from_slice(&ssrc.to_be_bytes());
    bytes.extend_from_slice(&[1, name.len() as u8]);
    bytes.extend_from_slice(name);
    bytes.resize(bytes.len() + items - 2 - name.len(), 0);
}

fn header(bytes: &mut Vec<u8>, count: u8, kind: u8, length: usize) {
    bytes.extend_from_slice(&[2 << 6 | count, kind]);
    bytes.extend_from_slice(&((length / 4) as u16).to_be_bytes());
}

/// Report block: a receiver's statistics about one source (RFC 3550 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlock {
    /// SSRC of the source.
    pub ssrc: u32,
    /// Fraction lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost in total; negative where duplicates outnumber losses.
    pub lost: i32,
    /// Highest sequence number, with the number of wraps in the upper 16 bits.
    pub highest: u32,
    /// Interarrival jitter in ticks of the payload's clock.
    pub jitter: u32,
    /// The middle 32 bits of the NTP time of the last sender report; 0 where there was none.
    pub last_report: u32,
    /// Time since that report arrived, in 1/65536 seconds.
    pub delay: u32,
}

impl ReportBlock {
    fn to_bytes(self) -> [u8; 24] {
        // Clamped to 24 bits, signed.
        let lost = self.lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
        let words = [
            self.ssrc,
            u32::from(self.fraction_lost) << 24 | lost,
            self.highest,
            self.jitter,
            self.last_report,
            self.delay,
        ];
        let mut bytes = [0; 24];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Returns the round trip time in seconds (RFC 3550 6.4.1). `now` is the middle 32 bits of the NTP time at which
    /// this report arrived.
    #[must_use]
    pub fn round_trip(&self, now: u32) -> Option<f64> {
        let ticks = now.wrapping_sub(self.last_report).wrapping_sub(self.delay);
        // Clocks that disagree can make it negative, which is meaningless.
        (self.last_report != 0 && ticks < 1 << 31).then(|| f64::from(ticks) / 65_536.0)
    }
}

/// A part of a compound packet that matters to the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtcpItem {
    /// Sender report.
    Sender(SenderReport),
    /// Report block of a receiver, or of a sender that also receives.
    Reception(ReportBlock),
    /// SSRCs of sources that ended.
    Bye(Vec<u32>),
    /// Packets that a receiver lost.
    Nack(GenericNack),
    /// A receiver asks for a key frame.
    KeyFrame,
}

/// The reason why bytes are no RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtcpError {
    /// The version is not 2.
    #[error("byte {at}: version {found}, expected 2")]
    Version {
        /// Offset of the packet in the compound.
        at: usize,
        /// Version found.
        found: u8,
    },
    /// The stated length exceeds the bytes, or is too short for the content.
    #[error("byte {at}: {found} bytes, expected {expected}")]
    Length {
        /// Offset of the packet in the compound.
        at: usize,
        /// Number of bytes found.
        found: usize,
        /// Number of bytes expected.
        expected: usize,
    },
}

/// Parses a compound packet. Packets of other types are skipped.
///
/// # Errors
/// The first invalid packet.
pub fn parse(compound: &[u8]) -> Result<Vec<RtcpItem>, RtcpError> {
    let mut reports = Vec::new();
    let mut at = 0;
    while at < compound.len() {
        let rest = &compound[at..];
        let need = |expected: usize| match rest.len() {
            found if found < expected => Err(RtcpError::Length { at, found, expected }),
            _ => Ok(()),
        };
        need(4)?;
        if rest[0] >> 6 != 2 {
            return Err(RtcpError::Version { at, found: rest[0] >> 6 });
        }
        let length = 4 + 4 * usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        need(length)?;
        let (count, packet) = (usize::from(rest[0] & 0x1f), &rest[..length]);
        let holds = |expected: usize| match length {
            found if found < expected => Err(RtcpError::Length { at, found, expected }),
            _ => Ok(()),
        };
        match rest[1] {
            kind @ (SENDER_REPORT | RECEIVER_REPORT) => {
                let blocks = if kind == SENDER_REPORT { 28 } else { 8 };
                holds(blocks + 24 * count)?;
                if kind == SENDER_REPORT {
                    reports.push(RtcpItem::Sender(sender(packet)));
                }
                let each = packet[blocks..blocks + 24 * count].chunks_exact(24);
                reports.extend(each.map(|block| RtcpItem::Reception(reception(block))));
            }
            BYE => {
                holds(4 + 4 * count)?;
                reports.push(RtcpItem::Bye((0..count).map(|place| word(packet, 4 + 4 * place)).collect()));
            }
            feedback::TRANSPORT_FEEDBACK | feedback::PAYLOAD_FEEDBACK => {
                reports.extend(feedback::read(packet));
            }
            _ => {}
        }
        at += length;
    }
    Ok(reports)
}

fn sender(packet: &[u8]) -> SenderReport {
    SenderReport {
        ssrc: word(packet, 4),
        ntp: u64::from(word(packet, 8)) << 32 | u64::from(word(packet, 12)),
        timestamp: word(packet, 16),
        packets: word(packet, 20),
        octets: word(packet, 24),
    }
}

fn reception(block: &[u8]) -> ReportBlock {
    let lost = word(block, 4);
    ReportBlock {
        ssrc: word(block, 0),
        fraction_lost: (lost >> 24) as u8,
        // 24 bits, signed.
        lost: ((lost << 8) as i32) >> 8,
        highest: word(block, 8),
        jitter: word(block, 12),
        last_report: word(block, 16),
        delay: word(block, 20),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: SenderReport =
        SenderReport { ssrc: 0x1234, ntp: 0x0123_4567_89ab_cdef, timestamp: 9, packets: 10, octets: 11 };

    #[test]
    fn compounds_are_whole_words_and_read_back() {
        for name in ["", "a", "ab", "abc", "millpond"] {
            let bytes = REPORT.to_bytes(name);
            assert_eq!(bytes.len() % 4, 0, "{name}");
            assert_eq!(parse(&bytes), Ok(vec![RtcpItem::Sender(REPORT)]), "{name}");
        }
        let bytes = bye(&REPORT, "millpond", "the file ended early");
        assert_eq!(parse(&bytes), Ok(vec![RtcpItem::Sender(REPORT), RtcpItem::Bye(vec![0x1234])]));
    }

    #[test]
    fn receiver_reports_read_back() {
        let reception = |lost| ReportBlock {
            ssrc: 0x1234,
            fraction_lost: 255,
            lost,
            highest: 0x1_0005,
            jitter: 90,
            last_report: 0x89ab_cdef,
            delay: 7,
        };
        let receptions: Vec<ReportBlock> = (-20..20).map(reception).collect();
        for count in [0, 1, 2, 31] {
            let bytes = receiver_report(5, &receptions[..count], "millpond");
            let expected: Vec<RtcpItem> = receptions[..count].iter().copied().map(RtcpItem::Reception).collect();
            assert_eq!(parse(&bytes), Ok(expected), "{count}");
        }
        assert_eq!(parse(&receiver_report(5, &receptions, "")).unwrap().len(), 31, "no more than a report can have");
        let far = parse(&receiver_report(5, &[reception(i32::MIN)], "")).unwrap();
        assert_eq!(far, [RtcpItem::Reception(reception(-0x80_0000))]);
    }

    #[test]
    fn receiver_reports_are_read() {
        let mut bytes = vec![0x81, RECEIVER_REPORT, 0, 7, 0, 0, 0, 1];
        bytes.extend_from_slice(&[0, 0, 0x12, 0x34, 64, 0xff, 0xff, 0xfe, 0, 1, 0, 5, 0, 0, 0, 90]);
        bytes.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0x80, 0]);
        let Ok([RtcpItem::Reception(reception)]) =
            parse(&bytes).as_deref().map(|all| <[RtcpItem; 1]>::try_from(all.to_vec()).unwrap())
        else {
            panic!("no report")
        };
        assert_eq!((reception.fraction_lost, reception.lost, reception.jitter), (64, -2, 90));
        // Sent at 1 s, held for half a second, received back at 1.75 s.
        assert_eq!(reception.round_trip(0x1_c000), Some(0.25));
        assert_eq!(ReportBlock { last_report: 0, ..reception }.round_trip(5), None);
        assert_eq!(reception.round_trip(0x1_0000), None, "before it could be");
        assert!(matches!(parse(&bytes[..20]), Err(RtcpError::Length { at: 0, found: 20, expected: 32 })));
        bytes[0] = 0x85;
        assert!(matches!(parse(&bytes), Err(RtcpError::Length { found: 32, expected: 128, .. })));
        assert_eq!(parse(&[0x01, 200, 0, 0]), Err(RtcpError::Version { at: 0, found: 0 }));
    }
}
