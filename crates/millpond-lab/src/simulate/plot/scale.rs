//! Where values lie on an axis, and which of them are marked.

/// Kind of values of an axis. The kind decides how they are spread and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Numbers from 0; powers of ten where they lie far apart.
    #[default]
    Numbers,
    /// Bytes, each doubling as wide as the next.
    Sizes,
    /// Durations or other values above 0, each factor of ten as wide as the next.
    Powers,
}

/// Where values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From 0 to `step` times `steps`.
    Even {
        /// Distance between two marks.
        step: f64,
        /// Number of those distances.
        steps: u32,
    },
    /// From one power of `base` to another: what is small is seen beside what is large.
    Log {
        /// 2 for sizes, else 10.
        base: f64,
        /// The lower exponent.
        from: i32,
        /// The higher exponent.
        to: i32,
    },
}

/// From this ratio of the largest value to the smallest on, an even scale would show next to nothing of the latter.
const WIDE: f64 = 100.0;
/// Most marks of an axis.
const MARKS: i32 = 12;

impl Scale {
    pub(super) fn of(axis: Axis, values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.clone().filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) = (positive.clone().fold(f64::INFINITY, f64::min), positive.fold(0.0_f64, f64::max));
        let has_zero = values.into_iter().any(|value| value <= 0.0);
        let base = if axis == Axis::Sizes { 2.0_f64 } else { 10.0 };
        let is_log = match axis {
            Axis::Numbers => !has_zero && most > WIDE * least,
            Axis::Sizes | Axis::Powers => true,
        };
        if is_log && most > 0.0 {
            // A power that is met but for rounding is no reason for another one.
            let (from, to) = ((least.ln() / base.ln() + 1e-9).floor(), (most.ln() / base.ln() - 1e-9).ceil());
            return Self::Log { base, from: from as i32, to: (to as i32).max(from as i32 + 1) };
        }
        let step = step(most);
        Self::Even { step, steps: (most / step).ceil().max(1.0) as u32 }
    }

    /// Place of a value on the axis: 0 is its beginning, 1 its end. Values that a logarithmic axis can't show, such as 0, lie
    /// at the beginning.
    pub(super) fn at(self, value: f64) -> f64 {
        match self {
            Self::Even { step, steps } => value / (step * f64::from(steps)),
            Self::Log { .. } if value <= 0.0 => 0.0,
            Self::Log { base, from, to } => {
                ((value.ln() / base.ln() - f64::from(from)) / f64::from((to - from).max(1))).clamp(0.0, 1.0)
            }
        }
    }

    pub(super) fn marks(self) -> Vec<f64> {
        match self {
            Self::Even { step, steps } => (0..=steps).map(|mark| step * f64::from(mark)).collect(),
            Self::Log { base, from, to } => {
                let every = ((to - from) / MARKS + 1) as usize;
                let powers = (from..=to).step_by(every).map(|exponent| base.powi(exponent));
                // Few powers of ten have marks between them.
                let between: &[f64] = if base > 2.0 && to - from <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let end = base.powi(to) * (1.0 + 1e-9);
                powers
                    .flat_map(|power| between.iter().map(move |factor| power * factor))
                    .filter(|m| *m <= end)
                    .collect()
            }
        }
    }
}

/// A round distance between marks, for about six of them.
fn step(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf((most / 6.0).log10().floor());
    let fit = |factor: &f64| power * factor * 6.0 >= most;
    power * [1.0, 2.0, 5.0, 10.0].into_iter().find(fit).unwrap_or(10.0)
}

/// A value as it stands beside its mark.
pub(super) fn label(axis: Axis, value: f64) -> String {
    if axis == Axis::Sizes {
        for (unit, bytes) in [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if value >= bytes as f64 {
                return format!("{} {unit}", round(value / bytes as f64));
            }
        }
        return format!("{} B", round(value));
    }
    round(value)
}

fn round(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_apart_lies_on_powers_of_ten() {
        let scale = |values: &[f64]| Scale::of(Axis::Numbers, values.iter().copied());
        let wide = scale(&[1463.0, 6.0, 0.92]);
        assert_eq!(wide, Scale::Log { base: 10.0, from: -1, to: 4 });
        assert!(wide.at(0.1).abs() < 1e-9 && (wide.at(1e4) - 1.0).abs() < 1e-9, "{wide:?}");
        assert_eq!(wide.marks().len(), 6);
        assert_eq!(scale(&[1463.0, 6.0, 0.0]), Scale::Even { step: 500.0, steps: 3 }, "there is no power for 0");
        assert_eq!(scale(&[6.0, 0.92]).at(6.0), 1.0);
        assert_eq!(scale(&[]).marks(), [0.0, 1.0]);
        assert_eq!((step(60.0), step(61.0), step(7.0), step(0.0)), (10.0, 20.0, 2.0, 1.0));
    }

    #[test]
    fn sizes_lie_on_powers_of_two() {
        let sizes = [64.0, 256.0, 1024.0, 4096.0].map(|mebibytes: f64| mebibytes * 1048576.0);
        let scale = Scale::of(Axis::Sizes, sizes.into_iter());
        assert_eq!(scale, Scale::Log { base: 2.0, from: 26, to: 32 });
        let places = sizes.map(|size| (scale.at(size) * 3.0).round());
        assert_eq!(places, [0.0, 1.0, 2.0, 3.0], "even steps");
        let labels: Vec<_> = scale.marks().iter().map(|mark| label(Axis::Sizes, *mark)).collect();
        assert_eq!(labels, ["64 MiB", "128 MiB", "256 MiB", "512 MiB", "1 GiB", "2 GiB", "4 GiB"]);
        let one = Scale::of(Axis::Sizes, [1_073_741_824.0].into_iter());
        assert_eq!(one, Scale::Log { base: 2.0, from: 30, to: 31 });
        assert_eq!(label(Axis::Sizes, 500.0), "500 B");
    }

    #[test]
    fn short_axes_of_powers_are_marked_between_them() {
        let scale = Scale::of(Axis::Powers, [0.0, 0.2, 30.0].into_iter());
        assert_eq!(scale, Scale::Log { base: 10.0, from: -1, to: 2 });
        assert_eq!(
            scale.marks().iter().map(|mark| label(Axis::Powers, *mark)).collect::<Vec<_>>()[..4],
            ["0.1", "0.2", "0.5", "1"]
        );
        assert_eq!((scale.at(0.0), scale.at(1000.0)), (0.0, 1.0));
        let long = Scale::of(Axis::Powers, [1e-9, 1e9].into_iter());
        assert!(long.marks().len() <= 13);
    }
}
