'use strict';

// Signs on buttons, as outlines within 24 by 24.

const ICONS = {
  play: 'M8 5v14l11-7z',
  pause: 'M7 5h3.5v14H7zM13.5 5H17v14h-3.5z',
  again: 'M12 5V2L7.5 6.5 12 11V8a5 5 0 1 1-5 5H4a8 8 0 1 0 8-8z',
  next: 'M6 5v14l9-7zM16 5h2.6v14H16z',
  loud: 'M4 9v6h4l5 4.5v-15L8 9zM15.5 8.2v7.6a4 4 0 0 0 0-7.6zM15.5 4.2v2.1a6 6 0 0 1 0 11.4v2.1a8 8 0 0 0 0-15.6z',
  silent: 'M4 9v6h4l5 4.5v-15L8 9zM21.5 9.4 20.1 8 17.9 10.2 15.7 8 14.3 9.4 16.5 11.6 14.3 13.8 15.7 15.2 17.9 13 20.1 15.2 21.5 13.8 19.3 11.6z',
  subtitles: 'M4 5h16a1.5 1.5 0 0 1 1.5 1.5v11A1.5 1.5 0 0 1 20 19H4a1.5 1.5 0 0 1-1.5-1.5v-11A1.5 1.5 0 0 1 4 5zM5.5 11v2H9v-2zM10.5 11v2h8v-2zM5.5 14.5v2h8v-2zM15 14.5v2h3.5v-2z',
  settings: 'M4 6h9v2H4zM17 6h3v2h-3zM14 4.5h2v5h-2zM4 11h3v2H4zM11 11h9v2h-9zM8 9.5h2v5H8zM4 16h9v2H4zM17 16h3v2h-3zM14 14.5h2v5h-2z',
  cast: 'M3 5h18v12h-5v-2h3V7H5v8h3v2H3zM12 13l5 7H7z',
  window: 'M3 5h18v6h-2V7H5v10h6v2H3zM13 13h8v6h-8z',
  full: 'M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z',
  small: 'M8 4h2v6H4V8h4zM14 4h2v4h4v2h-6zM4 14h6v6H8v-4H4zM14 14h6v2h-4v4h-2z',
};

// Puts a sign and its words on a button.
function sign(button, name, label = button.ariaLabel) {
  if (button.dataset.sign !== name) {
    const [svg, path] = ['svg', 'path'].map(tag => document.createElementNS('http://www.w3.org/2000/svg', tag));
    svg.setAttribute('viewBox', '0 0 24 24');
    svg.setAttribute('aria-hidden', 'true');
    path.setAttribute('d', ICONS[name]);
    path.setAttribute('fill-rule', 'evenodd');
    svg.append(path);
    button.replaceChildren(svg);
    button.dataset.sign = name;
  }
  button.setAttribute('aria-label', label);
  const [key] = (button.getAttribute('aria-keyshortcuts') || '').split(' ');
  button.title = key ? `${label} (${key})` : label;
}
