//! The usual character table of DVB (ETSI EN 300 468 figure A.1): ISO/IEC 6937 with the euro sign. Accents precede their letters.

use std::iter::Peekable;

/// Characters that the bytes from 0xa0 on mean; accents and reserved bytes have none.
#[rustfmt::skip]
const UPPER_HALF: &str = "\u{a0}¡¢£€¥\u{fffd}§¤‘“«←↑→↓°±²³×µ¶·÷’”»¼½¾¿\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}―¹®©™♪¬¦\u{fffd}\u{fffd}\u{fffd}\u{fffd}⅛⅜⅝⅞ΩÆĐªĦ\u{fffd}ĲĿŁØŒºÞŦŊŉĸæđðħıĳŀłøœßþŧŋ\u{ad}";

/// Accents, letters that can follow them, and the character of each pair.
#[rustfmt::skip]
const ACCENTED: &[(u8, &str, &str)] = &[
    (0xc1, "aeinouAEINOU", "àèìǹòùÀÈÌǸÒÙ"),
    (0xc2, "acegilnorsuyzACEGILNORSUYZ", "áćéǵíĺńóŕśúýźÁĆÉǴÍĹŃÓŔŚÚÝŹ"),
    (0xc3, "aceghijosuwyACEGHIJOSUWY", "âĉêĝĥîĵôŝûŵŷÂĈÊĜĤÎĴÔŜÛŴŶ"),
    (0xc4, "ainouAINOU", "ãĩñõũÃĨÑÕŨ"),
    (0xc5, "aeiouyAEIOUY", "āēīōūȳĀĒĪŌŪȲ"),
    (0xc6, "aegiouAEGIOU", "ăĕğĭŏŭĂĔĞĬŎŬ"),
    (0xc7, "acegozACEGIOZ", "ȧċėġȯżȦĊĖĠİȮŻ"),
    (0xc8, "aeiouyAEIOUY", "äëïöüÿÄËÏÖÜŸ"),
    (0xca, "auAU", "åůÅŮ"),
    (0xcb, "cegklnrstCEGKLNRST", "çȩģķļņŗşţÇȨĢĶĻŅŖŞŢ"),
    (0xcd, "ouOU", "őűŐŰ"),
    (0xce, "aeiouAEIOU", "ąęįǫųĄĘĮǪŲ"),
    (0xcf, "acdeghijklnorstuzACDEGHIKLNORSTUZ", "ǎčďěǧȟǐǰǩľňǒřšťǔžǍČĎĚǦȞǏǨĽŇǑŘŠŤǓŽ"),
];

/// Returns the next character of bytes; `None` at their end.
pub(super) fn next(bytes: &mut Peekable<impl Iterator<Item = u8>>) -> Option<char> {
    let byte = bytes.next()?;
    if byte < 0xa0 {
        return Some(char::from(byte));
    }
    let accented = ACCENTED.iter().find(|(accent, ..)| *accent == byte);
    let Some((_, letters, characters)) = accented else {
        return UPPER_HALF.chars().nth(usize::from(byte - 0xa0));
    };
    let Some(letter) = bytes.next_if(u8::is_ascii) else { return Some(char::REPLACEMENT_CHARACTER) };
    let place = letters.bytes().position(|known| known == letter);
    // An accent that the letter can't have is left out.
    place.and_then(|place| characters.chars().nth(place)).or(Some(char::from(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_whole() {
        assert_eq!(UPPER_HALF.chars().count(), 96);
        for (accent, letters, characters) in ACCENTED {
            assert_eq!(letters.len(), characters.chars().count(), "{accent:#x}");
        }
    }
}
