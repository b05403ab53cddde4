//! Tells which of several filters, that were joined, states the values that exclude tracks.

use super::{TrackFilter, parameter::Parameter};
use crate::error::exclusions::{Exclusion, Exclusions, FilterSource};

impl Exclusions {
    /// Returns the exclusions of filters that were joined by [`TrackFilter::and`], each with the sources of its value. Of a list that no
    /// source states by itself, all sources' lists are told.
    #[must_use]
    pub fn of_sources(&self, filters: &[(FilterSource, &TrackFilter)]) -> Self {
        Self(self.0.iter().map(|exclusion| of_sources(exclusion, filters)).collect())
    }
}

fn of_sources(exclusion: &Exclusion, filters: &[(FilterSource, &TrackFilter)]) -> Exclusion {
    let parameter = Parameter::named(exclusion.parameter);
    let stated = || filters.iter().filter_map(|(source, filter)| Some((*source, filter.value(parameter?)?)));
    let is_joined = |value: &String| exclusion.values.iter().any(|(joined, _)| joined == value);
    let is_stated = stated().any(|(_, value)| is_joined(&value));
    let mut values: Vec<(String, Vec<FilterSource>)> = Vec::new();
    for (source, value) in stated().filter(|(_, value)| is_joined(value) || !is_stated) {
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, sources)) => sources.push(source),
            None => values.push((value, vec![source])),
        }
    }
    Exclusion { values, ..exclusion.clone() }
}
