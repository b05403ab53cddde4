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
  state.hasChoices = true;
  if (state.subtitles !== null && texts.length) chooseSubtitles(state.subtitles);
  state.subtitles = null;
  showSubtitles();
}

function showSubtitles() {
  $('subtitles').setAttribute('aria-pressed', String(Number($('text').value) >= 0));
}

// Turns subtitles on, those that were last, or off.
function chooseSubtitles(isOn) {
  const select = $('text');
  if (Number(select.value) >= 0) chooseSubtitles.last = select.value;
  if (!isOn) select.value = -1;
  else if (Number(select.value) < 0) select.value = chooseSubtitles.last || 0;
  if (select.selectedIndex < 0) select.value = 0;
  select.onchange();
}

// Turns subtitles on or off. While a title loads, the wish waits for its tracks.
function toggleSubtitles() {
  const select = $('text');
  if (!state.hasChoices) {
    wantSubtitles();
    hint(state.subtitles ? 'Subtitles will be on' : 'Subtitles will be off', 2000);
    return;
  }
  if (select.disabled) {
    hint('This title has no subtitles');
    return;
  }
  const isOn = Number(select.value) < 0;
  chooseSubtitles(isOn);
  hint(isOn ? `Subtitles: ${select.selectedOptions[0].textContent}` : 'Subtitles off');
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
