'use strict';

// Quality, sound, subtitles and speed, as the viewer chooses them. The last three are remembered.

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];

function options(select, names, none, chosen, choose) {
  const all = none === null ? [] : [[none, -1]];
  const entries = all.concat(names.map((n, i) => [n, i]));
  select.replaceChildren(...entries.map(([text, value]) => element('option', text, { value })));
  select.disabled = names.length < (none === null ? 2 : 1);
  select.value = chosen;
  select.onchange = () => choose(Number(select.value));
}

// Chooses the track that was chosen before, by its name, where this title has it.
function again(select, names, wanted, choose) {
  const index = names.indexOf(wanted);
  if (!state.isChosen || index < 0) return;
  select.value = index;
  choose(index);
}

function choices() {
  const p = state.player;
  if (!p) return;
  const [sounds, texts] = [p.audios(), p.texts()];
  options($('quality'), p.renditions(), 'automatic', -1, n => p.setRendition(n));
  options($('audio'), sounds, null, p.audio ? p.audio() : 0, n => {
    p.setAudio(n);
    wish({ audio: sounds[n] });
  });
  options($('text'), texts, 'off', -1, n => {
    p.setText(n);
    wish({ text: texts[n] || '' });
    showSubtitles();
  });
  again($('audio'), sounds, memory.wishes.audio, n => n !== (p.audio ? p.audio() : 0) && p.setAudio(n));
  again($('text'), texts, memory.wishes.text, n => p.setText(n));
  const isLiveNow = Boolean(state.asset.live) || state.engine === 'stream';
  options($('speed'), isLiveNow ? ['normal'] : SPEEDS.map(n => (n === 1 ? 'normal' : `${n}×`)), null, isLiveNow ? 0 : SPEEDS.indexOf(video.playbackRate),
    n => setSpeed(SPEEDS[n]));
  $('subtitles').hidden = !texts.length;
  showSubtitles();
}

function showSubtitles() {
  $('subtitles').setAttribute('aria-pressed', String(Number($('text').value) >= 0));
}

// Turns subtitles on, those that were last, or off.
function toggleSubtitles() {
  const select = $('text');
  if (select.disabled) return;
  const isOn = Number(select.value) >= 0;
  if (isOn) toggleSubtitles.last = select.value;
  select.value = isOn ? -1 : toggleSubtitles.last || 0;
  if (select.selectedIndex < 0) select.value = 0;
  select.onchange();
  hint(isOn ? 'Subtitles off' : `Subtitles: ${select.selectedOptions[0].textContent}`);
}

function setSpeed(speed) {
  if (state.asset?.live || state.engine === 'stream') return;
  video.playbackRate = speed;
  $('speed').value = SPEEDS.indexOf(speed);
  wish({ speed });
  hint(`Speed ${speed}×`);
}

// The wish holds for all titles. Without one, only the next episode plays by itself.
$('autoplay').onchange = () => wish({ next: $('autoplay').checked });
