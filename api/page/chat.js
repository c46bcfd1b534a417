// The conversation: one request at a time, its entries, and the buttons that lead on from them.

import { ConnectionLost, Problem, answersOf, ask, erase, requestsOf, stop } from "./stream.js";
import { element, renderText } from "./render.js";
import { COMMANDS, preferredLanguage, showWords, wordsOf } from "./words.js";

const KEPT_ENTRIES = 200;
const byId = (id) => document.getElementById(id);
const log = byId("log");
const progress = byId("progress");
const message = byId("message");

let language = preferredLanguage();
let words = wordsOf(language);
let threadId = "";
let isRunning = false;
let entries = [];

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The thread that the address or this browser remembers; null when there is none yet.
function rememberedThread() {
  return new URLSearchParams(location.search).get("thread") || localStorage.getItem("thread");
}

function keepThread(id) {
  localStorage.setItem("thread", id);
  const address = new URL(location.href);
  address.searchParams.set("thread", id);
  history.replaceState(null, "", address);
}

// Entries are kept for this tab alone, so that a reload loses nothing and a closed tab leaves nothing.
function keepEntries() {
  entries = entries.slice(-KEPT_ENTRIES);
  try {
    sessionStorage.setItem(`entries:${threadId}`, JSON.stringify(entries));
  } catch {
    sessionStorage.clear();
  }
}

function keptEntries() {
  try {
    return JSON.parse(sessionStorage.getItem(`entries:${threadId}`)) || [];
  } catch {
    return [];
  }
}

function scrollDown() {
  const main = document.querySelector("main");
  main.scrollTop = main.scrollHeight;
}

function button(text, onclick) {
  return element("button", { type: "button", textContent: text, onclick });
}

function addMine(text) {
  const who = element("span", { className: "unseen", textContent: `${words.you}: ` });
  log.append(element("li", { className: "entry mine" }, who, text));
  scrollDown();
}

function addTheirs() {
  const who = element("span", { className: "unseen", textContent: `${words.assistant}: ` });
  const body = element("div");
  const entry = element("li", { className: "entry theirs" }, who, body);
  log.append(entry);
  scrollDown();
  return { entry, body };
}

function addMark(entry, text, isAlarm = false) {
  entry.append(element("p", { className: isAlarm ? "mark alarm" : "mark", textContent: text }));
}

// Buttons of an older entry lead nowhere once something newer was asked.
function closeChoices() {
  for (const choice of log.querySelectorAll(".choices button")) choice.disabled = true;
}

function addChoices(entry, choices, className = "choices") {
  const row = element("div", { className, role: "group" });
  row.append(...choices.map(([text, act]) => button(text, act)));
  entry.append(row);
}

function addSources(entry, citations) {
  if (!citations?.length) return () => null;
  const open = new Map();
  const box = element("div", { className: "sources" });
  box.append(element("strong", { textContent: words.sources }));
  for (const citation of citations) {
    const summary = element("summary", { textContent: words.source(citation.label, citation.title) });
    const about = [citation.source, `${words.version} ${citation.version}`].filter(Boolean).join(" · ");
    const details = element(
      "details", {}, summary,
      element("blockquote", { textContent: citation.passage }),
      element("p", { className: "mark", textContent: about }),
    );
    box.append(details);
    open.set(citation.label, () => {
      details.open = true;
      summary.focus();
      details.scrollIntoView({ block: "nearest" });
    });
  }
  entry.append(box);
  return (label) => open.get(label) || null;
}

function addClarification(entry, asked) {
  const say = COMMANDS[language];
  addChoices(
    entry,
    asked.options.map((option) => {
      const label = `${option.number}. ${option.label}`;
      return [label, () => submit(String(option.number), label)];
    }),
    "choices list",
  );
  const steps = [];
  if (asked.pages > 1) addMark(entry, words.page(asked.page, asked.pages));
  if (asked.page > 1) steps.push([words.previous, () => submit(say.previous)]);
  if (asked.page < asked.pages) steps.push([words.next, () => submit(say.next)]);
  steps.push([words.cancel, () => submit(say.cancel)]);
  addChoices(entry, steps);
}

function offerRetry(entry) {
  addChoices(entry, [
    [words.retry, () => submit("/retry", words.retry)],
    [words.discard, () => submit("/discard", words.discard)],
  ]);
}

// A turn that waits to be retried or discarded: it failed, or it was cut short without being closed.
function isUnfinished(done) {
  if (done.status === "failed") return true;
  return (done.status === "stopped" && !done.answer) || done.status === "incomplete";
}

function textOf(done) {
  return [done.notice, done.answer?.text, done.clarification?.prompt].filter(Boolean).join("\n\n");
}

function showDone({ entry, body }, done, shown) {
  const openSource = addSources(entry, done.answer?.citations);
  renderText(body, textOf(done) || done.partial_text || shown, openSource);
  if (done.clarification) addClarification(entry, done.clarification);
  if (done.answer?.partial || done.partial_text) addMark(entry, words.partial);
  if (done.status === "stopped") addMark(entry, words.stopped);
  if (done.status === "incomplete") addMark(entry, words.incomplete, true);
  if (done.error_code === "processing_failed") addMark(entry, words.failed, true);
  if (isUnfinished(done)) offerRetry(entry);
}

function setRunning(running) {
  isRunning = running;
  log.setAttribute("aria-busy", String(running));
  byId("send").hidden = running;
  byId("stop").hidden = !running;
  for (const id of ["new-thread", "erase-thread"]) byId(id).disabled = running;
}

async function submit(text, label = text) {
  if (isRunning || !text.trim()) return;
  closeChoices();
  addMine(label);
  entries.push({ mine: label });
  await run({ thread_id: threadId, message: text, client_message_id: newId() });
}

async function run(body) {
  setRunning(true);
  progress.textContent = words.sending;
  const theirs = addTheirs();
  try {
    const ending = await follow(body, theirs);
    showEnding(theirs, ending);
  } catch (error) {
    showFailure(theirs, error, body);
  } finally {
    setRunning(false);
    keepEntries();
    scrollDown();
  }
}

// Shows the events as they come and gives the last one, with the text shown until then.
async function follow(body, theirs) {
  let shown = "";
  let ending = null;
  let isDrawing = false;
  const draw = () => {
    isDrawing = false;
    if (ending) return;
    renderText(theirs.body, shown, () => null);
    scrollDown();
  };
  for await (const { name, data } of ask(body)) {
    if (name === "stage") progress.textContent = words.stages[data.node] || data.node;
    else if (name === "token") shown += data.text;
    else if (name === "reset") shown = "";
    else if (name === "done" || name === "error") ending = { name, data, shown };
    if ((name === "token" || name === "reset") && !isDrawing) {
      isDrawing = true;
      requestAnimationFrame(draw);
    }
  }
  return ending;
}

function showEnding(theirs, { name, data, shown }) {
  if (name === "error") {
    renderText(theirs.body, shown, () => null);
    addMark(theirs.entry, data.detail, true);
    offerRetry(theirs.entry);
    progress.textContent = data.title;
    return;
  }
  showDone(theirs, data, shown);
  entries.push({ done: data, shown });
  progress.textContent = words.endings[data.status] || "";
}

function showFailure({ entry, body }, error, request) {
  if (!(error instanceof Problem) && !(error instanceof ConnectionLost)) throw error;
  const isLost = error instanceof ConnectionLost;
  const again = () => {
    entry.remove();
    run(request);
  };
  body.replaceChildren();
  addMark(entry, isLost ? words.lost : `${words.refused}: ${error.message}`, true);
  progress.textContent = isLost ? words.lost : words.refused;
  // The same client_message_id goes with it, so nothing is asked twice.
  if (isLost || error.retryable) addChoices(entry, [[isLost ? words.resume : words.resend, again]]);
}

function showEntries() {
  log.replaceChildren();
  for (const entry of entries) {
    closeChoices();
    if (entry.mine) addMine(entry.mine);
    else showDone(addTheirs(), entry.done, entry.shown);
  }
  scrollDown();
}

// Without kept entries the log of requests still says what was asked and how it ended, and the window
// still has the last answers.
async function showRequests() {
  let records = [];
  let answers = new Map();
  try {
    records = await requestsOf(threadId);
    if (records.length) answers = await answersOf(threadId, language);
  } catch (error) {
    if (!(error instanceof Problem) && !(error instanceof ConnectionLost)) throw error;
    progress.textContent = error.message || words.lost;
  }
  if (entries.length) return;
  for (const record of records) showRecord(record, answers.get(record.question));
  const last = records.at(-1);
  if (last && isUnfinished({ status: last.status })) offerRetry(log.lastElementChild);
  scrollDown();
}

function showRecord(record, answer) {
  addMine(record.question);
  const { entry, body } = addTheirs();
  if (answer) renderText(body, answer, () => null);
  else addMark(entry, record.status === "running" ? words.running : words.past);
}

function openThread(id) {
  threadId = id || newId();
  keepThread(threadId);
  entries = keptEntries();
  showEntries();
  if (id && !entries.length) showRequests();
  progress.textContent = "";
}

function setLanguage(chosen) {
  language = chosen;
  words = wordsOf(language);
  localStorage.setItem("language", language);
  showWords(language);
  byId("language").value = language;
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value;
  if (isRunning || !text.trim()) return;
  message.value = "";
  submit(text);
});

message.addEventListener("keydown", (event) => {
  // Enter that confirms an input method's word is not a wish to send.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
    event.preventDefault();
    byId("ask").requestSubmit();
  }
});

async function stopRun() {
  try {
    await stop(threadId);
  } catch (error) {
    progress.textContent = error.message || words.lost;
  }
}

byId("stop").addEventListener("click", stopRun);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isRunning) stopRun();
});

byId("new-thread").addEventListener("click", () => {
  openThread(null);
  message.focus();
});

byId("erase-thread").addEventListener("click", async () => {
  if (!confirm(words.confirmErase)) return;
  try {
    await erase(threadId);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "not_found") {
      progress.textContent = error.message || words.lost;
      return;
    }
  }
  sessionStorage.removeItem(`entries:${threadId}`);
  openThread(null);
});

byId("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  showEntries();
});

setLanguage(language);
openThread(rememberedThread());
message.focus();
