"""Every reproduction in its quick version; real data, but for what scikit-learn bundles, only where they are."""

import pytest

from reproductions import catalogue
from reproductions.__main__ import main
from tests.conftest import SHARED


@pytest.mark.parametrize("name", catalogue.names())
def test_quick(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("POLYMARGIN_DATA", str(SHARED))
    code = main([*name.split("/"), "--quick", "--repetitions", "1", "--output", str(tmp_path)])
    if code == 1:
        pytest.skip(capsys.readouterr().err)
    assert code == 0
    item = catalogue.load(name)
    pictures = () if item.draw is None and item.plot is None else (".svg", ".png")
    for suffix in (".jsonl", ".csv", ".md", *pictures):
        assert (tmp_path / name).with_suffix(suffix).stat().st_size > 0
