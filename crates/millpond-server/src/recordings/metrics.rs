//! Metrics of recorded files.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The metrics of recorded files.
#[derive(Clone, Debug)]
pub(crate) struct RecordingMetrics {
    files: Gauge,
    bytes: Gauge,
    completed: Counter,
    deleted: Family<ReasonLabels, Counter>,
    uploads: Counter,
    uploaded_bytes: Counter,
    failed_uploads: Counter,
}

impl RecordingMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let (files, bytes, completed) = (Gauge::default(), Gauge::default(), Counter::default());
        let (uploads, uploaded_bytes, failed_uploads) = (Counter::default(), Counter::default(), Counter::default());
        let deleted = Family::<ReasonLabels, Counter>::default();
        registry.register("recorded_files", "Complete files of continuous recordings in record-folder", files.clone());
        registry.register("recorded_file_bytes", "Bytes of those files", bytes.clone());
        registry.register("recorded_files_completed", "Files that continuous recordings completed", completed.clone());
        registry.register(
            "recorded_files_deleted",
            "Recorded files deleted because of their age, the size of all, or a full disk; files that wait for record-to are lost",
            deleted.clone(),
        );
        registry.register("recording_uploads", "Recorded files that were uploaded and verified", uploads.clone());
        registry.register("recording_uploaded_bytes", "Bytes of those files", uploaded_bytes.clone());
        registry.register(
            "recording_uploads_failed",
            "Attempts to upload a recorded file that failed",
            failed_uploads.clone(),
        );
        for reason in [super::retention::Reason::Age, super::retention::Reason::Bytes, super::retention::Reason::Free] {
            drop(deleted.get_or_create(&ReasonLabels { reason: reason.name() }));
        }
        Self { files, bytes, completed, deleted, uploads, uploaded_bytes, failed_uploads }
    }

    /// Tells what the folder has.
    pub(super) fn has(&self, files: usize, bytes: u64) {
        self.files.set(files as i64);
        self.bytes.set(bytes.cast_signed());
    }

    pub(super) fn completed(&self) {
        self.completed.inc();
    }

    pub(super) fn deleted(&self, reason: &'static str) {
        self.deleted.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub(super) fn uploaded(&self, bytes: u64) {
        self.uploads.inc();
        self.uploaded_bytes.inc_by(bytes);
    }

    pub(super) fn upload_failed(&self) {
        self.failed_uploads.inc();
    }
}
