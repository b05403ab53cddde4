//! Doubts about failovers: streams that nobody can publish, and inputs that there can't be.

use super::PlaceSpec;
use crate::{
    config::Config,
    failover::FailoverLine,
    library::{Places, live_name},
};

/// Returns why a failover will not work, or not with all its inputs. Without places the built-in sample is served.
pub(super) fn doubts(line: &FailoverLine, config: &Config) -> Vec<String> {
    let names = Places::new(config.places.iter().map(|place| place.spec.name.as_str().into()));
    let spec = |path: &str| names.find(path).map(|found| &config.places[found.index].spec);
    let FailoverLine { to, inputs } = line;
    let mut doubts = super::output_doubts("failover", to, config);
    let is_channel = |path: &String| config.rtsp.channels.iter().any(|channel| channel.streams().contains(path));
    for (place, input) in inputs.iter().enumerate() {
        if is_channel(input) {
            continue;
        }
        if spec(input).is_some_and(PlaceSpec::is_live) {
            let is_bad = names.find(input).is_some_and(|found| live_name(found.inside).is_err());
            doubts.extend(is_bad.then(|| format!("failover: {to}: no stream can have the name of the input {input}")));
            continue;
        }
        if spec(input).is_none() {
            doubts.push(format!("failover: {to}: no place has the input {input}"));
        } else if place + 1 < inputs.len() {
            let unused = inputs[place + 1..].join(" ");
            doubts.push(format!("failover: {to}: {input} is an asset, which is always there: never used are {unused}"));
        }
    }
    doubts
}
