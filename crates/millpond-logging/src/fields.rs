//! Fields of log lines in the text format.

use crate::escape::Escaping;
use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::{FormatFields, format::Writer};

/// Writes the message, then `name=value` for each field, with all control characters escaped. Text from a client or an
/// origin can neither begin a line nor control a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = Visitor { writer, first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Visitor<'w> {
    writer: Writer<'w>,
    first: bool,
    result: fmt::Result,
}

impl Visit for Visitor<'_> {
    /// Values of every kind arrive here: the other methods call this one.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Lines of the `log` crate repeat their target and location as fields.
        if self.result.is_err() || field.name().starts_with("log.") {
            return;
        }
        let space = if std::mem::take(&mut self.first) { "" } else { " " };
        let mut writer = Escaping::line(&mut self.writer);
        self.result = match field.name() {
            "message" => write!(writer, "{space}{value:?}"),
            name => write!(writer, "{space}{name}={value:?}"),
        };
    }
}
