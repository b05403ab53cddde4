//! Changes the rate of samples to that of Opus.
//!
//! A polyphase filter: for each place of an output between two inputs there is a row of weights, those of a sinc under a Kaiser window.

use std::f64::consts::PI;

/// Samples a second of what comes out.
pub(crate) const RATE: u32 = 48_000;
/// Inputs on each side of an output that it is made of, where the rate does not fall.
const REACH: usize = 16;
/// Most rows of weights: 11,025 samples a second need as many.
const MOST_ROWS: u32 = 640;
/// Highest rate that is taken. It bounds the length of a row.
const MOST_RATE: u32 = 192_000;
/// Shape of the window: the stop band is 80 dB below.
const BETA: f64 = 8.0;
/// Part of the lower of both bands that is kept, at half its height.
const CUTOFF: f64 = 0.93;

/// Changes the rate of samples with one or two channels.
pub(crate) struct Resampler {
    channels: usize,
    /// Outputs of as many inputs: the rates without their common divisor.
    up: u32,
    down: u32,
    reach: usize,
    /// `up` rows of `2 * reach` weights.
    weights: Vec<f32>,
    /// Inputs that outputs still need, whose channels take turns. It begins with `reach - 1` frames of silence.
    inputs: Vec<f32>,
    /// Row of the next output, whose first input is the first one kept.
    row: u32,
}

impl Resampler {
    /// Makes that of a rate; `None` for rates of 0 and beyond 192 kHz, and for those that have nearly no common divisor with 48 kHz.
    pub(crate) fn new(rate: u32, channels: usize) -> Option<Self> {
        if rate == 0 || rate > MOST_RATE {
            return None;
        }
        let divisor = common_divisor(rate, RATE);
        let (up, down) = (RATE / divisor, rate / divisor);
        if up > MOST_ROWS {
            return None;
        }
        // A lower rate has a narrower band, and so a longer filter.
        let band = (f64::from(RATE) / f64::from(rate)).min(1.0);
        let reach = (REACH as f64 / band).ceil() as usize;
        let weights =
            if up == down { Vec::new() } else { (0..up).flat_map(|row| weights(row, up, reach, band)).collect() };
        let mut this = Self { channels, up, down, reach, weights, inputs: Vec::new(), row: 0 };
        this.reset();
        Some(this)
    }

    /// Begins anew: the next input is the first one, and the next output has its time.
    pub(crate) fn reset(&mut self) {
        self.inputs.clear();
        self.inputs.resize((self.reach - 1) * self.channels, 0.0);
        self.row = 0;
    }

    /// Appends the outputs for which there are inputs now.
    pub(crate) fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        if self.up == self.down {
            return out.extend_from_slice(samples);
        }
        self.inputs.extend_from_slice(samples);
        let (width, frames) = (2 * self.reach, self.inputs.len() / self.channels);
        let mut first = 0;
        while first + width <= frames {
            let row = &self.weights[self.row as usize * width..][..width];
            let inputs = &self.inputs[first * self.channels..][..width * self.channels];
            for channel in 0..self.channels {
                let inputs = inputs.iter().skip(channel).step_by(self.channels);
                out.push(inputs.zip(row).map(|(input, weight)| input * weight).sum());
            }
            let next = self.row + self.down;
            first += (next / self.up) as usize;
            self.row = next % self.up;
        }
        self.inputs.drain(..first.min(frames) * self.channels);
    }
}

/// The weights of inputs for an output that lies `row / up` behind the input `reach - 1`.
fn weights(row: u32, up: u32, reach: usize, band: f64) -> Vec<f32> {
    let place = reach as f64 - 1.0 + f64::from(row) / f64::from(up);
    let raw: Vec<f64> = (0..2 * reach)
        .map(|input| {
            let distance = input as f64 - place;
            sinc(distance * band * CUTOFF) * kaiser(distance / reach as f64)
        })
        .collect();
    // A constant stays as it is.
    let sum: f64 = raw.iter().sum();
    raw.into_iter().map(|weight| (weight / sum) as f32).collect()
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// The Kaiser window at a place from -1 to 1; 0 beyond.
fn kaiser(place: f64) -> f64 {
    let inside = 1.0 - place * place;
    if inside <= 0.0 { 0.0 } else { bessel(BETA * inside.sqrt()) / bessel(BETA) }
}

/// The modified Bessel function of the first kind and order 0, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..40 {
        let half = x / (2.0 * f64::from(n));
        term *= half * half;
        sum += term;
    }
    sum
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone of two channels, the second one at half the height.
    fn tone(rate: u32, hertz: f64, frames: usize) -> Vec<f32> {
        let at = |frame: usize| (2.0 * PI * hertz * frame as f64 / f64::from(rate)).sin();
        (0..frames).flat_map(|frame| [at(frame) as f32, at(frame) as f32 / 2.0]).collect()
    }

    #[test]
    fn tones_keep_their_heights_and_times() {
        for rate in [8000, 11_025, 16_000, 22_050, 32_000, 44_100, 88_200, 96_000] {
            let mut resampler = Resampler::new(rate, 2).unwrap();
            let mut out = Vec::new();
            // The parts that come differ in length.
            for (number, part) in tone(rate, 1000.0, rate as usize / 4).chunks(2 * 441).enumerate() {
                let (one, two) = part.split_at(if number % 2 == 0 { 0 } else { part.len() / 4 * 2 });
                resampler.push(one, &mut out);
                resampler.push(two, &mut out);
            }
            let expected = tone(RATE, 1000.0, out.len() / 2);
            let missing = RATE as usize / 4 - out.len() / 2;
            assert!(missing <= 2 * REACH * 6 + 6, "{rate}: {missing}");
            let edge = 2 * 2 * REACH * 6;
            let worst = out[edge..].iter().zip(&expected[edge..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 2e-3, "{rate}: {worst}");
        }
    }

    #[test]
    fn tones_beyond_the_band_are_not_folded_back() {
        let mut resampler = Resampler::new(96_000, 2).unwrap();
        let mut out = Vec::new();
        resampler.push(&tone(96_000, 30_000.0, 9600), &mut out);
        let loudest = out[400..].iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
        assert!(loudest < 1e-3, "{loudest}");
    }

    #[test]
    fn odd_rates_are_refused() {
        for rate in [0, 44_099, 47_999, 192_001, u32::MAX] {
            assert!(Resampler::new(rate, 2).is_none(), "{rate}");
        }
        assert!([7350, 12_000, 24_000, 48_000, 64_000, 192_000].iter().all(|rate| Resampler::new(*rate, 1).is_some()));
    }
}
