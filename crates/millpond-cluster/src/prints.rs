//! Prints of the settings of nodes, by which nodes tell whether they serve the same.

use super::hash;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Most places that have prints of their own in a registration. The prints of more places are one.
const MOST_PLACES: usize = 64;
/// Most bytes of the names of these places. A registration has 8 KiB.
const MOST_BYTES: usize = 2 << 10;

/// The print of some settings: equal settings have equal prints.
///
/// It is no secret and hides none: a short text is found again by trying. Passwords and tokens are not to be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Print(u64);

/// The prints of a node: one of the settings that form the output of all its places, and one of each place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "WirePrints", into = "WirePrints")]
pub struct Prints {
    server: Print,
    places: PlacePrints,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PlacePrints {
    /// By name.
    Each(BTreeMap<String, Print>),
    /// One of all places, which are many.
    Whole(Print),
}

/// A text that is no print, or prints that are not those of places.
#[derive(Debug, thiserror::Error)]
#[error("expected prints of 16 hexadecimal digits, by names of places or one of all places")]
pub struct InvalidPrints;

#[derive(Serialize, Deserialize)]
struct WirePrints {
    server: Print,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<BTreeMap<String, Print>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<Print>,
}

impl Print {
    /// The print of texts in their order.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            // With the lengths no two lists of texts are the same bytes.
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        Self(hash::bytes(&bytes))
    }
}

impl Prints {
    /// The prints of the settings of a server and of its places by their names.
    pub fn new(server: Print, places: BTreeMap<String, Print>) -> Self {
        let is_long = places.len() > MOST_PLACES || places.keys().map(String::len).sum::<usize>() > MOST_BYTES;
        let places = if is_long { PlacePrints::Whole(whole(&places)) } else { PlacePrints::Each(places) };
        Self { server, places }
    }

    /// Whether a node with the prints `other` serves a place as one with these prints: also where both lack it.
    pub fn agrees(&self, other: &Self, place: &str) -> bool {
        let is_alike = match (&self.places, &other.places) {
            (PlacePrints::Each(own), PlacePrints::Each(others)) => own.get(place) == others.get(place),
            (own, others) => own == others,
        };
        self.server == other.server && is_alike
    }

    /// The print of the settings of the server.
    pub(crate) fn server(&self) -> Print {
        self.server
    }

    /// The prints of the places; `None` where they are one.
    pub(crate) fn each(&self) -> Option<&BTreeMap<String, Print>> {
        match &self.places {
            PlacePrints::Each(places) => Some(places),
            PlacePrints::Whole(_) => None,
        }
    }

    /// One print of all places.
    pub(crate) fn whole(&self) -> Print {
        match &self.places {
            PlacePrints::Each(places) => whole(places),
            PlacePrints::Whole(print) => *print,
        }
    }
}

fn whole(places: &BTreeMap<String, Print>) -> Print {
    let texts: Vec<_> = places.iter().flat_map(|(name, print)| [name.clone(), print.to_string()]).collect();
    Print::of(texts.iter().map(String::as_str))
}

impl fmt::Display for Print {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl TryFrom<String> for Print {
    type Error = InvalidPrints;

    fn try_from(text: String) -> Result<Self, InvalidPrints> {
        let is_form = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_form);
        number.map(Self).ok_or(InvalidPrints)
    }
}

impl From<Print> for String {
    fn from(print: Print) -> Self {
        print.to_string()
    }
}

impl TryFrom<WirePrints> for Prints {
    type Error = InvalidPrints;

    fn try_from(WirePrints { server, places, whole }: WirePrints) -> Result<Self, InvalidPrints> {
        // Names are shown to operators.
        let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let places = match (places, whole) {
            (Some(places), None) if places.keys().all(is_name) => PlacePrints::Each(places),
            (None, Some(print)) => PlacePrints::Whole(print),
            _ => return Err(InvalidPrints),
        };
        Ok(Self { server, places })
    }
}

impl From<Prints> for WirePrints {
    fn from(Prints { server, places }: Prints) -> Self {
        let (places, whole) = match places {
            PlacePrints::Each(places) => (Some(places), None),
            PlacePrints::Whole(print) => (None, Some(print)),
        };
        Self { server, places, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prints(places: impl IntoIterator<Item = (String, u64)>) -> Prints {
        Prints::new(Print(1), places.into_iter().map(|(name, print)| (name, Print(print))).collect())
    }

    #[test]
    fn prints_tell_texts_apart() {
        let of = |texts: &[&str]| Print::of(texts.iter().copied());
        assert_eq!(of(&["a", "bc"]), of(&["a", "bc"]));
        assert!(of(&["a", "bc"]) != of(&["ab", "c"]) && of(&["a"]) != of(&["a", ""]) && of(&[]) != of(&[""]));
    }

    #[test]
    fn nodes_agree_by_place() {
        let own = prints([("films".to_owned(), 1), ("cams".to_owned(), 2)]);
        let other = prints([("films".to_owned(), 1), ("cams".to_owned(), 3), ("music".to_owned(), 4)]);
        let agrees = ["films", "cams", "music", "none"].map(|place| own.agrees(&other, place));
        assert_eq!(agrees, [true, false, false, true]);
        let other = Prints { server: Print(2), ..own.clone() };
        assert!(own.agrees(&own, "films") && !own.agrees(&other, "films"));
    }

    #[test]
    fn many_places_have_one_print() {
        let many = |count: u64| (0..count).map(|number| (format!("place-{number}"), number));
        assert!(prints(many(64)).each().is_some());
        let (all, more) = (prints(many(65)), prints(many(66)));
        assert!(all.each().is_none() && all.agrees(&all, "place-1") && !all.agrees(&more, "place-1"));
        assert!(!all.agrees(&prints(many(64)), "place-1"));
        let long = prints((0..10).map(|number| (format!("{number}{}", "x".repeat(300)), number)));
        assert!(long.each().is_none());
        let longest = prints((0..64).map(|number| (format!("{number:032}"), number)));
        let json = serde_json::to_string(&longest).unwrap();
        assert!(longest.each().is_some() && json.len() < 4 << 10, "{}", json.len());
    }

    #[test]
    fn other_forms_are_no_prints() {
        for text in [
            r#"{"places":{}}"#,
            r#"{"server":"1","places":{}}"#,
            r#"{"server":"+000000000000001","places":{}}"#,
            r#"{"server":"0000000000000001"}"#,
            r#"{"server":"0000000000000001","places":{},"whole":"0000000000000001"}"#,
            r#"{"server":"0000000000000001","places":{"a\u001b[31m":"0000000000000001"}}"#,
            "7",
        ] {
            assert!(serde_json::from_str::<Prints>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(places in proptest::collection::btree_map("[a-zA-Z0-9_-]{0,12}", any::<u64>(), 0..80)) {
            let prints = prints(places);
            let json = serde_json::to_string(&prints).unwrap();
            prop_assert_eq!(serde_json::from_str::<Prints>(&json).unwrap(), prints);
        }

        /// Agreement divides nodes into groups: a node and one that it agrees with agree with the same nodes.
        #[test]
        fn agreement_is_the_same_from_both_sides(
            all in proptest::collection::vec(proptest::collection::btree_map("[ab]", 0_u64..2, 0..3), 3),
            place in "[abc]",
        ) {
            let all: Vec<_> = all.into_iter().map(prints).collect();
            let agrees = |one: usize, two: usize| all[one].agrees(&all[two], &place);
            prop_assert!(agrees(0, 0) && agrees(0, 1) == agrees(1, 0));
            prop_assert!(!agrees(0, 1) || agrees(0, 2) == agrees(1, 2));
        }
    }
}
