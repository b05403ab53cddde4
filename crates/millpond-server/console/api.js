// Requests to the server. The token is kept for this tab, and never in an address.

const TOKEN = 'millpond-token';
const NODE = 'millpond-node';
const BASE = 'api/v1/';
// Milliseconds until a request without an answer counts as lost.
const PATIENCE = 15000;

let memory = null;
function stored() {
  try { return sessionStorage.getItem(TOKEN); } catch { return memory; }
}

export function setToken(token) {
  memory = token;
  try {
    if (token === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, token);
  } catch {
    // The token then lasts as long as the page.
  }
}

// The node of the cluster whose views are shown; null for the node of this address. It is kept for this tab too.
let shown = null;
try { shown = sessionStorage.getItem(NODE); } catch { /* It then lasts as long as the page. */ }
export const shownNode = () => shown;

export function showNode(name) {
  shown = name;
  try {
    if (name === null) sessionStorage.removeItem(NODE);
    else sessionStorage.setItem(NODE, name);
  } catch { /* The same. */ }
}

// An answer that is not the one that was asked for, in the server's words. `status` is 0 where there was no answer.
export class ApiError extends Error {
  constructor(status, detail, errors) {
    super(detail);
    this.status = status;
    this.errors = errors ?? [];
  }

  // Whether the server can't be reached or can't answer anything now.
  get isAway() { return this.status === 0 || this.status === 502 && this.isBare || this.status === 503 && this.isBare; }
}

// An address of the API with the parameters that have a value: of the shown node by way of this one, or of this one itself.
function address(path, parameters, isHere) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== null && value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  const way = shown === null || isHere ? '' : `cluster/nodes/${component(shown)}/api/`;
  return BASE + way + path + (text && `?${text}`);
}

async function ask(method, path, { parameters, body, signal, isHere } = {}) {
  const headers = { Accept: 'application/json' };
  const token = stored();
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const signals = [AbortSignal.timeout(PATIENCE), signal].filter(Boolean);
  let reply;
  let text;
  try {
    reply = await fetch(address(path, parameters, isHere), {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: 'no-store', signal: AbortSignal.any(signals),
    });
    text = await reply.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, error.name === 'TimeoutError' ? `no answer in ${PATIENCE / 1000} s` : 'the connection failed');
  }
  let value = null;
  try { value = text ? JSON.parse(text) : null; } catch { /* Not the server's: a proxy's page. */ }
  if (reply.ok) {
    if (value === null && text) throw new ApiError(0, 'the answer is not from Millpond');
    return value;
  }
  const error = new ApiError(reply.status, value?.detail ?? value?.title ?? `${reply.status} ${reply.statusText}`, value?.errors);
  error.isBare = value === null;
  throw error;
}

export const get = (path, parameters, signal) => ask('GET', path, { parameters, signal });
// Asks the node of this address, whichever is shown: only that one asks the whole fleet.
export const getHere = (path, parameters, signal) => ask('GET', path, { parameters, signal, isHere: true });
export const post = (path, body) => ask('POST', path, { body });
export const patch = (path, body) => ask('PATCH', path, { body });
export const put = (path, body) => ask('PUT', path, { body });
export const remove = (path, parameters) => ask('DELETE', path, { parameters });

// A path of media as one component of an address.
export const component = encodeURIComponent;

// Reads all pages of a list, up to `most` items.
export async function getAll(path, parameters, signal, most = 20000) {
  const items = [];
  let cursor = null;
  let total = 0;
  do {
    const page = await get(path, { ...parameters, limit: 1000, cursor }, signal);
    items.push(...page.items);
    ({ total, 'next-cursor': cursor } = page);
  } while (cursor !== null && items.length < most);
  return { items, total };
}
