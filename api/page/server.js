// What the page asks of the server, and the events it gets. No elements, no words.

const SILENCE_MILLISECONDS = 45_000; // three heartbeats missed: the connection is gone, whatever it says

export class Problem extends Error {
  constructor(status, body, retryAfter) {
    super(body.detail || body.title || "");
    this.status = status;
    this.code = body.code;
    this.retryable = Boolean(body.retryable);
    this.requestId = body.request_id;
    this.retryAfter = retryAfter;
  }
}

export class ConnectionLost extends Error {}

// What a page that talks to a server must expect; anything else is a mistake of ours.
export function isExpected(error) {
  return error instanceof Problem || error instanceof ConnectionLost;
}

// --- sign-in: the token lives in this tab alone ---

export const signIn = {
  get token() {
    return sessionStorage.getItem("token");
  },
  keep(token) {
    if (token) sessionStorage.setItem("token", token);
    else sessionStorage.removeItem("token");
  },
};

// --- conversations ---

const named = (thread) => `/api/threads/${encodeURIComponent(thread)}`;
const held = (id) => `/conversations/${encodeURIComponent(id)}`;

export const listConversations = (status, cursor) => json("GET", "/conversations", { status, cursor, limit: 50 });
export const readConversation = (id) => json("GET", held(id));
export const listMessages = (id, cursor) =>
  json("GET", `${held(id)}/messages`, { order: "newest_first", limit: 50, cursor });
export const rename = (id, title) => json("PATCH", `${held(id)}/title`, {}, { title });
export const archive = (id) => json("POST", `${held(id)}/archive`);
export const restore = (id) => json("POST", `${held(id)}/restore`);
export const remove = (id) => json("DELETE", held(id));
export const rate = (id, messageId, body) => json("PUT", `${held(id)}/messages/${messageId}/feedback`, {}, body);
export const health = () => fetch("/health/ready", { cache: "no-store" }).then((answer) => answer.json());

export async function findConversation(thread) {
  return (await json("GET", "/conversations", { externalId: thread })).items[0] || null;
}

export async function exportConversation(id, format) {
  const response = await send("GET", `${held(id)}/export`, { format });
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "");
  return { name: name ? name[1] : `conversation.${format}`, blob: await response.blob() };
}

// --- steps ---

export const stepsOf = (thread, before) => json("GET", `${named(thread)}/checkpoints`, { limit: 100, before });
export const windowOf = (thread, language, checkpointId) =>
  json("GET", `${named(thread)}/window`, { language, checkpoint_id: checkpointId });
export const fork = (thread, checkpointId) =>
  json("POST", `${named(thread)}/fork`, {}, { checkpoint_id: checkpointId });

// --- asking ---

// A stop that comes before its question has arrived finds nothing yet.
export const stop = (thread) =>
  json("POST", "/api/chat/stop", {}, { thread_id: thread }).catch((error) => {
    if (error.status !== 404) throw error;
  });

// Each gives {id, name, data} for each event; the last one is "done" or "error".
// Throws Problem when the request is refused, ConnectionLost when the stream breaks off.
export async function* ask(body, signal) {
  yield* eventsOf(await send("POST", "/api/chat", {}, body, { signal }), signal);
}

export async function* follow(requestId, thread, after, signal) {
  const headers = { "Last-Event-ID": String(after) };
  const address = `/api/chat/${encodeURIComponent(requestId)}/events`;
  const response = await send("GET", address, { thread_id: thread }, null, { signal, headers });
  if (response.status !== 204) yield* eventsOf(response, signal);
}

// --- how it is sent ---

async function json(method, address, query = {}, body = null) {
  const response = await send(method, address, query, body);
  return response.status === 204 ? null : response.json();
}

async function send(method, address, query = {}, body = null, { signal, headers = {} } = {}) {
  const options = { method, signal, headers: { ...headers }, credentials: "same-origin", cache: "no-store" };
  if (signIn.token) options.headers.Authorization = `Bearer ${signIn.token}`;
  if (body) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const response = await fetch(given.length ? `${address}?${new URLSearchParams(given)}` : address, options).catch(
    (error) => {
      throw signal?.aborted ? error : new ConnectionLost();
    },
  );
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({ title: response.statusText }));
  return new Problem(response.status, body, Number(response.headers.get("Retry-After")) || null);
}

async function* eventsOf(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let ended = false;
  try {
    while (!ended) {
      const { value, done } = await soon(reader.read());
      if (done) break;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const event of blocks.map(eventOf).filter(Boolean)) {
        ended = event.name === "done" || event.name === "error";
        yield event;
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError || signal?.aborted) throw error;
    throw new ConnectionLost();
  } finally {
    reader.cancel().catch(() => {});
  }
  if (!ended) throw new ConnectionLost();
}

function soon(reading) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionLost()), SILENCE_MILLISECONDS);
  });
  return Promise.race([reading, silence]).finally(() => clearTimeout(timer));
}

function eventOf(block) {
  const event = { id: 0, name: "message", data: null };
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) event.id = Number(line.slice(4));
    else if (line.startsWith("event: ")) event.name = line.slice(7);
    else if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
  }
  return event.data === null ? null : event;
}
