//! Newest key frames of streams.

use super::fake::{Fake, manager, picture, pictures, until};
use std::time::Duration;

#[tokio::test]
async fn the_newest_key_frame_is_known_while_a_stream_runs() {
    let (manager, fake) = (manager(), Fake::default());
    assert!(manager.newest_key_frame("cams/door").is_none(), "nothing is opened for it");
    let stream = manager.live(fake.request("cams/door", Duration::ZERO)).unwrap();
    let feed = {
        let (manager, stream) = (manager.clone(), stream.clone());
        tokio::spawn(async move { manager.live_feed(&stream, Duration::from_secs(30)).await })
    };
    until(|| fake.is_open()).await;
    fake.begin(0, vec![pictures(*b"vp09")]);
    let feed = feed.await.unwrap().unwrap();
    (0..25).for_each(|number| fake.put(picture(number)));
    until(|| manager.streams()[0].frames == 25).await;
    let newest = manager.newest_key_frame("cams/door").unwrap();
    assert_eq!((&newest.data[..], &*newest.format.name), (&20_u32.to_be_bytes()[..], "v1"));
    drop(feed);
    until(|| !fake.is_open()).await;
    until(|| manager.newest_key_frame("cams/door").is_none()).await;
}
