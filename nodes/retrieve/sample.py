"""The sample knowledge that comes with the package: an invented city and its companies."""

from importlib.resources import files
from pathlib import Path

from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.loading import LoadReport, Progress, folder_digest, load_folder

SAMPLE_SET = "sample"


def sample_folder() -> Path:
    """Where the sample lies in the installed package."""
    return Path(str(files("nodes.retrieve"))) / "sample_data" / "documents"


def ensure_sample(store: KnowledgeStore, progress: Progress | None = None) -> LoadReport | None:
    """Loads the sample where the store has none or another release's; None where it is there already."""
    folder = sample_folder()
    if store.source_sets().get(SAMPLE_SET) == folder_digest(folder):
        return None
    return load_folder(folder, store, progress=progress, name=SAMPLE_SET)
