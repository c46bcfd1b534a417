// The page as a whole: which conversation is open, its menu, the two side parts, language and appearance.

import * as server from "./server.js";
import { askText, confirmBox } from "./dialogs.js";
import { Panel } from "./panel.js";
import { button, element, icon } from "./render.js";
import { Shelf } from "./shelf.js";
import { askSignIn, withSignIn } from "./signin.js";
import { Talk } from "./talk.js";
import { chooseLanguage, language, failureText, preferredLanguage, words } from "./words.js";

const WIDE = { shelf: matchMedia("(min-width: 52rem)"), panel: matchMedia("(min-width: 75rem)") };
const LONG_AWAY_MILLISECONDS = 20_000;

const byId = (id) => document.getElementById(id);
const message = byId("message");
const MOST_CHARACTERS = 4000;
const others = new BroadcastChannel("business-assistant"); // this browser's other tabs
let left = 0;

// --- conversation ---

const shelf = new Shelf({
  list: byId("conversations"), tabs: document.querySelectorAll("[data-status]"), more: byId("more-conversations"),
  onOpen: (thread) => {
    closeSide("shelf", { always: false });
    openThread(thread);
  },
});
const panel = new Panel({ body: byId("panel-body"), onFork: forkAt });
const talk = new Talk({
  log: byId("log"), scroller: byId("scroller"), spoken: byId("spoken"), progress: byId("progress"),
  empty: byId("empty"), onRunning: showRunning, onChange: noteChange,
});

function openThread(thread) {
  keepDraft();
  restoreDraft(thread);
  return talk.open(thread);
}

function beginThread() {
  keepDraft();
  talk.begin();
  restoreDraft(talk.thread);
  shelf.choose("ACTIVE");
  message.focus();
}

async function noteChange(what, text) {
  if (what === "told") {
    tell(text);
    return;
  }
  if (what === "started" || what === "ended") {
    others.postMessage({ thread: talk.thread });
    await learnConversation();
  }
  showOpened(what === "begun");
  if (isOpenSide("panel")) panel.show(talk.thread);
}

// A new conversation has an id and a title from its first question on, and an archived one is back.
async function learnConversation() {
  const { thread } = talk;
  const held = await server.findConversation(thread).catch(() => null);
  if (talk.thread !== thread || !held) return;
  const isKnown = shelf.items.some((each) => each.id === held.id && each.title === held.title);
  talk.held = { ...talk.held, ...held };
  if (!isKnown && held.status === shelf.status) shelf.load();
}

function showOpened(isNew = false) {
  const { held, thread } = talk;
  const title = held ? held.title || words.untitled : words.newThread;
  byId("title").textContent = title;
  document.title = held ? `${title} · ${words.product}` : words.product;
  byId("actions").hidden = !held;
  byId("archive").textContent = held?.status === "ARCHIVED" ? words.restore : words.archive;
  shelf.mark(thread);
  const address = new URL(location.href);
  if (held) address.searchParams.set("thread", thread);
  else if (isNew) address.searchParams.delete("thread");
  if (address.href !== location.href) history.replaceState(null, "", address);
}

function showRunning(isRunning) {
  byId("send").hidden = isRunning;
  byId("stop").hidden = !isRunning;
}

// What is typed and not sent yet belongs to its conversation.
function keepDraft() {
  if (message.value.trim()) sessionStorage.setItem(`draft:${talk.thread}`, message.value);
  else sessionStorage.removeItem(`draft:${talk.thread}`);
}

function restoreDraft(thread) {
  message.value = sessionStorage.getItem(`draft:${thread}`) || "";
  fitMessage();
}

// A limit of the box itself would cut what is pasted without a word. The server counts characters, not code units.
function refuseTooLong() {
  const { length } = [...message.value];
  message.setCustomValidity(length > MOST_CHARACTERS ? words.tooLong(length) : "");
}

// Where the browser does not fit the box to its text by itself (`field-sizing`).
function fitMessage() {
  refuseTooLong();
  message.rows = Math.min(8, Math.max(1, message.value.split("\n").length + Math.floor(message.value.length / 60)));
}

// --- what is done to the open conversation ---

async function act(call, told) {
  try {
    const result = await withSignIn(call);
    tell(told);
    return result ?? true;
  } catch (error) {
    if (!server.isExpected(error)) throw error;
    tell(failureText(error));
    return null;
  }
}

const ACTIONS = {
  async rename() {
    const title = await askText({ title: words.rename, label: words.newTitle, value: talk.held.title || "" });
    if (!title) return;
    const held = await act(() => server.rename(talk.held.id, title), words.renamed);
    if (held) changeHeld(held);
  },
  async archive() {
    const isArchived = talk.held.status === "ARCHIVED";
    const call = isArchived ? server.restore : server.archive;
    const held = await act(() => call(talk.held.id), isArchived ? words.restored : words.archived);
    if (held) changeHeld(held);
  },
  markdown: () => saveExport("markdown"),
  json: () => saveExport("json"),
  async remove() {
    const { id } = talk.held;
    if (!(await confirmBox({ title: words.confirmRemove, detail: words.removeDetail, ok: words.remove }))) return;
    if (!(await act(() => server.remove(id), words.removed))) return;
    others.postMessage({ thread: talk.thread });
    message.value = "";
    beginThread();
  },
};

function changeHeld(held) {
  talk.held = { ...talk.held, ...held };
  others.postMessage({ thread: null });
  showOpened();
  shelf.load();
}

async function saveExport(format) {
  const exported = await act(() => server.exportConversation(talk.held.id, format), words.exported);
  if (!exported) return;
  const link = element("a", { href: URL.createObjectURL(exported.blob), download: exported.name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function forkAt(thread, checkpointId) {
  const forked = await act(() => server.fork(thread, checkpointId), words.forked);
  if (!forked) return;
  closeSide("panel", { always: false });
  await openThread(forked.thread_id);
  shelf.choose("ACTIVE");
}

let telling;
function tell(text) {
  const toast = byId("toast");
  toast.textContent = text;
  toast.classList.add("shown");
  clearTimeout(telling);
  telling = setTimeout(() => {
    toast.classList.remove("shown");
    toast.textContent = "";
  }, 6000);
}

// --- side parts: beside the conversation where there is room, over it where there is none ---

const OTHERS_OF = { shelf: ["talk", "panel"], panel: ["talk", "shelf"] };
const isOpenSide = (name) => document.documentElement.classList.contains(`${name}-open`);

function openSide(name) {
  document.documentElement.classList.add(`${name}-open`);
  showSides();
  talk.scrollDown();
  if (name === "panel") panel.show(talk.thread);
  byId(name).querySelector("button:not([hidden])").focus();
}

function closeSide(name, { always = true } = {}) {
  if (!isOpenSide(name) || (!always && WIDE[name].matches)) return;
  document.documentElement.classList.remove(`${name}-open`);
  showSides();
  byId(`open-${name}`).focus();
}

// What lies under an open part cannot be reached; a closed part is not there at all.
function showSides() {
  const over = ["shelf", "panel"].find((name) => isOpenSide(name) && !WIDE[name].matches);
  byId("shelf").hidden = !WIDE.shelf.matches && !isOpenSide("shelf");
  byId("panel").hidden = !isOpenSide("panel");
  for (const name of ["talk", "shelf", "panel"]) byId(name).inert = Boolean(over) && OTHERS_OF[over].includes(name);
  byId("veil").hidden = !over;
  for (const name of ["shelf", "panel"]) byId(`open-${name}`).setAttribute("aria-expanded", String(isOpenSide(name)));
}

for (const name of ["shelf", "panel"]) {
  byId(`open-${name}`).addEventListener("click", () => (isOpenSide(name) ? closeSide(name) : openSide(name)));
  byId(`close-${name}`).addEventListener("click", () => closeSide(name));
  WIDE[name].addEventListener("change", showSides);
}
byId("veil").addEventListener("click", () => ["shelf", "panel"].forEach((name) => closeSide(name, { always: false })));

// --- language, appearance, sign-in ---

function setLanguage(chosen) {
  chooseLanguage(chosen);
  byId("language").value = language;
  showExamples();
  showOpened();
  shelf.load();
}

function setTheme(chosen) {
  localStorage.setItem("theme", chosen);
  document.documentElement.dataset.theme = chosen;
  byId("theme").value = chosen;
}

// Only of the sample is it known what can be asked.
let isSample = false;
async function learnKnowledge() {
  const ready = await server.health().catch(() => null);
  isSample = Boolean(ready?.parts?.knowledge?.is_sample);
  showExamples();
}

function showExamples() {
  byId("sample").hidden = !isSample;
  const examples = isSample ? words.examples : [];
  const ask = (text) => {
    message.focus();
    talk.submit(text);
  };
  byId("examples").replaceChildren(...examples.map((text) => element("li", {}, button(text, () => ask(text)))));
}

function showSignIn() {
  byId("sign-in").hidden = !server.signIn.token;
}

byId("sign-in").addEventListener("click", async () => {
  server.signIn.keep(null);
  showSignIn();
  if (await askSignIn()) beginThread();
});
document.addEventListener("signin", showSignIn);

// --- input ---

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value;
  if (talk.isRunning || !text.trim()) return;
  message.value = "";
  keepDraft();
  fitMessage();
  talk.submit(text);
});

message.addEventListener("input", fitMessage);
message.addEventListener("keydown", (event) => {
  // Enter that confirms an input method's word is not a wish to send.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
    event.preventDefault();
    byId("ask").requestSubmit();
  }
});

byId("stop").addEventListener("click", () => {
  message.focus();
  talk.stop();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open], :popover-open")) return;
  const over = ["shelf", "panel"].find((name) => isOpenSide(name) && !WIDE[name].matches);
  if (over) closeSide(over);
  else talk.stop();
});

byId("new-thread").addEventListener("click", () => {
  closeSide("shelf", { always: false });
  beginThread();
});

for (const each of document.querySelectorAll("#menu [data-action]")) {
  each.addEventListener("click", () => {
    byId("menu").hidePopover();
    ACTIONS[each.dataset.action]();
  });
}

byId("newest").addEventListener("click", () => talk.scrollDown(true));
byId("scroller").addEventListener("scroll", () => {
  const { scrollHeight, scrollTop, clientHeight } = byId("scroller");
  byId("newest").hidden = scrollHeight - scrollTop - clientHeight < 400;
}, { passive: true });

byId("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  if (!talk.isRunning && talk.held) openThread(talk.thread);
});
byId("theme").addEventListener("change", (event) => setTheme(event.target.value));

// --- other tabs, and coming back ---

others.addEventListener("message", ({ data }) => {
  shelf.load();
  if (data.thread === talk.thread) talk.refresh().catch(() => {});
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) left = Date.now();
  else if (Date.now() - left > LONG_AWAY_MILLISECONDS) {
    shelf.load();
    if (talk.held) talk.refresh().catch(() => {});
  }
});
window.addEventListener("pagehide", keepDraft);

// --- start ---

for (const each of document.querySelectorAll("[data-icon]")) each.prepend(icon(each.dataset.icon));
setTheme(localStorage.getItem("theme") || "auto");
showSides();
showSignIn();
const asked = new URLSearchParams(location.search).get("thread");
if (asked) talk.thread = asked;
setLanguage(preferredLanguage());
learnKnowledge();
if (asked) openThread(asked);
if (!matchMedia("(pointer: coarse)").matches) message.focus();
