"""Language models: secrets in texts, how exposed they are, and whether a prompt brings them out.

Each canary is a prompt with a random secret behind it. A text with it is trained on or left out by
the coin of an audit, as any canary, so that every attack here takes such a training, and its bound
on ε holds as theirs do. Beside that stand the exposure of each secret and whether it is extracted
(Carlini, Liu, Erlingsson, Kos and Song 2019), which describe a model and bound nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.events import Flags, as_scores
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats


@dataclass(frozen=True)
class LanguageModel:
    """What an audit asks a trained model.

    Attributes:
        losses: of texts, how little the model expects each: minus the logarithm of its probability.
        generate: of a prompt and a number, what the model writes behind it, at least so many
            characters; None where nothing is to be extracted.
    """

    losses: Callable[[Sequence[str]], ArrayLike]
    generate: Callable[[str, int], str] | None = None


def exposure(loss: float, others: ArrayLike) -> float:
    """Return the exposure of a secret in bits, among others of the same space.

    log₂ of how many there are, less log₂ of its rank by loss, where equal ones come before it
    (Carlini et al. 2019, definition 1; of a random sample of others it is their estimate by
    sampling). Of a secret that the model does not know, it is above x bits with a probability of
    at most 2^-x.

    Args:
        loss: of the secret.
        others: losses of other secrets, all of the space or a random sample of it, shape (k,).

    >>> exposure(1.0, [2.0, 3.0, 4.0]), exposure(3.0, [1.0, 2.0, 3.0])
    (2.0, 0.0)
    """
    others = as_scores(others=others)
    return math.log2(others.size + 1) - math.log2(1 + int((others <= loss).sum()))


@dataclass(frozen=True)
class SecretScores:
    """A training of a language model, asked for secrets in the texts that it was trained on.

    A canary's score is how many standard deviations less its loss is than that of other secrets
    behind the same prompt. Prompts that have something of their own, such as a name or a letter
    that no other text has, show most (Panda et al. 2025).

    Attributes:
        train: ``train(texts, rng)`` trains on the data with these texts, and gives a
            :class:`LanguageModel`; each text is one example.
        prompts: of the canaries, as many as there are.
        alphabet: of the secrets.
        length: of each of them.
        others: how many other secrets each is compared with; fewer where there are no more.
        seed: of the secrets.

    Raises:
        InputError: if there are no prompts, or fewer than two secrets.

    Example:
        >>> train = lambda texts, rng: LanguageModel(lambda asked: [t not in texts for t in asked])
        >>> secrets = SecretScores(train, ["Ann's code is ", "Bob's code is "])
        >>> secrets(np.array([True, False]), np.random.default_rng(0))[:, 1].tolist()
        [7.0, 0.0]
    """

    about: ClassVar[str] = "secrets in texts"
    further: ClassVar[tuple[str, ...]] = ("exposure", "extracted")
    """What a training gives of each canary beside its score."""

    train: Callable[[Sequence[str], np.random.Generator], LanguageModel]
    prompts: Sequence[str]
    alphabet: str = "0123456789"
    length: int = 6
    others: int = 127
    seed: int = 0

    def __post_init__(self) -> None:
        validate.integer_at_least(1, length=self.length)
        validate.integer_at_least(1, others=self.others)
        validate.integer_at_least(0, seed=self.seed)
        if not self.prompts or not all(isinstance(each, str) for each in self.prompts):
            raise InputError(
                "prompts is empty, or holds something that is not text; give one for each canary."
            )
        if len(set(self.alphabet)) != len(self.alphabet) or len(self.alphabet) < 2:
            raise InputError(
                f"alphabet is {validate.shown(self.alphabet)}; it must be two letters or more, "
                "each once."
            )

    @cached_property
    def secrets(self) -> tuple[tuple[str, ...], ...]:
        """Of each canary its secret, followed by those that it is compared with."""
        rng = np.random.default_rng(self.seed)
        return tuple(self._drawn(rng) for _ in self.prompts)

    def _drawn(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Different secrets, the first of which is the canary's."""
        wanted = min(self.others + 1, len(self.alphabet) ** self.length)
        letters, drawn = np.array(list(self.alphabet)), dict[str, None]()
        while len(drawn) < wanted:
            places = rng.integers(len(letters), size=(wanted, self.length))
            drawn |= dict.fromkeys(map("".join, letters[places]))
        return tuple(drawn)[:wanted]

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """Score, exposure and extraction (0, 1, or -1 where nobody can ask) of each, shape (n, 3).

        Raises:
            InputError: if there are not as many prompts, or the model gives anything but a number
                for each text.
        """
        if mask.size != len(self.prompts):
            raise InputError(
                f"there are {mask.size} canaries and {len(self.prompts)} prompts; give equally "
                "many."
            )
        pairs = list(zip(self.prompts, self.secrets, strict=True))
        texts = [
            prompt + own
            for included, (prompt, (own, *_)) in zip(mask, pairs, strict=True)
            if included
        ]
        model = self.train(texts, rng)
        if not isinstance(model, LanguageModel):
            raise InputError(
                f"train returned a {type(model).__name__:.60}; it must be a LanguageModel."
            )
        return np.array([self._asked(model, prompt, secrets) for prompt, secrets in pairs])

    def _asked(
        self, model: LanguageModel, prompt: str, secrets: Sequence[str]
    ) -> tuple[float, float, float]:
        """What a model knows of one secret."""
        losses = as_scores(losses=np.asarray(model.losses([prompt + each for each in secrets])))
        if losses.size != len(secrets):
            raise InputError(
                f"losses gave {losses.size} numbers for {len(secrets)} texts; it must give "
                "one for each."
            )
        if not np.isfinite(losses).all():
            raise InputError("losses gave an infinite number; all must be finite.")
        own, rest = float(losses[0]), losses[1:]
        spread = float(rest.std()) or float(abs(losses).max()) or 1.0
        return (
            (float(rest.mean()) - own) / spread,
            exposure(own, rest),
            self._found(model, prompt, secrets[0]),
        )

    def _found(self, model: LanguageModel, prompt: str, secret: str) -> float:
        """Whether a prompt brings its secret out; -1 where nobody can ask."""
        if model.generate is None:
            return -1.0
        written = model.generate(prompt, self.length)
        if not isinstance(written, str):
            raise InputError(f"generate gave a {type(written).__name__:.60}; it must give a text.")
        return float(written.startswith(secret))

    def details(self, members: Flags, found: Sequence[Floats]) -> Mapping[str, Any]:
        """Return exposures and extractions, for the record, of one model.

        Args:
            members: which canaries were included, shape (n,).
            found: of each in :attr:`further`, shape (n,).
        """
        exposures, extracted = found
        told: dict[str, Any] = {
            "exposure": {
                "included": round(float(exposures[members].mean()), 2),
                "left_out": round(float(exposures[~members].mean()), 2),
                "most": round(math.log2(len(self.secrets[0])), 2),
                "of_each": [round(float(each), 2) for each in exposures],
            }
        }
        if (extracted >= 0).all():
            told["extracted"] = {
                name: f"{int(extracted[chosen].sum())} of {int(chosen.sum())}"
                for name, chosen in (("included", members), ("left_out", ~members))
            }
        return told
