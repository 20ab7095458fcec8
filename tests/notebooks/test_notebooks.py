"""Every notebook runs from top to bottom, keeps its outputs, and prints today what it kept."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def printed(notebook):
    """What each cell wrote to stdout, by cell; that of a training run varies with the processor."""
    return [
        "".join(o["text"] for o in cell.get("outputs", []) if o.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code" and "varies" not in cell.metadata.get("tags", [])
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_runs_and_prints_what_it_kept(path, tmp_path):
    kept = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(fresh) == printed(kept)
    assert any(printed(kept)), "outputs are kept"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_stays_small_and_opens_in_colab(path):
    assert path.stat().st_size < 150_000
    first = nbformat.read(path, as_version=4).cells[0].source
    assert "colab.research.google.com" in first


def test_there_is_a_notebook():
    assert NOTEBOOKS
