"""Small trainings with opacus that a ledger watches."""

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import Severity, Verdict
from dpaudit.training.opacus import attach


def labelled_rows(size):
    """Rows of four numbers in two classes, always the same."""
    generator = torch.Generator().manual_seed(1)
    x = 3 * torch.randn(size, 4, generator=generator)
    return TensorDataset(x, torch.randint(0, 2, (size,), generator=generator))


def attached(ledger, model, rows, batch, **settings):
    """A training, and what ``make_private`` gave it."""
    engine = PrivacyEngine(accountant="rdp")
    training = attach(engine, ledger, expected_batch_size=batch)
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0} | settings
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(rows, batch, generator=torch.Generator().manual_seed(2)),
        **settings,
    )
    return training, parts


def certified(training):
    """Its certificate, by the accountant that is the fastest."""
    return training.certificate(1e-5, accountant="rdp")


def verdict(training):
    return certified(training).verdict


def errors(training):
    """The rules of what breaks the proof, which the verdict follows."""
    certificate = certified(training)
    found = {each.rule for each in certificate.findings if each.severity is Severity.ERROR}
    assert (certificate.verdict is Verdict.UNPROVEN) is bool(found)
    return found
