from __future__ import annotations

import zipfile

import numpy as np
import pytest

from dynident.errors import FileWarning
from dynident.sealed import SealError, check_text, digest_of, read_sealed, sealed_archive, sealed_text

KIND = "dynident test"
ARRAYS = {
    "beta": np.array([1.0, -2.0]),
    "covariance": np.array([[2.0, 0.5], [0.5, 1.0]]),
    "names": np.array(["a", "b"]),
    "flag": np.array(True),
    "none": np.zeros((0, 3)),
}


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "a.npz").write_bytes(sealed_archive(KIND, ARRAYS))
    return tmp_path / "a.npz"


def test_what_was_written_comes_back(archive):
    found = read_sealed(archive, KIND)
    assert sorted(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert archive.read_bytes().find(b"dynident") < 64  # by which a file is known without reading it


@pytest.mark.parametrize(
    "change",
    [
        {"covariance": -ARRAYS["covariance"]},
        {"beta": np.nextafter(ARRAYS["beta"], 9.0)},
        {"beta": ARRAYS["beta"].astype(np.float32)},
        {"beta": ARRAYS["beta"][:, None]},
        {"names": np.array(["b", "a"])},
        {"flag": np.array([True])},
        {"more": np.zeros(1)},
        {"flag": None},
    ],
    ids=lambda change: "-".join(change),
)
def test_any_change_is_refused(archive, change):
    with np.load(archive) as stored:
        arrays = {name: stored[name] for name in stored.files} | change
    np.savez(archive, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(SealError, match="its seal does not match"):
        read_sealed(archive, KIND)


def test_a_file_of_another_kind_is_refused(archive):
    with pytest.raises(SealError, match="it holds 'dynident test', not 'dynident other'"):
        read_sealed(archive, "dynident other")


def test_a_seal_that_is_none(archive):
    np.savez(archive, dynident=np.zeros(3), beta=np.ones(1))
    with pytest.raises(SealError, match="its seal is damaged"):
        read_sealed(archive, KIND)


def test_files_of_earlier_versions_are_read_with_a_warning(archive):
    np.savez(archive, **ARRAYS)
    with pytest.warns(FileWarning, match=r"a\.npz: is of an earlier version and has no seal"):
        assert sorted(read_sealed(archive, KIND)) == sorted(ARRAYS)


def test_every_byte_counts(archive):
    """Damage anywhere is found by the archive or by the seal, or changes nothing that is read."""
    good = archive.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(good), 300):
        damaged = bytearray(good)
        damaged[place] ^= 1 << int(rng.integers(8))
        archive.write_bytes(bytes(damaged))
        try:
            found = read_sealed(archive, KIND)
        except (ValueError, OSError, zipfile.BadZipFile, NotImplementedError):
            continue
        assert digest_of(KIND, found) == digest_of(KIND, ARRAYS)


class TestText:
    def test_what_was_written_comes_back(self, tmp_path):
        text = sealed_text("format: x\nvalues: [1, 2]")
        check_text(tmp_path / "a.yaml", text)
        assert text.startswith("format: x\nvalues: [1, 2]\n# dynident seal: ")

    @pytest.mark.parametrize(
        ("old", "new"), [("1", "3"), ("values", "Values"), ("seal: ", "seal: 0"), ("seal", "Seal ")]
    )
    def test_an_edit_is_refused(self, tmp_path, old, new):
        text = sealed_text("format: x\nvalues: [1, 2]").replace(old, new, 1)
        if "dynident seal:" in text:
            with pytest.raises(SealError):
                check_text(tmp_path / "a.yaml", text)
        else:
            with pytest.warns(FileWarning, match="has no seal"):
                check_text(tmp_path / "a.yaml", text)

    def test_what_stands_behind_the_seal_is_refused(self, tmp_path):
        with pytest.raises(SealError, match="not its last line"):
            check_text(tmp_path / "a.yaml", sealed_text("a: 1") + "b: 2\n")
