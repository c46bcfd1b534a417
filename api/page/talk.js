// The open conversation: asking, following an answer, stopping it, and coming back to what was left open.

import * as server from "./server.js";
import {
  addMark, closeChoices, mineEntry, showAnswer, showChoices, showClarification, showFoot, showRetry, showStage,
  theirsEntry,
} from "./entries.js";
import { button, element, langOf, renderText } from "./render.js";
import { failureText, problemText, said, words } from "./words.js";
import { askSignIn, withSignIn } from "./signin.js";

const NEAR_PIXELS = 80;
const LONGEST_WAIT_SECONDS = 8;

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A turn that waits to be retried or discarded: it failed, or it was cut short without being closed.
function isUnfinished(done) {
  return done.status === "failed" || done.status === "incomplete" || (done.status === "stopped" && !done.answer);
}

// A reply by number, as the option it stood for in the question before it.
function optionLabel(asked, reply) {
  const number = /^\d{1,3}$/.exec(reply.normalize("NFKC").trim());
  const line = number && asked && new RegExp(`^${number[0]}\\. (.+)$`, "m").exec(asked);
  return line ? line[1] : null;
}

export class Talk {
  // `onChange` is told of everything that the list or another tab should know.
  constructor({ log, scroller, spoken, progress, empty, onChange, onRunning }) {
    Object.assign(this, { log, scroller, spoken, progress, empty, onChange, onRunning });
    this.held = null; // the conversation as the server keeps it; null before its first question
    this.thread = newId();
    this.run = null;
    this.opening = 0;
    this.isFollowing = true;
    this.lastTop = 0;
    scroller.addEventListener("scroll", () => this.noteScroll(), { passive: true });
  }

  get isRunning() {
    return this.run !== null;
  }

  // --- opening ---

  begin() {
    this.leave();
    this.held = null;
    this.thread = newId();
    this.clear();
    this.onChange("begun");
  }

  async open(thread) {
    this.leave();
    const opening = this.opening;
    this.thread = thread;
    this.held = null;
    this.clear();
    this.empty.hidden = true;
    try {
      await this.load(opening);
    } catch (error) {
      if (!server.isExpected(error)) throw error;
      if (opening === this.opening) this.showUnopened(error);
    }
  }

  showUnopened(error) {
    const theirs = this.addTheirs();
    addMark(theirs, failureText(error), true);
    showChoices(theirs, [[words.retry, () => this.open(this.thread), "primary"]]);
    this.progress.textContent = failureText(error);
  }

  // What happened elsewhere; where nothing did, what is open stays open.
  async refresh() {
    if (this.isRunning) return;
    await this.load(this.opening, this.held);
  }

  async load(opening, known = null) {
    const found = await withSignIn(() => server.findConversation(this.thread));
    if (known && found?.updatedAt === known.updatedAt) return;
    const held = found && (await withSignIn(() => server.readConversation(found.id)));
    const page = found && (await withSignIn(() => server.listMessages(found.id)));
    if (opening !== this.opening || this.isRunning) return; // something else was opened or asked meanwhile
    const { scrollTop } = this.scroller;
    this.clear();
    this.held = held;
    if (held) this.showStored(held, page);
    if (!known || this.isFollowing) this.scrollDown(true);
    else this.scroller.scrollTop = scrollTop;
    this.onChange("opened");
  }

  // The run goes on at the server: leaving is not stopping.
  leave() {
    this.opening += 1;
    this.run?.abort.abort();
    this.setRun(null);
  }

  clear() {
    this.log.replaceChildren();
    this.spoken.replaceChildren();
    this.progress.textContent = "";
    this.empty.hidden = false;
  }

  // The messages were read after the open turn: what was running then may have been answered since.
  showStored(held, page) {
    this.addPage(page);
    const open = held.open_turn;
    const [newest] = page.items;
    const isAnswered = open?.state === "running" && newest?.role === "ASSISTANT" && newest.requestId === open.requestId;
    this.showOpenTurn(isAnswered ? null : open);
    const isExpired = !held.hasContext && page.items.length > 0 && !open;
    if (isExpired) this.log.append(element("li", { className: "mark note" }, words.expired));
  }

  addPage({ items, nextCursor }) {
    const rows = [...items].reverse();
    const open = this.held.open_turn;
    const before = this.log.firstChild;
    const add = (entry) => this.log.insertBefore(entry, before);
    rows.forEach((row, place) => {
      if (row.role === "USER") this.addStoredQuestion(rows, place, open, add);
      else add(this.storedAnswer(row));
    });
    if (nextCursor) this.log.prepend(this.earlier(nextCursor));
    this.empty.hidden = this.log.children.length > 0;
  }

  addStoredQuestion(rows, place, open, add) {
    const row = rows[place];
    const label = optionLabel(rows[place - 1]?.content, row.content) || said(row.content);
    const asked = rows.slice(0, place + 1).map((each) => each.content);
    const other = row.standaloneQuestion && !asked.includes(row.standaloneQuestion) && label !== row.standaloneQuestion;
    add(mineEntry(label, other ? row.standaloneQuestion : null));
    if (row.status !== "FAILED" || (place === rows.length - 1 && open)) return;
    const theirs = theirsEntry();
    addMark(theirs, words.unanswered, true);
    add(theirs.entry);
  }

  storedAnswer(row) {
    const theirs = theirsEntry();
    if (row.isWithdrawn) addMark(theirs, words.withdrawn, true);
    showAnswer(theirs, row.isWithdrawn ? "" : row.content, row.sources);
    if (row.status === "PARTIAL") addMark(theirs, words.stopped);
    if (!row.isWithdrawn) this.addFoot(theirs, row.content, row.id, this.held.id, row.feedback);
    return theirs.entry;
  }

  earlier(cursor) {
    const more = element("li", { className: "earlier" });
    more.append(button(words.earlier, async () => {
      const page = await this.guard(() => server.listMessages(this.held.id, cursor));
      if (!page) return;
      const from = this.scroller.scrollHeight;
      more.remove();
      this.addPage(page);
      this.scroller.scrollTop += this.scroller.scrollHeight - from;
      this.log.querySelector("button, .entry")?.focus();
    }));
    return more;
  }

  showOpenTurn(open) {
    if (!open) return;
    if (open.state === "running") return void this.rejoin(open);
    if (open.state === "clarification") return this.askAgain(open.clarification);
    const theirs = this.addTheirs();
    addMark(theirs, words.unfinished, true);
    showRetry(theirs, this.submit);
  }

  // The pending question again, with its buttons, in place of its stored text.
  askAgain(asked) {
    const last = this.log.lastElementChild;
    const text = last?.classList.contains("theirs") ? last.querySelector(".body").textContent : "";
    if (text.includes(asked.prompt)) last.remove();
    const theirs = this.addTheirs();
    renderText(theirs.body, asked.prompt);
    showClarification(theirs, asked, this.submit);
  }

  rejoin(open) {
    const theirs = this.addTheirs();
    showStage(theirs, words.runningElsewhere);
    if (open.requestId) return this.work({ theirs, body: null, requestId: open.requestId });
    return setTimeout(() => this.refresh().catch(() => {}), 2000); // between its lease and its first row
  }

  // --- asking ---

  submit = async (text, label = text) => {
    if (this.isRunning || !text.trim()) return;
    closeChoices(this.log);
    this.log.querySelector(".note")?.remove();
    this.log.append(mineEntry(label));
    this.empty.hidden = true;
    const body = { thread_id: this.thread, message: text, client_message_id: newId() };
    await this.work({ theirs: this.addTheirs(), body, requestId: null });
  };

  async work({ theirs, body, requestId }) {
    const run = { theirs, body, requestId, last: 0, shown: "", ending: null, abort: new AbortController() };
    this.setRun(run);
    this.spoken.replaceChildren();
    this.showStage(run, body ? words.sending : words.runningElsewhere);
    this.scrollDown(true);
    try {
      await this.untilEnded(run);
      this.showEnding(run);
    } catch (error) {
      if (run.abort.signal.aborted) return;
      if (!server.isExpected(error)) throw error;
      this.showRefusal(run, error);
    } finally {
      if (this.run === run) this.endRun(run);
    }
  }

  endRun(run) {
    const hadFocus = run.theirs.entry.contains(document.activeElement) || document.activeElement === document.body;
    showStage(run.theirs, "");
    this.setRun(null);
    this.scrollDown();
    if (hadFocus) (run.theirs.choices.querySelector("button") || run.theirs.entry).focus({ preventScroll: true });
    this.onChange("ended");
  }

  // Follows the run over lost connections. What was asked is asked again under the same id, so never twice.
  async untilEnded(run) {
    for (let attempt = 1; !run.ending; attempt += 1) {
      try {
        for await (const event of this.eventsOf(run)) {
          if (attempt > 1) this.progress.textContent = words.again;
          attempt = 1;
          this.take(run, event);
        }
        if (!run.ending) throw new server.ConnectionLost();
      } catch (error) {
        if (!this.isLost(run, error, attempt)) throw error;
        await this.waitToReconnect(run, attempt);
      }
    }
  }

  eventsOf(run) {
    const { signal } = run.abort;
    if (run.requestId) return server.follow(run.requestId, this.thread, run.last, signal);
    run.shown = "";
    return server.ask(run.body, signal);
  }

  isLost(run, error, attempt) {
    if (run.abort.signal.aborted) return false;
    if (error instanceof server.ConnectionLost) return true;
    return error instanceof server.Problem && error.status === 503 && (attempt > 1 || run.requestId !== null);
  }

  waitToReconnect(run, attempt) {
    const { choices } = run.theirs;
    const text = navigator.onLine === false ? words.offline : attempt > 3 ? words.lostForNow : words.lost;
    this.showStage(run, text);
    run.theirs.entry.classList.add("lost");
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer);
        window.removeEventListener("online", go);
        run.theirs.entry.classList.remove("lost");
        choices.replaceChildren();
        resolve();
      };
      const timer = setTimeout(go, Math.min(2 ** (attempt - 1), LONGEST_WAIT_SECONDS) * 1000);
      window.addEventListener("online", go);
      run.abort.signal.addEventListener("abort", go, { once: true });
      choices.replaceChildren(element("div", { className: "row" }, button(words.rejoin, go)));
    });
  }

  take(run, { id, name, data }) {
    run.last = Math.max(run.last, id);
    if (name === "created") this.noteCreated(run, data);
    else if (name === "stage") this.showStage(run, words.stages[data.node] || data.node);
    else if (name === "token") this.addText(run, data.text);
    else if (name === "reset") run.shown = "";
    else if (name === "done" || name === "error") run.ending = { name, data };
    if (name === "reset") this.draw(run);
  }

  noteCreated(run, data) {
    run.requestId = data.request_id;
    this.onChange("started");
  }

  addText(run, text) {
    run.shown += text;
    this.speak(text);
    this.draw(run);
  }

  // Sentence by sentence, each said once: the entry itself is drawn again and again while it grows.
  speak(text) {
    this.spoken.append(element("p", { lang: langOf(text) }, text.replace(/\s*\[C\d{1,3}\]/g, "")));
  }

  draw(run) {
    if (run.isDrawing) return;
    run.isDrawing = true;
    requestAnimationFrame(() => {
      run.isDrawing = false;
      if (run.ending) return;
      // Its sources come with the end; until then a label leads nowhere.
      renderText(run.theirs.body, run.shown, { cite: (label) => element("span", { className: "cite" }, label) });
      this.scrollDown();
    });
  }

  showStage(run, text) {
    showStage(run.theirs, text);
    this.progress.textContent = text;
  }

  // --- how it ended ---

  showEnding(run) {
    const { theirs, ending } = run;
    if (ending.name === "done") this.showDone(run, ending.data);
    else {
      renderText(theirs.body, run.shown);
      addMark(theirs, problemText(ending.data), true);
      const again = () => this.sendAgain(run);
      if (run.body && ending.data.retryable) showChoices(theirs, [[words.resend, again, "primary"]]);
      else showRetry(theirs, this.submit);
      this.progress.textContent = problemText(ending.data);
    }
  }

  showDone(run, done) {
    const { theirs } = run;
    const asked = done.clarification;
    const parts = [done.notice, done.answer?.text, asked?.prompt].filter(Boolean);
    const text = [...new Set(parts)].join("\n\n") || done.partial_text || done.text || run.shown;
    showAnswer(theirs, text, done.answer?.citations);
    this.addMarks(theirs, done, text);
    if (asked) showClarification(theirs, asked, this.submit);
    else if (isUnfinished(done)) showRetry(theirs, this.submit);
    else if (done.answer && text) this.addFoot(theirs, text, done.assistant_message_id, done.conversation_id);
    const ending = words.endings[done.status] || "";
    this.progress.textContent = asked ? `${asked.prompt} ${words.options(asked.options.length)}` : ending;
    if (!this.spoken.children.length && text) this.speak(text);
  }

  addMarks(theirs, done, text) {
    const { status } = done;
    const meant = done.standalone_question;
    const asked = [...this.log.querySelectorAll(".mine .bubble")].at(-1)?.textContent;
    if (meant && meant !== done.original_question && meant !== asked) {
      addMark(theirs, words.understoodAs(meant));
    }
    if (done.history_shaped) addMark(theirs, words.historyShaped);
    if (done.degraded && status === "completed") addMark(theirs, words.degraded);
    if (status === "stopped") addMark(theirs, done.answer && text ? words.stopped : words.stoppedEmpty);
    if (status === "incomplete") addMark(theirs, words.incomplete, true);
    if (done.error_code === "processing_failed") addMark(theirs, words.failed, true);
  }

  showRefusal(run, error) {
    const { theirs, body } = run;
    if (error.status === 404 && run.requestId) return this.lookUp(); // its record tells what became of it
    theirs.body.replaceChildren();
    addMark(theirs, problemText(error), true);
    if (error.requestId) addMark(theirs, `${words.requestId} ${error.requestId}`);
    this.progress.textContent = problemText(error);
    const choices = [];
    const again = () => this.sendAgain(run);
    if (error.status === 401) choices.push([words.signIn, async () => (await askSignIn()) && again(), "primary"]);
    else if (body && error.retryable) choices.push([words.resend, again, "primary"]);
    if (error.code === "thread_busy") choices.push([words.look, () => this.open(this.thread)]);
    if (choices.length) showChoices(theirs, choices);
  }

  async lookUp() {
    this.setRun(null);
    await this.guard(() => this.load(this.opening));
  }

  async sendAgain(run) {
    if (this.isRunning) return;
    run.theirs.entry.remove();
    await this.work({ theirs: this.addTheirs(), body: run.body, requestId: null });
  }

  async stop() {
    if (!this.isRunning) return;
    this.showStage(this.run, words.stopping);
    await this.guard(() => server.stop(this.thread));
  }

  // --- small things ---

  addTheirs() {
    const theirs = theirsEntry();
    this.log.append(theirs.entry);
    return theirs;
  }

  addFoot(theirs, text, messageId, conversationId, feedback = null) {
    const rate = messageId && ((body) => this.guard(() => server.rate(conversationId, messageId, body)));
    showFoot(theirs, { text, feedback, rate });
  }

  // Runs a call of a button; what goes wrong is told, not thrown. -> null then.
  async guard(call) {
    try {
      return (await withSignIn(call)) ?? true;
    } catch (error) {
      if (!server.isExpected(error)) throw error;
      this.progress.textContent = failureText(error);
      this.onChange("told", this.progress.textContent);
      return null;
    }
  }

  setRun(run) {
    this.run = run;
    this.log.setAttribute("aria-busy", String(run !== null));
    this.onRunning(run !== null);
  }

  // To the newest, but never past the last question: an answer is read from its beginning. Who has scrolled
  // up is left where they are.
  scrollDown(always = false) {
    if (!always && !this.isFollowing) return;
    this.isFollowing = true;
    const { scroller, log } = this;
    const question = [...log.querySelectorAll(".mine")].at(-1);
    const start = question ? question.offsetTop - log.offsetTop : Infinity;
    scroller.scrollTop = Math.min(scroller.scrollHeight, start);
  }

  noteScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    if (scrollTop < this.lastTop) this.isFollowing = false;
    if (scrollHeight - scrollTop - clientHeight < NEAR_PIXELS) this.isFollowing = true;
    this.lastTop = scrollTop;
  }
}
