//! Language codes: ISO 639-2 as in files, BCP 47 (RFC 5646) as in manifests.

use std::{collections::HashSet, sync::OnceLock};

/// ISO 639-2/T, ISO 639-2/B where it differs, ISO 639-1, and English name. Sorted by the first.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &str, &str, &str)] = &[
    ("aar", "", "aa", "Afar"), ("abk", "", "ab", "Abkhazian"), ("afr", "", "af", "Afrikaans"),
    ("aka", "", "ak", "Akan"), ("amh", "", "am", "Amharic"), ("ara", "", "ar", "Arabic"),
    ("arg", "", "an", "Aragonese"), ("asm", "", "as", "Assamese"), ("ava", "", "av", "Avaric"),
    ("ave", "", "ae", "Avestan"), ("aym", "", "ay", "Aymara"), ("aze", "", "az", "Azerbaijani"),
    ("bak", "", "ba", "Bashkir"), ("bam", "", "bm", "Bambara"), ("bel", "", "be", "Belarusian"),
    ("ben", "", "bn", "Bengali"), ("bis", "", "bi", "Bislama"), ("bod", "tib", "bo", "Tibetan"),
    ("bos", "", "bs", "Bosnian"), ("bre", "", "br", "Breton"), ("bul", "", "bg", "Bulgarian"),
    ("cat", "", "ca", "Catalan"), ("ces", "cze", "cs", "Czech"), ("cha", "", "ch", "Chamorro"),
    ("che", "", "ce", "Chechen"), ("chu", "", "cu", "Church Slavic"), ("chv", "", "cv", "Chuvash"),
    ("cor", "", "kw", "Cornish"), ("cos", "", "co", "Corsican"), ("cre", "", "cr", "Cree"),
    ("cym", "wel", "cy", "Welsh"), ("dan", "", "da", "Danish"), ("deu", "ger", "de", "German"),
    ("div", "", "dv", "Dhivehi"), ("dzo", "", "dz", "Dzongkha"), ("ell", "gre", "el", "Greek"),
    ("eng", "", "en", "English"), ("epo", "", "eo", "Esperanto"), ("est", "", "et", "Estonian"),
    ("eus", "baq", "eu", "Basque"), ("ewe", "", "ee", "Ewe"), ("fao", "", "fo", "Faroese"),
    ("fas", "per", "fa", "Persian"), ("fij", "", "fj", "Fijian"), ("fin", "", "fi", "Finnish"),
    ("fra", "fre", "fr", "French"), ("fry", "", "fy", "Western Frisian"), ("ful", "", "ff", "Fulah"),
    ("gla", "", "gd", "Scottish Gaelic"), ("gle", "", "ga", "Irish"), ("glg", "", "gl", "Galician"),
    ("glv", "", "gv", "Manx"), ("grn", "", "gn", "Guarani"), ("guj", "", "gu", "Gujarati"),
    ("hat", "", "ht", "Haitian"), ("hau", "", "ha", "Hausa"), ("hbs", "", "sh", "Serbo-Croatian"),
    ("heb", "", "he", "Hebrew"), ("her", "", "hz", "Herero"), ("hin", "", "hi", "Hindi"),
    ("hmo", "", "ho", "Hiri Motu"), ("hrv", "", "hr", "Croatian"), ("hun", "", "hu", "Hungarian"),
    ("hye", "arm", "hy", "Armenian"), ("ibo", "", "ig", "Igbo"), ("ido", "", "io", "Ido"),
    ("iii", "", "ii", "Sichuan Yi"), ("iku", "", "iu", "Inuktitut"), ("ile", "", "ie", "Interlingue"),
    ("ina", "", "ia", "Interlingua"), ("ind", "", "id", "Indonesian"), ("ipk", "", "ik", "Inupiaq"),
    ("isl", "ice", "is", "Icelandic"), ("ita", "", "it", "Italian"), ("jav", "", "jv", "Javanese"),
    ("jpn", "", "ja", "Japanese"), ("kal", "", "kl", "Kalaallisut"), ("kan", "", "kn", "Kannada"),
    ("kas", "", "ks", "Kashmiri"), ("kat", "geo", "ka", "Georgian"), ("kau", "", "kr", "Kanuri"),
    ("kaz", "", "kk", "Kazakh"), ("khm", "", "km", "Khmer"), ("kik", "", "ki", "Kikuyu"),
    ("kin", "", "rw", "Kinyarwanda"), ("kir", "", "ky", "Kyrgyz"), ("kom", "", "kv", "Komi"),
    ("kon", "", "kg", "Kongo"), ("kor", "", "ko", "Korean"), ("kua", "", "kj", "Kuanyama"),
    ("kur", "", "ku", "Kurdish"), ("lao", "", "lo", "Lao"), ("lat", "", "la", "Latin"),
    ("lav", "", "lv", "Latvian"), ("lim", "", "li", "Limburgish"), ("lin", "", "ln", "Lingala"),
    ("lit", "", "lt", "Lithuanian"), ("ltz", "", "lb", "Luxembourgish"), ("lub", "", "lu", "Luba-Katanga"),
    ("lug", "", "lg", "Ganda"), ("mah", "", "mh", "Marshallese"), ("mal", "", "ml", "Malayalam"),
    ("mar", "", "mr", "Marathi"), ("mkd", "mac", "mk", "Macedonian"), ("mlg", "", "mg", "Malagasy"),
    ("mlt", "", "mt", "Maltese"), ("mon", "", "mn", "Mongolian"), ("mri", "mao", "mi", "Maori"),
    ("msa", "may", "ms", "Malay"), ("mya", "bur", "my", "Burmese"), ("nau", "", "na", "Nauru"),
    ("nav", "", "nv", "Navajo"), ("nbl", "", "nr", "South Ndebele"), ("nde", "", "nd", "North Ndebele"),
    ("ndo", "", "ng", "Ndonga"), ("nep", "", "ne", "Nepali"), ("nld", "dut", "nl", "Dutch"),
    ("nno", "", "nn", "Norwegian Nynorsk"), ("nob", "", "nb", "Norwegian Bokm\u{e5}l"), ("nor", "", "no", "Norwegian"),
    ("nya", "", "ny", "Nyanja"), ("oci", "", "oc", "Occitan"), ("oji", "", "oj", "Ojibwa"),
    ("ori", "", "or", "Odia"), ("orm", "", "om", "Oromo"), ("oss", "", "os", "Ossetian"),
    ("pan", "", "pa", "Punjabi"), ("pli", "", "pi", "Pali"), ("pol", "", "pl", "Polish"),
    ("por", "", "pt", "Portuguese"), ("pus", "", "ps", "Pashto"), ("que", "", "qu", "Quechua"),
    ("roh", "", "rm", "Romansh"), ("ron", "rum", "ro", "Romanian"), ("run", "", "rn", "Rundi"),
    ("rus", "", "ru", "Russian"), ("sag", "", "sg", "Sango"), ("san", "", "sa", "Sanskrit"),
    ("sin", "", "si", "Sinhala"), ("slk", "slo", "sk", "Slovak"), ("slv", "", "sl", "Slovenian"),
    ("sme", "", "se", "Northern Sami"), ("smo", "", "sm", "Samoan"), ("sna", "", "sn", "Shona"),
    ("snd", "", "sd", "Sindhi"), ("som", "", "so", "Somali"), ("sot", "", "st", "Southern Sotho"),
    ("spa", "", "es", "Spanish"), ("sqi", "alb", "sq", "Albanian"), ("srd", "", "sc", "Sardinian"),
    ("srp", "", "sr", "Serbian"), ("ssw", "", "ss", "Swati"), ("sun", "", "su", "Sundanese"),
    ("swa", "", "sw", "Swahili"), ("swe", "", "sv", "Swedish"), ("tah", "", "ty", "Tahitian"),
    ("tam", "", "ta", "Tamil"), ("tat", "", "tt", "Tatar"), ("tel", "", "te", "Telugu"),
    ("tgk", "", "tg", "Tajik"), ("tgl", "", "tl", "Tagalog"), ("tha", "", "th", "Thai"),
    ("tir", "", "ti", "Tigrinya"), ("ton", "", "to", "Tongan"), ("tsn", "", "tn", "Tswana"),
    ("tso", "", "ts", "Tsonga"), ("tuk", "", "tk", "Turkmen"), ("tur", "", "tr", "Turkish"),
    ("twi", "", "tw", "Twi"), ("uig", "", "ug", "Uyghur"), ("ukr", "", "uk", "Ukrainian"),
    ("urd", "", "ur", "Urdu"), ("uzb", "", "uz", "Uzbek"), ("ven", "", "ve", "Venda"),
    ("vie", "", "vi", "Vietnamese"), ("vol", "", "vo", "Volap\u{fc}k"), ("wln", "", "wa", "Walloon"),
    ("wol", "", "wo", "Wolof"), ("xho", "", "xh", "Xhosa"), ("yid", "", "yi", "Yiddish"),
    ("yor", "", "yo", "Yoruba"), ("zha", "", "za", "Zhuang"), ("zho", "chi", "zh", "Chinese"),
    ("zul", "", "zu", "Zulu"),
];

/// Returns the BCP 47 tag of a code or tag from a file, in the usual case (RFC 5646 2.1.1). ISO 639-2 codes (both
/// kinds) become ISO 639-1 where possible, as RFC 5646 2.2.1 requires the shortest code. `None` for an undetermined
/// language, and for text that is no tag.
#[must_use]
pub fn tag(code: &str) -> Option<String> {
    let code = code.trim().replace('_', "-");
    let (primary, rest) = code.split_once('-').map_or((code.as_str(), None), |(p, r)| (p, Some(r)));
    let primary = primary.to_ascii_lowercase();
    let valid =
        |part: &str, shortest| (shortest..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    if !valid(&primary, 2) || !primary.bytes().all(|b| b.is_ascii_alphabetic()) || primary == "und" {
        return None;
    }
    let mut tag = LANGUAGES
        .iter()
        .find(|(t, b, _, _)| *t == primary || *b == primary)
        .map_or(primary, |(_, _, short, _)| (*short).to_owned());
    for part in rest.into_iter().flat_map(|r| r.split('-')) {
        if !valid(part, 1) {
            return None;
        }
        tag.push('-');
        tag.push_str(&subtag(part));
    }
    Some(tag)
}

/// Puts a subtag into the usual case: scripts as `Latn`, regions as `GB`, others in lower case.
fn subtag(part: &str) -> String {
    let mut lower = part.to_ascii_lowercase();
    if !part.bytes().all(|b| b.is_ascii_alphabetic()) {
        return lower;
    }
    match part.len() {
        2 => lower.make_ascii_uppercase(),
        4 => lower[..1].make_ascii_uppercase(),
        _ => {}
    }
    lower
}

/// Returns the ISO 639-2/T code of a tag's language, for `mdhd` (ISO/IEC 14496-12 8.4.2); `und` where it has none.
#[must_use]
pub fn iso_639_2(tag: &str) -> [u8; 3] {
    let primary = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let known = LANGUAGES.iter().find(|(t, b, short, _)| [*t, *b, *short].contains(&primary.as_str()));
    let code = known.map_or(primary.as_str(), |l| l.0).as_bytes();
    match <[u8; 3]>::try_from(code) {
        Ok(code) if code.iter().all(u8::is_ascii_lowercase) => code,
        _ => *b"und",
    }
}

/// Returns the ISO 639-2/B code of a tag's language; `und` where it has none.
pub(crate) fn bibliographic(tag: &str) -> String {
    let code = iso_639_2(tag);
    let known = LANGUAGES.iter().find(|(t, b, _, _)| t.as_bytes() == code && !b.is_empty());
    known.map_or_else(|| String::from_utf8_lossy(&code).into_owned(), |(_, b, _, _)| (*b).to_owned())
}

/// Addition to the name of a language in menus, for subtitles that also tell sounds.
pub const FOR_DEAF: &str = " (hearing impaired)";

/// Returns the name of a language for menus: its English name, else the tag itself.
#[must_use]
pub fn display_name(tag: &str) -> String {
    let (primary, rest) = tag.split_once('-').map_or((tag, None), |(p, r)| (p, Some(r)));
    match (LANGUAGES.iter().find(|(t, _, short, _)| *t == primary || *short == primary), rest) {
        (Some((_, _, _, name)), None) => (*name).to_owned(),
        (Some((_, _, _, name)), Some(rest)) => format!("{name} ({rest})"),
        (None, _) => tag.to_owned(),
    }
}

/// Whether a lower case word is the code of a language (ISO 639-1 or 639-2) or its English name.
#[must_use]
pub fn is_known(word: &str) -> bool {
    static WORDS: OnceLock<HashSet<String>> = OnceLock::new();
    let words = || {
        let all = LANGUAGES.iter().flat_map(|(t, b, short, name)| [*t, *b, *short, *name]);
        all.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    WORDS.get_or_init(words).contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_codes_and_keeps_tags() {
        let table = [
            ("eng", Some("en")),
            ("deu", Some("de")),
            ("ger", Some("de")),
            ("FRE", Some("fr")),
            ("en-gb", Some("en-GB")),
            ("eng-US", Some("en-US")),
            ("zh-hant-TW", Some("zh-Hant-TW")),
            ("es-419", Some("es-419")),
            ("pt_BR", Some("pt-BR")),
            ("haw", Some("haw")),
            ("und", None),
            ("", None),
            ("e", None),
            ("en-", None),
            ("en-\"x", None),
            ("\u{e9}t", None),
        ];
        for (code, expected) in table {
            assert_eq!(tag(code).as_deref(), expected, "{code}");
        }
    }

    #[test]
    fn table_is_sorted_and_well_formed() {
        assert!(LANGUAGES.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(LANGUAGES.iter().all(|l| l.0.len() == 3 && matches!(l.1.len(), 0 | 3) && l.2.len() == 2));
    }

    #[test]
    fn lengthens_for_mdhd() {
        assert_eq!(iso_639_2("en-GB"), *b"eng");
        assert_eq!(iso_639_2("ger"), *b"deu");
        assert_eq!(iso_639_2("haw"), *b"haw");
        assert_eq!(iso_639_2("x"), *b"und");
    }

    #[test]
    fn some_languages_have_a_second_code() {
        for (tag, expected) in [("en-GB", "eng"), ("de", "ger"), ("fr-CA", "fre"), ("fil", "fil"), ("x", "und")] {
            assert_eq!(bibliographic(tag), expected, "{tag}");
        }
    }

    #[test]
    fn knows_codes_and_names() {
        assert!(["deu", "ger", "de", "german", "norwegian bokm\u{e5}l"].into_iter().all(is_known));
        assert!(["", "e01", "film", "German"].into_iter().all(|word| !is_known(word)));
    }

    #[test]
    fn names_for_menus() {
        assert_eq!(display_name("de"), "German");
        assert_eq!(display_name("pt-BR"), "Portuguese (BR)");
        assert_eq!(display_name("haw"), "haw");
    }
}
