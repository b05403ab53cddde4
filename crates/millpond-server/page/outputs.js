'use strict';

// The addresses and tracks of an asset, for those who want to know.

const NAMES = {
  hls: 'HLS, fMP4', 'hls-ts': 'HLS, TS', dash: 'DASH', stream: 'MP4, live', whep: 'WebRTC (WHEP)', 'hls-live': 'HLS, live', 'dash-live': 'DASH, live',
  rtsp: 'RTSP', rtsps: 'RTSP, TLS', file: 'File', poster: 'Poster', thumbnails: 'Thumbnails',
};

function showOutputs() {
  const { outputs, tracks, duration, live } = state.asset;
  showEngines();
  showLive();
  $('file').textContent = state.asset.path;
  $('duration').parentElement.hidden = Boolean(live);
  $('duration').textContent = live ? '–' : clock(duration);
  const link = encodeURIComponent(state.asset.path).replace(/%2F/g, '/').replace(/%2C/g, ',');
  const page = outputRow('This page', `${here}/#path=${link}`);
  const shown = Object.entries(NAMES).filter(([key]) => outputs[key]);
  $('outputs').tBodies[0].replaceChildren(...shown.map(([key, name]) => outputRow(name, address(outputs[key]), outputs[key].reason)), page);
  $('tracks').hidden = !tracks.length;
  $('tracks').tBodies[0].replaceChildren(...tracks.map(trackRow));
  showWarnings();
}

// Pages of plain HTTP from other machines have no clipboard but the old way.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element('textarea', text);
    const active = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    active?.focus();
    return done;
  }
}

// A row with an address and what can be done with it, or with the reason that there is none.
function outputRow(name, href, reason) {
  const tr = element('tr');
  tr.append(element('th', name, { scope: 'row' }));
  const cell = element('td');
  if (!href) {
    cell.textContent = reason;
    cell.colSpan = 2;
    tr.append(cell);
    return tr;
  }
  cell.append(element('a', href, { href }));
  const copy = element('button', 'copy', { type: 'button', ariaLabel: `Copy the address of ${name}` });
  copy.onclick = async () => { copy.textContent = await copied(href) ? 'copied' : 'select it by hand'; };
  const code = element('button', 'QR', { type: 'button', ariaLabel: `Show the address of ${name} as a QR code` });
  code.onclick = () => showCode(name, href);
  const last = element('td', undefined, { className: 'tight' });
  last.append(copy, ' ', code);
  tr.append(cell, last);
  return tr;
}

// Shows an address for the camera of a phone.
async function showCode(name, address) {
  const { href, note } = await addressForOthers(address);
  const dark = href && qrCode(href);
  const picture = dark ? qrPicture(dark) : element('p', href ? 'The address is too long for a QR code.' : '');
  $('code-name').textContent = name;
  $('code-address').textContent = href || address;
  $('code-picture').replaceChildren(picture, element('p', note, { className: 'note' }));
  $('code').showModal();
}

$('code').onclick = event => { if (event.target === $('code')) $('code').close(); };
$('code-close').onclick = () => $('code').close();

function trackRow(t) {
  const tr = element('tr');
  const size = t.width ? `${t.width}×${t.height}` : '';
  const rate = t.bandwidth ? `${Math.round(t.bandwidth / 1000)} kbit/s` : '';
  const here = element('td', '');
  const cells = [['Kind', t.kind], ['Codec', t.codec], ['Size', size], ['Language', t.language || ''], ['Label', t.label || ''],
    ['Bandwidth', rate], ['Segments', t.segments]].map(([label, text]) => {
    const td = element('td', text);
    td.dataset.label = label;
    return td;
  });
  here.dataset.label = 'In this browser';
  tr.append(element('th', t.name, { scope: 'row' }), ...cells, here);
  ability(t).then(text => { here.textContent = text; });
  return tr;
}

// How this browser plays a track.
async function ability(t) {
  if (t.kind === 'text') return '';
  if (!decodable(t.kind, t.codec)) return "can't decode it";
  const contentType = `${t.kind}/mp4; codecs="${t.codec}"`;
  const bitrate = t.bandwidth || 1;
  const asked = t.kind === 'video' ? { video: { contentType, width: t.width || 1, height: t.height || 1, bitrate, framerate: 30 } }
    : { audio: { contentType, bitrate } };
  const info = await navigator.mediaCapabilities?.decodingInfo({ type: 'media-source', ...asked }).catch(() => null);
  return info && info.supported && !info.smooth ? 'plays, perhaps not smoothly' : 'plays';
}

// RTSP has a port of its own on the host that the page is from.
function address({ url, scheme, port, path }) {
  if (scheme) return `${scheme}://${location.hostname}:${port}${token}${path}`;
  return url ? here + url : null;
}
