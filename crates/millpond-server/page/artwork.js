'use strict';

// Artwork: images that the server has, on cards and behind a folder.

// Longest side of an image on a card, in pixels.
const CARD_SIDE = 640;

// Puts the image at a URL of this server into a card. Resolves with whether the card has it.
async function pictured(li, url) {
  if (!url || !li.isConnected) return false;
  const image = element('img', undefined, { src: here + url });
  try {
    await image.decode();
  } catch {
    return false;
  }
  const { naturalWidth: width, naturalHeight: height } = image;
  const scale = Math.min(1, CARD_SIDE / Math.max(width, height));
  // Posters of films and covers of records are shown whole.
  const canvas = element('canvas', undefined, { width: width * scale, height: height * scale, className: width < 1.3 * height ? 'tall' : '' });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  const look = li.firstChild.firstChild;
  look.querySelector('canvas')?.remove();
  look.prepend(canvas);
  look.dataset.letter = '';
  return true;
}

// Shows the image at a URL of this server behind the folder. Without a URL, no image is shown.
function backdrop(url = '') {
  $('library').dataset.backdrop = url;
  $('library').style.setProperty('--backdrop', url && `url("${here}${url}")`);
}
