"""What is kept comes back as it was, or not at all."""

import errno
import os

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.store.cache import ARRAYS, JSON, Cache

VALUES = {"a": [1.0, float("nan"), 0.1 + 0.2, None], "µ": {"b": True}}
TABLES = {"x": np.random.default_rng(0).normal(size=(3, 2)), "n": np.arange(4), "t": np.asfortranarray(np.eye(3) + 1)}


@pytest.fixture
def cache(tmp_path):
    return Cache.at(tmp_path / "kept")


class TestEntries:
    def test_plain_values_and_arrays_come_back_to_the_bit(self, cache):
        assert repr(cache.put("one", VALUES, JSON, seconds=0.1)) == repr(VALUES)
        entry = cache.read("one", JSON)
        assert repr(entry.value) == repr(VALUES)
        assert entry.facts == {"seconds": 0.1}
        cache.put("two", TABLES, ARRAYS)
        back = cache.read("two", ARRAYS).value
        assert set(back) == set(TABLES)
        assert all(back[name].tobytes() == TABLES[name].tobytes() for name in TABLES)
        assert cache.read("three", JSON) is None

    @pytest.mark.parametrize(("value", "format"), [(VALUES, JSON), (TABLES, ARRAYS)], ids=["json", "arrays"])
    def test_a_file_that_is_changed_anywhere_is_not_used(self, cache, value, format):
        cache.put("one", value, format, seconds=2.0)
        path = cache.path("one")
        data = path.read_bytes()
        for place in range(0, len(data), max(1, len(data) // 150)):
            for changed in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
                path.write_bytes(changed)
                assert cache.get("one", format) is None
                with pytest.raises(DataError, match=r"one\.entry is damaged"):
                    cache.read("one", format)
        path.write_bytes(data)
        assert cache.get("one", format) is not None

    def test_a_value_of_another_format_is_not_used(self, cache):
        cache.put("one", VALUES, JSON)
        assert cache.get("one", ARRAYS) is None

    def test_a_folder_that_cannot_be_written_is_refused_at_once(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(DataError, match=r"file/inside cannot be written"):
            Cache.at(tmp_path / "file" / "inside")

    def test_a_full_disk_leaves_the_old_entry_and_nothing_else(self, cache, monkeypatch):
        cache.put("one", 1, JSON)

        def full(handle):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"one\.entry cannot be written: No space left on device"):
            cache.put("one", 2, JSON)
        assert [path.name for path in cache.folder.iterdir()] == ["one.entry"]
        assert cache.read("one", JSON).value == 1


class TestLogs:
    def test_values_come_back_in_order(self, cache):
        for value in ({"a": 1}, [0.1, 1e300], "text\nof two lines\r"):
            cache.log("all").append(value)
        assert list(cache.log("all").read()) == [{"a": 1}, [0.1, 1e300], "text\nof two lines\r"]
        assert list(cache.log("none").read()) == []

    def test_a_line_that_is_changed_is_named(self, cache):
        for value in range(1000, 1003):
            cache.log("all").append(value)
        path = cache.log("all").path
        path.write_bytes(path.read_bytes().replace(b"1001", b"1007"))
        with pytest.raises(DataError, match=r"all\.log is damaged: line 2 is not what was written"):
            list(cache.log("all").read())

    def test_a_disk_that_fills_within_a_line_leaves_whole_lines(self, cache, monkeypatch):
        log = cache.log("all")
        log.append(1)

        def full(handle):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(DataError, match=r"all\.log cannot be written: No space left on device"):
                log.append(2)
        log.append(3)
        assert list(log.read()) == [1, 3]
