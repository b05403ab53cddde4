//! Metrics of what players say of themselves (CMCD, CTA-5004). Session and content ids are no labels.

use millpond_http::request::cmcd::{Cmcd, CmcdError, ObjectType};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of throughput in bytes a second: 0.2 to 200 Mbit/s.
const RATES: [f64; 10] = [25e3, 62.5e3, 125e3, 250e3, 625e3, 1.25e6, 2.5e6, 6.25e6, 12.5e6, 25e6];
/// Upper bounds of buffers, in seconds.
const BUFFERS: [f64; 9] = [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0];
/// Bytes a second of one kbit/s.
const KILOBIT: f64 = 125.0;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    object: &'static str,
}

/// Counts of one kind of object.
#[derive(Debug)]
struct PerObject {
    requests: Counter,
    starvations: Counter,
    startups: Counter,
}

/// Metrics of CMCD.
#[derive(Debug)]
pub(super) struct CmcdMetrics {
    /// In the order of [`ObjectType::ALL`], and one for requests that name no kind.
    objects: Vec<PerObject>,
    invalid: Counter,
    measured: Histogram,
    requested: Histogram,
    buffer: Histogram,
}

impl CmcdMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests = Family::<ObjectLabels, Counter>::default();
        let starvations = Family::<ObjectLabels, Counter>::default();
        let startups = Family::<ObjectLabels, Counter>::default();
        let labels = ObjectType::ALL.into_iter().map(ObjectType::label).chain(["unnamed"]);
        let objects = labels.map(|object| {
            let labels = ObjectLabels { object };
            PerObject {
                requests: requests.get_or_create_owned(&labels),
                starvations: starvations.get_or_create_owned(&labels),
                startups: startups.get_or_create_owned(&labels),
            }
        });
        let metrics = Self {
            objects: objects.collect(),
            invalid: Counter::default(),
            measured: Histogram::new(RATES),
            requested: Histogram::new(RATES),
            buffer: Histogram::new(BUFFERS),
        };
        registry.register("cmcd_requests", "Requests with CMCD, by the type of object that players name", requests);
        let help = "Requests whose player reports that its buffer ran empty since its last request";
        registry.register("cmcd_buffer_starvations", help, starvations);
        let help = "Requests whose player needs the object at once: at the start, after a seek, or after its buffer \
                    ran empty";
        registry.register("cmcd_startups", help, startups);
        registry.register("cmcd_invalid", "Requests with invalid CMCD", metrics.invalid.clone());
        let rate = || Unit::Other("bytes_per_second".to_owned());
        let help = "Throughput that players measured";
        registry.register_with_unit("cmcd_measured_throughput", help, rate(), metrics.measured.clone());
        let help = "Throughput that players request";
        registry.register_with_unit("cmcd_requested_throughput", help, rate(), metrics.requested.clone());
        registry.register_with_unit("cmcd_buffer", "Media in players' buffers", Unit::Seconds, metrics.buffer.clone());
        metrics
    }

    /// Counts the data of a request.
    pub(super) fn count(&self, data: &Result<Cmcd, CmcdError>) {
        let Ok(data) = data else {
            self.invalid.inc();
            return;
        };
        let index = data.object.map_or(ObjectType::ALL.len(), |object| object as usize);
        let object = &self.objects[index];
        object.requests.inc();
        object.starvations.inc_by(u64::from(data.starved));
        object.startups.inc_by(u64::from(data.startup));
        let observe = |histogram: &Histogram, value: Option<u64>, unit: f64| {
            if let Some(value) = value {
                histogram.observe(value as f64 * unit);
            }
        };
        observe(&self.measured, data.measured, KILOBIT);
        observe(&self.requested, data.requested, KILOBIT);
        observe(&self.buffer, data.buffer, 0.001);
    }
}
