//! Impairments as text.

use super::{Burst, Impairments, QueueLimit};
use std::{str::FromStr, time::Duration};
use thiserror::Error;

/// The greatest time in a text. Sums of a few of them stay far within a `Duration`.
const LONGEST: Duration = Duration::from_secs(3600);

/// Why a text is not a list of impairments.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// A part is not of the form `NAME=VALUE`.
    #[error("{0:?} is not NAME=VALUE")]
    Form(String),
    /// No impairment has this name.
    #[error(
        "no impairment is named {0:?}; known are delay, jitter, loss, burst, reorder, reorder-by, duplicate, rate, queue"
    )]
    Name(String),
    /// A value can't be read.
    #[error("{name}={value}: {expected} is expected")]
    Value {
        /// The impairment.
        name: String,
        /// The text after its name.
        value: String,
        /// The form that is expected.
        expected: &'static str,
    },
    /// The jitter exceeds the delay.
    #[error("the jitter exceeds the delay")]
    Jitter,
}

impl FromStr for Impairments {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut found = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| TextError::Form(part.to_owned()))?;
            set(&mut found, name.trim(), value.trim())?;
        }
        if found.jitter > found.delay { Err(TextError::Jitter) } else { Ok(found) }
    }
}

fn set(found: &mut Impairments, name: &str, value: &str) -> Result<(), TextError> {
    let wrong = |expected| TextError::Value { name: name.to_owned(), value: value.to_owned(), expected };
    let time = || time(value).ok_or_else(|| wrong("a time of at most an hour, such as 50ms,"));
    let share = || share(value).ok_or_else(|| wrong("a share, such as 1%,"));
    match name {
        "delay" => found.delay = time()?,
        "jitter" => found.jitter = time()?,
        "loss" => found.loss = share()?,
        "burst" => found.burst = Some(burst(value).ok_or_else(|| wrong("ENTER/LEAVE or ENTER/LEAVE/LOSS in percent"))?),
        "reorder" => found.reorder = share()?,
        "reorder-by" => found.reorder_by = time()?,
        "duplicate" => found.duplicate = share()?,
        "rate" => found.rate = Some(rate(value).ok_or_else(|| wrong("a rate, such as 4Mbit,"))?),
        "queue" => found.queue = queue(value).ok_or_else(|| wrong("a time or a size, such as 100ms or 64kB,"))?,
        _ => return Err(TextError::Name(name.to_owned())),
    }
    Ok(())
}

/// Splits a number from its unit.
fn number(text: &str) -> Option<(f64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value = text[..end].parse().ok()?;
    Some((value, text[end..].trim().to_ascii_lowercase()))
}

fn time(text: &str) -> Option<Duration> {
    let (value, unit) = number(text)?;
    let seconds = match unit.as_str() {
        "us" => value / 1e6,
        "ms" => value / 1e3,
        "s" => value,
        "" if value == 0.0 => 0.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= LONGEST)
}

fn share(text: &str) -> Option<f64> {
    let (value, unit) = number(text)?;
    let share = match unit.as_str() {
        "%" => value / 100.0,
        "" if value == 0.0 => 0.0,
        _ => return None,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn burst(text: &str) -> Option<Burst> {
    let mut shares = text.split('/').map(share);
    let (enter, leave) = (shares.next()??, shares.next()??);
    let loss = shares.next().unwrap_or(Some(1.0))?;
    shares.next().is_none().then_some(Burst { enter, leave, loss })
}

fn rate(text: &str) -> Option<u64> {
    let (value, unit) = number(text)?;
    let bits = match unit.as_str() {
        "bit" => value,
        "kbit" => value * 1e3,
        "mbit" => value * 1e6,
        "gbit" => value * 1e9,
        _ => return None,
    };
    (1.0..=1e12).contains(&bits).then_some(bits as u64)
}

fn queue(text: &str) -> Option<QueueLimit> {
    let (value, unit) = number(text)?;
    let bytes = match unit.as_str() {
        "b" => value,
        "kb" => value * 1e3,
        "mb" => value * 1e6,
        "kib" => value * 1024.0,
        "mib" => value * 1024.0 * 1024.0,
        _ => return time(text).map(QueueLimit::Time),
    };
    (bytes <= 1e9).then_some(QueueLimit::Bytes(bytes as u64))
}
