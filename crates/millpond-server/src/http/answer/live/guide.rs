//! The programmes of a stream with a schedule, as XMLTV and as JSON. Asking for them starts nothing.

use super::super::{
    Context, Reply, ReplyInfo,
    reply::{Negotiation, SelectedRepresentation, escaped, etag},
    target::LiveTarget,
};
use crate::{
    http::{AnswerError, Kind},
    library::{GuideFormat, fingerprint},
    schedule::{Guide, Programme},
};
use bytes::Bytes;
use http::{HeaderValue, header};
use millpond_http::body::Body;
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};

/// Value of `Cache-Control`: what plays now changes.
const SOON_OLD: &str = "max-age=10";

/// Answers a request for the programmes of a stream.
///
/// # Errors
/// The stream has no schedule.
pub(super) fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    format: GuideFormat,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    // In metrics, a request for programmes is not one of a viewer.
    info.kind = Kind::Other;
    let schedule = context.front.schedules().of(&live.stream);
    let guide = schedule.ok_or_else(|| live.without("no programmes: the stream has no schedule"))?.guide();
    let (content_type, text) = match format {
        GuideFormat::Xmltv => ("application/xml", xmltv(&guide)),
        GuideFormat::Json => ("application/json", json(&guide).to_string() + "\n"),
    };
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(content_type),
        cache_control: HeaderValue::from_static(SOON_OLD),
        etag: etag(fingerprint(text.as_bytes())),
        modified: None,
        more: vec![(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))],
        negotiation: Negotiation::Fixed,
        body: Body::bytes(Bytes::from(text)),
    };
    Ok(selected.reply(context.request))
}

/// Writes programmes as XMLTV (xmltv.dtd of the XMLTV project).
fn xmltv(guide: &Guide) -> String {
    let channel = text(&guide.stream);
    // Writing to a string can't fail.
    let mut out = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE tv SYSTEM \"xmltv.dtd\">\n",
        "<tv generator-info-name=\"Millpond\">\n"
    )
    .to_owned();
    let title = text(&guide.title);
    let _ = writeln!(out, "<channel id=\"{channel}\"><display-name>{title}</display-name></channel>");
    for Programme { at, until, title, description, .. } in &guide.programmes {
        let _ = write!(out, "<programme start=\"{}\"", local(*at));
        if let Some(until) = until {
            let _ = write!(out, " stop=\"{}\"", local(*until));
        }
        let _ = write!(out, " channel=\"{channel}\"><title>{}</title>", text(title));
        if let Some(description) = description {
            let _ = write!(out, "<desc>{}</desc>", text(description));
        }
        out.push_str("</programme>\n");
    }
    out.push_str("</tv>\n");
    out
}

/// A text in XML, without the characters that XML forbids (XML 1.0 section 2.2). Titles may be those of files.
fn text(text: &str) -> String {
    let is_forbidden = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    escaped(&text.replace(is_forbidden, ""))
}

/// A time of XMLTV: `20261122T100000` without its letter, and the offset from UTC.
fn local(wall: Duration) -> String {
    let mut basic = String::new();
    millpond_utc::push_basic(&mut basic, wall);
    let digits: String = basic.chars().filter(char::is_ascii_digit).take(14).collect();
    digits + " +0000"
}

fn json(guide: &Guide) -> Value {
    json!({
        "stream": guide.stream,
        "title": guide.title,
        "now": guide.now().map(programme),
        "next": guide.next().map(programme),
        "programmes": guide.programmes.iter().map(programme).collect::<Vec<_>>(),
    })
}

fn programme(programme: &Programme) -> Value {
    let time = |wall: Duration| {
        let mut text = String::new();
        millpond_utc::push(&mut text, wall);
        text
    };
    let Programme { at, until, title, description, is_live } = programme;
    let (start, stop) = (time(*at), until.map(time));
    json!({ "start": start, "stop": stop, "title": title, "description": description, "live": is_live })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_texts_are_those_of_xmltv() {
        assert_eq!(local(Duration::from_millis(1_795_341_600_999)), "20261122100000 +0000");
        assert_eq!(text("Tom & \u{1}\u{ffff}<Jerry>\n"), "Tom &amp; &lt;Jerry&gt;\n");
    }
}
