//! The packets of a fake camera.

use super::scenario::Habit;
use millpond_rtp::packet::Header;
use std::time::Duration;

/// Most bytes of a payload.
const MOST: usize = 200;
/// Seconds from the epoch of NTP to the beginning.
const NTP: u64 = 3_900_000_000;

/// Makes packets, with the habits of a camera.
pub(super) struct Packets {
    habits: &'static [Habit],
    sequence: [u16; 2],
    ssrc: [u32; 2],
}

impl Packets {
    pub(super) fn new(habits: &'static [Habit]) -> Self {
        Self { habits, sequence: [100; 2], ssrc: [70, 71] }
    }

    /// Whether the camera has a habit.
    pub(super) fn has(&self, habit: Habit) -> bool {
        self.habits.contains(&habit)
    }

    pub(super) fn change_source(&mut self) {
        self.ssrc = self.ssrc.map(|ssrc| ssrc + 100);
        self.sequence = [40_000; 2];
    }

    fn packet(&mut self, track: usize, marker: bool, timestamp: u32, payload: &[u8]) -> Vec<u8> {
        let sequence = self.sequence[track];
        self.sequence[track] = sequence.wrapping_add(1);
        let is_other = track == 1 && self.has(Habit::OtherPayloadType);
        let payload_type = if is_other { 104 } else { 96 + track as u8 };
        let header = Header { marker, payload_type, sequence, timestamp, ssrc: self.ssrc[track] };
        [&header.to_bytes()[..], payload].concat()
    }

    /// Packets of a picture.
    pub(super) fn of_picture(&mut self, units: &[&[u8]], timestamp: u32) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        if self.has(Habit::LoneMessages) {
            let time = timestamp.wrapping_sub(90);
            packets.push(self.packet(0, false, time, &[0x09, 0xf0]));
            packets.push(self.packet(0, true, time, &[0x06, 0x05, 0x01, 0xaa, 0x80]));
        }
        let joined = units.join(&[0, 0, 0, 1][..]);
        let is_joined = self.has(Habit::StartCodes) || self.has(Habit::StartCodesInFragments);
        let units = if is_joined { vec![&joined[..]] } else { units.to_vec() };
        let last = units.len() - 1;
        for (place, unit) in units.into_iter().enumerate() {
            let is_last = place == last && !self.has(Habit::EmptyPackets);
            let is_marked = is_last || self.has(Habit::MarkedSlices);
            packets.extend(self.of_unit(unit, is_marked, timestamp));
        }
        if self.has(Habit::EmptyPackets) {
            packets.push(self.packet(0, true, timestamp, &[]));
        }
        packets
    }

    /// Packets of a NAL unit: one, or fragments (RFC 6184 5.8).
    fn of_unit(&mut self, unit: &[u8], is_marked: bool, timestamp: u32) -> Vec<Vec<u8>> {
        let is_whole = self.has(Habit::WholeFragments);
        if self.has(Habit::StartCodes) || (unit.len() <= MOST && !is_whole && !self.has(Habit::StartCodesInFragments)) {
            return vec![self.packet(0, is_marked, timestamp, unit)];
        }
        let parts: Vec<&[u8]> = unit[1..].chunks(if is_whole { unit.len() } else { MOST }).collect();
        let last = parts.len() - 1;
        let fragment = |(place, part): (usize, &&[u8])| {
            let ends = u8::from(place == 0) << 7 | u8::from(place == last) << 6;
            let payload = [&[unit[0] & 0xe0 | 28, ends | unit[0] & 0x1f][..], part].concat();
            self.packet(0, is_marked && place == last, timestamp, &payload)
        };
        parts.iter().enumerate().map(fragment).collect()
    }

    /// The packet of a frame of sound (RFC 3640).
    pub(super) fn of_sound(&mut self, frame: &[u8], timestamp: u32) -> Vec<Vec<u8>> {
        let [high, low] = ((frame.len() as u16) << 3).to_be_bytes();
        let payload = [&[0, 16, high, low][..], frame].concat();
        vec![self.packet(1, true, timestamp, &payload)]
    }

    /// A sender report (RFC 3550 6.4.1) of a time since the beginning.
    pub(super) fn report(&self, track: usize, at: Duration, timestamp: u32) -> Vec<u8> {
        let fraction = (u64::from(at.subsec_nanos()) << 32) / 1_000_000_000;
        let ntp = (NTP + at.as_secs()) << 32 | fraction;
        let mut report = vec![0x80, 200, 0, 6];
        report.extend(self.ssrc[track].to_be_bytes());
        report.extend(ntp.to_be_bytes());
        report.extend(timestamp.to_be_bytes());
        report.extend([0; 8]);
        report
    }
}
