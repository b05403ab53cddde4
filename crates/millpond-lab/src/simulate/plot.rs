//! Line plots as SVG, plain enough for a report.

use std::fmt::Write as _;

/// A plot: lines over a common axis.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// What the horizontal axis is, with its unit.
    pub x: String,
    /// What the vertical axis is, with its unit.
    pub y: String,
    /// Each line with its name and its points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 780.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 240.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 58.0;
/// Colours that colour-blind readers tell apart (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let across = Scale::even(points().map(|point| point.0));
        let up = Scale::of(points().map(|point| point.1));
        let at_x = |x: f64| LEFT + across.at(x) * (WIDTH - LEFT - RIGHT);
        let at_y = |y: f64| HEIGHT - BOTTOM - up.at(y) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
            escape(&self.title)
        );
        let (x0, x1, y0, y1) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP);
        for value in up.marks() {
            let y = at_y(value);
            let _ = writeln!(
                svg,
                "<path d=\"M{x0} {y:.1}H{x1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                x0 - 8.0,
                y + 4.0,
                number(value)
            );
        }
        for value in across.marks() {
            let x = at_x(value);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {y0}v5\" stroke=\"#333\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                y0 + 20.0,
                number(value)
            );
        }
        let _ = writeln!(svg, "<path d=\"M{x0} {y1}V{y0}H{x1}\" fill=\"none\" stroke=\"#333\"/>");
        let middle = f64::midpoint(y0, y1);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(x0, x1),
            HEIGHT - 16.0,
            escape(&self.x)
        );
        let _ = writeln!(
            svg,
            "<text x=\"18\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle:.1})\">{}</text>",
            escape(&self.y)
        );
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let dashes = if index < COLOURS.len() { "" } else { " stroke-dasharray=\"5 4\"" };
            let mut path = String::new();
            for (x, y) in points {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", at_x(*x), at_y(*y));
                let _ =
                    writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", at_x(*x), at_y(*y));
            }
            let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>");
            let y = TOP + 8.0 + 20.0 * index as f64;
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {y:.1}h22\" stroke=\"{colour}\" stroke-width=\"3\"{dashes}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x1 + 14.0,
                x1 + 42.0,
                y + 4.0,
                escape(name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Where values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    /// From 0 to `step` times `steps`.
    Even {
        /// Between two marks.
        step: f64,
        /// How many.
        steps: u32,
    },
    /// From one power of ten to another: what is small is seen beside what is large.
    Decades {
        /// The lower exponent.
        from: i32,
        /// The higher.
        to: i32,
    },
}

/// From this ratio of the largest value to the smallest on, an even scale would show next to nothing of the latter.
const WIDE: f64 = 100.0;

impl Scale {
    fn even(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0_f64, f64::max);
        let step = step(most);
        Self::Even { step, steps: (most / step).ceil().max(1.0) as u32 }
    }

    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (least, most) = (values.clone().fold(f64::INFINITY, f64::min), values.clone().fold(0.0_f64, f64::max));
        if least > 0.0 && most > WIDE * least {
            return Self::Decades { from: least.log10().floor() as i32, to: most.log10().ceil() as i32 };
        }
        Self::even(values)
    }

    /// From 0 at its beginning to 1 at its end.
    fn at(self, value: f64) -> f64 {
        match self {
            Self::Even { step, steps } => value / (step * f64::from(steps)),
            Self::Decades { from, to } => (value.log10() - f64::from(from)) / f64::from((to - from).max(1)),
        }
    }

    fn marks(self) -> Vec<f64> {
        match self {
            Self::Even { step, steps } => (0..=steps).map(|mark| step * f64::from(mark)).collect(),
            Self::Decades { from, to } => (from..=to).map(|exponent| 10_f64.powi(exponent)).collect(),
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

fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    rounded.to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_apart_lies_on_powers_of_ten() {
        let scale = |values: &[f64]| Scale::of(values.iter().copied());
        let wide = scale(&[1463.0, 6.0, 0.92]);
        assert_eq!(wide, Scale::Decades { from: -1, to: 4 });
        assert_eq!((wide.at(0.1), wide.at(1e4), wide.marks().len()), (0.0, 1.0, 6));
        assert_eq!(scale(&[1463.0, 6.0, 0.0]), Scale::Even { step: 500.0, steps: 3 }, "there is no power for 0");
        assert_eq!(scale(&[6.0, 0.92]).at(6.0), 1.0);
        assert_eq!(scale(&[]).marks(), [0.0, 1.0]);
    }

    #[test]
    fn axes_have_round_marks_and_text_is_escaped() {
        assert_eq!((step(60.0), step(61.0), step(7.0), step(0.0)), (10.0, 20.0, 2.0, 1.0));
        let plot = Plot {
            title: "a < b".into(),
            lines: vec![("x & y".into(), vec![(0.0, 0.0), (1.0, 2.0)])],
            ..Plot::default()
        };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y") && svg.matches("<circle").count() == 2);
    }
}
