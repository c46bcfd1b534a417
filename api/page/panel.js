// For people who step through: what ran in each turn, what the model saw, and where to branch off.

import * as server from "./server.js";
import { button, copyButton, element } from "./render.js";
import { failureText, language, words } from "./words.js";
import { withSignIn } from "./signin.js";

export class Panel {
  constructor({ body, onFork }) {
    Object.assign(this, { body, onFork });
    this.shown = 0;
  }

  async show(thread) {
    const turn = (this.shown += 1);
    this.body.setAttribute("aria-busy", "true");
    const parts = await this.read(thread);
    if (turn !== this.shown) return;
    this.body.replaceChildren(...parts);
    this.body.setAttribute("aria-busy", "false");
  }

  async read(thread) {
    const intro = element("p", { className: "mark" }, words.panelIntro);
    try {
      const [steps, view] = await withSignIn(() =>
        Promise.all([server.stepsOf(thread), server.windowOf(thread, language)]),
      );
      return [intro, this.identity(thread), this.now(view), ...this.turns(thread, steps)];
    } catch (error) {
      if (!server.isExpected(error)) throw error;
      const text = error.status === 404 ? words.noSteps : failureText(error);
      return [intro, element("p", { className: "mark" }, text)];
    }
  }

  identity(thread) {
    return element(
      "section", {}, element("h3", {}, words.threadId), element("p", { className: "code" }, thread), copyOf(thread),
    );
  }

  now(view) {
    return element("section", {}, element("h3", {}, words.seesNow), ...windowParts(view), messagesOf(view));
  }

  turns(thread, { items, next_before: before }) {
    const list = element("ol", { className: "turns" });
    const add = (steps) => {
      for (const turn of turnsOf(steps)) list.append(this.turnOf(thread, turn, !list.children.length));
    };
    add(items);
    const parts = [element("h3", {}, words.turnsTitle), list];
    if (before) parts.push(this.moreOf(thread, before, add));
    return parts;
  }

  moreOf(thread, before, add) {
    const more = button(words.more, async () => {
      more.disabled = true;
      const page = await withSignIn(() => server.stepsOf(thread, before));
      add(page.items);
      more.remove();
    });
    return more;
  }

  turnOf(thread, turn, isOpen) {
    const facts = [
      words.inputKinds[turn.last.input_kind],
      words.answerKinds[turn.last.answer_kind],
      words.endings[turn.last.status] || words.open,
    ].filter(Boolean);
    const question = element("span", { className: "question" }, turn.last.original_question || words.unfinished);
    const details = element(
      "details", { open: isOpen },
      element("summary", {}, question, element("span", { className: "mark" }, facts.join(" · "))),
      this.stepsOf(thread, turn),
      this.seenBy(thread, turn),
      digestOf(turn.last.decision_digest),
    );
    return element("li", {}, details);
  }

  stepsOf(thread, turn) {
    const rows = turn.steps.map((step) => {
      const name = element("span", { className: "node" }, step.ran);
      const stage = element("span", { className: "mark" }, words.stages[step.ran] || "");
      const took = element("span", { className: "mark" }, step.took === null ? "" : words.took(step.took));
      const label = `${words.forkShort} ${step.ran}: ${words.fork}`;
      const fork = button(words.forkShort, () => this.onFork(thread, step.checkpoint_id), {
        className: "quiet", "aria-label": label, title: `${words.fork}\n${step.checkpoint_id}`,
      });
      return element("li", {}, name, stage, took, fork);
    });
    return element("ol", { className: "nodes", "aria-label": words.steps }, ...rows);
  }

  seenBy(thread, turn) {
    const report = turn.last.window;
    const heading = element("h4", {}, words.seen);
    if (!report || (!report.turns && !report.reasons.length)) {
      return element("div", {}, heading, element("p", { className: "mark" }, words.notSeen));
    }
    const box = element("div", {});
    const before = turn.steps.find((step) => step.ran === "answer")?.parent_checkpoint_id;
    const open = button(words.showSeen, async () => {
      const view = await withSignIn(() => server.windowOf(thread, language, before));
      box.replaceChildren(messagesOf(view));
      open.remove();
    }, { className: "quiet" });
    return element("div", {}, heading, ...windowParts(report), before ? open : null, box);
  }
}

// Newest turn first, each with its steps in the order they ran. The steps come newest first.
function turnsOf(items) {
  const turns = [];
  items.forEach((step, place) => {
    const parent = items[place + 1]?.checkpoint_id === step.parent_checkpoint_id ? items[place + 1] : null;
    const ran = (parent?.next || []).filter((name) => name !== "__start__").join(", ");
    if (step.source === "input" || !ran) return;
    const took = parent ? new Date(step.created_at) - new Date(parent.created_at) : null;
    const turn = turns.at(-1)?.id === step.turn_id ? turns.at(-1) : null;
    if (turn) turn.steps.unshift({ ...step, ran, took });
    else turns.push({ id: step.turn_id, last: step, steps: [{ ...step, ran, took }] });
  });
  return turns;
}

function windowParts(report) {
  const parts = [element("p", {}, words.sees(report.turns, report.bytes))];
  const left = [];
  if (report.omitted_turns) left.push(words.omitted(report.omitted_turns));
  if (report.cut_bytes) left.push(words.cut(report.cut_bytes));
  const why = report.reasons.map((reason) => words.reasons[reason] || reason);
  if (left.length || why.length) parts.push(element("p", { className: "mark" }, [...left, ...why].join(" · ")));
  return parts;
}

function messagesOf({ messages }) {
  const rows = messages.flatMap(({ role, content }) => {
    const who = role === "user" ? words.you : role === "assistant" ? words.assistant : role;
    return [element("dt", {}, who), element("dd", {}, content)];
  });
  return rows.length ? element("dl", { className: "window" }, ...rows) : "";
}

function digestOf(digest) {
  if (!digest) return "";
  const code = element("p", { className: "code", title: words.digestNote }, digest);
  return element("div", {}, element("h4", {}, words.digest), code, copyOf(digest));
}

function copyOf(text) {
  return copyButton(text, words.copy, words.copied);
}
