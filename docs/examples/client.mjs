// A client without dependencies: asks one question and follows its events until they end, whatever happens to
// the connection meanwhile. Node 18 or later; the functions run in a browser as they are.
//
//   node docs/examples/client.mjs http://127.0.0.1:8000 demo 一次性创业补贴有多少钱？
//
// TOKEN: the bearer token, where sign-in is set up.
// BREAK_AFTER: drops the connection on purpose after so many events, to show how it is followed again.

const RETRY_MS = 500;
const TRIES = 20;
const { crypto = (await import("node:crypto")).webcrypto } = globalThis; // Node 18 has it only there
const randomId = () => crypto.randomUUID();

/** The events of one response, as they come: the text/event-stream format, split anywhere, any line ends. */
export async function* eventsOf(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let piece; !(piece = await reader.read()).done; ) {
      text += decoder.decode(piece.value, { stream: true });
      const held = text.endsWith("\r") ? "\r" : ""; // its "\n" may be on the way
      text = text.slice(0, text.length - held.length).replace(/\r\n?/g, "\n");
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const event = eventIn(text.slice(0, end));
        if (event) yield event;
      }
      text += held;
    }
  } finally {
    await reader.cancel().catch(() => {}); // whoever stops reading lets the connection go
  }
}

function eventIn(block) {
  const fields = { data: [] };
  for (const line of block.split("\n")) {
    if (line.startsWith(":")) continue; // a heartbeat
    const at = line.indexOf(":");
    const [name, value] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")];
    if (name === "data") fields.data.push(value);
    else fields[name] = value;
  }
  if (!fields.data.length) return null;
  return { id: Number(fields.id), name: fields.event, data: JSON.parse(fields.data.join("\n")) };
}

/**
 * Ask, and give every event once. A question whose reply was lost is sent again with the same
 * client_message_id, so that it is answered once; a stream that broke is followed after its last event.
 */
export async function* ask(base, { threadId, message, token, breakAfter }) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const question = { thread_id: threadId, message, client_message_id: randomId() };
  const send = () =>
    fetch(`${base}/api/chat`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(question),
    });
  const follow = (requestId, last) =>
    fetch(`${base}/api/chat/${requestId}/events?thread_id=${encodeURIComponent(threadId)}`, {
      headers: { ...headers, "last-event-id": String(last) },
    });

  let requestId = null;
  let last = 0;
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      const response = requestId ? await follow(requestId, last) : await send();
      if (!response.ok) {
        const problem = await response.json();
        if (!problem.retryable) throw new Refused(problem);
        await pause(1000 * Number(response.headers.get("retry-after") ?? 1));
        continue;
      }
      requestId = response.headers.get("x-request-id");
      for await (const event of eventsOf(response)) {
        last = event.id;
        yield event;
        if (event.name === "done" || event.name === "error") return;
        if (breakAfter && last >= breakAfter) {
          breakAfter = 0;
          break;
        }
      }
    } catch (error) {
      if (error instanceof Refused) throw error;
      await pause(RETRY_MS); // the connection, not the answer: try again
    }
  }
  throw new Error(`no end after ${TRIES} tries`);
}

/** A request that will not be answered; `problem` is the RFC 9457 body. */
export class Refused extends Error {
  constructor(problem) {
    super(`${problem.title}: ${problem.detail} (${problem.code}, request ${problem.request_id})`);
    this.problem = problem;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What a person reads: text as it comes, then its sources or what is asked back. */
async function main([base, threadId, message]) {
  if (!message) throw new Error("usage: node client.mjs ADDRESS THREAD QUESTION");
  const { TOKEN: token, BREAK_AFTER } = process.env;
  const say = (text) => process.stdout.write(text);
  for await (const { name, data } of ask(base, { threadId, message, token, breakAfter: Number(BREAK_AFTER) })) {
    if (name === "token") say(data.text);
    if (name === "reset" && data.reason === "withdrawn") say("\n(withdrawn)\n");
    if (name === "reset" && data.reason === "gap") say("\n(some events were missed; the outcome follows)\n");
    if (name === "error") throw new Refused(data);
    if (name !== "done") continue;
    if (!data.answer?.text) say(`${data.text ?? ""}`);
    say("\n");
    for (const { label, title } of data.answer?.citations ?? []) say(`[${label}] ${title}\n`);
    say(`(${data.status})\n`);
  }
}

if (process.argv[1]?.endsWith("client.mjs")) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
