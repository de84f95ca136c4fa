"""The scale of the inputs of RFLAF and LAN."""

import warnings

import pytest
import torch

from rflaf.nn import LAN, RFLAF


@pytest.mark.parametrize("network", [RFLAF, LAN])
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_the_first_batch_decides(network, size, generator):
    x = size * torch.randn(500, 9, generator=generator)
    model = network(9, 300, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = model(x)
    z = model.project(x)
    assert 0.97 < float((z.detach().abs() <= 2).float().mean()) < 0.998
    torch.testing.assert_close(model.readout(z), out)
    scale = model.input_scale.clone()
    model(10 * x[:5])
    assert torch.equal(model.input_scale, scale)
    twin = network(9, 300, seed=1)
    twin.load_state_dict(model.state_dict())
    torch.testing.assert_close(twin(x[:7]), model(x[:7]))
    assert torch.equal(twin.input_scale, scale)


def test_inputs_of_zeros_have_no_scale():
    model = RFLAF(3, 10, seed=0)
    model(torch.zeros(4, 3))
    assert model.input_scale == 1


def test_none_is_the_network_of_the_paper(generator):
    x = torch.randn(50, 9, generator=generator)
    plain, one = RFLAF(9, 300, input_scale=None, seed=0), RFLAF(9, 300, input_scale=1.0, seed=0)
    assert set(plain.state_dict()) == {
        "W",
        "V",
        "activation.coefficients",
        "activation._extra_state",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = plain(x)
    assert torch.equal(plain.project(x), x @ plain.W)
    with pytest.warns(UserWarning, match="of the projected inputs lie outside the grid") as found:
        torch.testing.assert_close(one(x), out)
    assert [each.filename for each in found] == [__file__]  # the line that called the model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(70):  # once is enough
            one(x)
    assert one.activation.outside_share > 0.3


@pytest.mark.parametrize("scale", ["all", 0.0, -1.0, float("inf")])
def test_other_scales_are_refused(scale):
    with pytest.raises(ValueError, match="'input_scale' parameter of RFLAF"):
        RFLAF(3, input_scale=scale)
    with pytest.raises(ValueError, match="0 inside the grid"):
        RFLAF(3, grid=(1.0, 2.0))


def test_a_model_saved_before_its_first_batch_is_still_to_be_measured(generator):
    x = 30 * torch.randn(200, 9, generator=generator)
    early, twin = RFLAF(9, 100, seed=0), RFLAF(9, 100, seed=0)
    twin.load_state_dict(early.state_dict())
    torch.testing.assert_close(twin(x), early(x))
    assert 0 < float(twin.input_scale) < 0.2


def test_exports_come_after_the_first_batch(generator):
    x = 30 * torch.randn(50, 9, generator=generator)
    model = RFLAF(9, 100, seed=0)
    for strict in (False, True):
        with pytest.raises(Exception, match="input_scale='auto' is measured on the first batch"):
            torch.export.export(model, (x,), strict=strict)
    expected = model(x)
    program = torch.export.export(model, (x,)).module()
    torch.testing.assert_close(program(x), expected)


def test_compiled_before_the_first_batch(generator):
    x = 30 * torch.randn(50, 9, generator=generator)
    model, twin = RFLAF(9, 100, seed=0), RFLAF(9, 100, seed=0)
    expected = twin(x)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), expected)
    torch.testing.assert_close(model.input_scale, twin.input_scale)
    torch.testing.assert_close(compiled(x), expected)  # compiled once more, without the measuring
    with torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(3):
            torch.testing.assert_close(compiled(10 * x)[:1], twin(10 * x)[:1])
    torch.testing.assert_close(model.input_scale, twin.input_scale)
