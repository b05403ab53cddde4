//! Line plots as SVG, plain enough for a report.
//!
//! Lines differ in colour, marker and dashes, each with a period of its own, so that they can be told apart in black and
//! white too.

mod scale;

pub use scale::Axis;

use quick_xml::escape::partial_escape as escape;
use scale::{Scale, label};
use std::fmt::Write as _;

/// A plot: lines over a common axis.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Text above the plot.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x: String,
    /// Kind of the horizontal axis.
    pub across: Axis,
    /// Name of the vertical axis, with its unit.
    pub y: String,
    /// Each line with its name and its points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 74.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 58.0;
/// From the plot to its legend, the length of a line in the legend, and the height of its rows.
const GAP: f64 = 16.0;
const SWATCH: f64 = 40.0;
const ROW: f64 = 20.0;
/// Mean width of a character of the legend.
const CHARACTER: f64 = 7.2;
/// Widest legend: longer names leave the picture.
const LEGEND: f64 = 420.0;
/// Most markers of a line.
const MARKERS: usize = 12;
/// Colours that colour-blind readers tell apart (Okabe and Ito), without the yellow that white hides.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"];
const DASHES: [&str; 4] = ["", "8 3", "2 3", "9 3 2 3"];
/// Markers round 0, as paths.
const SHAPES: [&str; 5] = [
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0",
    "M-3-3h6v6h-6z",
    "M0-4L4 3H-4z",
    "M0-4.5L4 0L0 4.5L-4 0z",
    "M0 4L4-3H-4z",
];

/// Colour, dashes and marker of a line.
struct Look {
    colour: &'static str,
    /// An attribute, or nothing.
    dashes: String,
    /// A path and its attributes.
    marker: String,
}

impl Look {
    /// The look of one of several lines. Periods of 7, 4 and 5 don't meet before the 140th.
    fn of(number: usize) -> Self {
        let colour = COLOURS[number % COLOURS.len()];
        let dashes = match DASHES[number % DASHES.len()] {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        // Every other marker is hollow.
        let fill = if number.is_multiple_of(2) { colour } else { "#fff" };
        let shape = SHAPES[number % SHAPES.len()];
        let marker = format!("d=\"{shape}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.4\"");
        Self { colour, dashes, marker }
    }
}

/// The picture's area for lines, and what lies where in it.
struct Area {
    across: Scale,
    up: Scale,
    bottom: f64,
}

impl Area {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.across.at(value) * (WIDTH - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.up.at(value) * (self.bottom - TOP)
    }
}

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let longest = self.lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) as f64;
        let width = WIDTH + GAP + SWATCH + 12.0 + (longest * CHARACTER).min(LEGEND);
        // A long legend makes the plot higher.
        let height = HEIGHT.max(TOP + BOTTOM + ROW * self.lines.len() as f64);
        let area = Area {
            across: Scale::of(self.across, points().map(|point| point.0)),
            up: Scale::of(Axis::Numbers, points().map(|point| point.1)),
            bottom: height - BOTTOM,
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
            escape(&self.title)
        );
        self.axes(&area, &mut svg);
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let look = Look::of(number);
            line(points, &area, &look, &mut svg);
            legend(name, number, &look, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, area: &Area, svg: &mut String) {
        let bottom = area.bottom;
        for value in area.up.marks() {
            let y = area.y(value);
            let text = label(Axis::Numbers, value);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{WIDTH}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        let marks = area.across.marks();
        // Names of sizes are long: where marks are many, every other one has none.
        let every = if self.across == Axis::Sizes { marks.len().div_ceil(8) } else { marks.len().div_ceil(12) };
        for (number, value) in marks.into_iter().enumerate() {
            let x = area.x(value);
            let text = if number % every.max(1) == 0 { label(self.across, value) } else { String::new() };
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {bottom}v5\" stroke=\"#333\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 20.0
            );
        }
        let _ = writeln!(svg, "<path d=\"M{LEFT} {TOP}V{bottom}H{WIDTH}\" fill=\"none\" stroke=\"#333\"/>");
        let middle = f64::midpoint(bottom, TOP);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH),
            bottom + 42.0,
            escape(&self.x)
        );
        let _ = writeln!(
            svg,
            "<text x=\"18\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle:.1})\">{}</text>",
            escape(&self.y)
        );
    }
}

fn line(points: &[(f64, f64)], area: &Area, look: &Look, svg: &mut String) {
    let Look { colour, dashes, marker } = look;
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", area.x(*x), area.y(*y));
    }
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>");
    for (x, y) in points.iter().step_by(points.len().div_ceil(MARKERS).max(1)) {
        let _ = writeln!(svg, "<path transform=\"translate({:.1} {:.1})\" {marker}/>", area.x(*x), area.y(*y));
    }
}

fn legend(name: &str, number: usize, look: &Look, svg: &mut String) {
    let Look { colour, dashes, marker } = look;
    let (x, y) = (WIDTH + GAP, TOP + 8.0 + ROW * number as f64);
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} {y:.1}h{SWATCH}\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\
         <path transform=\"translate({:.1} {y:.1})\" {marker}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + SWATCH / 2.0,
        x + SWATCH + 8.0,
        y + 4.0,
        escape(name)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn text_is_escaped_and_every_point_is_marked() {
        let plot = Plot {
            title: "a < b".into(),
            lines: vec![("x & y".into(), vec![(0.0, 0.0), (1.0, 2.0)])],
            ..Plot::default()
        };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y"), "{svg}");
        assert_eq!(svg.matches("translate(").count(), 3, "two points and the legend");
    }

    #[test]
    fn forty_lines_look_different_and_have_room_in_the_legend() {
        let looks: HashSet<_> = (0..40).map(|n| (Look::of(n).colour, Look::of(n).dashes, Look::of(n).marker)).collect();
        assert_eq!(looks.len(), 40);
        let lines = (0..40).map(|n| (format!("line {n}"), vec![(1e6, 1.0), (1e9, 2.0)])).collect();
        let svg = Plot { across: Axis::Sizes, lines, ..Plot::default() }.svg();
        let height: f64 =
            svg.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split([' ', '"']).nth(1)).unwrap().parse().unwrap();
        assert!(height >= TOP + 40.0 * ROW, "{height}");
    }
}
