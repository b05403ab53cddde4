'use strict';

// Sound that a title has and its viewer doesn't hear: told briefly over the picture, and with the reason in the details.

// Sound that the server doesn't read, as its warnings name it.
const UNREAD = /\b(DTS|(?:Dolby )?TrueHD|MLP|AMR(?:-WB)?|AC-4|Vorbis|WavPack|TTA|ATRAC|Musepack|RealAudio|MPEG-H 3D audio)\b[^:]* is not supported$/;

const namesOf = tracks => tracks.map(track => (track['codec-name'] || codecName(track.codec)).replace(/ [Aμ]-law$/, ''));

// A few words about sound that is missing beside the pictures of an asset, as a player gets it; '' where none is.
function missingSound({ tracks, warnings }, engine) {
  if (engine === 'stream' || !tracks.some(t => t.kind === 'video')) return '';
  const sounds = tracks.filter(t => t.kind === 'audio');
  // The browser's own player gets the file with all that is in it.
  const unlisted = engine === 'native' ? [] : sounds.filter(t => t.listed === false);
  const offered = sounds.filter(t => !unlisted.includes(t));
  const unread = warnings.map(text => UNREAD.exec(text)?.[1]).filter(Boolean);
  const absent = [...new Set([...namesOf(unlisted), ...unread])].join(', ');
  if (offered.some(t => decodable('audio', t.codec))) return absent && `Sound left out: ${absent}`;
  if (offered.length) return `No sound: this browser can't play ${codecName(offered[0].codec)}`;
  return absent && `No sound: ${absent} can't be played by browsers`;
}

// Lists the warnings of the asset below its tracks, with the words about its sound and their cure first.
function showWarnings() {
  const { warnings, outputs } = state.asset;
  const words = missingSound(state.asset, state.engine);
  const key = ['file', 'rtsp'].find(of => outputs[of] && address(outputs[of]));
  const cure = key ? ` VLC and mpv can: ${address(outputs[key])}` : '';
  $('warnings').replaceChildren(...[...(words ? [`${words}.${cure}`] : []), ...warnings].map(text => element('li', text)));
  $('details').querySelector('summary').textContent = words ? `Details: ${words[0].toLowerCase()}${words.slice(1).replace(/:.*/, '')}` : 'Details';
}
