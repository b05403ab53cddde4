//! Delivery directives and times of playlist requests. What they ask of an empty window is decided without a panic.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::live::{Directives, Reload, Window, WindowLimits};
use std::time::Duration;

fuzz_target!(|query: &str| {
    let _ = (millpond_utc::parse(query), millpond_utc::parse_basic(query));
    let Ok(directives) = Directives::parse(query) else { return };
    let age = Duration::from_secs(60);
    let window = Window::new(WindowLimits { segments: 4, bytes: 1 << 20, age, listed: age }, Vec::new(), 0);
    let reload = directives.decide(&window, 0);
    assert_eq!(
        reload == Reload::Now,
        directives.segment.is_none(),
        "an empty window has nothing to wait for but its first segment"
    );
});
