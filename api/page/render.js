// Text to elements. Everything from outside becomes a text node; no markup is ever made of a text.
//
// Of Markdown it knows what answers and documents hold: headings, lists, tables, quotes, fences, bold, code.
// A line is a line: a sentence after a list stands by itself, and 3~6 or 2*3 are left as they are.

const BULLET = /^(\s*)[-*•]\s+/;
const NUMBER = /^(\s*)\d{1,3}(?:[.)]\s+|、\s*)/;
const HEADING = /^(#{1,6})\s+/;
const QUOTE = /^>\s?/;
const ROW = /^\s*\|(.+)\|\s*$/;
const RULE_ROW = /^\s*\|[\s:|-]+\|\s*$/;
const FENCE = /^\s*```/;
const INLINE = /\[(C\d{1,3})\]|\*\*([^*\n]+)\*\*|`([^`\n]+)`/g;
const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h10",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  steps: "M5 6h14M5 12h9M5 18h5",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  up: "M7 11v8H4v-8zM7 11l4-7c1.5 0 2.3 1 2 2.500L12.500 9H19l-1.500 9H7",
  down: "M7 13V5H4v8zM7 13l4 7c1.500 0 2.300-1 2-2.500L12.500 15H19l-1.500-9H7",
  newest: "M12 5v14M6 13l6 6 6-6",
};

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name.startsWith("data-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// So that a screen reader says Chinese as Chinese on an English page, and the other way round.
export function langOf(text) {
  return /[\u3400-\u9fff]/.test(text) ? "zh-CN" : "en";
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon ${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return svg;
}

export function button(text, onclick, properties = {}) {
  return element("button", { type: "button", onclick, ...properties }, text);
}

export function iconButton(name, label, onclick, properties = {}) {
  const given = { type: "button", onclick, title: label, "aria-label": label, ...properties };
  return element("button", { className: "plain", ...given }, icon(name));
}

// Says so in its place for a moment once the text is copied; without a clipboard there is no button.
export function copyButton(text, label, done) {
  if (!navigator.clipboard) return null;
  const copying = iconButton("copy", label, async () => {
    const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    if (!isCopied) return;
    copying.replaceChildren(element("span", { className: "mark", role: "status" }, done));
    setTimeout(() => copying.replaceChildren(icon("copy")), 2000);
  });
  return copying;
}

// `cite(label)` gives the element that stands for [C1], or null to leave the text as it is;
// `marked` are phrases to highlight.
export function renderText(target, text, { cite = () => null, marked = [] } = {}) {
  const inline = (line) => piecesOf(line, cite, marked);
  target.lang = langOf(text);
  target.replaceChildren(...blocksOf(text).map((block) => renderBlock(block, inline)));
}

function blocksOf(text) {
  const blocks = [];
  let fence = null;
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (FENCE.test(line)) {
      fence = fence ? null : { kind: "pre", lines: [] };
      if (fence) blocks.push(fence);
    } else if (fence) fence.lines.push(line);
    else addLine(blocks, kindOf(line), line);
  }
  return blocks.filter((block) => block.kind);
}

function kindOf(line) {
  if (!line.trim()) return null;
  if (HEADING.test(line)) return "heading";
  if (BULLET.test(line)) return "ul";
  if (NUMBER.test(line)) return "ol";
  if (QUOTE.test(line)) return "blockquote";
  if (ROW.test(line)) return "table";
  return "p";
}

function addLine(blocks, kind, line) {
  const last = blocks.at(-1);
  if (kind && kind !== "heading" && last?.kind === kind) last.lines.push(line);
  else blocks.push({ kind, lines: [line] });
}

function renderBlock({ kind, lines }, inline) {
  if (kind === "pre") return element("pre", { tabIndex: 0 }, lines.join("\n"));
  if (kind === "heading") return element("p", { className: "heading" }, ...inline(lines[0].replace(HEADING, "")));
  if (kind === "ul" || kind === "ol") return renderList(kind, lines, inline);
  if (kind === "table") return renderTable(lines, inline);
  const text = kind === "blockquote" ? lines.map((line) => line.replace(QUOTE, "")) : lines;
  return element(kind, {}, ...inline(text.join("\n")));
}

function renderList(kind, lines, inline) {
  const mark = kind === "ul" ? BULLET : NUMBER;
  const items = lines.map((line) => {
    const className = mark.exec(line)[1].length > 1 ? "inner" : "";
    return element("li", { className }, ...inline(line.replace(mark, "")));
  });
  const list = element(kind, {}, ...items);
  if (kind === "ol") list.start = Number.parseInt(lines[0], 10) || 1;
  return list;
}

function renderTable(lines, inline) {
  const cells = (line, tag) =>
    ROW.exec(line)[1].split("|").map((cell) => element(tag, tag === "th" ? { scope: "col" } : {}, ...inline(cell.trim())));
  const hasHead = lines.length > 1 && RULE_ROW.test(lines[1]);
  const rows = lines.filter((line) => !RULE_ROW.test(line));
  const made = rows.map((line, place) => element("tr", {}, ...cells(line, hasHead && place === 0 ? "th" : "td")));
  const table = element("table", {}, element("tbody", {}, ...made));
  return element("div", { className: "table", tabIndex: 0, role: "group" }, table);
}

function piecesOf(text, cite, marked) {
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, label, bold, code] = match;
    const made = label ? cite(label) : bold ? element("strong", {}, bold) : element("code", {}, code);
    if (!made) continue;
    pieces.push(...highlighted(text.slice(from, match.index), marked), made);
    from = match.index + whole.length;
  }
  pieces.push(...highlighted(text.slice(from), marked));
  return pieces;
}

function highlighted(text, phrases) {
  const found = phrases.map((phrase) => [text.indexOf(phrase), phrase]).filter(([place]) => place >= 0);
  if (!found.length) return text ? [text] : [];
  const [place, phrase] = found.sort((one, other) => one[0] - other[0])[0];
  const rest = highlighted(text.slice(place + phrase.length), phrases);
  return [text.slice(0, place), element("mark", {}, phrase), ...rest].filter((piece) => piece !== "");
}

// What an answer quotes: its sentences without their labels, long enough to be found again.
export function phrasesOf(text) {
  const sentences = text.split(/[\n。！？；!?;]|\.\s/).map((part) => part.replace(/^\s*[-*•]\s+/, ""));
  const bare = sentences.map((part) => part.replace(/\s*\[C\d{1,3}\]/g, "").replace(/\.$/, "").trim());
  return bare.filter((part) => part.length >= 6);
}
