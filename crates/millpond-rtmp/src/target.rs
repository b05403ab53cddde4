//! The stream that a client names.

/// Prefixes that ffmpeg and Flash Player put before the names of files.
const PREFIXES: [&str; 2] = ["mp4:", "flv:"];

/// The stream that a client names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTarget {
    /// Application and stream, as the client wrote them, without slashes at both ends.
    pub path: String,
    /// Queries of the application's and the stream's name: the text behind `?`. It may contain a password.
    pub query: String,
}

impl StreamTarget {
    /// Joins the names of application and stream.
    pub(crate) fn of(application: &str, stream: &str) -> Self {
        let mut target = Self::default();
        let stream = PREFIXES.iter().find_map(|prefix| stream.strip_prefix(prefix)).unwrap_or(stream);
        for name in [application, stream] {
            let (path, query) = name.split_once('?').unwrap_or((name, ""));
            for (all, part, between) in
                [(&mut target.path, path.trim_matches('/'), '/'), (&mut target.query, query, '&')]
            {
                if !part.is_empty() && !all.is_empty() {
                    all.push(between);
                }
                all.push_str(part);
            }
        }
        target
    }
}
