//! Pages of lists.

use super::bad;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Most items of a page, unless the client says otherwise.
const LIMIT: usize = 100;
/// Most items of a page.
pub(super) const MOST: usize = 1000;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Page<T> {
    /// The items, by their keys.
    pub(super) items: Vec<T>,
    /// Items that fit the filters, on all pages.
    pub(super) total: usize,
    /// `cursor` of the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// A list that is shown whole.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Items<T> {
    /// The items.
    pub(super) items: Vec<T>,
}

/// The page of a request.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(super) limit: Option<usize>,
    /// `next-cursor` of the page before.
    pub(super) cursor: Option<String>,
    /// Part of the item's text.
    pub(super) q: Option<String>,
}

/// The number of items that a client asks for.
///
/// # Errors
/// 400: the value is out of bounds.
pub(super) fn limit(given: Option<usize>) -> Result<usize, Problem> {
    match given.unwrap_or(LIMIT) {
        limit if (1..=MOST).contains(&limit) => Ok(limit),
        _ => Err(bad("limit: 1 to 1000")),
    }
}

/// Cuts the page out of all items behind the cursor.
///
/// # Errors
/// 400: the limit is out of bounds.
pub(super) fn page<T>(
    mut items: Vec<T>,
    key: impl Fn(&T) -> String,
    (given, cursor): (Option<usize>, Option<&str>),
) -> Result<Page<T>, Problem> {
    let (limit, total) = (limit(given)?, items.len());
    items.sort_by_cached_key(&key);
    let first = cursor.map_or(0, |cursor| items.partition_point(|item| key(item).as_str() <= cursor));
    let is_last = total - first <= limit;
    let items: Vec<T> = items.into_iter().skip(first).take(limit).collect();
    let next_cursor = items.last().filter(|_| !is_last).map(key);
    Ok(Page { items, total, next_cursor })
}

/// Whether any of some texts contains `q`, upper and lower case alike.
pub(super) fn fits<'a>(q: Option<&str>, texts: impl IntoIterator<Item = &'a str>) -> bool {
    let Some(q) = q.filter(|q| !q.is_empty()) else { return true };
    let q = q.to_lowercase();
    texts.into_iter().any(|text| text.to_lowercase().contains(&q))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(numbers: impl Iterator<Item = usize>) -> Vec<String> {
        numbers.map(|n| format!("{n:05}")).collect()
    }

    #[test]
    fn pages_have_every_item_once_while_others_come_and_go() {
        let (mut cursor, mut seen) = (None::<String>, Vec::new());
        for round in 0.. {
            // Items of even numbers come and go.
            let all = items((0..5000).filter(|n| n % 2 == 1 || round % 2 == 0));
            let page = page(all, String::clone, (Some(999), cursor.as_deref())).unwrap();
            assert!(page.items.len() <= 999);
            seen.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
        assert_eq!(seen.iter().filter(|n| n.parse::<usize>().unwrap() % 2 == 1).count(), 2500);
    }

    #[test]
    fn limits_are_bounded() {
        let cut = |limit| page(items(0..5), String::clone, (limit, None)).map(|page| (page.items.len(), page.total));
        assert_eq!(cut(None).unwrap(), (5, 5));
        assert_eq!(cut(Some(1)).unwrap(), (1, 5));
        assert_eq!(cut(Some(1000)).unwrap(), (5, 5));
        assert!(cut(Some(0)).is_err() && cut(Some(1001)).is_err());
        let behind = page(items(0..5), String::clone, (None, Some("zzz"))).unwrap();
        assert_eq!((behind.items.len(), behind.total, behind.next_cursor), (0, 5, None));
    }

    #[test]
    fn texts_are_found_whatever_their_case() {
        assert!(fits(None, []) && fits(Some(""), []) && fits(Some("VLC"), ["a", "LibVLC/3"]) && fits(Some("é"), ["É"]));
        assert!(!fits(Some("vlc"), ["a", "b"]));
    }
}
