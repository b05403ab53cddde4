//! Character sets of teletext (ETSI EN 300 706 15): G0 sets with their national options, the G2 set, and accents.

/// Positions of the Latin G0 set that national options replace (table 36), which are in columns 2 and 4 to 7.
const REPLACED: &[u8; 13] = b"#$@[\\]^_`{|}~";

/// National options of the Latin G0 set (table 36), and the set without one. The characters have the order of [`REPLACED`].
const NONE: &str = "#¤@[\\]^_`{|}~";
const CZECH: &str = "#ůčťžýířéáěúš";
const ENGLISH: &str = "£$@←½→↑#—¼‖¾÷";
const ESTONIAN: &str = "#õŠÄÖŽÜÕšäöžü";
const FRENCH: &str = "éïàëêùî#èâôûç";
const GERMAN: &str = "#$§ÄÖÜ^_°äöüß";
const ITALIAN: &str = "£$é°ç→↑#ùàòèì";
const LETTISH: &str = "#$ŠėęŽčūšąųžį";
const POLISH: &str = "#ńąŻŚŁćóężśłź";
const PORTUGUESE: &str = "ç$¡áéíóú¿üñèà";
const RUMANIAN: &str = "#¤ŢÂŞĂÎıţâşăî";
const SERBIAN: &str = "#ËČĆŽĐŠëčćžđš";
const SWEDISH: &str = "#¤ÉÄÖÅÜ_éäöåü";
const TURKISH: &str = "₺ğİŞÖÇÜĞışöçü";

/// Columns 4 to 7 of the G0 sets of other scripts (tables 37 to 43).
const CYRILLIC_1: &str = "ЧАБЦДЕФГХИЈКЛМНОПЌРСТУВЃЉЊЗЋЖЂШЏчабцдефгхијклмнопќрстувѓљњзћжђш■";
const CYRILLIC_2: &str = "ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЪЗШЭЩЧЫюабцдефгхийклмнопярстужвьъзшэщч■";
const CYRILLIC_3: &str = "ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬІЗШЄЩЧЇюабцдефгхийклмнопярстужвьізшєщч■";
const GREEK: &str = "ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡʹΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ■";
const HEBREW: &str = "@ABCDEFGHIJKLMNOPQRSTUVWXYZ←½→↑#אבגדהוזחטיךכלםמןנסעףפץצקרשת₪‖¾÷■";

/// Columns 2 to 7 of the Latin G2 set (table 44).
const SUPPLEMENT: &str =
    " ¡¢£$¥#§¤‘“«←↑→↓°±²³×µ¶·÷’”»¼½¾¿ ˋ´ˆ˜¯˘˙¨.˚¸_˝˛ˇ―¹®©™♪₠‰∝   ⅛⅜⅝⅞ΩÆĐªĦ ĲĿŁØŒºÞŦŊŉĸæđðħıĳŀłøœßþŧŋ■";

/// Letters with accents, by the column of the accent in the G2 set: pairs of the plain letter and the accented one.
const ACCENTED: [&str; 15] = [
    "AÀaàEÈeèIÌiìNǸnǹOÒoòUÙuùWẀwẁYỲyỳ",
    "AÁaáCĆcćEÉeéGǴgǵIÍiíKḰkḱLĹlĺMḾmḿNŃnńOÓoóPṔpṕRŔrŕSŚsśUÚuúWẂwẃYÝyýZŹzź",
    "AÂaâCĈcĉEÊeêGĜgĝHĤhĥIÎiîJĴjĵOÔoôSŜsŝUÛuûWŴwŵYŶyŷZẐzẑ",
    "AÃaãEẼeẽIĨiĩNÑnñOÕoõUŨuũVṼvṽYỸyỹ",
    "AĀaāEĒeēGḠgḡIĪiīOŌoōUŪuūYȲyȳ",
    "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭ",
    "AȦaȧBḂbḃCĊcċDḊdḋEĖeėFḞfḟGĠgġHḢhḣIİMṀmṁNṄnṅOȮoȯPṖpṗRṘrṙSṠsṡTṪtṫWẆwẇXẊxẋYẎyẏZŻzż",
    "AÄaäEËeëHḦhḧIÏiïOÖoötẗUÜuüWẄwẅXẌxẍYŸyÿ",
    "AẠaạBḄbḅDḌdḍEẸeẹHḤhḥIỊiịKḲkḳLḶlḷMṂmṃNṆnṇOỌoọRṚrṛSṢsṣTṬtṭUỤuụVṾvṿWẈwẉYỴyỵZẒzẓ",
    "AÅaåUŮuůwẘyẙ",
    "CÇcçDḐdḑEȨeȩGĢgģHḨhḩKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţ",
    "",
    "OŐoőUŰuű",
    "AĄaąEĘeęIĮiįOǪoǫUŲuų",
    "AǍaǎCČcčDĎdďEĚeěGǦgǧHȞhȟIǏiǐjǰKǨkǩLĽlľNŇnňOǑoǒRŘrřSŠsšTŤtťUǓuǔZŽzž",
];

/// The G0 set of a page, with its national option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Latin letters, with characters in the place of [`REPLACED`].
    Latin(&'static str),
    /// Another script: columns 4 to 7, and the character in the place of `&`.
    Other(&'static str, char),
}

/// Designation of the sets of a page: bits 11 to 14 of the first triplet of X/28/0 or M/29/0 (table 32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Designation(u8);

impl Designation {
    /// Takes the designation and the national option that a packet states. Returns both.
    pub(super) fn of_triplet(bits: u32) -> (Self, u8) {
        (Self((bits >> 3 & 0xf) as u8), (bits & 7) as u8)
    }

    /// Returns the designation that pages in a language have where no packet states one: the standard leaves it to the region. The
    /// language is a code of ISO 639-2, as in a descriptor.
    pub(super) fn of_language(language: &str) -> Self {
        Self(match language {
            "pol" => 1,
            "tur" => 2,
            "hrv" | "scr" | "slv" | "bos" | "ron" | "rum" => 3,
            "rus" | "bul" | "ukr" | "bel" | "srp" | "scc" | "mkd" | "mac" | "est" | "lav" | "lit" => 4,
            "ell" | "gre" => 6,
            "heb" => 10,
            _ => 0,
        })
    }

    /// Returns the set that a national option (C12 to C14) chooses; `None` where it is reserved, or is the Arabic set.
    fn alphabet(self, option: u8) -> Option<Alphabet> {
        let latin = |name| Some(Alphabet::Latin(name));
        match (self.0, option & 7) {
            (0 | 2 | 8, 0) => latin(ENGLISH),
            (1, 0) => latin(POLISH),
            (0 | 1 | 2 | 4, 1) => latin(GERMAN),
            (0..=2, 2) => latin(SWEDISH),
            (0..=2, 3) => latin(ITALIAN),
            (0 | 1 | 2 | 8, 4) => latin(FRENCH),
            (0 | 2, 5) => latin(PORTUGUESE),
            (0 | 1 | 4, 6) => latin(CZECH),
            (2 | 6, 6) => latin(TURKISH),
            (3, 5) => latin(SERBIAN),
            (3, 7) => latin(RUMANIAN),
            (4, 0) => Some(Alphabet::Other(CYRILLIC_1, '&')),
            (4, 2) => latin(ESTONIAN),
            (4, 3) => latin(LETTISH),
            (4, 4) => Some(Alphabet::Other(CYRILLIC_2, 'ы')),
            (4, 5) => Some(Alphabet::Other(CYRILLIC_3, 'ї')),
            (6, 7) => Some(Alphabet::Other(GREEK, '&')),
            (10, 5) => Some(Alphabet::Other(HEBREW, '&')),
            _ => None,
        }
    }

    /// Returns the set of a page: that of the page's option, else that of the option which the designating packet states, else that of
    /// Western Europe, else the Latin set without option.
    pub(super) fn chosen(self, option: u8, stated: Option<u8>) -> Alphabet {
        let stated = || self.alphabet(stated?);
        let western = || Self(0).alphabet(option);
        self.alphabet(option).or_else(stated).or_else(western).unwrap_or(Alphabet::Latin(NONE))
    }
}

impl Alphabet {
    /// Returns the character of a code from 0x20 to 0x7f.
    pub(super) fn character(self, code: u8) -> char {
        match self {
            Self::Latin(option) => {
                let place = REPLACED.iter().position(|replaced| *replaced == code);
                place.and_then(|place| option.chars().nth(place)).unwrap_or_else(|| plain(code))
            }
            Self::Other(_, ampersand) if code == b'&' => ampersand,
            Self::Other(..) if code == b'$' => '$',
            // Quotation marks are in the place of brackets there.
            Self::Other(GREEK, _) if code == b'<' => '«',
            Self::Other(GREEK, _) if code == b'>' => '»',
            Self::Other(HEBREW, _) if code == b'#' => '£',
            Self::Other(upper, _) => {
                let place = code.checked_sub(0x40).map(usize::from);
                place.and_then(|place| upper.chars().nth(place)).unwrap_or_else(|| plain(code))
            }
        }
    }

    /// Returns the character of a code without national option, as enhancements name it.
    pub(super) fn unmodified(self, code: u8) -> char {
        match self {
            Self::Latin(_) => plain(code),
            other => other.character(code),
        }
    }
}

/// Returns a character of the Latin G0 set without national option (table 35).
fn plain(code: u8) -> char {
    match code {
        b'$' => '¤',
        0x7f => '■',
        code => char::from(code),
    }
}

/// Returns a character of the G2 set by its code.
pub(super) fn supplement(code: u8) -> char {
    let place = code.checked_sub(0x20).map(usize::from);
    place.and_then(|place| SUPPLEMENT.chars().nth(place)).unwrap_or(' ')
}

/// Returns a letter with an accent, which has this column in the G2 set. A letter that never has the accent stays plain.
pub(super) fn accented(letter: char, accent: u8) -> char {
    let pairs = accent.checked_sub(1).and_then(|place| ACCENTED.get(usize::from(place))).copied().unwrap_or_default();
    let mut characters = pairs.chars();
    while let Some((plain, with)) = characters.next().zip(characters.next()) {
        if plain == letter {
            return with;
        }
    }
    letter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_complete() {
        let options = [
            CZECH, ENGLISH, ESTONIAN, FRENCH, GERMAN, ITALIAN, LETTISH, NONE, POLISH, PORTUGUESE, RUMANIAN, SERBIAN,
            SWEDISH, TURKISH,
        ];
        for option in options {
            assert_eq!(option.chars().count(), REPLACED.len(), "{option}");
        }
        for upper in [CYRILLIC_1, CYRILLIC_2, CYRILLIC_3, GREEK, HEBREW] {
            assert_eq!(upper.chars().count(), 64, "{upper}");
        }
        assert_eq!(SUPPLEMENT.chars().count(), 96);
        assert!(ACCENTED.iter().all(|pairs| pairs.chars().count() % 2 == 0));
    }

    #[test]
    fn options_choose_sets() {
        let text = |designation: u8, option, stated, codes: &[u8]| {
            let alphabet = Designation(designation).chosen(option, stated);
            codes.iter().map(|code| alphabet.character(*code)).collect::<String>()
        };
        assert_eq!(text(0, 0, None, b"a#$[\x7f"), "a£$←■");
        assert_eq!(text(0, 1, None, b"{|}~"), "äöüß");
        assert_eq!(text(4, 4, None, b"Prilet &"), "Прилет ы");
        assert_eq!(text(6, 7, None, b"<Jak>"), "«Καλ»");
        assert_eq!(text(10, 5, None, b"hello"), "טוללן");
        assert_eq!(text(3, 0, Some(5), b"@^"), "ČŠ", "a reserved option");
        assert_eq!(text(5, 4, None, b"@"), "à", "a reserved designation");
        assert_eq!(text(0, 7, None, b"$[~"), "¤[~");
    }

    #[test]
    fn accents_join_letters() {
        assert_eq!((accented('e', 2), accented('c', 0xb), accented('u', 0xd)), ('é', 'ç', 'ű'));
        assert_eq!((accented('q', 2), accented('e', 0), accented('e', 16)), ('q', 'e', 'e'));
        assert_eq!((supplement(0x48), supplement(0x71), supplement(0x1f)), ('¨', 'æ', ' '));
    }
}
