//! Lists of a filter, such as `avc,hvc1`.

use std::fmt;

/// Most items of a list.
const MOST: usize = 16;
/// The list without items.
pub(super) const NONE: &str = "none";

/// An item of a list, which matches tracks.
pub(super) trait Item: Clone + Ord + fmt::Display {
    /// Parses an item. The word `none` is no item.
    fn parse(text: &str) -> Option<Self>;

    /// Whether it matches all tracks that `other` matches.
    fn covers(&self, other: &Self) -> bool;

    /// Bytes of heap held.
    fn heap_bytes(&self) -> usize;
}

/// Items of which a track must match one. Without items, no track matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct List<T>(Vec<T>);

impl<T: Item> List<T> {
    /// Parses `none`, or items between commas.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case(NONE) {
            return Some(Self(Vec::new()));
        }
        let items = text.split(',').take(MOST + 1).map(|item| T::parse(item.trim()));
        let items: Vec<T> = items.collect::<Option<_>>()?;
        (items.len() <= MOST).then(|| Self::of(items))
    }

    /// Returns the items in order, without those that others cover.
    fn of(mut items: Vec<T>) -> Self {
        items.sort_unstable();
        items.dedup();
        let all = items.clone();
        items.retain(|item| !all.iter().any(|other| other != item && other.covers(item)));
        Self(items)
    }

    /// Returns the list of the tracks that match both lists. Without a list all tracks match.
    pub(super) fn both(one: Option<&Self>, other: Option<&Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other).cloned() };
        let pairs = one.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        let common = pairs.filter_map(|(a, b)| match (a.covers(b), b.covers(a)) {
            (true, _) => Some(b.clone()),
            (false, true) => Some(a.clone()),
            (false, false) => None,
        });
        Some(Self::of(common.collect()))
    }

    /// Whether an item matches.
    pub(super) fn any(&self, matches: impl Fn(&T) -> bool) -> bool {
        self.0.iter().any(matches)
    }

    /// Upper estimate of the bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>() + self.0.iter().map(T::heap_bytes).sum::<usize>()
    }
}

impl<T: Item> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = &self.0[..] else { return f.write_str(NONE) };
        write!(f, "{first}")?;
        rest.iter().try_for_each(|item| write!(f, ",{item}"))
    }
}
