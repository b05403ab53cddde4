'use strict';

// Faults in plain words, and what can be done.

// A fault in a player's own words begins with the player's name.
const OF_PLAYER = /^(hls\.js|dash\.js|Shaka|browser):/;

// Codes of the server for a file whose format is not read, or whose codecs are not played.
const UNREADABLE = { format: 'is', codec: 'has' };
// The page's own code for a title whose codecs this browser can't decode.
const UNDECODABLE = 'browser';

// The words for viewers. A player's own words stand in the details.
function plainWords(text, { code, media, command }) {
  const verb = UNREADABLE[code];
  const cure = command ? ` This makes a file that plays:\n${command}` : '';
  if (verb) return `${nameOf(view.path)} ${verb} ${media.join(', ')}, which is not played here.${cure}`;
  if (!OF_PLAYER.test(text)) return text;
  if (/network|category 1\)|timeout/i.test(text)) return 'The connection to the server broke. Check the network, and try again.';
  return 'This browser could not read the media. Try again, or choose another player in the details.';
}

function problem(text, { code, media, command } = {}) {
  $('problem').textContent = plainWords(text, { code, media, command });
  $('problem').hidden = $('trouble').hidden = false;
  $('waiting').hidden = true;
  // A second attempt has the same decoders, and the same file.
  $('retry').hidden = code === UNDECODABLE || code in UNREADABLE;
  $('words').textContent = text;
  $('words').parentElement.hidden = !OF_PLAYER.test(text);
  state.problem = text;
}

// Takes the words of a fault away.
function noProblem() {
  $('problem').hidden = $('trouble').hidden = $('words').parentElement.hidden = true;
  state.problem = null;
}

const CODECS = [
  [/^(hvc1|hev1)/, 'HEVC (H.265)'], [/^(dvh1|dvhe)/, 'Dolby Vision'], [/^av01/, 'AV1'], [/^vp0?9/, 'VP9'], [/^avc/, 'H.264'],
  [/^mp4v/, 'MPEG-4 Part 2'], [/^ac-3/, 'Dolby Digital (AC-3)'], [/^ec-3/, 'Dolby Digital Plus (E-AC-3)'], [/^ac-4/, 'AC-4'],
  [/^alac/i, 'ALAC'], [/^fLaC/i, 'FLAC'], [/^opus/i, 'Opus'], [/^mp4a\.(69|6B|34)/i, 'MP3'], [/^mp4a/, 'AAC'], [/^[au]law/, 'G.711'], [/^[if]pcm|^lpcm|^sowt|^twos/, 'PCM'],
];

const codecName = codec => (CODECS.find(([form]) => form.test(codec)) || [null, codec])[1];

// A sentence where this browser can decode no track of a kind; nothing where it can, or there is none.
function undecodable(tracks, kind, whatIs) {
  const all = tracks.filter(t => t.kind === kind);
  if (!all.length || all.some(t => decodable(kind, t.codec))) return null;
  const { codec } = all[0];
  const hint = /^(hvc1|hev1|dvh1|dvhe)/.test(codec) ? 'Safari can, and Chrome and Edge where the hardware decodes it. ' : '';
  const { outputs } = state.asset;
  const key = ['rtsp', 'hls', 'hls-ts', 'dash', 'file'].find(of => outputs[of] && address(outputs[of]));
  const other = key ? `Open ${address(outputs[key])} in VLC or mpv.` : 'The addresses in the details play in VLC, mpv and other players.';
  return `This browser can't decode ${codecName(codec)}, which the ${whatIs} coded in (${codec}). ${hint}${other}`;
}
