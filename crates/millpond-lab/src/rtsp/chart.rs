//! A report as a picture.

use super::report::Report;
use crate::simulate::{Axis, Plot};

impl Report {
    /// Returns how startup, the time between frames and lateness are distributed, up to 99 of 100.
    #[must_use]
    pub fn plot(&self) -> Plot {
        let lines = [
            ("startup", &self.distributions.startup),
            ("between frames", &self.distributions.between),
            ("behind schedule", &self.distributions.behind),
        ];
        let clients = match (self.clients, self.rate) {
            (Some(clients), _) => format!("{clients} clients"),
            (None, rate) => format!("{} clients a second", rate.unwrap_or_default()),
        };
        Plot {
            title: format!("{clients} over {}", self.transport),
            x: "ms".to_owned(),
            across: Axis::Powers,
            y: "of 100 not longer".to_owned(),
            lines: lines
                .into_iter()
                .filter(|(_, points)| !points.is_empty())
                .map(|(name, points)| (name.to_owned(), points.clone()))
                .collect(),
        }
    }
}
