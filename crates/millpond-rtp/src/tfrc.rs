//! TCP-friendly rate control (RFC 5348): a flow beside TCP takes about TCP's share of the rate, but varies less.
//!
//! - A [`Sender`] computes the allowed rate from feedback: [`throughput`] of the equation, slow start, the no-feedback timer.
//! - A [`Receiver`] finds loss events in the packets that arrive, and tells when feedback is due.
//! - Receivers of RTP send RTCP instead. A [`ReportReader`] computes the feedback of a [`Receiver`] from reports (RFC 5348
//!   section 7, sender-based variants).
//! - A [`RateControl`] joins sender, reader and an [`Allowance`]: the rate control of one session.
//!
//! Times are measured from any fixed moment. A time before an earlier one counts as no time passed. Rates are bytes per second.

mod allowance;
mod control;
mod equation;
mod events;
mod intervals;
mod receive_rates;
mod receiver;
mod reports;
mod sender;
mod sent;
#[cfg(test)]
mod simulation;

pub use allowance::Allowance;
pub use control::RateControl;
pub use equation::{loss_event_rate, throughput};
pub use events::LossEvents;
pub use receiver::{Receiver, ReceiverFeedback};
pub use reports::ReportReader;
pub use sender::{Feedback, Sender};
