'use strict';

// The title that follows in the gallery.

// Seconds until it plays by itself.
const COUNTDOWN = 8;

const following = { row: null, timer: null };

// The begin that episodes share.
const series = path => orderOf(nameOf(path)).replace(/\d.*$/s, '').trim();

// Finds the row after that of the asset, in the order of the gallery.
function nextRow() {
  const { asset } = state;
  if (!asset || asset.live) return null;
  const titles = shelf.rows.filter(row => row.kind === 'file' || row.kind === 'manifest');
  const index = titles.findIndex(row => row.path === fileOf(asset.path));
  // Titles that the server can't read are skipped.
  return index < 0 ? null : titles.slice(index + 1).find(row => !posters.known.get(keyOf(row))?.why) || null;
}

// Whether the next title plays by itself: as the viewer wishes, else where it looks like the next episode.
function isAutomatic(row) {
  const { next } = memory.wishes;
  const own = series(state.asset.path);
  return typeof next === 'boolean' ? next : own !== '' && series(row.path) === own && /\d/.test(nameOf(row.path));
}

// Offers the next title on its button.
function offerNext() {
  const row = nextRow();
  $('next').hidden = !row;
  if (row) sign($('next'), 'next', `Next: ${row.title}`);
  $('autoplay').checked = row ? isAutomatic(row) : memory.wishes.next === true;
  if (!state.asset || !('mediaSession' in navigator)) return;
  navigator.mediaSession.metadata = new MediaMetadata({ title: $('title').textContent });
  navigator.mediaSession.setActionHandler('nexttrack', row ? playNext : null);
}

function playNext() {
  const row = following.row || nextRow();
  cancelNext();
  if (row) go({ path: row.path });
}

function cancelNext() {
  clearInterval(following.timer);
  following.row = null;
  $('next-card').hidden = true;
}

// Offers the next title at the end of this one.
function ended() {
  const row = nextRow();
  if (!state.isChosen || !row) return;
  cancelNext();
  following.row = row;
  let left = COUNTDOWN;
  const tell = () => { $('next-when').textContent = isAutomatic(row) ? `Next in ${left} s:` : 'Next:'; };
  $('next-title').textContent = row.title;
  $('next-card').hidden = false;
  tell();
  if (!isAutomatic(row)) return;
  following.timer = setInterval(() => {
    left -= 1;
    if (left > 0) tell();
    else playNext();
  }, 1000);
}

$('next').onclick = $('next-now').onclick = playNext;
$('next-not').onclick = cancelNext;
video.addEventListener('ended', ended);
video.addEventListener('seeking', cancelNext);
document.addEventListener('listed', offerNext);
