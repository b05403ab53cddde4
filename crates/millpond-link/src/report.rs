use crate::direction::Tally;
use crate::lateness::LatenessReport;
use serde::Serialize;

/// The counters of a link.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Report {
    /// From the first end to the second one.
    pub ab: DirectionReport,
    /// From the second end to the first one.
    pub ba: DirectionReport,
}

/// The counters of one direction, in packets unless they say otherwise.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DirectionReport {
    /// Packets read from the sending end's device.
    pub arrived: u64,
    /// Packets that the impairments let through, without duplicates.
    pub delivered: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets lost in bursts.
    pub lost_in_bursts: u64,
    /// Packets dropped because the queue was full.
    pub queue_full: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Packets held back.
    pub held_back: u64,
    /// Packets written to the receiving end's device, with duplicates.
    pub written: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Packets dropped because [`PENDING`](crate::PENDING) packets were on their way. Not asked for.
    pub overflowed: u64,
    /// Packets that the receiving device refused, as it does while it is down. Not asked for.
    pub refused: u64,
    /// Packets that the sending device dropped because the link did not read them in time. Not asked for.
    pub unread: u64,
    /// How late packets were written, in microseconds.
    pub late: LatenessReport,
}

impl DirectionReport {
    pub(crate) fn new(tally: Tally, late: LatenessReport) -> Self {
        Self {
            arrived: tally.arrived,
            delivered: tally.delivered,
            lost: tally.lost,
            lost_in_bursts: tally.lost_in_bursts,
            queue_full: tally.queue_full,
            duplicates: tally.duplicates,
            held_back: tally.held_back,
            written: 0,
            written_bytes: 0,
            overflowed: 0,
            refused: 0,
            unread: 0,
            late,
        }
    }
}
