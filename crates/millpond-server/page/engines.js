'use strict';

// The players, each behind the same few functions.

const engines = {
  stream: longResponse,
  hls: hlsJs,
  'hls-ts': hlsJs,
  dash: dashJs,
  shaka: shakaPlayer,
  'shaka-hls': shakaPlayer,
  native: async url => {
    video.src = url;
    video.onerror = () => state.fail && state.fail(`browser: ${video.error.message || `code ${video.error.code}`}: ${url}`);
    return {
      destroy: async () => { video.onerror = null; },
      renditions: () => [], rendition: () => null, setRendition: () => {},
      audios: () => [], setAudio: () => {}, texts: () => [], setText: () => {},
    };
  },
};

const size = r => `${r.height || '?'}p, ${Math.round((r.bitrate || r.bandwidth || r.bitsPerSecond || 0) / 1000)} kbit/s`;

async function longResponse(url) {
  const player = new LongResponse(video, url, words => {
    if (words) state.fail(words);
    else {
      $('problem').hidden = true;
      state.problem = null;
    }
  });
  return {
    destroy: async () => player.destroy(),
    delay: () => player.delay(),
    renditions: () => [], rendition: () => null, setRendition: () => {},
    audios: () => [], setAudio: () => {}, texts: () => [], setText: () => {},
  };
}

// Milliseconds until hls.js is told to go on with a stream. It gives up where a server can't be reached, if only for a moment.
const GO_ON_AFTER = 2000;

function goOn(hls, url, type) {
  if (type === Hls.ErrorTypes.MEDIA_ERROR) hls.recoverMediaError();
  else if (hls.levels.length) hls.startLoad();
  else hls.loadSource(url);
}

async function hlsJs(url) {
  // Players tell the server of their buffers and links (CMCD), in header fields: an argument of the query would make each
  // request another one for caches.
  const hls = new Hls({ renderTextTracksNatively: true, cmcd: { useHeaders: true } });
  let again;
  hls.on(Hls.Events.ERROR, (_, d) => {
    if (!d.fatal) return;
    state.fail(`hls.js: ${d.type}, ${d.details}: ${d.error ? d.error.message : ''} ${d.url || (d.frag && d.frag.url) || url}`);
    if (state.asset.live) again = setTimeout(() => goOn(hls, url, d.type), GO_ON_AFTER);
  });
  if (state.asset.live) {
    compareClocks();
    hls.on(Hls.Events.FRAG_BUFFERED, () => {
      $('problem').hidden = true;
      state.problem = null;
    });
  }
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    destroy: async () => {
      clearTimeout(again);
      hls.destroy();
    },
    // By PROGRAM-DATE-TIME: the time at which the picture arrived at the server.
    delay: () => (state.asset.live ? secondsSince(hls.playingDate) : null),
    renditions: () => hls.levels.map(size),
    rendition: () => hls.currentLevel,
    setRendition: n => { hls.currentLevel = n; },
    audios: () => hls.audioTracks.map(t => t.name),
    audio: () => hls.audioTrack,
    setAudio: n => { hls.audioTrack = n; },
    texts: () => hls.subtitleTracks.map(t => t.name),
    setText: n => { hls.subtitleDisplay = n >= 0; hls.subtitleTrack = n; },
  };
}

async function dashJs(url) {
  const player = dashjs.MediaPlayer().create();
  // Enabled from the start: text that is enabled later stays without cues. Off is a choice of no track.
  player.updateSettings({ streaming: { text: { defaultEnabled: true }, cmcd: { enabled: true, mode: 'header' } } });
  // Turned off no sooner than its first segment is there: dash.js drops the cues of a segment that arrives in that moment.
  let isTextChosen = false;
  const chooseText = n => {
    isTextChosen = true;
    player.setTextTrack(n);
  };
  player.on('fragmentLoadingCompleted', e => {
    if (e.request && e.request.mediaType === 'text') setTimeout(() => isTextChosen || chooseText(-1), 100);
    // It has gone on, perhaps at another server.
    if (e.request && e.request.type === 'MediaSegment' && !e.error) {
      $('problem').hidden = true;
      state.problem = null;
    }
  });
  player.on('error', e => state.fail(`dash.js: ${e.error.code}: ${e.error.message} ${(e.error.data && e.error.data.request && e.error.data.request.url) || url}`));
  player.initialize(video, new URL(url, location).href, false);
  const of = kind => player.getTracksFor(kind) || [];
  return {
    destroy: async () => player.destroy(),
    delay: () => (state.asset.live ? player.getCurrentLiveLatency() : null),
    renditions: () => (player.getRepresentationsByType('video') || []).map(size),
    rendition: () => {
      const now = player.getCurrentRepresentationForType('video');
      return now ? (player.getRepresentationsByType('video') || []).findIndex(r => r.id === now.id) : -1;
    },
    setRendition: n => {
      player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: n < 0 } } } });
      if (n >= 0) player.setRepresentationForTypeByIndex('video', n, true);
    },
    audios: () => of('audio').map(t => t.lang || 'und'),
    audio: () => of('audio').indexOf(player.getCurrentTrackFor('audio')),
    setAudio: n => player.setCurrentTrack(of('audio')[n]),
    texts: () => of('text').map(t => t.lang || 'und'),
    setText: chooseText,
  };
}

async function shakaPlayer(url) {
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  player.configure({ cmcd: { enabled: true, useHeaders: true } });
  await player.attach(video);
  const report = e => state.fail(`Shaka: ${e.code} (category ${e.category}): ${(e.data || []).filter(d => typeof d === 'string' || typeof d === 'number').join(' ')} ${url}`);
  player.addEventListener('error', e => report(e.detail));
  try {
    await player.load(url);
  } catch (e) {
    report(e);
    throw e;
  }
  const videos = () => player.getVideoTracks();
  const audios = () => player.getAudioTracks();
  return {
    destroy: () => player.destroy(),
    renditions: () => videos().map(size),
    rendition: () => videos().findIndex(t => t.active),
    setRendition: n => {
      player.configure({ abr: { enabled: n < 0 } });
      if (n >= 0) player.selectVideoTrack(videos()[n], true);
    },
    audios: () => audios().map(t => t.language),
    audio: () => audios().findIndex(t => t.active),
    setAudio: n => player.selectAudioTrack(audios()[n]),
    texts: () => player.getTextTracks().map(t => t.language),
    setText: n => {
      if (n >= 0) player.selectTextTrack(player.getTextTracks()[n]);
      else player.selectTextTrack(null);
    },
  };
}
