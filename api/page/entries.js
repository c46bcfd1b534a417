// One entry of the conversation: what was said, its sources, its buttons. Sends nothing by itself.

import { button, copyButton, element, iconButton, langOf, phrasesOf, renderText } from "./render.js";
import { COMMANDS, language, words } from "./words.js";

export function mineEntry(text, understoodAs = null) {
  const bubble = element("div", { className: "bubble", lang: langOf(text) }, text);
  const entry = element("li", { className: "entry mine" }, unseen(`${words.you}: `), bubble);
  if (understoodAs) entry.append(element("p", { className: "mark" }, words.understoodAs(understoodAs)));
  return entry;
}

// The parts of an answer's entry, in their order on the page.
export function theirsEntry() {
  const parts = {
    stage: element("div", { className: "stage", hidden: true }),
    body: element("div", { className: "body" }),
    marks: element("div", { className: "marks" }),
    choices: element("div", { className: "choosing" }),
    sources: element("div", { className: "sources", hidden: true }),
    foot: element("div", { className: "foot", hidden: true }),
  };
  const entry = element(
    "li", { className: "entry theirs", tabIndex: -1 }, unseen(`${words.assistant}: `), ...Object.values(parts),
  );
  return { entry, ...parts };
}

function unseen(text) {
  return element("span", { className: "unseen" }, text);
}

export function showStage(theirs, text) {
  theirs.stage.hidden = !text;
  theirs.stage.replaceChildren(element("span", { className: "pulse", "aria-hidden": "true" }), text || "");
}

export function addMark(theirs, text, isAlarm = false) {
  theirs.marks.append(element("p", { className: isAlarm ? "mark alarm" : "mark" }, text));
}

// --- text and sources ---

export function showAnswer(theirs, text, citations = []) {
  const listed = citations.filter((citation) => citation.label);
  const opened = new Map();
  if (listed.length) showSources(theirs.sources, listed, phrasesOf(text), opened);
  const cite = (label) => {
    const source = opened.get(label);
    if (!source) return null;
    const name = words.openSource(label, source.title);
    return button(label, source.open, { className: "cite", title: source.title, "aria-label": name });
  };
  renderText(theirs.body, text, { cite });
}

function showSources(box, citations, phrases, opened) {
  const list = element("ul", {}, ...citations.map((citation) => element("li", {}, sourceOf(citation, phrases, opened))));
  box.replaceChildren(element("p", { className: "caption" }, words.sources(citations.length)), list);
  box.hidden = false;
}

function sourceOf(citation, phrases, opened) {
  const label = element("span", { className: "label" }, citation.label);
  if (citation.available === false) {
    return element("p", { className: "source gone" }, label, badge(words.gone, "alarm"));
  }
  const standing = citation.standing in words.standing ? citation.standing : null;
  const title = element("span", { className: "title", lang: langOf(citation.title) }, citation.title);
  const summary = element("summary", {}, label, title, standing ? badge(words.standing[standing], standing) : null);
  const passage = element("blockquote", { className: "passage" });
  renderText(passage, citation.passage || "", { marked: phrases });
  const note = standing ? element("p", { className: "mark" }, words.standingNote[standing]) : null;
  const details = element("details", { className: "source" }, summary, aboutOf(citation), note, passage);
  opened.set(citation.label, { title: citation.title, open: () => openSource(details, summary) });
  return details;
}

function aboutOf(citation) {
  const parts = [citation.source, words.version(citation.version), citation.document_id].filter(Boolean);
  return element("p", { className: "about" }, parts.join(" · "));
}

function badge(text, kind) {
  return element("span", { className: `badge ${kind}` }, text);
}

function openSource(details, summary) {
  details.open = true;
  summary.focus({ preventScroll: true });
  (details.querySelector("mark") || details).scrollIntoView({ block: "nearest" });
}

// --- choices ---

export function showClarification(theirs, asked, submit) {
  const say = COMMANDS[language];
  const options = asked.options.map((option) => {
    const number = element("span", { className: "number", "aria-hidden": "true" }, String(option.number));
    const label = `${option.number}. ${option.label}`;
    const choose = () => submit(String(option.number), option.label);
    return element("button", { type: "button", onclick: choose, "aria-label": label }, number, option.label);
  });
  const list = element("div", { className: "options", role: "group", "aria-label": asked.prompt }, ...options);
  const steps = element("div", { className: "row" });
  if (asked.page > 1) steps.append(button(words.previous, () => submit(say.previous, words.commands.previous)));
  if (asked.page < asked.pages) steps.append(button(words.next, () => submit(say.next, words.commands.next)));
  steps.append(button(words.cancel, () => submit(say.cancel, words.commands.cancel), { className: "quiet" }));
  if (asked.pages > 1) steps.append(element("span", { className: "mark" }, words.page(asked.page, asked.pages)));
  theirs.choices.replaceChildren(...(options.length ? [list] : []), steps);
}

export function showChoices(theirs, choices) {
  const made = choices.map(([text, act, className = ""]) => button(text, act, { className }));
  theirs.choices.replaceChildren(element("div", { className: "row" }, ...made));
}

export function showRetry(theirs, submit) {
  showChoices(theirs, [
    [words.retry, () => submit("/retry", words.commands.retry), "primary"],
    [words.discard, () => submit("/discard", words.commands.discard)],
  ]);
}

// Choices of an older entry lead nowhere once something newer was asked.
export function closeChoices(log) {
  for (const choices of log.querySelectorAll(".choosing")) choices.replaceChildren();
}

// --- feedback ---

export function showFoot(theirs, { text, feedback, rate }) {
  const state = { rating: feedback?.rating || null };
  const more = element("div", { className: "comment" });
  const thumbs = ["up", "down"].map((rating) => {
    const label = rating === "up" ? words.helpful : words.unhelpful;
    return iconButton(rating, label, () => choose(rating), { "data-rating": rating });
  });
  const show = () => {
    for (const thumb of thumbs) thumb.setAttribute("aria-pressed", String(thumb.dataset.rating === state.rating));
  };
  const choose = async (rating) => {
    const chosen = state.rating === rating ? null : rating;
    if (!(await rate({ rating: chosen }))) return;
    state.rating = chosen;
    show();
    more.replaceChildren(...(chosen === "down" ? [commentForm(more, rate)] : []));
  };
  show();
  const copying = copyButton(text, words.copy, words.copied);
  theirs.foot.replaceChildren(...(copying ? [copying] : []), ...(rate ? thumbs : []), more);
  theirs.foot.hidden = false;
}

function commentForm(more, rate) {
  const input = element("input", { type: "text", maxLength: 2000, "aria-label": words.comment, placeholder: words.comment });
  const form = element("form", {}, input, element("button", { type: "submit" }, words.sendComment));
  form.onsubmit = async (event) => {
    event.preventDefault();
    const comment = input.value.trim();
    if (comment && !(await rate({ rating: "down", comment }))) return;
    more.replaceChildren(element("p", { className: "mark", role: "status" }, words.thanks));
  };
  return form;
}
