'use strict';

// The players, each behind the same few functions.

const engines = {
  stream: longResponse,
  webrtc: webRtc,
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

const SCRIPTS = {
  hls: 'vendor/hls.min.js', 'hls-ts': 'vendor/hls.min.js', dash: 'vendor/dash.all.min.js',
  shaka: 'vendor/shaka-player.compiled.js', 'shaka-hls': 'vendor/shaka-player.compiled.js',
};

// Milliseconds for which players wait for a playlist or manifest of a live stream. The server waits for the source, and then says
// what is wrong with it: it must come first.
const LIVE_PATIENCE = 60000;

// Tells a fault of a player in the server's words, where the server refused a request of it: `body` and `status` are its reply, or
// the request is made again. `words` are those of the player.
async function explain(words, { body, status, url }) {
  if (body && status >= 400) return refusal(body, status);
  const reply = await fetch(url).catch(() => null);
  if (!reply || reply.ok) {
    reply?.body?.cancel();
    return words;
  }
  return refusal(await reply.text(), reply.status);
}

// The body of a reply that a player got by XMLHttpRequest, as text.
function bodyOf(request) {
  if (!request || !request.status) return '';
  const { responseType, response } = request;
  if (!responseType || responseType === 'text') return request.responseText;
  return response instanceof ArrayBuffer ? new TextDecoder().decode(response) : '';
}

const size = r => `${r.height || '?'}p, ${Math.round((r.bitrate || r.bandwidth || r.bitsPerSecond || 0) / 1000)} kbit/s`;

async function longResponse(url) {
  // The tracks of a stream that has not begun are not known: another player may be the one that plays them.
  const { path, tracks } = state.asset;
  const isBlind = !tracks.length;
  const player = new LongResponse(video, url, (words, fault) => {
    if (!words) noProblem();
    else if (isBlind && fault?.code === UNDECODABLE) select(path, 'live');
    else state.fail(words, fault);
  });
  return {
    destroy: async () => player.destroy(),
    delay: () => player.delay(),
    renditions: () => [], rendition: () => null, setRendition: () => {},
    audios: () => [], setAudio: () => {}, texts: () => [], setText: () => {},
  };
}

async function webRtc(url) {
  const player = new WebRtcPlayer(video, url, (words, isFinal) => {
    if (!words) noProblem();
    // Another player has the stream, a little later.
    else if (isFinal && state.asset.outputs.stream) play(usable('stream'));
    else state.fail(words);
  });
  let delay = null;
  const measuring = setInterval(async () => { delay = await player.delay(); }, 1000);
  return {
    destroy: async () => {
      clearInterval(measuring);
      player.destroy();
    },
    delay: () => delay,
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
  const { fail, asset } = state;
  const once = { maxTimeToFirstByteMs: LIVE_PATIENCE, maxLoadTimeMs: LIVE_PATIENCE, timeoutRetry: null, errorRetry: null };
  const patience = asset.live ? { manifestLoadPolicy: { default: once } } : {};
  const hls = new Hls({ renderTextTracksNatively: true, cmcd: { useHeaders: true }, ...patience });
  let again;
  let isOver = false;
  hls.on(Hls.Events.ERROR, async (_, d) => {
    if (!d.fatal) return;
    if (asset.live) again = setTimeout(() => goOn(hls, url, d.type), GO_ON_AFTER);
    const of = d.url || d.frag?.url || url;
    let words = `hls.js: ${d.type}, ${d.details}: ${d.error ? d.error.message : ''} ${of}`;
    if (d.type === Hls.ErrorTypes.NETWORK_ERROR) {
      words = await explain(words, { body: bodyOf(d.networkDetails), status: d.networkDetails?.status, url: of });
      if (asset.live) words += ' Asking again …';
    }
    if (!isOver) fail(words);
  });
  if (state.asset.live) {
    compareClocks();
    hls.on(Hls.Events.FRAG_BUFFERED, () => {
      noProblem();
    });
  }
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    destroy: async () => {
      isOver = true;
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
  const { fail, asset } = state;
  if (asset.live) player.updateSettings({ streaming: { manifestRequestTimeout: LIVE_PATIENCE, retryAttempts: { MPD: 0 } } });
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
      noProblem();
    }
  });
  let isOver = false;
  player.on('error', async ({ error }) => {
    const { request, response } = error.data || {};
    const of = request?.url || url;
    let words = `dash.js: ${error.code}: ${error.message} ${of}`;
    if (request) words = await explain(words, { body: bodyOf(response), status: response?.status, url: of });
    if (!isOver) fail(words);
  });
  player.initialize(video, url, false);
  const of = kind => player.getTracksFor(kind) || [];
  return {
    destroy: async () => {
      isOver = true;
      player.destroy();
    },
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
  const { fail, asset } = state;
  if (asset.live) player.configure({ manifest: { retryParameters: { maxAttempts: 1, timeout: LIVE_PATIENCE } } });
  let isOver = false;
  const report = async e => {
    const data = e.data || [];
    let words = `Shaka: ${e.code} (category ${e.category}): ${data.filter(d => typeof d === 'string' || typeof d === 'number').join(' ')} ${url}`;
    const { Category, Code } = shaka.util.Error;
    const [of, status, body] = e.code === Code.BAD_HTTP_STATUS ? data : [];
    if (e.category === Category.NETWORK) words = await explain(words, { body, status, url: of || url });
    if (!isOver) fail(words);
  };
  player.addEventListener('error', e => report(e.detail));
  try {
    await player.load(url);
  } catch (e) {
    await report(e);
    throw e;
  }
  const videos = () => player.getVideoTracks();
  const audios = () => player.getAudioTracks();
  return {
    destroy: () => {
      isOver = true;
      return player.destroy();
    },
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
