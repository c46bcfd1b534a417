// Questions that the page itself asks. Each resolves to the answer, or null when it was closed.

import { element } from "./render.js";
import { words } from "./words.js";

export function confirmBox({ title, detail, ok }) {
  return open({ title, detail, ok, okClass: "danger" });
}

export function askText({ title, label, value = "", ok = words.save, detail = "", type = "text", limit = 255 }) {
  const input = element("input", { type, value, maxLength: limit, required: true, autocomplete: "off" });
  const field = element("label", { className: "field" }, element("span", {}, label), input);
  return open({ title, detail, ok, field, input });
}

function open({ title, detail, ok, okClass = "primary", field = null, input = null }) {
  const before = document.activeElement;
  const heading = element("h2", { id: "dialog-title" }, title);
  const cancel = element("button", { type: "button" }, words.keep);
  const confirm = element("button", { type: "submit", className: okClass }, ok);
  const form = element(
    "form", {}, heading, detail ? element("p", { id: "dialog-detail" }, detail) : null, field,
    element("div", { className: "row end" }, cancel, confirm),
  );
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  if (detail) dialog.setAttribute("aria-describedby", "dialog-detail");
  document.body.append(dialog);
  dialog.showModal();
  (input || cancel).focus();
  input?.select();
  return new Promise((resolve) => {
    let answer = null;
    cancel.onclick = () => dialog.close();
    form.onsubmit = (event) => {
      event.preventDefault();
      answer = input ? input.value.trim() || null : true;
      dialog.close();
    };
    dialog.onclose = () => {
      dialog.remove();
      before?.focus?.();
      resolve(answer);
    };
  });
}
