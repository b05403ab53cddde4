//! Fast conversion of numbers to text without `fmt`: playlists consist mostly of numbers.

/// Appends `value` in decimal.
pub(crate) fn push(out: &mut String, mut value: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|d| char::from(*d)));
}

/// Appends `millionths` as a decimal number with six places.
pub(crate) fn push_micros(out: &mut String, millionths: u64) {
    push(out, millionths / 1_000_000);
    let mut rest = millionths % 1_000_000;
    let mut digits = *b".000000";
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend(digits.iter().map(|d| char::from(*d)));
}

/// Converts `ticks` of a clock of `timescale` to millionths of a second, to the nearest; negative ones to 0.
pub(crate) fn micros(ticks: i64, timescale: u32) -> u64 {
    let ticks = u64::try_from(ticks).unwrap_or(0);
    let (half, scale) = (u64::from(timescale) / 2, u64::from(timescale.max(1)));
    match ticks.checked_mul(1_000_000).and_then(|t| t.checked_add(half)) {
        Some(scaled) => scaled / scale,
        None => {
            let exact = (u128::from(ticks) * 1_000_000 + u128::from(half)) / u128::from(scale);
            u64::try_from(exact).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pushes_what_display_writes(value: u64) {
            let mut out = String::new();
            push(&mut out, value);
            prop_assert_eq!(out, value.to_string());
        }

        #[test]
        fn pushes_six_places(value: u64) {
            let mut out = String::new();
            push_micros(&mut out, value);
            prop_assert_eq!(out, format!("{}.{:06}", value / 1_000_000, value % 1_000_000));
        }

        #[test]
        fn micros_are_the_nearest(ticks in 0..i64::MAX, timescale in 1u32..) {
            let exact = ticks as f64 * 1e6 / f64::from(timescale);
            let found = micros(ticks, timescale) as f64;
            prop_assert!((found - exact).abs() <= 0.5 + exact * 1e-12 || found >= u64::MAX as f64);
        }
    }

    #[test]
    fn negative_ticks_are_no_time() {
        assert_eq!(micros(-1, 90_000), 0);
        assert_eq!(micros(1001, 24_000), 41_708);
    }
}
