'use strict';

// Remembers how far the viewer is in a title.

// Seconds between two times that it is stored.
const STORE_EVERY = 5;

const kept = { at: 0 };

// Stores the place in the title that plays.
function keepPlace() {
  const { asset, isChosen, player } = state;
  const [at, lasts] = [video.currentTime, video.duration];
  // Between two titles, the time is that of the former one.
  if (!asset || !isChosen || !player || asset.live || state.engine === 'stream' || !(lasts > 0) || !Number.isFinite(lasts) || at < 1) return;
  kept.at = at;
  remember(({ places }) => places.set(asset.path, { at: Math.round(at), lasts: Math.round(lasts), when: Date.now(), programme: asset.programme ?? places.get(asset.path)?.programme }));
}

function watchPlaces() {
  video.addEventListener('timeupdate', () => { if (!video.seeking && Math.abs(video.currentTime - kept.at) >= STORE_EVERY) keepPlace(); });
  for (const event of ['pause', 'ended']) video.addEventListener(event, keepPlace);
  addEventListener('pagehide', keepPlace);
  document.addEventListener('visibilitychange', () => { if (document.hidden) keepPlace(); });
}
