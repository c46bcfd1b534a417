// The list of conversations. It shows and opens them; what is done to one is asked of its owner.

import * as server from "./server.js";
import { button, element, langOf } from "./render.js";
import { failureText, words } from "./words.js";
import { askSignIn, withSignIn } from "./signin.js";

export class Shelf {
  constructor({ list, tabs, more, onOpen }) {
    Object.assign(this, { list, tabs, more, onOpen });
    this.status = "ACTIVE";
    this.items = [];
    this.cursor = null;
    this.openThread = null;
    for (const tab of tabs) tab.addEventListener("click", () => this.choose(tab.dataset.status));
    more.addEventListener("click", () => this.load(this.cursor));
  }

  choose(status) {
    this.status = status;
    return this.load();
  }

  // The first page again, or the next one.
  async load(cursor = null) {
    const { status } = this;
    try {
      const page = await withSignIn(() => server.listConversations(status, cursor));
      if (status !== this.status) return;
      this.items = cursor ? [...this.items, ...page.items] : page.items;
      this.cursor = page.nextCursor;
      this.show();
    } catch (error) {
      if (!server.isExpected(error)) throw error;
      this.showProblem(error);
    }
  }

  mark(thread) {
    this.openThread = thread;
    for (const each of this.list.querySelectorAll("button")) this.markOne(each);
  }

  markOne(each) {
    if (each.dataset.thread === this.openThread) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }

  show() {
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.dataset.status === this.status));
    this.more.hidden = !this.cursor;
    const hadFocus = this.list.contains(document.activeElement) ? document.activeElement.dataset.thread : null;
    this.list.replaceChildren(...(this.items.length ? this.rows() : [this.nothing()]));
    if (hadFocus) this.list.querySelector(`[data-thread="${CSS.escape(hadFocus)}"]`)?.focus();
  }

  // In the order of the server, which is that of their beginning, under the days they began on.
  rows() {
    let day = null;
    return this.items.flatMap((held) => {
      const began = dayOf(new Date(held.createdAt), new Date());
      const heading = began === day ? [] : [element("li", { className: "caption" }, words.days[began])];
      day = began;
      return [...heading, this.itemOf(held)];
    });
  }

  itemOf(held) {
    const title = held.title || words.untitled;
    const open = button(title, () => this.onOpen(held.externalId), {
      "data-thread": held.externalId, title, lang: langOf(title),
    });
    this.markOne(open);
    return element("li", {}, open);
  }

  nothing() {
    return element("li", { className: "mark" }, this.status === "ACTIVE" ? words.none : words.noneArchived);
  }

  showProblem(error) {
    const text = failureText(error);
    const again =
      error.status === 401
        ? button(words.signIn, async () => (await askSignIn()) && this.load())
        : button(words.retry, () => this.load());
    this.list.replaceChildren(element("li", { className: "mark alarm" }, text), element("li", {}, again));
    this.more.hidden = true;
  }
}

function dayOf(began, now) {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  if (began >= midnight) return "today";
  return began >= yesterday ? "yesterday" : "before";
}
