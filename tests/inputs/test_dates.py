"""Dates as text and in time zones: one meaning, whatever stands beside them."""

import datetime
import re
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf import RFLAFRegressor, load, save
from rflaf.inputs import ColumnEncoder
from rflaf.inputs.dates import learn_orders, on_clock, read_dates, zone_of
from tests.inputs.conftest import SMALL


def days_of(encoder, *texts):
    return encoder.transform(pd.DataFrame({"d": list(texts)}))[:, 0].tolist()


def fitted(*texts):
    return ColumnEncoder().fit(pd.DataFrame({"d": list(texts)}))


@pytest.mark.parametrize(
    ("texts", "first", "orders"),
    [
        (["1970-01-02"], 86400, {}),
        (["1970-01-01T01:00:00Z"], 3600, {}),
        (["1970-01-01 01:00:00.5"], 3600.5, {}),
        (["1970/1/2"], 86400, {}),
        (["01/02/1970"], 86400, {"/yyyy": "mdy"}),
        (["2.1.1970"], 86400, {".yyyy": "dmy"}),
        (["2/1/70", "13/1/70"], 86400, {"/yy": "dmy"}),
        (["1/2/70", "1/13/70"], 86400, {"/yy": "mdy"}),
        (["70-01-02"], 86400, {"-yy": "ymd"}),
        (["1/1/1970 01:00 PM"], 13 * 3600, {}),
        (["1/1/1970 12:30 AM"], 1800, {}),
        (["1/1/1970 13:00 PM"], 46_800, {}),
        (["2.1.1970", "1/31/1970", "1970-05-05"], 86400, {".yyyy": "dmy", "/yyyy": "mdy"}),
    ],
)
def test_dates(texts, first, orders):
    found, _, _ = learn_orders(texts)
    assert found == orders
    assert read_dates(texts, found)[0][0] == first


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["a"],
        ["2024-13-01"],
        ["31/4/2024"],
        ["13/13/2024"],
        ["2024-01-01", "b"],
        ["1.2"],
        ["1970-01-01 25:00"],
        ["1970-01-01 10:60"],
        ["1970-01-01 13:00 AM"],
        ["1970-01-01 25:00 PM"],
        ["0000-01-01"],
        ["1/13/2024", "13/1/2024"],
    ],
)
def test_no_dates(texts):
    assert learn_orders(texts) is None


@pytest.mark.parametrize("text", ["04.03.2022", "04/03/2022", "4-3-2022", "04.03.22", "22-03-04"])
def test_text_of_several_meanings_in_a_form_that_the_fit_has_not_seen(text):
    encoder = fitted("2022-03-04", "2022-03-05", "2022-09-30")
    with pytest.raises(ValueError, match=f"Column 'd' held dates.*{re.escape(text)}.* may be "):
        days_of(encoder, "2022-03-04", text)
    # the form of the fit, and text of one meaning
    assert days_of(encoder, "2022/3/4", "25.03.2022", "3/25/2022", "3.3.2022") == [0, 21, 21, -1]


def test_the_order_is_that_of_the_form():
    encoder = fitted("2022-03-01", "31.3.2022", "3/31/2022")
    assert days_of(encoder, "5.3.2022", "3/5/2022") == [4, 4]
    with pytest.raises(ValueError, match=r"'31/3/2022', where month/day/year was expected"):
        days_of(encoder, "31/3/2022")
    with pytest.raises(ValueError, match="'5-3-2022', which may be"):
        days_of(encoder, "5-3-2022")


def test_a_fit_that_cannot_tell_says_so():
    with pytest.warns(UserWarning, match=r"Column 'd': '1/2/2022' as month/day/year"):
        encoder = fitted("1/2/2022", "3/4/2022")
    assert days_of(encoder, "1/5/2022") == [3]
    with pytest.warns(UserWarning, match=r"Column 'd': '1\.2\.2022' as day\.month\.year"):
        encoder = fitted("1.2.2022", "3.4.2022")
    assert days_of(encoder, "5.2.2022") == [4]
    encoder = fitted("1.1.2022", "2.2.2022")  # the same in any order, so nothing is known
    with pytest.raises(ValueError, match="may be 2022-03-04 or 2022-04-03"):
        days_of(encoder, "4.3.2022")


FORMATS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y"]
DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
LATE = datetime.date(2024, 5, 31)  # decides on every order


@given(st.lists(st.tuples(DAYS, st.sampled_from(FORMATS)), min_size=1, max_size=6))
def test_any_form_of_the_fit_gives_the_same_number(rows):
    texts = [day.strftime(form) for day, form in rows]
    encoder = fitted(*(LATE.strftime(form) for form in FORMATS))
    expected = [(day - LATE).days for day, _ in rows]
    assert days_of(encoder, *texts) == expected
    assert [days_of(encoder, text)[0] for text in texts] == expected


CLOCKS = st.just("") | st.from_regex(
    r"[T ][01][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z|[+-]0[0-9]:?[03]0)?", fullmatch=True
)


def reading(encoder, *texts):
    """The numbers, or what is wrong."""
    try:
        return days_of(encoder, *texts)
    except ValueError as error:
        return str(error)


@settings(deadline=None)
@given(
    st.lists(st.tuples(DAYS, st.sampled_from([*FORMATS, "%d.%m.%y"]), CLOCKS), max_size=6),
    st.lists(st.sampled_from(FORMATS), max_size=2),
)
def test_no_reading_depends_on_other_rows(rows, seen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = fitted("2020-01-01", *(LATE.strftime(form) for form in seen))
        texts = [day.strftime(form) + clock for day, form, clock in rows]
        alone = [reading(encoder, text) for text in texts]
        together = reading(encoder, *texts)
    errors = [found for found in alone if isinstance(found, str)]
    if errors:
        assert together in errors
        assert all(repr(text) in found for text, found in zip(texts, alone) if found in errors)
    elif texts:
        assert together == [found[0] for found in alone]


@given(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)), st.data())
def test_fractions_and_offsets_of_every_length(moment, data):
    digits = data.draw(st.integers(0, 9))
    shift = data.draw(st.sampled_from(["", "Z", "UTC", " UTC", "+02", "+0200", "+02:00", "-05:30"]))
    between = data.draw(st.sampled_from("T "))
    text = moment.strftime(f"%Y-%m-%d{between}%H:%M:%S")
    fraction = f"{moment.microsecond:06}000"[:digits]
    whole = moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))
    clock, offset = read_dates([text + f".{fraction}" * bool(digits) + shift], {})
    since = whole - datetime.datetime(1970, 1, 1)
    assert clock[0] == (since // datetime.timedelta(microseconds=1)) / 1e6
    expected = {"+": 7200.0, "-": -19800.0, "": np.nan}.get(shift[:1], 0.0)
    np.testing.assert_equal(offset[0], expected)


def test_offsets_are_those_of_the_fit():
    encoder = fitted("2022-03-04T10:00+02:00", "2022-03-09T10:00+02:00")
    assert days_of(encoder, "2022-03-04T08:00Z", "2022-03-04T10:00+0200") == [0, 0]
    assert encoder.parts_[0].zone == "+02:00"
    assert encoder.parts_[0].first == pd.Timestamp("2022-03-04 10:00").timestamp()
    assert zone_of([3600.0, 7200.0]) == "UTC"  # several: moments count
    for first, second in (("", "Z"), ("Z", "")):
        encoder = fitted(f"2022-03-04T10:00{first}", f"2022-03-09T10:00{first}")
        with pytest.warns(UserWarning, match="Column 'd' has times with a time zone and times"):
            assert days_of(encoder, f"2022-03-04T10:00{second}") == [0]


def zoned(zone, library):
    moments = pd.date_range("2022-01-01", periods=30, freq="13D5h", tz="UTC").tz_convert(zone)
    frame = pd.DataFrame({"d": moments})
    if library == "objects":
        return pd.DataFrame({"d": [m.to_pydatetime() for m in moments]}, dtype=object)
    if library == "text":
        return pd.DataFrame({"d": [m.isoformat() for m in moments]})
    return frame if library == "pandas" else library(frame)


@pytest.mark.parametrize("library", ["pandas", "objects", "text", pl.from_pandas, pa.table])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "+05:30"])
def test_another_time_zone_is_that_of_the_fit(library, zone):
    if library is pl.from_pandas and zone == "+05:30":
        return  # polars has no such zone
    encoder = ColumnEncoder().fit(zoned("Europe/Berlin", "pandas"))
    expected = encoder.transform(zoned("Europe/Berlin", "pandas"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(encoder.transform(zoned(zone, library)), expected)


def test_a_zone_nobody_knows_is_refused_by_name():
    late = datetime.timezone(datetime.timedelta(hours=1), "Somewhere")
    frame = pd.DataFrame({"d": [datetime.datetime(2022, 1, k, tzinfo=late) for k in (1, 2)]})
    frame = frame.astype(object)
    encoder = ColumnEncoder().fit(frame)
    assert encoder.transform(frame)[:, 0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="Column 'd' cannot be converted to 'Somewhere'"):
        encoder.transform(zoned("UTC", "pandas"))


@given(
    st.lists(st.integers(-(10**9), 4 * 10**9), min_size=1, max_size=5),
    st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "UTC"]),
)
def test_clocks(seconds, zone):
    found = on_clock(np.array(seconds, float), zone)
    for second, clock in zip(seconds, found):
        there = datetime.datetime.fromtimestamp(second, ZoneInfo(zone)).replace(tzinfo=None)
        assert (there - datetime.datetime(1970, 1, 1)).total_seconds() == clock


def test_models_keep_how_dates_are_read(tmp_path):
    n = 60
    day = pd.date_range("2022-01-01", periods=n, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame({"a": day.strftime("%d.%m.%Y"), "b": day})
    model = RFLAFRegressor(**SMALL).fit(frame, np.arange(n, dtype=float))
    save(model, tmp_path / "model.skops")
    late = frame.assign(b=day.tz_convert("Asia/Tokyo"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load(tmp_path / "model.skops")
        np.testing.assert_array_equal(loaded.predict(late), model.predict(frame))
    with pytest.raises(ValueError, match="Column 'a' held dates"):
        loaded.predict(late.assign(a="3/4/2022"))
