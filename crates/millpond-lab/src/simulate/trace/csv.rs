//! Lines of `time,object,length[,from,to[,rate]]`: seconds, any text, bytes of the object (64 TiB at most), bytes read of it (all where
//! they are left out), bytes a second at which they are read (at once where it is left out). A first line that begins
//! with a letter is taken for a heading; empty lines and those that begin with `#` are passed over.

use super::{TraceError, beginning, length, name};
use crate::simulate::workload::{Visit, Workload};
use std::fmt::Write as _;

const EXPECTED: &str = "time,object,length[,from,to[,rate]]";

/// Reads a trace.
///
/// # Errors
///
/// The first line that is not of the form.
pub fn read(text: &str) -> Result<Workload, TraceError> {
    let mut visits = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let heading = number == 0 && line.starts_with(|c: char| c.is_ascii_alphabetic());
        if line.is_empty() || line.starts_with('#') || heading {
            continue;
        }
        let wrong =
            || TraceError { unit: "line", number: number as u64 + 1, expected: EXPECTED, found: beginning(line) };
        visits.push(visit(line).ok_or_else(wrong)?);
    }
    visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(Workload { name: "trace".to_owned(), visits })
}

fn visit(line: &str) -> Option<Visit> {
    let mut fields = line.split(',').map(str::trim);
    let at: f64 = fields.next()?.parse().ok().filter(|at: &f64| at.is_finite())?;
    let object = name(fields.next()?);
    let len = length(fields.next()?)?;
    let (from, to) = match fields.next() {
        None | Some("") => (0, len),
        Some(from) => (from.parse().ok()?, fields.next()?.parse().ok()?),
    };
    let rate = match fields.next() {
        None | Some("") => f64::INFINITY,
        Some(rate) => rate.parse().ok().filter(|rate| *rate > 0.0)?,
    };
    (from <= to && to <= len).then_some(Visit { at, object, len, from, to, rate })
}

/// Writes a trace that [`read`] reads: objects by their numbers.
pub fn write(workload: &Workload) -> String {
    let mut text = String::from("time,object,length,from,to,rate\n");
    for Visit { at, object, len, from, to, rate } in &workload.visits {
        let rate = if rate.is_finite() { rate.to_string() } else { String::new() };
        let _ = writeln!(text, "{at},{object},{len},{from},{to},{rate}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut trace = read("1,4,100,5,20,2.5\n2,7,10").unwrap();
        assert_eq!(trace.visits[0].object, 4);
        trace.visits[1].at = 2.125;
        assert_eq!(read(&write(&trace)).unwrap(), trace);
    }

    #[test]
    fn lines_are_read_and_wrong_ones_named() {
        let trace = read("time,object,length\n2,a,10\n\n# x\n1,b,100,5,20,2.5\n").unwrap();
        assert_eq!(trace.visits.len(), 2);
        let first = trace.visits[0];
        assert_eq!((first.at, first.len, first.from, first.to, first.rate), (1.0, 100, 5, 20, 2.5));
        assert_eq!((trace.visits[1].to, trace.visits[1].rate), (10, f64::INFINITY));
        for wrong in [
            "1,a,70368744177665",
            "x",
            "1,a",
            "1,a,-3",
            "1,a,10,5",
            "1,a,10,5,3",
            "1,a,10,0,11",
            "1,a,10,0,5,0",
            "nan,a,1",
            "1,a,1,0,1,x",
        ] {
            let error = read(&format!("1,ok,1\n{wrong}")).unwrap_err();
            assert_eq!(error.number, 2, "{wrong}");
        }
    }
}
