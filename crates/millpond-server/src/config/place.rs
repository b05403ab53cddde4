//! Places as given, and the options of one place.

use super::{OwnSettings, Source};
use crate::library::{Titles, live_name};
use millpond_logging::escape::without_user;
use millpond_package::KeyAddress;
use millpond_place::{PlaceSpec, stripe_store};
use millpond_settings::value::{self, BadValue, Form};
use millpond_store::OriginOptions;
use std::{collections::HashSet, sync::Arc, time::Duration};
use url::Url;

/// One place as given.
#[derive(Debug, Clone)]
pub struct PlaceOptions {
    /// The name, where it stands apart from the location: the key of a table.
    pub name: Option<String>,
    /// A location alone, or `name=location` where there is no name apart. May hold secrets.
    pub text: String,
    /// How to talk to it. Its `hidden_files` is not that of the place yet.
    pub options: OriginOptions,
    /// Whether its files and folders whose names begin with a dot can be read; `None` where the setting of that name holds.
    pub hidden_files: Option<bool>,
    /// The rule by which files of a folder are one title.
    pub titles: Titles,
    /// Address of the keys of its encrypted files, as a template.
    pub key_uri: Option<String>,
    /// `KEYFORMAT` of that address.
    pub key_format: Option<String>,
    /// Its own values of settings of the server.
    pub own: OwnSettings,
    /// Ladders of its live streams.
    pub ladders: Vec<LadderConfig>,
    /// Its keys in the order of the file.
    pub keys: Vec<GivenKey>,
    /// Where it stands.
    pub source: Source,
}

/// A key of the table of a place.
#[derive(Debug, Clone)]
pub struct GivenKey {
    /// Name of the option.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// The value. May hold secrets.
    pub text: String,
    /// Where it stands.
    pub source: Source,
}

/// Live streams of a place that are renditions of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LadderConfig {
    /// Name of the ladder in its place.
    pub name: String,
    /// Names of the streams in the place.
    pub streams: Vec<String>,
}

impl LadderConfig {
    /// Parses `door=door/hi door/lo`.
    fn parse(text: &str) -> Option<Self> {
        let (name, streams) = text.split_once('=')?;
        let checked = |name: &str| live_name(name).ok().filter(|name| !name.is_empty()).map(str::to_owned);
        let name = checked(name.trim())?;
        let streams: Vec<_> = streams.split_whitespace().map(checked).collect::<Option<_>>()?;
        let is_sound = !streams.is_empty() && streams.len() <= MOST_STREAMS && !streams.contains(&name);
        is_sound.then_some(Self { name, streams })
    }
}

impl PlaceOptions {
    /// A place with the default options.
    pub fn new(text: impl Into<String>, source: Source) -> Self {
        Self {
            name: None,
            text: text.into(),
            options: OriginOptions::default(),
            hidden_files: None,
            titles: Titles::default(),
            key_uri: None,
            key_format: None,
            own: OwnSettings::default(),
            ladders: Vec::new(),
            keys: Vec::new(),
            source,
        }
    }

    /// A place of the key of a table.
    pub fn named(name: &str, url: impl Into<String>, source: Source) -> Self {
        Self { name: Some(name.to_owned()), ..Self::new(url, source) }
    }

    /// The address of keys.
    pub fn key_address(&self) -> Result<Option<Arc<KeyAddress>>, String> {
        match (&self.key_uri, &self.key_format) {
            (Some(uri), format) => Ok(KeyAddress::new(uri, format.as_deref()).map(Arc::new)),
            (None, None) => Ok(None),
            (None, Some(format)) => {
                let format = without_user(format);
                Err(format!("key-format {format:?} has no effect without key-uri: remove it, or set key-uri"))
            }
        }
    }

    /// Where a key stands; where the place stands for one that was not given. Variables of the environment are their own places.
    pub(super) fn at(&self, key: &str) -> Source {
        if key.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Source::Environment(key.to_owned());
        }
        self.keys
            .iter()
            .find(|given| given.name == key)
            .map_or_else(|| self.source.clone(), |given| given.source.clone())
    }

    /// Name and location.
    pub fn spec(&self) -> Result<PlaceSpec, String> {
        let Some(name) = &self.name else {
            return PlaceSpec::parse(&self.text).map_err(|error| error.to_string());
        };
        match PlaceSpec::parse(&format!("{name}={}", self.text)) {
            Ok(spec) if spec.name == *name => Ok(spec),
            Ok(_) => Err(format!("place name {name:?}: expected letters, digits, \"-\" and \"_\" only")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// One option of a place, a key of `[places.NAME]`.
pub struct PlaceSetting {
    /// The key.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// Its effect in one sentence.
    pub help: &'static str,
    /// Parses a value into the place's options.
    pub apply: fn(&mut PlaceOptions, &str) -> Result<(), BadValue>,
}

impl PlaceSetting {
    /// The option of this name; underscores stand for dashes.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        PLACE_SETTINGS.iter().find(|setting| setting.name == name)
    }
}

impl std::fmt::Debug for PlaceSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Most streams of a ladder.
const MOST_STREAMS: usize = 16;
/// Upper bound of `stripe-start`.
const LONGEST_START: Duration = Duration::from_secs(60);
/// Bounds of `sibling-timeout`.
const SIBLING_TIMEOUT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(24 * 3600));

/// The options of a place, besides its `url`.
pub const PLACE_SETTINGS: &[PlaceSetting] = &[
    PlaceSetting {
        name: "endpoint",
        form: Form::Text,
        help: "Address of an S3, GCS or Azure compatible service, such as \"http://minio:9000\"",
        apply: |place, text| text_value(text).map(|v| place.options.remote.bucket.endpoint = Some(v)),
    },
    PlaceSetting {
        name: "region",
        form: Form::Text,
        help: "S3 region",
        apply: |place, text| text_value(text).map(|v| place.options.remote.bucket.region = Some(v)),
    },
    PlaceSetting {
        name: "path-style",
        form: Form::Switch,
        help: "Name the S3 bucket in the path instead of the host; true by default with an endpoint",
        apply: |place, text| value::switch(text).map(|v| place.options.remote.bucket.path_style = Some(v)),
    },
    PlaceSetting {
        name: "account",
        form: Form::Text,
        help: "Azure storage account",
        apply: |place, text| text_value(text).map(|v| place.options.remote.bucket.account = Some(v)),
    },
    PlaceSetting {
        name: "anonymous",
        form: Form::Switch,
        help: "Send requests unsigned, for public buckets",
        apply: |place, text| value::switch(text).map(|v| place.options.remote.bucket.anonymous = v),
    },
    PlaceSetting {
        name: "credentials",
        form: Form::Text,
        help: "Source of keys when none are configured. \"instance\" takes them from the machine's cloud role; \
               \"auto\" does so only if the environment names the service of that role",
        apply: |place, text| {
            place.options.remote.bucket.instance_credentials = match text {
                "auto" => false,
                "instance" => true,
                _ => return Err(BadValue::new("\"auto\" or \"instance\"")),
            };
            Ok(())
        },
    },
    PlaceSetting {
        name: "connect-timeout",
        form: Form::Duration,
        help: "Time limit for connecting",
        apply: |place, text| value::timeout(text).map(|v| place.options.remote.timeouts.connect = v),
    },
    PlaceSetting {
        name: "first-byte-timeout",
        form: Form::Duration,
        help: "Time limit from a request to the first byte of the reply",
        apply: |place, text| value::timeout(text).map(|v| place.options.remote.timeouts.first_byte = v),
    },
    PlaceSetting {
        name: "stall-timeout",
        form: Form::Duration,
        help: "Longest pause within a reply. After it the rest of the reply is requested again",
        apply: |place, text| value::timeout(text).map(|v| place.options.remote.timeouts.stall = v),
    },
    PlaceSetting {
        name: "retries",
        form: Form::Count,
        help: "Number of further attempts after a failed request",
        apply: |place, text| {
            let retries = u32::try_from(value::count(text, 0)?).map_err(|_| BadValue::from(Form::Count))?;
            place.options.remote.retry.tries = retries.saturating_add(1);
            Ok(())
        },
    },
    PlaceSetting {
        name: "follow-redirects-to",
        form: Form::List,
        help: "Hosts to which redirects, and the playlists and manifests of live HLS and DASH streams, may lead besides the place's own",
        apply: |place, text| {
            place.options.remote.follow_redirects_to = value::list(text);
            Ok(())
        },
    },
    PlaceSetting {
        name: "siblings",
        form: Form::List,
        help: "Base URLs of HTTP caches with the same objects, asked before the origin, such as \"http://edge2:8080/films\"",
        apply: |place, text| {
            let url = |text: String| match Url::parse(&text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
                _ => Err(BadValue::new("URLs of http or https")),
            };
            place.options.siblings = value::list(text).into_iter().map(url).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "sibling-timeout",
        form: Form::Duration,
        help: "Time limit for the first byte of a sibling's reply",
        apply: |place, text| {
            place.options.sibling_timeout = value::duration_in(text, SIBLING_TIMEOUT.0, SIBLING_TIMEOUT.1)?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "stripe-over",
        form: Form::List,
        help: "Stores of striped objects (millpond stripe), such as [\"a=s3://units-a\", \
               \"b=http://10.0.0.7/units\"]. A map NAME.stripe in the place is served as the object NAME, and may \
               name these stores only",
        apply: |place, text| {
            let bad = || BadValue::new("stores such as \"a=s3://units-a\", each under one name");
            let stores: Result<Vec<_>, _> = value::list(text).iter().map(|text| stripe_store(text)).collect();
            let stores = stores.map_err(|_| bad())?;
            let mut names = HashSet::new();
            if !stores.iter().all(|store| names.insert(store.name())) {
                return Err(bad());
            }
            place.options.striping.stores = stores;
            Ok(())
        },
    },
    PlaceSetting {
        name: "stripe-batch",
        form: Form::Count,
        help: "Number of units of a striped object that are read at the same time; 0 is twice the number of its stores",
        apply: |place, text| value::count(text, 0).map(|v| place.options.striping.batch = v),
    },
    PlaceSetting {
        name: "stripe-timeout",
        form: Form::Duration,
        help: "Time after which a silent store's unit is read from another copy",
        apply: |place, text| value::timeout(text).map(|v| place.options.striping.timeout = v),
    },
    PlaceSetting {
        name: "stripe-start",
        form: Form::Duration,
        help: "Longest time by which an RTSP stream of a striped object may start later, so that no unit is late; 0 \
               starts at once",
        apply: |place, text| {
            place.options.striping.start = value::duration_in(text, Duration::ZERO, LONGEST_START)?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "stripe-repair",
        form: Form::Switch,
        help: "Replace a damaged unit of a striped object by a good copy when a read finds it. Folders and buckets \
               are repaired, web servers are not",
        apply: |place, text| value::switch(text).map(|v| place.options.striping.repair = v),
    },
    PlaceSetting {
        name: "hidden-files",
        form: Form::Switch,
        help: "Serve files whose name or folder begins with a dot; overrides the setting of the same name",
        apply: |place, text| value::switch(text).map(|v| place.hidden_files = Some(v)),
    },
    PlaceSetting {
        name: "key-uri",
        form: Form::Text,
        help: "Address where HLS players get the keys of encrypted files, such as \"https://keys.example/{kid}\" or \
               \"skd://{kid}\". {kid} is the key's identifier as 32 hexadecimal digits, {uuid} as a UUID",
        apply: |place, text| key_text(text).map(|v| place.key_uri = Some(v)),
    },
    PlaceSetting {
        name: "key-format",
        form: Form::Text,
        help: "KEYFORMAT of key-uri. The default is FairPlay's for skd: addresses, else identity",
        apply: |place, text| key_text(text).map(|v| place.key_format = Some(v)),
    },
    PlaceSetting {
        name: "ladders",
        form: Form::List,
        help: "Ladders: live streams that are renditions of one title, such as [\"door=door/hi door/lo\"]. Each entry \
               has the name of the common playlist, and the names of the streams, without spaces and commas. Without \
               this option, streams that are pushed into one folder are a ladder",
        apply: |place, text| {
            let bad = || BadValue::new("ladders such as \"door=door/hi door/lo\", each stream in one of them");
            let ladders: Option<Vec<_>> = value::list(text).iter().map(|text| LadderConfig::parse(text)).collect();
            let ladders = ladders.ok_or_else(bad)?;
            let mut names = HashSet::new();
            let is_new = ladders.iter().all(|ladder| names.insert(&ladder.name));
            let mut streams = HashSet::new();
            if !is_new || !ladders.iter().flat_map(|ladder| &ladder.streams).all(|stream| streams.insert(stream)) {
                return Err(bad());
            }
            place.ladders = ladders;
            Ok(())
        },
    },
    PlaceSetting {
        name: "titles",
        form: Form::Choice(&Titles::NAMES),
        help: "Which media files of a folder are one title. \"alike\" groups files by name and content, \"folder\" \
               makes all files one title, and \"file\" makes each file a title",
        apply: |place, text| {
            place.titles = Titles::named(text).ok_or_else(|| BadValue::from(Form::Choice(&Titles::NAMES)))?;
            Ok(())
        },
    },
];

/// Text of attributes of a playlist (RFC 8216 4.2).
fn key_text(text: &str) -> Result<String, BadValue> {
    match KeyAddress::new(text, None) {
        Some(_) => Ok(text.to_owned()),
        None => Err(BadValue::new("text that is not empty, without quotation marks and line breaks")),
    }
}

fn text_value(text: &str) -> Result<String, BadValue> {
    if text.is_empty() { Err(BadValue::new("text that is not empty")) } else { Ok(text.to_owned()) }
}
