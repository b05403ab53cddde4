'use strict';

// The bar for seeking, with a picture of the place that it points at.

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
  markChapters(asset);
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
  const [at, most] = [Number($('scrub').value), Number($('scrub').max)];
  $('scrub').setAttribute('aria-valuetext', [`${clock(at)} of ${clock(most)}`, chapterAt(at)].filter(Boolean).join(', '));
  $('scrub').style.setProperty('--share', `${most ? 100 * at / most : 0}%`);
  $('scrub-time').textContent = `${clock(at)} / ${clock(most)}`;
}

// Shows on the bar how far media is there.
function showBuffered() {
  const { buffered } = video;
  const most = Number($('scrub').max);
  const to = buffered.length && most ? buffered.end(buffered.length - 1) : 0;
  $('scrub').style.setProperty('--there', `${most ? Math.min(100, 100 * to / most) : 0}%`);
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
  $('preview-time').textContent = [clock(time), chapterAt(time)].filter(Boolean).join(' ');
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
  video.addEventListener('timeupdate', showPlace);
  video.addEventListener('progress', showBuffered);
  video.addEventListener('seeked', showPlace);
}
