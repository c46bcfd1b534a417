"""The web page and its files, as they are: nothing is built, nothing comes from elsewhere."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import FileResponse, Response

PAGE = Path(__file__).parent / "page"

# Only files of our own, and nothing inline: injected text could not run even if it were markup. And by
# `require-trusted-types-for` no script of the page, ours or a library's, can make markup of a text at all.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# Asked again each time, by its tag: after an upgrade no browser mixes old files with new ones.
FRESH = {"Cache-Control": "no-cache"}


class PageFiles(StaticFiles):
    """The files beside the page."""

    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type]
        response.headers.update(FRESH)
        return response


def add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Content-Security-Policy": POLICY, **FRESH})

    app.mount("/page", PageFiles(directory=PAGE), name="page")
