// Addresses: the view and its filters are in the fragment, as in "#sessions?kind=rtsp&q=door".

// The address of a view.
export function href(view, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== null && value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return `#${view}${text && `?${text}`}`;
}

// The view and the filters of the address now.
export function here() {
  const [view, query] = location.hash.slice(1).split(/\?(.*)/s);
  return { view: view || 'overview', filters: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

// Goes to an address. Typing into a filter replaces the address, so that Back leads to the state before the typing.
export function go(target, replaces) {
  if (target === location.hash) return;
  if (replaces) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  dispatchEvent(new Event('route'));
}
