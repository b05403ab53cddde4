'use strict';

// Sound of a title that its viewer doesn't hear: a notice over the picture, and the reason in the details.

const namesOf = tracks => tracks.map(track => (track['codec-name'] || codecName(track.codec)).replace(/ [Aμ]-law$/, ''));

// The notice about sound that is missing beside the pictures of an asset in a player; '' if none is missing.
function missingSound({ tracks, 'left-out': leftOut = [] }, engine) {
  if (engine === 'stream' || !tracks.some(t => t.kind === 'video')) return '';
  const sounds = tracks.filter(t => t.kind === 'audio');
  // The browser's own player gets the whole file.
  const unlisted = engine === 'native' ? [] : sounds.filter(t => t.listed === false);
  const offered = sounds.filter(t => !unlisted.includes(t));
  // The server doesn't read their codecs.
  const unread = leftOut.filter(t => t.kind === 'audio').map(t => t.codec);
  const absent = [...new Set([...namesOf(unlisted), ...unread])].join(', ');
  if (offered.some(t => decodable('audio', t.codec))) return absent && `Sound left out: ${absent}`;
  if (offered.length) return `No sound: this browser can't play ${codecName(offered[0].codec)}`;
  return absent && `No sound: ${absent} can't be played by browsers`;
}

// Lists the warnings of the asset below its tracks. The notice about sound comes first, with an address for other players.
function showWarnings() {
  const { warnings, outputs } = state.asset;
  const words = missingSound(state.asset, state.engine);
  const key = ['file', 'rtsp'].find(of => outputs[of] && address(outputs[of]));
  const cure = key ? ` VLC and mpv play it: ${address(outputs[key])}` : '';
  $('warnings').replaceChildren(...[...(words ? [`${words}.${cure}`] : []), ...warnings].map(text => element('li', text)));
  $('details').querySelector('summary').textContent = words ? `Details: ${words[0].toLowerCase()}${words.slice(1).replace(/:.*/, '')}` : 'Details';
}
