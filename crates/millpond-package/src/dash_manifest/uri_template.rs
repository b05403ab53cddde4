//! Templates of the URIs of segments (ISO/IEC 23009-1 5.3.9.4.4).

use super::MOST_TEXT;
use std::fmt::Write as _;

/// Greatest width of a number.
const MOST_WIDTH: usize = 32;

/// Values of the identifiers of a `SegmentTemplate`, such as `$Number$` (ISO/IEC 23009-1 5.3.9.4.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Identifiers<'a> {
    pub(super) representation: &'a str,
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    pub(super) time: u64,
}

impl Identifiers<'_> {
    /// Returns the URI of a template.
    ///
    /// # Errors
    /// It has an unknown identifier, or is too long. In words.
    pub(super) fn uri(&self, template: &str) -> Result<String, String> {
        let (mut out, mut rest) = (String::new(), template);
        while let Some((text, behind)) = rest.split_once('$') {
            out.push_str(text);
            let (identifier, next) = behind.split_once('$').ok_or("a $ without another one behind it")?;
            rest = next;
            self.push(identifier, &mut out)?;
            if out.len() > MOST_TEXT {
                break;
            }
        }
        out.push_str(rest);
        if out.len() > MOST_TEXT { Err(format!("a URI of more than {MOST_TEXT} bytes")) } else { Ok(out) }
    }

    fn push(&self, identifier: &str, out: &mut String) -> Result<(), String> {
        let unknown = || format!("${}$", super::shown(identifier));
        let (name, format) = identifier.split_at(identifier.find('%').unwrap_or(identifier.len()));
        let number = match name {
            "" if format.is_empty() => {
                out.push('$');
                return Ok(());
            }
            "RepresentationID" if format.is_empty() => {
                out.push_str(self.representation);
                return Ok(());
            }
            "Number" => self.number,
            "Time" => self.time,
            "Bandwidth" => self.bandwidth,
            _ => return Err(unknown()),
        };
        let width = match format.strip_prefix("%0").and_then(|format| format.strip_suffix('d')) {
            Some(width) => width.parse().ok().filter(|width| *width <= MOST_WIDTH).ok_or_else(unknown)?,
            None if format.is_empty() => 1,
            None => return Err(unknown()),
        };
        // Writing to a text does not fail.
        let _ = write!(out, "{number:0width$}");
        Ok(())
    }
}

/// Whether the URIs of a template differ from segment to segment.
pub(super) fn differs(template: &str) -> bool {
    let mut identifiers = template.split('$').skip(1).step_by(2);
    identifiers.any(|identifier| identifier.starts_with("Number") || identifier.starts_with("Time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced() {
        let identifiers = Identifiers { representation: "v1", bandwidth: 900, number: 7, time: 123_456 };
        for (template, expected) in [
            ("$RepresentationID$/$Number%05d$.m4s", "v1/00007.m4s"),
            ("a$$b-$Bandwidth%02d$-$Time$?x=y", "a$b-900-123456?x=y"),
            ("plain", "plain"),
        ] {
            assert_eq!(identifiers.uri(template).unwrap(), expected);
        }
        for template in
            ["$Number", "$Number%5d$", "$Number%099d$", "$SubNumber$", "$Number%05x$", "$RepresentationID%02d$"]
        {
            assert!(identifiers.uri(template).is_err(), "{template}");
        }
        assert!(identifiers.uri(&"$RepresentationID$".repeat(3000)).is_err());
        assert!(differs("a$Number%05d$") && differs("$RepresentationID$-$Time$") && !differs("Number$$Time"));
    }
}
