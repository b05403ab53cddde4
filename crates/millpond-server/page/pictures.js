'use strict';

// Pictures of assets: key frames that the server sends as MP4 files of one frame, and the browser decodes.

// Width of a decoded picture in pixels, larger on large screens; and milliseconds after which a picture that is missing is given up.
const PICTURE_WIDTH = innerWidth * devicePixelRatio > 2400 ? 480 : 320;
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
