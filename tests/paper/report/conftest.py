"""Pages that several tests look at, written once."""

import json

import pytest

from rflaf.paper import Store
from rflaf.paper.records import compact
from rflaf.paper.report import write_report
from tests.paper.report.made_records import hostile_records, make_records


@pytest.fixture(scope="session")
def records():
    return make_records()


@pytest.fixture(scope="session")
def page_path(tmp_path_factory, records):
    """The page of many records, hostile ones among them."""
    folder = tmp_path_factory.mktemp("results")
    write_records(folder, [*records, *hostile_records()])
    return write_report(folder, folder / "report.html")


def write_records(folder, records):
    """As Store.append does, but without a lock and a flush for each."""
    lines = [json.dumps(compact(record)) + "\n" for record in records]
    Store(folder).path.write_text("".join(lines), encoding="utf-8")
