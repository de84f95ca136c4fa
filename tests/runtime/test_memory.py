"""How much memory there is."""

from rflaf.runtime import memory


def test_what_is_free_is_no_more_than_there_is():
    assert 0 < memory.free_bytes() <= memory.physical_bytes()


def test_where_the_system_does_not_tell(monkeypatch):
    def unknown(_name):
        raise ValueError

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.physical_bytes() == 1 << 33
    assert 0 < memory.free_bytes() <= 1 << 33
