"""What is on the page, and that nothing in the records can break it or run in it."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.paper.curves import sort_out
from rflaf.paper.report import render, write_report
from rflaf.paper.report.summary import sentences, training_seconds
from rflaf.paper.specs import Spec
from tests.paper.report.conftest import write_records
from tests.paper.report.made_records import HOSTILE, estimator, training

VOID = {"meta", "link"}
TAGS = {
    *("html", "head", "meta", "title", "link", "style", "body", "a", "header", "h1", "button"),
    *("nav", "ul", "li", "main", "section", "h2", "h3", "dl", "div", "dt", "dd", "p", "table"),
    *("caption", "thead", "tbody", "tr", "th", "td", "span", "details", "summary", "figure"),
    *("figcaption", "svg", "g", "path", "circle", "text", "script"),
}


class Outline(HTMLParser):
    """Tags, links and text; fails where tags do not match."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], []
        self.attributes = set()
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        self.attributes |= set(given)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in ("href", "src") if name in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(page_path):
    return page_path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(page):
    return Outline(page)


def test_every_section_is_there_and_in_the_contents(outline):
    wanted = {f"table{k}" for k in range(1, 11)} | {f"figure{k}" for k in (1, 2, 3)}
    wanted |= {"summary", "activations", "losses", "more", "other"}
    assert wanted <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))
    assert {link for link in outline.links if link.startswith("#")} == {f"#{w}" for w in wanted}


def test_needs_nothing_from_outside(outline, page):
    assert all(link.startswith("#") or link == "data:," for link in outline.links)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_paper_and_ours_side_by_side_with_the_best_marked(page):
    row = re.search(r"<tr><th scope=\"row\">rflaf-bs-16</th>.*0\.194 ± 0\.002.*</tr>", page)
    assert row, "protein in table 1"
    cells = re.findall(r'<td class="number (\w*)" data-value="([^"]*)">([^<]*)', row[0])
    assert cells[0] == ("best", "0.194", "0.194 ± 0.002")
    assert float(cells[1][1]) == pytest.approx(0.194, rel=0.03)
    assert re.search(r"0\.1[5-9]\d\d ± 0\.0\d\d\d", cells[1][2])


def test_missing_data_is_named(page):
    assert "ct, workloads, millionsongs: data not available here" in page
    assert "The paper shows workloads: data not available here." in page


def test_missing_runs_are_not_missing_data(records):
    page = render([run for run in records if run["kind"] == "training"], "title")
    assert "mnist, protein: no runs for this yet" in page, "times"
    assert "f1, f2, f3: no runs for this yet" in page


def test_hostile_names_stay_text(outline):
    assert set(outline.tags) <= TAGS
    assert outline.tags.count("script") == 1
    assert not {name for name in outline.attributes if name.startswith("on")}
    text = "".join(outline.text)
    for name in HOSTILE[:3]:
        assert name in text
    assert "{{ 7 * 7 }}" in text
    assert "49 & 'quoted'" not in text


def test_size(page_path):
    assert page_path.stat().st_size < 2e6


def test_agreement_is_counted():
    rng = np.random.default_rng(0)
    near = training("protein", "rfmlp-relu", "published", 72, 0.241, rng)
    far = training("protein", "rfmlp-cos", "published", 72, 0.9, rng)
    known, _ = sort_out([near, far])
    assert sentences(known)[0].startswith("On protein, 1 of 2 models are within 3 standard errors")


def test_estimators_against_the_best_published_model():
    rng = np.random.default_rng(0)
    runs = [
        training("protein", "rfmlp-relu", "corrected", 72, 0.24, rng),
        training("protein", "rflaf-rbf-64", "corrected", 72, 0.18, rng),
        estimator("protein", "estimator", 72, 0.15, rng),
    ]
    known, _ = sort_out(runs)
    assert [training_seconds(run) for run in known] == [45.0, 45.0, 4.5]
    (sentence,) = [s for s in sentences(known) if "corrected" in s]
    assert re.search(r"of 2 published models is 0\.1\d+ in 45 s \(rflaf-rbf-64\)", sentence)
    assert re.search(r"Estimators: estimator 0\.1\d+ in 4.5 s\.", sentence)


def test_small_runs_and_failed_ones_are_told_apart():
    run = training("protein", "rfmlp-relu", "published", 72, 0.24, np.random.default_rng(0))
    small = {**run, "key": "small", "spec": Spec(**run["spec"]).quick().to_dict()}
    failed = {**run, "key": "failed", "status": "failed", "error": "out of <memory>"}
    page = render([run, small, failed], "title")
    assert "3, 1 of them quick runs" in page
    assert "out of &lt;memory&gt;" in page
    assert "1 / –" in page, "one seed counts in the tables"


def test_without_records(tmp_path):
    with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
        write_report(tmp_path)


def test_nothing_half_written(tmp_path, records, request):
    target = tmp_path / "report.html"
    target.write_text("before")
    write_records(tmp_path, records[:1])
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match=r"No space left on device: '.*/report\.html'$"):
        write_report(tmp_path, target)
    assert target.read_text(encoding="utf-8") == "before"
    assert {p.name for p in tmp_path.iterdir()} == {"report.html", "records.jsonl"}


def test_title_is_escaped():
    page = render([{"key": "a"}], "<b>bold</b> & more")
    assert "<title>&lt;b&gt;bold&lt;/b&gt; &amp; more</title>" in page


def test_imports_no_model_code():
    code = (
        "import rflaf.paper.report, rflaf.paper.figures, sys; "
        "assert not {'torch', 'rflaf.nn', 'jinja2', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
CURVE = st.lists(st.floats() | st.none(), max_size=4)
FIELDS = {
    "kind": st.sampled_from(["training", "estimator", "timing", "recovery"]) | ANYTHING,
    "status": st.sampled_from(["finished", "diverged"]) | ANYTHING,
    "history": st.fixed_dictionaries(
        {}, optional={"test_loss": CURVE | ANYTHING, "train_loss": CURVE, "train_seconds": CURVE}
    )
    | ANYTHING,
    **{name: st.floats() | ANYTHING for name in ("test_loss", "test_accuracy", "error", "seconds")},
    **{name: st.floats() | ANYTHING for name in ("fit_seconds", "train_time_ratio")},
    **dict.fromkeys(("sigma", "z", "truth"), CURVE | ANYTHING),
    **dict.fromkeys(("machine", "versions", "date", "best_epoch"), ANYTHING),
}
SPECS = st.fixed_dictionaries(
    {
        "dataset": st.sampled_from(["protein", "mnist", "f1", "new"]) | ANYTHING,
        "model": st.sampled_from(["rflaf-rbf-16", "rfmlp-relu", "estimator", "recovery-paper"])
        | ANYTHING,
        "protocol": st.sampled_from(["published", "corrected"]) | ANYTHING,
        "seed": st.integers(0, 3) | ANYTHING,
        "n_components": st.sampled_from([1000, 3000]) | ANYTHING,
        "epochs": st.sampled_from([10, 30, 45, 0]) | ANYTHING,
    },
    optional={"rows": st.none() | ANYTHING},
)


@settings(max_examples=25)
@given(
    st.lists(
        st.fixed_dictionaries({"key": st.text(max_size=4)}, optional={"spec": SPECS, **FIELDS}),
        min_size=1,
        max_size=4,
    )
)
def test_no_record_breaks_the_page(records):
    outline = Outline(render(records, "any"))
    assert set(outline.tags) <= TAGS
