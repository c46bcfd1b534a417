// Text to elements. Everything from outside becomes a text node; no markup is ever parsed.

const BULLET = /^\s*[-*•]\s+/;
const NUMBER = /^\s*\d{1,3}[.、)]\s+/;
const CITATION = /\[(C\d{1,3})\]/g;

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

// Paragraphs, lists, and [C1] as a button when a source of that label is known.
export function renderText(target, text, openSource) {
  target.replaceChildren(...blocksOf(text).map((block) => renderBlock(block, openSource)));
}

function blocksOf(text) {
  const blocks = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    const kind = BULLET.test(line) ? "ul" : NUMBER.test(line) ? "ol" : line.trim() ? "p" : null;
    const last = blocks.at(-1);
    if (kind === null) blocks.push({ kind: null, lines: [] });
    else if (last && last.kind === kind) last.lines.push(line);
    else blocks.push({ kind, lines: [line] });
  }
  return blocks.filter((block) => block.kind);
}

function renderBlock({ kind, lines }, openSource) {
  if (kind === "p") return element("p", {}, ...piecesOf(lines.join("\n"), openSource));
  const list = element(kind, {}, ...lines.map((line) => renderItem(kind, line, openSource)));
  if (kind === "ol") list.start = Number.parseInt(lines[0], 10);
  return list;
}

function renderItem(kind, line, openSource) {
  const text = line.replace(kind === "ul" ? BULLET : NUMBER, "");
  return element("li", {}, ...piecesOf(text, openSource));
}

function piecesOf(text, openSource) {
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(CITATION)) {
    const open = openSource(match[1]);
    if (!open) continue;
    pieces.push(text.slice(from, match.index));
    pieces.push(element("button", { type: "button", className: "cite", textContent: match[0], onclick: open }));
    from = match.index + match[0].length;
  }
  pieces.push(text.slice(from));
  return pieces.filter((piece) => piece !== "");
}
