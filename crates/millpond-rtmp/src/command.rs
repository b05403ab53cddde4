//! Commands (RTMP 1.0, 7.2): a name, a transaction, and values.

use crate::{
    RtmpError,
    amf0::{Reader, Value},
    message::Message,
};

/// A command whose values are read in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    pub(crate) name: &'a str,
    pub(crate) transaction: f64,
    /// The values after the transaction.
    pub(crate) values: Reader<'a>,
}

impl<'a> Command<'a> {
    /// Reads a command.
    ///
    /// # Errors
    /// It has no name.
    pub(crate) fn read(message: &'a Message) -> Result<Self, RtmpError> {
        let mut values = Reader(message.command());
        let Some(name) = values.value().and_then(Value::text) else {
            return Err(RtmpError::Message { kind: message.kind, expected: "the name of a command" });
        };
        let transaction = values.value().and_then(Value::number).unwrap_or(0.0);
        Ok(Self { name, transaction, values })
    }

    /// Returns the text after a command object, such as the name of a stream.
    pub(crate) fn text(mut self) -> Option<&'a str> {
        self.values.value();
        self.values.value().and_then(Value::text)
    }
}
