'use strict';

// Programmes of a recording: their choice beside that of sound, and the name of the programme that plays.

// Returns the names of programmes. A name that several programmes have is followed by the number.
function programmeNames(programmes) {
  const names = programmes.map(({ name, number }) => name || `Programme ${number}`);
  return names.map((name, n) => (names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} (${programmes[n].number})`));
}

// Shows the programmes of an asset.
function showProgrammes(asset) {
  const { path, programmes } = asset;
  const names = programmeNames(programmes);
  const index = programmes.findIndex(({ chosen }) => chosen);
  if (index < 0) return;
  // "Continue watching" names a programme that its path chooses.
  if (path !== fileOf(path)) asset.programme = names[index];
  $('title').textContent = $('sign').textContent = `${titleOf(path)} – ${names[index]}`;
  document.title = `${$('title').textContent} – Millpond`;
  offerNext();
  const { number, streams } = programmes[index];
  const dd = recording(path, 'programme-fact', () => fact('Programme'));
  dd.textContent = `${number}${programmes[index].name ? `, ${programmes[index].name}` : ''}: ${streams}`;
  const select = recording(path, 'programme', choice);
  select.replaceChildren(...programmes.map((programme, n) => element('option', programme.path ? names[n] : `${names[n]}: can't be played`, {
    value: n, disabled: !programme.path,
  })));
  select.value = index;
  select.onchange = () => chooseProgramme(programmes[select.value].path, names[select.value]);
}

// Returns the element of an identifier, which goes with the recording. `make` puts a new one into the page.
function recording(path, id, make) {
  if (!$(id)) {
    const [around, inside] = make();
    inside.id = id;
    around.dataset.recording = fileOf(path);
  }
  return $(id);
}

// Puts a fact into the details.
function fact(name) {
  const [div, dd] = [element('div'), element('dd')];
  div.append(element('dt', name), dd);
  $('file').parentElement.after(div);
  return [div, dd];
}

// Puts the choice into the menu.
function choice() {
  const [label, select] = [element('label', 'Programme '), element('select')];
  label.append(select);
  $('audio').parentElement.before(label);
  return [label, select];
}

// Plays another programme. The choice keeps the focus, which a new path gives to the picture.
function chooseProgramme(path, name) {
  hint(name, 3000);
  go({ path }, true);
  $('programme').focus({ preventScroll: true });
}
