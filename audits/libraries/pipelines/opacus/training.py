"""One step of private training with opacus, on rows that are vectors; the model is shown."""

from __future__ import annotations

import logging
import warnings

import torch
from opacus import PrivacyEngine

logging.getLogger("opacus").setLevel(logging.ERROR)
SIZE = 40


def trained(rows, rng, *, batch, poisson=True, noise=5.0, steps=1, **options):
    """The weights after some steps, in whose loss each row asks for its own direction."""
    warnings.simplefilter("ignore")
    torch.manual_seed(int(rng.integers(2**31)))
    model = torch.nn.Linear(SIZE, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    data = torch.tensor(rows, dtype=torch.float32).reshape(-1, 1).repeat(1, SIZE)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=batch)
    given = {"noise_multiplier": noise, "max_grad_norm": 1.0, "poisson_sampling": poisson}
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=loader,
        **given,
        **options,
    )
    for number, (part,) in enumerate(loader):
        if number < steps and len(part):
            optimizer.zero_grad()
            model(part).sum().backward()
            optimizer.step()
    return model._module.weight.detach().numpy().ravel()


def step(rows, rng):
    """Batches of four rows; the engine takes the expected batch from the number of rows."""
    found = trained(rows, rng, batch=4)
    return float((found**2).mean() ** 0.5)


def whole(rows, rng):
    """One step on all rows, along the direction that they ask for."""
    return float(trained(rows, rng, batch=len(rows)).mean())
