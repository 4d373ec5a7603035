"""A small model, losses of one example of it, and what a loop over examples makes of them."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call


def rows_of(size, seed=1, dtype=torch.float32):
    """Rows of four numbers in two classes, always the same."""
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(size, 4, generator=generator, dtype=dtype)
    return x, torch.randint(0, 2, (size,), generator=generator)


def small_model(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8, dtype=dtype), nn.Tanh(), nn.Linear(8, 2, dtype=dtype))


def cross_entropy_of(model):
    def loss(parameters, example):
        x, y = example
        return nn.functional.cross_entropy(functional_call(model, parameters, (x,)), y)

    return loss


def direct(parameters, example):
    """A loss whose gradient is the example itself."""
    return (parameters["w"] * example).sum()


def clipped_by_loop(loss, parameters, data, places, norm):
    """The sum of clipped gradients by backward passes of one example each, in 64 bits."""
    total = np.zeros(sum(p.numel() for p in parameters.values()))
    for place in places:
        own = {name: p.detach().double().requires_grad_() for name, p in parameters.items()}
        row = tuple(
            each[place].double() if each.is_floating_point() else each[place] for each in data
        )
        loss(own, row if len(row) > 1 else row[0]).backward()
        gradient = np.concatenate([p.grad.numpy().ravel() for p in own.values()])
        total += gradient * min(1.0, norm / np.linalg.norm(gradient))
    return total
