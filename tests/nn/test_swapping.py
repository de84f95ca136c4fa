"""Learnable activations in networks that exist: same outputs, then trained, saved and loaded."""

import copy

import pytest
import torch
from torch import nn

from rflaf.nn import LearnableActivation, parameter_groups, swap_activations


class Block(nn.Module):
    """torchvision's BasicBlock: one ReLU module that is called twice."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.downsample = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.layer1, self.layer2 = nn.Sequential(Block(8, 8, 1)), nn.Sequential(Block(8, 16, 2))
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x)))))
        return self.fc(x.mean((2, 3)))


def transformer(activation):
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, activation, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def cases():
    images, words = torch.randn(4, 3, 12, 12), torch.randn(4, 7, 16)
    return {
        "resnet": (ResNet(), nn.ReLU, images, 1e-5, 3),
        "transformer": (transformer(nn.ReLU()), nn.ReLU, words, 1e-5, 2),
        "gelu": (transformer(nn.GELU()), nn.GELU, words, 2e-3, 2),
    }


@pytest.fixture(params=["resnet", "transformer", "gelu"])
def case(request):
    torch.manual_seed(0)
    return cases()[request.param]


def activations(model):
    return [module for module in model.modules() if isinstance(module, LearnableActivation)]


@pytest.mark.parametrize("per", ["layer", "channel", "model"])
@pytest.mark.parametrize("training", [False, True])
def test_outputs_stay_and_training_goes_on(case, per, training):
    model, kind, x, tol, count = case
    model.train(training)
    twin = copy.deepcopy(model)
    before = twin(x)
    groups = swap_activations(model, kind, per=per, example=x, lr=0.01)
    assert not any(isinstance(module, kind) for module in model.modules())
    assert len(activations(model)) == (1 if per == "model" else count)
    assert model.training == training
    assert all(module.training == training for module in model.modules())
    torch.testing.assert_close(model(x), before, atol=tol, rtol=tol)

    optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
    start = [layer.coefficients.detach().clone() for layer in activations(model)]
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    if case[3] == 1e-5 and "fc" in dict(model.named_children()):  # the encoder ends in a norm
        assert losses[-1] < losses[0]
    for layer, first in zip(activations(model), start, strict=True):
        assert not torch.equal(layer.coefficients, first)


def test_evaluation_uses_what_was_learned():
    """nn.TransformerEncoderLayer has a fast path that takes ReLU for granted."""
    torch.manual_seed(0)
    model, x = transformer(nn.ReLU()).eval(), torch.randn(2, 7, 16)
    swap_activations(model)
    with torch.no_grad():
        before = model(x)
        for layer in activations(model):
            layer.coefficients.mul_(-1.0)
        assert not torch.allclose(model(x), before, atol=1e-3)


@pytest.mark.parametrize("per", ["layer", "channel", "model"])
def test_state_dict_round_trip(case, per):
    model, kind, x, _, _ = case
    twin = copy.deepcopy(model)
    for each in (model, twin):
        swap_activations(each, kind, per=per, example=x)
    with torch.no_grad():
        for layer in activations(model):
            layer.coefficients.add_(0.1)
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin.eval()(x), model.eval()(x))


def test_groups_hold_every_parameter_once():
    model = ResNet()
    groups = swap_activations(model, lr=0.5)
    own, rest = (group["params"] for group in groups)
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (0.5, 0.0)
    assert {id(p) for p in own} == {id(layer.coefficients) for layer in activations(model)}
    assert sorted(map(id, own + rest)) == sorted(map(id, model.parameters()))
    assert "lr" not in parameter_groups(model)[0]


def test_dtype_kinds_and_slopes_per_channel():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.PReLU(4), nn.Linear(4, 4), nn.Tanh()).double()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([0.0, 0.1, -0.5, 2.0]))
    x = torch.randn(50, 3, dtype=torch.float64)
    before = model(x)
    swap_activations(model, (nn.PReLU, nn.Tanh), per="channel", example=(x,))
    assert model[1].coefficients.shape == (4, 33)
    assert model[1].coefficients.dtype == torch.float64
    torch.testing.assert_close(model(x), before, atol=1e-3, rtol=0)


def test_bounds_and_other_bases():
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    swap_activations(model, nn.GELU, bounds=(-1.0, 1.0))
    assert model[1].lipschitz() <= 1 + 1e-6
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    swap_activations(model, nn.GELU, basis="chebyshev", n_basis=9, grid=(-3, 3))
    assert model[1].basis.grid == (-3, 3)


def test_what_cannot_be_swapped_is_named():
    with pytest.raises(ValueError, match="Functions that 'forward' calls"):
        swap_activations(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(ValueError, match="inside it"):
        swap_activations(nn.ReLU())
    with pytest.raises(ValueError, match="element by element"):
        swap_activations(nn.Sequential(nn.Softmax(0)), nn.Softmax)
    with pytest.raises(ValueError, match="needs per='channel'"):
        swap_activations(nn.Sequential(nn.PReLU(4)), nn.PReLU)
    with pytest.raises(ValueError, match="needs an 'example'"):
        swap_activations(ResNet(), per="channel")
    with pytest.raises(TypeError, match="'model' must be a Module"):
        swap_activations(3)
    with pytest.raises(ValueError, match="'per' parameter of swap_activations"):
        swap_activations(ResNet(), per="row")
    both = nn.Sequential(nn.ReLU(), nn.Tanh())
    with pytest.raises(ValueError, match="one function"):
        swap_activations(both, (nn.ReLU, nn.Tanh), per="model")
    assert isinstance(both[0], nn.ReLU)
    relu = nn.ReLU()
    two = nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 4), relu)
    with pytest.raises(ValueError, match=r"'1' must be called with one number.*\[3, 4\]"):
        swap_activations(two, per="channel", example=torch.zeros(1, 2))


@pytest.mark.parametrize("module", [nn.ReLU6(), nn.Hardtanh(-3, 5), nn.SiLU(), nn.Mish(), nn.ELU()])
def test_far_from_zero_too(module):
    """The kink of ReLU6 lies beyond [-4, 4]; SiLU is not yet its asymptote there."""
    model = nn.Sequential(nn.Identity(), module)
    z = torch.linspace(-50, 50, 2001)
    before = model(z)
    swap_activations(model, type(module))
    assert (model(z) - before).abs().max() < 0.02


def test_a_start_that_is_not_close_is_named():
    model = nn.Sequential(nn.Identity(), nn.Threshold(0.1, 20.0))
    with pytest.warns(
        UserWarning, match=r"Module '1' is replaced by .* differs .* by 0\.5\d? of its"
    ):
        swap_activations(model, nn.Threshold)
    model = nn.Sequential(nn.Identity(), nn.ReLU6())
    with pytest.warns(UserWarning, match="another 'grid' may help"):
        swap_activations(model, nn.ReLU6, grid=(-2.0, 2.0))


def test_a_steep_function_keeps_its_cells():
    """Far out no straight line is close to it; a wider grid would be worse near zero."""

    class Squared(nn.Module):
        def forward(self, z):
            return torch.relu(z) ** 2

    model = nn.Sequential(nn.Identity(), Squared())
    z = torch.linspace(-4, 4, 501)
    before = model(z)
    with pytest.warns(UserWarning, match="for inputs up to 64"):
        swap_activations(model, Squared)
    assert (model(z) - before).abs().max() < 0.02
