"""What secrets in texts show of language models that are trained here, beside what is certified.

Run ``python -m tests.benchmarks.language_canaries [canaries] [seeds]``. A small LSTM reads letters:
English from Python's own help, and behind a letter that no other text has one secret letter for
each canary, which a coin includes. It is trained by :class:`~dpaudit.training.Trainer` with the
noise that it declares; with a third of that, as a control; and without any, on secrets of six
digits, which prompts then bring out. Bounds hold at 99 %.
"""

from __future__ import annotations

import string
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pydoc_data.topics import topics
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from audits.opacus.audited import Less
from dpaudit import Ledger, Plan
from dpaudit.accounting import guarantee
from dpaudit.training import Trainer
from dpaudit.training.membership import LanguageModel, SecretScores, audit_one_run

_PRINTED = 96
"""Letters that texts are made of; behind them stand those of canaries, from U+4E00 on."""
_WIDTH, _SCALE, _START = 64, 32.0, 0.0002
DELTA = 1e-5


class Letters(nn.Module):
    """Logits of the next letter: what was read last, and what an LSTM kept of all.

    Embeddings are scaled up, as in many transformers, so that a canary's own letter has most of
    its gradient.
    """

    def __init__(self, canaries: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(_PRINTED + canaries, _WIDTH)
        nn.init.normal_(self.embed.weight, std=_START)
        self.kept = nn.LSTM(_WIDTH, _WIDTH, batch_first=True)
        self.out = nn.Linear(_WIDTH, _PRINTED)

    def forward(self, letters: Any) -> Any:
        read = _SCALE * self.embed(letters)
        return self.out(read + self.kept(read)[0])


def coded(texts: Sequence[str], length: int) -> Any:
    """Letters as numbers from 1 on, shape (n, length); 0 where a text is shorter."""
    found = torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in enumerate(texts):
        for place, letter in enumerate(text[:length]):
            own = ord(letter) - 0x4E00 + _PRINTED
            found[row, place] = own if own >= _PRINTED else max(1, (ord(letter) - 31) % _PRINTED)
    return found


def surprise(logits: Any, letters: Any) -> Any:
    """Minus the logarithm of each text's probability, of a letter given all before it."""
    wanted = letters.clamp(max=_PRINTED - 1)
    each = nn.functional.cross_entropy(logits.movedim(-1, -2), wanted, reduction="none")
    return (each * (wanted > 0)).sum(-1)


@dataclass(frozen=True)
class Texts:
    """A training of a language model on texts of so many rows and letters.

    Attributes:
        canaries: how many letters are theirs.
        part: of the declared noise that is drawn; None trains without privacy.
        rows: of texts beside the canaries.
        length: of each.
        steps: of a private training, each of all rows.
        noise: its noise multiplier.
        rate: of SGD by sums of gradients, or of Adam where nothing is private.
    """

    canaries: int
    part: float | None = 1.0
    rows: int = 100
    length: int = 4
    steps: int = 4
    noise: float = 6.0
    rate: float = 0.004

    @property
    def plan(self) -> Plan:
        """What a private training declares."""
        return Plan.dp_sgd(noise_multiplier=self.noise, steps=self.steps, batching="arbitrary")

    @cached_property
    def lines(self) -> list[str]:
        """English, in lines of one length."""
        words = " ".join("".join(topics.values()).split())
        return [words[row * self.length :][: self.length] for row in range(self.rows)]

    def prompts(self) -> list[str]:
        """A letter of its own for each canary."""
        return [chr(0x4E00 + each) for each in range(self.canaries)]

    def __call__(self, texts: Sequence[str], rng: np.random.Generator) -> LanguageModel:
        torch.manual_seed(int(rng.integers(2**31)))
        torch.set_num_threads(1)
        model, data = Letters(self.canaries), coded([*self.lines, *texts], self.length)
        (self._openly if self.part is None else self._privately)(model, data, rng)

        @torch.no_grad()
        def losses(asked: Sequence[str]) -> Any:
            letters = coded(asked, self.length)
            return surprise(model(letters[:, :-1]), letters[:, 1:]).numpy()

        @torch.no_grad()
        def generate(prompt: str, letters: int) -> str:
            text = prompt
            for _ in range(letters):
                logits = model(coded([text], len(text)))[0, -1]
                text += chr(31 + int(logits[1:].argmax()) + 1)
            return text[len(prompt) :]

        return LanguageModel(losses, generate)

    def _privately(self, model: nn.Module, data: Any, rng: np.random.Generator) -> None:
        noise = Less(rng)
        noise.part = self.part or 0.0

        def loss(parameters: Any, letters: Any) -> Any:
            logits = functional_call(model, parameters, (letters[None, :-1],))
            return surprise(logits, letters[None, 1:]).sum()

        optimizer = torch.optim.SGD(model.parameters(), lr=self.rate)
        for _ in Trainer(loss, model, data, Ledger(self.plan, noise=noise), divisor=1.0):
            optimizer.step()

    def _openly(self, model: nn.Module, data: Any, rng: np.random.Generator) -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=self.rate)
        for _ in range(self.steps):
            for rows in torch.from_numpy(rng.permutation(len(data))).split(64):
                optimizer.zero_grad()
                surprise(model(data[rows, :-1]), data[rows, 1:]).mean().backward()
                optimizer.step()


def of_one_letter(texts: Texts) -> SecretScores:
    """Secrets that show most of a private training."""
    return SecretScores(texts, texts.prompts(), string.ascii_letters + string.digits, 1, 61)


def of_six_digits(canaries: int) -> SecretScores:
    """Secrets to be extracted from a model that is not private."""
    texts = Texts(canaries, None, rows=300, length=16, steps=80, rate=0.005)
    return SecretScores(texts, texts.prompts(), string.digits, 6)


def main(canaries: int, seeds: int) -> int:
    warnings.simplefilter("ignore")
    right = Texts(canaries)
    certified = guarantee(right.plan, DELTA).epsilon
    print(f"certified ε = {certified:.2f} at δ = {DELTA:g}; {canaries} canaries, {seeds} seeds")
    wrong = 0
    makers: dict[str, tuple[Callable[[], SecretScores], int]] = {
        "as declared": (lambda: of_one_letter(right), canaries),
        "a third of the noise": (lambda: of_one_letter(Texts(canaries, 1 / 3)), canaries),
        "not private": (lambda: of_six_digits(200), 200),
    }
    for name, (made, number) in makers.items():
        found = [
            audit_one_run(made(), number, plan=right.plan, delta=DELTA, seed=seed, confidence=0.99)
            for seed in range(seeds)
        ]
        refuted = sum(each.refuted for each in found)
        free = median(each.epsilon_lower or 0.0 for each in found)
        family = median(float(each.details["family"]["epsilon_lower"]) for each in found)
        right_one = name == "as declared"
        wrong += bool(refuted) if right_one else max(free, family) <= certified
        known, bits = found[0].details["extracted"], found[0].details["exposure"]
        print(
            f"  {name:20} refuted {refuted} of {seeds}; ε ≥ {free:.2f}, of its family "
            f"{family:.2f}; exposure {bits['included']:.2f} bits of {bits['most']:.2f}, left out "
            f"{bits['left_out']:.2f}; extracted {known['included']}, left out {known['left_out']}"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*given, *(1000, 3)[len(given) :]))
