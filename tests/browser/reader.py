"""A person at the page: what they do, and what they see. Every wait is for something to be there."""

from pathlib import Path
from typing import Any

WAIT_MILLISECONDS = 120_000  # for a busy machine; nothing is asserted about speed
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")

# Kept over reloads, so that nothing a page did before one is missed.
WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  const kept = JSON.parse(sessionStorage.getItem("violations") || "[]");
  kept.push(event.violatedDirective + " " + event.sample);
  sessionStorage.setItem("violations", JSON.stringify(kept));
});
"""


class Reader:
    """One tab. `check` fails on any script error, refused markup or broken policy since it was opened."""

    def __init__(self, context: Any, address: str, language: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_MILLISECONDS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.add_init_script(WATCH)
        self.address = address
        self.page.goto(address)
        self.log = self.page.locator("#log")
        self.message = self.page.locator("#message")
        self.page.locator(f"html[lang^={language}]").wait_for(state="attached")
        self.page.locator('[data-icon="send"] svg').wait_for(state="attached")

    # --- doing ---

    def send(self, text: str) -> None:
        """Type and send, without waiting for the answer."""
        self.message.fill(text)
        self.message.press("Enter")

    def ask(self, text: str) -> Any:
        """-> the entry of the answer, once it is complete."""
        self.send(text)
        return self.answered()

    def answered(self) -> Any:
        self.page.locator('#log[aria-busy="false"] > .theirs:last-child').wait_for()
        self.page.locator("#send").wait_for()
        return self.last

    def button(self, name: str, within: Any = None) -> Any:
        return (within or self.page).get_by_role("button", name=name, exact=True)

    def reconnect(self) -> None:
        """By hand, unless the page has done so by itself meanwhile."""
        button = self.button("立即重连", self.last)
        button.evaluate_all("(found) => found.forEach((each) => each.click())")

    def menu(self, name: str) -> None:
        self.page.locator("#actions").click()
        self.page.locator("#menu").get_by_role("button", name=name, exact=True).click()

    def see(self, text: str, within: Any = None) -> Any:
        """Wait until the text is there to be read."""
        found = (within or self.page).get_by_text(text).first
        found.wait_for()
        return found

    # --- seeing ---

    @property
    def last(self) -> Any:
        return self.page.locator("#log > .theirs").last

    @property
    def said(self) -> list[str]:
        """What stands in the conversation, both sides, in order."""
        texts: list[str] = self.page.locator("#log .bubble, #log .body").all_inner_texts()
        return texts

    @property
    def spoken(self) -> list[str]:
        """What the live region was given, sentence by sentence."""
        texts: list[str] = self.page.locator("#spoken p").all_inner_texts()
        return texts

    @property
    def focus(self) -> str:
        name: str = self.page.evaluate(
            "((it) => it.id || it.className || it.textContent)(document.activeElement)"
        )
        return name

    def settle(self) -> None:
        """Until the next frame has been drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def faults(self) -> list[str]:
        """axe-core's serious and critical findings, each with where it is."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def is_as_wide_as_the_screen(self) -> bool:
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth <= window.screen.width")
        return wide

    def check(self) -> None:
        if self.page.is_closed():
            return
        assert self.errors == []
        assert self.page.evaluate("sessionStorage.getItem('violations')") is None
