"""Secrets in texts: what a training is given, exposure, extraction, and bounds of audits."""

import math
import shlex
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.cli.main import main
from dpaudit.training.membership import (
    LanguageModel,
    SecretScores,
    audit_membership,
    audit_one_run,
    exposure,
)

RNG = np.random.default_rng(0)
PROMPTS = [f"the code of {number} is " for number in range(200)]


def remembers(texts, rng):
    """A model that writes a text it has seen, and else nothing that anybody asks for."""
    known = set(texts)

    def generate(prompt, length):
        return next((text[len(prompt) :] for text in known if text.startswith(prompt)), "?")

    return LanguageModel(lambda asked: [2.0 - (each in known) for each in asked], generate)


def noisy(strength):
    """A model whose losses of texts it has seen are shifted normal ones: Gaussian DP."""

    def train(texts, rng):
        known = set(texts)
        return LanguageModel(
            lambda asked: rng.normal(size=len(asked)) - strength * np.isin(asked, list(known))
        )

    return train


# Exposure: by enumeration


def test_exposure_is_that_of_the_paper():
    """log₂|R| - log₂ rank; of an unknown secret above x with a probability of at most 2^-x."""
    for losses in permutations(range(4)):
        assert exposure(losses[0], losses[1:]) == 2 - math.log2(losses[0] + 1)
    of_ranks = [exposure(rank, [each for each in range(64) if each != rank]) for rank in range(64)]
    for bits in (0.5, 1.0, 3.0, 6.0):
        assert np.mean(np.array(of_ranks) >= bits) <= 2.0**-bits


def test_equal_losses_expose_nothing():
    assert exposure(1.0, [1.0] * 7) == 0.0


# What a training is given


def test_the_texts_are_the_included_prompts_with_their_secrets():
    seen = []

    def train(texts, rng):
        seen.extend(texts)
        return remembers(texts, rng)

    made = SecretScores(train, PROMPTS[:3])
    found = made(np.array([True, False, True]), RNG)
    assert seen == [PROMPTS[place] + made.secrets[place][0] for place in (0, 2)]
    assert found[:, 1].tolist() == [7.0, 0.0, 7.0]
    assert found[:, 2].tolist() == [1.0, 0.0, 1.0]


def test_a_score_is_the_distance_from_other_secrets_in_standard_deviations():
    losses = np.array([1.0, 4.0, 5.0, 6.0])
    made = SecretScores(lambda texts, rng: LanguageModel(lambda asked: losses), ["a"], "abcd", 1)
    ((score, bits, found),) = made(np.array([True]), RNG)
    assert score == pytest.approx(4.0 / losses[1:].std())
    assert (bits, found) == (2.0, -1.0)


def test_secrets_are_different_uniform_and_of_the_seed():
    made = SecretScores(remembers, PROMPTS, "01", 3, others=100)
    for secrets in made.secrets:  # all there are
        assert sorted(secrets) == ["".join(each) for each in product("01", repeat=3)]
    assert made.secrets == SecretScores(remembers, PROMPTS, "01", 3, others=100).secrets
    assert made.secrets != SecretScores(remembers, PROMPTS, "01", 3, others=100, seed=1).secrets
    first = Counter(own for own, *_ in SecretScores(remembers, PROMPTS * 10, "01", 3).secrets)
    deviation = math.sqrt(2000 * 7 / 64)  # 250 of each; six deviations are one in 10⁸
    assert max(abs(first[each] - 250) for each in first) < 6 * deviation
    assert len(first) == 8


# Audits


def test_what_is_remembered_is_refuted_and_extracted():
    record = audit_one_run(SecretScores(remembers, PROMPTS), 200, epsilon=2.0, delta=1e-5, seed=0)
    assert record.refuted
    assert record.method == "one-run audit with canaries of secrets in texts"
    told, number = record.details, int(record.details["extracted"]["included"].split()[0])
    assert told["extracted"] == {
        "included": f"{number} of {number}",
        "left_out": f"0 of {200 - number}",
    }
    assert (told["exposure"]["included"], told["exposure"]["most"]) == (7.0, 7.0)
    assert len(told["exposure"]["of_each"]) == 200


@pytest.mark.parametrize("seed", range(5))
def test_a_correct_claim_is_not_refuted_and_unknown_secrets_are_not_exposed(seed):
    """μ = 1 is ε = 4.38 at δ = 1e-5; each bound is false with a probability of at most 1e-6."""
    made = SecretScores(noisy(1.0), PROMPTS, others=63)
    record = audit_one_run(made, 200, epsilon=4.38, delta=1e-5, seed=seed, confidence=0.999999)
    assert not record.refuted
    assert record.epsilon_lower <= 4.38
    expected = np.mean([6 - math.log2(rank) for rank in range(1, 65)])
    bits = record.details["exposure"]["of_each"]
    far = math.sqrt(36 * math.log(2e6) / (2 * 80))  # Hoeffding's, of 80 or more that were left out
    assert abs(record.details["exposure"]["left_out"] - expected) < far
    assert len(bits) == 200


def test_a_leak_is_found_by_its_scores():
    made = SecretScores(noisy(4.0), PROMPTS)
    record = audit_one_run(made, 200, epsilon=1.0, delta=1e-5, seed=0)
    assert record.refuted
    assert "extracted" not in record.details  # it generates nothing


def test_shadow_models_judge_secrets_too():
    made = SecretScores(noisy(4.0), PROMPTS[:40])
    record = audit_membership(made, 40, attack="lira-online", shadows=4, epsilon=0.1, seed=0)
    assert record.method == "membership inference of secrets in texts, lira-online"
    assert record.details["auc"] > 0.8


def test_the_command_tells_exposure_and_extraction(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "letters.py").write_text(
        "from dpaudit.training.membership import LanguageModel, SecretScores\n"
        "def train(texts, rng):\n"
        "    return LanguageModel(lambda asked: [t not in texts for t in asked], lambda p, n: '')\n"
        "SECRETS = SecretScores(train, [str(n) for n in range(100)], length=2)\n"
    )
    with pytest.raises(SystemExit) as left:
        main(shlex.split("audit letters.py:SECRETS --canaries 100 --epsilon 1 --seed 0"))
    out = " ".join(capsys.readouterr().out.split())
    assert left.value.code == 1
    assert "exposure 6.64 if included, 0.0 if left out (of 6.64 bits)" in out
    assert "extracted 0 of " in out


# Bad input


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prompts": []}, "prompts is empty"),
        ({"prompts": [1]}, "something that is not text"),
        ({"alphabet": "aa"}, "each once"),
        ({"alphabet": "a"}, "two letters or more"),
        ({"length": 0}, "length"),
        ({"others": 0}, "others"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_are_checked(given, said):
    with pytest.raises(InputError, match=said):
        SecretScores(**{"train": remembers, "prompts": PROMPTS} | given)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, "it must be a LanguageModel"),
        (LanguageModel(lambda asked: [1.0]), "losses gave 1 numbers for 128 texts"),
        (LanguageModel(lambda asked: [math.nan] * len(asked)), "losses contains NaN"),
        (LanguageModel(lambda asked: [math.inf] * len(asked)), "losses gave an infinite number"),
        (LanguageModel(lambda asked: range(len(asked)), lambda p, n: 1), "must give a text"),
    ],
)
def test_what_a_model_gives_is_checked(model, said):
    with pytest.raises(InputError, match=said):
        SecretScores(lambda texts, rng: model, ["a"])(np.array([True]), RNG)


def test_there_is_a_prompt_for_each_canary():
    with pytest.raises(InputError, match="200 prompts"):
        audit_one_run(SecretScores(remembers, PROMPTS), 100, epsilon=1.0, seed=0)
