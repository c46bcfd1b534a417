// One request to the server and its events. No page, no words.

export class Problem extends Error {
  constructor(body, retryAfter) {
    super(body.detail || body.title || "");
    this.code = body.code;
    this.retryable = Boolean(body.retryable);
    this.retryAfter = retryAfter;
  }
}

export class ConnectionLost extends Error {}

// Yields {name, data} for each event; the last one is "done" or "error".
// Throws Problem when the request is refused, ConnectionLost when the stream ends early.
export async function* ask(body) {
  const response = await send("POST", "/api/chat", body);
  let ended = false;
  for await (const event of eventsOf(response.body)) {
    ended = event.name === "done" || event.name === "error";
    yield event;
  }
  if (!ended) throw new ConnectionLost();
}

export async function stop(threadId) {
  await send("POST", "/api/chat/stop", { thread_id: threadId });
}

export async function erase(threadId) {
  await send("DELETE", `/api/threads/${encodeURIComponent(threadId)}`);
}

// What was asked in the thread, oldest first; nothing for a thread that does not exist yet.
export async function requestsOf(threadId) {
  try {
    const response = await send("GET", `/api/threads/${encodeURIComponent(threadId)}/requests`);
    return (await response.json()).items;
  } catch (error) {
    if (error instanceof Problem && error.code === "not_found") return [];
    throw error;
  }
}

// The answers that a model would still see, by their question.
export async function answersOf(threadId, language) {
  const address = `/api/threads/${encodeURIComponent(threadId)}/window?language=${language}`;
  const { messages } = await (await send("GET", address)).json();
  const answers = new Map();
  messages.forEach(({ role, content }, place) => {
    // The window escapes citations of earlier turns for the model; a person reads them plainly.
    const text = content.replaceAll(/\[\\+(?=C\d)/g, "[");
    if (role === "assistant") answers.set(messages[place - 1]?.content, text);
  });
  return answers;
}

async function send(method, address, body) {
  const options = { method, credentials: "same-origin", cache: "no-store" };
  if (body) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new ConnectionLost();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({ title: response.statusText }));
  return new Problem(body, Number(response.headers.get("Retry-After")) || null);
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = eventOf(block);
        if (event) yield event;
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
    throw new ConnectionLost();
  } finally {
    reader.cancel().catch(() => {});
  }
}

function eventOf(block) {
  let name = "message";
  let data = null;
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data = line.slice(6);
  }
  return data === null ? null : { name, data: JSON.parse(data) };
}
