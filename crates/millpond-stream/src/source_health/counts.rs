//! Counts of a reception.

/// Counts of a reception, over all sessions with its source in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Sessions that gave media. All but the first are reconnections.
    pub sessions: u64,
    /// RTP packets that arrived, those without use included; of MPEG-TS its packets.
    pub packets: u64,
    /// Packets that did not arrive while they were waited for.
    pub lost_packets: u64,
    /// Packets that were asked for because they were missing.
    pub asked_packets: u64,
    /// Those of them that arrived in time.
    pub repaired_packets: u64,
    /// Those of them that did not.
    pub too_late_packets: u64,
    /// Packets that arrived after a later one.
    pub reordered_packets: u64,
    /// Packets without use: of another sender or payload type, invalid, or later than the wait for them.
    pub unused_packets: u64,
    /// Frames that were left out because a part of them is missing.
    pub broken_frames: u64,
}

/// Adds the counts of another session.
impl std::ops::AddAssign for SourceCounts {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.packets += other.packets;
        self.lost_packets += other.lost_packets;
        self.asked_packets += other.asked_packets;
        self.repaired_packets += other.repaired_packets;
        self.too_late_packets += other.too_late_packets;
        self.reordered_packets += other.reordered_packets;
        self.unused_packets += other.unused_packets;
        self.broken_frames += other.broken_frames;
    }
}
