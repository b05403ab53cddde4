//! The name that a misspelt one stands for.

/// The known name that looks most like `name`, where one does.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let name = name.replace('_', "-").to_ascii_lowercase();
    // A third of the letters may differ, two at least: "wrokers", "segmentduration", "tls-certificate".
    let allowed = (name.chars().count() / 3).max(2);
    known
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Edits between two names; a name that begins with the other counts as one edit away.
fn distance(name: &str, candidate: &str) -> usize {
    if name.len() > 2 && candidate.len() > 2 && (name.starts_with(candidate) || candidate.starts_with(name)) {
        return 1;
    }
    strsim::damerau_levenshtein(name, candidate)
}
