//! The distances in time at which frames leave.

use std::time::{Duration, Instant};

/// Difference from the pace from which on the pace begins anew: the times of the stream have jumped.
const JUMP: Duration = Duration::from_secs(20);

/// Time of the stream's clock that is now.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<(Instant, Duration)>);

impl Pace {
    /// Moment at which a frame is to be sent that is due at a time of the stream.
    pub(super) fn moment(&mut self, due: Duration, now: Instant) -> Instant {
        let moment = self.0.and_then(|(began, zero)| match due.checked_sub(zero) {
            Some(after) => began.checked_add(after),
            None => began.checked_sub(zero - due),
        });
        let is_near = |moment: &Instant| {
            moment.saturating_duration_since(now) < JUMP && now.saturating_duration_since(*moment) < JUMP
        };
        moment.filter(is_near).unwrap_or_else(|| {
            self.0 = Some((now, due));
            now
        })
    }

    /// Time of the stream at which frames are due that leave now; `None` before the first one.
    pub(super) fn position(&self, now: Instant) -> Option<Duration> {
        let (began, zero) = self.0?;
        Some(zero + now.saturating_duration_since(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_at_the_distances_of_their_times() {
        let mut pace = Pace::default();
        let began = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(pace.position(began), None);
        assert_eq!(pace.moment(ms(5000), began), began);
        assert_eq!(pace.moment(ms(5040), began), began + ms(40));
        assert_eq!(pace.position(began + ms(30)), Some(ms(5030)));
        // A frame that comes late is sent at once by its caller; the pace stays.
        assert_eq!(pace.moment(ms(5080), began + ms(500)), began + ms(80));
        // The times jumped, forwards and back.
        let later = began + ms(1000);
        assert_eq!(pace.moment(ms(900_000), later), later);
        assert_eq!(pace.moment(ms(900_040), later), later + ms(40));
        assert_eq!(pace.moment(ms(40), later), later);
    }
}
