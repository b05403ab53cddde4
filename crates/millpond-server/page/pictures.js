'use strict';

// Pictures of assets: key frames that the server sends as MP4 files of one frame, and the browser decodes.

// Width of a decoded picture in pixels, and milliseconds until a picture that does not come is given up.
const PICTURE_WIDTH = 320;
const PICTURE_PATIENCE = 20000;
// How often a frame is looked for that was announced, and seconds in between.
const DRAWN_TRIES = 40;
const DRAWN_PAUSE = 0.05;
// Videos that decode at the same time. Browsers allow a page some dozens.
const DECODERS = 2;

const pictures = { known: new Recent(96), free: DECODERS, waiting: [] };

// Resolves with a canvas of the picture at a URL. A `signal` that is aborted before its turn saves the request.
async function picture(url, signal) {
  const known = pictures.known.get(url);
  if (known) return known;
  if (pictures.free === 0) await new Promise(turn => { pictures.waiting.push(turn); });
  else pictures.free -= 1;
  try {
    signal?.throwIfAborted();
    const made = pictures.known.get(url) || await decoded(url);
    pictures.known.set(url, made);
    return made;
  } finally {
    const next = pictures.waiting.shift();
    if (next) next();
    else pictures.free += 1;
  }
}

// Decodes a file of one frame.
async function decoded(url) {
  const video = document.createElement('video');
  Object.assign(video, { muted: true, playsInline: true, preload: 'auto' });
  let timer;
  try {
    await new Promise((done, fail) => {
      video.onloadeddata = done;
      video.onerror = () => fail(new Error(`no picture: ${url}`));
      timer = setTimeout(video.onerror, PICTURE_PATIENCE);
      video.src = here + url;
    });
    const canvas = document.createElement('canvas');
    canvas.width = Math.min(PICTURE_WIDTH, video.videoWidth);
    canvas.height = Math.max(1, Math.round(canvas.width * video.videoHeight / video.videoWidth));
    const context = canvas.getContext('2d', { willReadFrequently: true });
    // The first frame may not be there to be drawn in the moment in which it is announced.
    for (let tries = 0; ; tries += 1) {
      context.drawImage(video, 0, 0, canvas.width, canvas.height);
      if (context.getImageData(0, 0, 1, 1).data[3] > 0) return canvas;
      if (tries === DRAWN_TRIES) throw new Error(`no picture: ${url}`);
      await wait(DRAWN_PAUSE);
    }
  } finally {
    clearTimeout(timer);
    Object.assign(video, { onloadeddata: null, onerror: null });
    video.removeAttribute('src');
    video.load();
  }
}

// Copies a picture into a canvas of the page, in its own aspect ratio.
function paint(canvas, made) {
  canvas.width = made.width;
  canvas.height = made.height;
  canvas.getContext('2d').drawImage(made, 0, 0);
}

// ---- the bar for seeking, with a picture of the place that it points at

// A picture is shown for the key frame before the place, at most so many a second while the pointer moves.
const PREVIEW_PAUSE = 80;

const seeking = { times: [], below: null, video: null, aborts: new AbortController(), timer: null, isHeld: false };

// Offers seeking in an asset; hides the bar where there is nothing to seek in.
async function offerSeeking(video, asset) {
  const { duration, pictures: shown, live } = asset;
  Object.assign(seeking, { times: [], below: null, video });
  $('seek').hidden = live || !(duration > 0);
  $('scrub').max = duration || 0;
  $('preview').hidden = true;
  showPlace();
  if (!shown || live || !decodable('video', shown.codec)) return;
  const reply = await fetch(`${here}${shown.below}/iframes.m3u8`).catch(() => null);
  if (!reply || !reply.ok) return;
  let time = 0;
  const times = [...(await reply.text()).matchAll(/^#EXTINF:([\d.]+)/gm)].map(([, lasts]) => {
    time += Number(lasts);
    return time - Number(lasts);
  });
  if (seeking.video === video && state.asset === asset) Object.assign(seeking, { times, below: shown.below });
}

function showPlace() {
  if (!seeking.video || seeking.isHeld) return;
  $('scrub').value = seeking.video.currentTime;
  tellPlace();
}

function tellPlace() {
  const text = `${clock(Number($('scrub').value))} of ${clock(Number($('scrub').max))}`;
  $('scrub').setAttribute('aria-valuetext', text);
  $('scrub-time').textContent = text;
}

// Shows the key frame at a time, above the place of that time on the bar.
function preview(time) {
  clearTimeout(seeking.timer);
  const { times, below } = seeking;
  if (!below || !times.length) return;
  const bar = $('scrub').getBoundingClientRect();
  const share = Math.min(1, Math.max(0, time / Number($('scrub').max)));
  const half = $('preview').offsetWidth / 2 || 80;
  $('preview').style.left = `${Math.min(bar.width - half, Math.max(half, share * bar.width))}px`;
  $('preview-time').textContent = clock(time);
  $('preview').hidden = false;
  seeking.timer = setTimeout(async () => {
    seeking.aborts.abort();
    seeking.aborts = new AbortController();
    const { signal } = seeking.aborts;
    const number = times.filter(begin => begin <= time + 0.001).length || 1;
    const made = await picture(`${below}/i${number}.mp4`, signal).catch(() => null);
    if (made && !signal.aborted) paint($('preview-picture'), made);
  }, PREVIEW_PAUSE);
}

function hidePreview() {
  clearTimeout(seeking.timer);
  seeking.aborts.abort();
  $('preview').hidden = true;
}

function watchSeeking(video) {
  const bar = $('scrub');
  bar.oninput = () => {
    seeking.isHeld = true;
    tellPlace();
    preview(Number(bar.value));
  };
  bar.onchange = () => {
    seeking.isHeld = false;
    video.currentTime = Number(bar.value);
  };
  bar.onpointermove = event => {
    const box = bar.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    if (!seeking.isHeld) preview(share * Number(bar.max));
  };
  bar.onpointerleave = () => seeking.isHeld || hidePreview();
  bar.onpointerup = bar.onblur = hidePreview;
  bar.onkeydown = event => { if (event.key === 'Escape') hidePreview(); };
  video.addEventListener('timeupdate', showPlace);
  video.addEventListener('seeked', showPlace);
}
