// A reader of request records that knows nothing of us but the format: a Redis client of forty lines, and JSON.
// node read_requests.mjs SOCKET-OR-HOST:PORT PREFIX THREAD_ID   prints the records as one JSON array.
import { createHash } from "node:crypto";
import { connect } from "node:net";

const [address, prefix, thread] = process.argv.slice(2);
const tcp = /^([^/]+):(\d+)$/.exec(address);
const socket = tcp ? connect(Number(tcp[2]), tcp[1]) : connect(address);
let unread = Buffer.alloc(0);
let arrived = () => {};
let lost = null;
socket.on("data", (data) => { unread = Buffer.concat([unread, data]); arrived(); });
socket.on("error", (fault) => { lost = fault; arrived(); });
socket.on("close", () => { lost ??= new Error("the server closed the connection"); arrived(); });

async function take(size) {
  while (unread.length < size) await more();
  const taken = unread.subarray(0, size);
  unread = unread.subarray(size);
  return taken;
}

async function line() {
  let end;
  while ((end = unread.indexOf("\r\n")) < 0) await more();
  const text = unread.toString("utf8", 0, end);
  unread = unread.subarray(end + 2);
  return text;
}

async function more() {
  if (lost) throw lost;
  await new Promise((resolve) => { arrived = resolve; });
}

async function reply() {
  const head = await line();
  const size = Number(head.slice(1));
  switch (head[0]) {
    case "+": return head.slice(1);
    case ":": return size;
    case "$": return size < 0 ? null : (await take(size + 2)).subarray(0, size);
    case "*": {
      const items = [];
      for (let i = 0; i < size; i++) items.push(await reply());
      return items;
    }
    default: throw new Error(head);
  }
}

async function call(...words) {
  const parts = words.map((word) => Buffer.from(word));
  socket.write(Buffer.concat([
    Buffer.from(`*${parts.length}\r\n`),
    ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from("\r\n")]),
  ]));
  return reply();
}

const key = prefix + createHash("sha256").update(thread).digest("hex");
const found = new Map();
let cursor = "0";
do {
  const [next, fields] = await call("HSCAN", key, cursor, "MATCH", '\\["request","v1",*', "COUNT", "100");
  for (let i = 0; i < fields.length; i += 2) {
    const [kind, version, id] = JSON.parse(fields[i]);
    if (kind === "request" && version === "v1") found.set(id, JSON.parse(fields[i + 1]));
  }
  cursor = next.toString();
} while (cursor !== "0");

const order = (record) => `${record.received_at} ${record.request_id}`;
const records = [...found.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
process.stdout.write(JSON.stringify(records));
socket.destroy();
