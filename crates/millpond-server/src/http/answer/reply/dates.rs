//! Dates in header fields (RFC 9110 section 5.6.7), formatted once per second instead of once per reply; times as text.

use http::HeaderValue;
use std::{
    cell::RefCell,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Number of dates that a thread remembers: the current one and those of popular files.
const REMEMBERED: usize = 64;

thread_local! {
    static KNOWN: RefCell<[Option<(u64, HeaderValue)>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

/// Returns the value for a time. Times before 1970 and after the year 9999 have no HTTP date.
pub(super) fn field(time: SystemTime) -> Option<HeaderValue> {
    const LAST: u64 = 253_402_300_799;
    let seconds =
        time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()).filter(|seconds| *seconds <= LAST)?;
    KNOWN.with_borrow_mut(|known| {
        let slot = &mut known[seconds as usize % REMEMBERED];
        match slot {
            Some((of, field)) if *of == seconds => Some(field.clone()),
            _ => {
                let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
                let field = HeaderValue::from_str(&date).ok()?;
                *slot = Some((seconds, field.clone()));
                Some(field)
            }
        }
    })
}

/// Returns a time as text in UTC (RFC 3339), with milliseconds. Times before 1970 are that year's beginning.
pub(in crate::http::answer) fn utc(time: SystemTime) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, time.duration_since(UNIX_EPOCH).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_date() {
        let at = |seconds| field(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        for _ in 0..2 {
            for n in 0..200 {
                let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(784_111_777 + n));
                assert_eq!(at(784_111_777 + n), date);
            }
        }
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(field(UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(field(UNIX_EPOCH + Duration::from_secs(253_402_300_800)), None);
    }
}
