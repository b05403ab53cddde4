'use strict';

// The controls over the picture.

// Milliseconds without a hand until the controls leave the picture, and until a hint does.
const IDLE = 2500;
const HINT = 900;

const controls = { idle: null, hint: null, from: 0 };

// Shows the effect of a key or a touch for a moment.
function hint(text, lasts = HINT) {
  clearTimeout(controls.hint);
  $('hint').textContent = text;
  controls.hint = setTimeout(() => { $('hint').textContent = ''; }, lasts);
}

// Shows the controls, and takes them away when nobody needs them.
function awake() {
  clearTimeout(controls.idle);
  $('screen').classList.remove('idle');
  controls.idle = setTimeout(rest, IDLE);
}

function rest() {
  const isNeeded = video.paused || !$('menu').hidden || !$('trouble').hidden || !$('next-card').hidden || !$('preview').hidden;
  $('screen').classList.toggle('idle', !isNeeded);
}

// Plays with sound; where the browser wants a click first, without.
async function begin() {
  try {
    await video.play();
  } catch (error) {
    if (error.name !== 'NotAllowedError' || video.muted) return;
    video.muted = true;
    await video.play().catch(() => {});
    hint('Press m, or the button, for sound', 4000);
  }
}

// Makes the picture as the viewer left the one before.
function prepare() {
  const { muted, volume, speed } = memory.wishes;
  video.muted = muted === true;
  video.volume = volume >= 0 && volume <= 1 ? volume : 1;
  const { asset } = state;
  controls.from = asset.live || state.engine === 'stream' ? 0 : placeIn(asset.path);
  video.addEventListener('loadedmetadata', () => {
    if (state.asset !== asset || asset.live || state.engine === 'stream') return;
    if (SPEEDS.includes(speed)) video.playbackRate = speed;
    if (controls.from) video.currentTime = controls.from;
  }, { once: true });
}

// Makes sure that a title goes on where it was left: players may begin at the beginning all the same.
function settle(asset) {
  const { from } = controls;
  if (!from || state.asset !== asset) return;
  if (video.currentTime < from - 2) video.currentTime = from;
  hint(`Goes on at ${clock(from)}`, 3000);
}

// Titles without pictures have their name in the middle.
function showSign({ tracks }, hasPictures) {
  $('sign').hidden = hasPictures || !tracks.length;
  $('sign').textContent = $('title').textContent;
}

function togglePlay() {
  if (!state.player) return;
  if (video.paused) begin();
  else video.pause();
}

// Goes to a time, within what there is.
function seekTo(time) {
  if (!state.player || state.engine === 'stream') return;
  const { seekable } = video;
  const [from, to] = seekable.length ? [seekable.start(0), seekable.end(seekable.length - 1)] : [0, video.duration || 0];
  video.currentTime = Math.min(to, Math.max(from, time));
}

function seekBy(seconds) {
  if (!state.player || state.engine === 'stream') return;
  seekTo(video.currentTime + seconds);
  hint(`${seconds > 0 ? '+' : '−'}${Math.abs(seconds)} s`);
}

function louder(step) {
  video.muted = false;
  video.volume = Math.min(1, Math.max(0, Math.round((video.volume + step) * 20) / 20));
  wish({ volume: video.volume, muted: false });
  hint(`Volume ${Math.round(video.volume * 100)} %`);
}

function toggleSound() {
  video.muted = !video.muted;
  if (!video.muted && !video.volume) video.volume = 0.5;
  wish({ muted: video.muted, volume: video.volume });
}

function toggleFull() {
  if (document.fullscreenElement) document.exitFullscreen();
  else if ($('screen').requestFullscreen) $('screen').requestFullscreen().catch(() => {});
  // On phones of Apple the video alone fills the screen.
  else video.webkitEnterFullscreen?.();
}

function toggleWindow() {
  if (document.pictureInPictureElement) document.exitPictureInPicture();
  else video.requestPictureInPicture().catch(error => hint(error.message, 3000));
}

function toggleMenu(isOpen = $('menu').hidden) {
  $('menu').hidden = !isOpen;
  $('settings').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) $('menu').querySelector('select:enabled, input')?.focus();
  awake();
}

// Shows on each button its present action.
function showControls() {
  const isOver = video.ended;
  sign($('play'), isOver ? 'again' : video.paused ? 'play' : 'pause', isOver ? 'Play again' : video.paused ? 'Play' : 'Pause');
  const isSilent = video.muted || video.volume === 0;
  sign($('mute'), isSilent ? 'silent' : 'loud', isSilent ? 'Sound on' : 'Sound off');
  $('volume').value = isSilent ? 0 : video.volume;
  $('volume').style.setProperty('--share', `${isSilent ? 0 : video.volume * 100}%`);
  const isFull = Boolean(document.fullscreenElement);
  sign($('full'), isFull ? 'small' : 'full', isFull ? 'Leave full screen' : 'Full screen');
  awake();
}

// Another screen: by AirPlay, or by the Remote Playback API.
function watchScreens() {
  if (video.webkitShowPlaybackTargetPicker) {
    video.addEventListener('webkitplaybacktargetavailabilitychanged', event => { $('cast').hidden = event.availability !== 'available'; });
    $('cast').onclick = () => video.webkitShowPlaybackTargetPicker();
  } else if (video.remote) {
    video.remote.watchAvailability(isThere => { $('cast').hidden = !isThere; }).catch(() => {});
    $('cast').onclick = () => video.remote.prompt().catch(() => {});
  }
}

function watchControls() {
  for (const [id, name] of [['next', 'next'], ['subtitles', 'subtitles'], ['settings', 'settings'], ['cast', 'cast'], ['window', 'window']]) sign($(id), name);
  for (const event of ['play', 'pause', 'ended', 'volumechange', 'seeked', 'emptied']) video.addEventListener(event, showControls);
  document.addEventListener('fullscreenchange', showControls);
  for (const event of ['waiting', 'seeking']) video.addEventListener(event, () => { $('waiting').hidden = false; });
  for (const event of ['playing', 'seeked', 'pause', 'timeupdate']) video.addEventListener(event, () => { $('waiting').hidden = true; });
  $('play').onclick = togglePlay;
  $('mute').onclick = toggleSound;
  $('volume').oninput = () => {
    video.muted = false;
    video.volume = Number($('volume').value);
  };
  $('volume').onchange = () => wish({ volume: video.volume, muted: false });
  $('full').onclick = toggleFull;
  $('window').onclick = toggleWindow;
  $('window').hidden = !document.pictureInPictureEnabled;
  $('subtitles').onclick = toggleSubtitles;
  $('settings').onclick = () => toggleMenu();
  $('retry').onclick = () => (state.asset ? play(state.engine) : select(view.path, view.engine)).catch(() => {});
  $('show-details').onclick = () => {
    $('details').open = true;
    $('details').querySelector('summary').focus();
    $('details').scrollIntoView({ block: 'nearest' });
  };
  for (const event of ['pointermove', 'focusin', 'keydown']) $('screen').addEventListener(event, awake);
  document.addEventListener('pointerdown', event => {
    if (!$('menu').hidden && !event.target.closest('#menu, #settings')) toggleMenu(false);
  });
  watchScreens();
  showControls();
}
