"""The four papers, and what a reader of the index should know of each certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PAPERS", "Paper"]


@dataclass(frozen=True)
class Paper:
    """One paper.

    Attributes:
        reference: authors, title, place.
        summary: who is protected from whom, and what became of the claim.
        algorithms: title and remark of each certificate, by the subject's name in the project file.
    """

    reference: str
    summary: str
    algorithms: Mapping[str, tuple[str, str]]


_LDP = "The clip is ours: without it, one reward outside ±(B+R) breaks the claim."
_MOMENTS = "The moments accountant, and a bound that no agent reaches, cost more noise than needed."

PAPERS = (
    Paper(
        "Zhou & Tan, Local Differential Privacy for Bayesian Optimization, AAAI 2021",
        "Each user's answer is noised before it leaves the user, and is protected from everybody.",
        {
            "ldp-ata-gp-ucb": ("LDP-ATA-GP-UCB, ε = 1", _LDP),
            "ldp-tgp-ucb": ("LDP-TGP-UCB, ε = 1", _LDP),
            "ldp-moma-gp-ucb": ("LDP-MoMA-GP-UCB, ε = 1", _LDP),
            "ldp-moma-gp-ucb-epsilon-0.5": ("LDP-MoMA-GP-UCB, ε = 0.5", _LDP),
            "ldp-one-bit-gp": (
                "One-bit responses and a lookahead, ε = 1",
                "Not of the paper: at the same ε less noise, and a public range that need not be "
                "symmetric.",
            ),
        },
    ),
    Paper(
        "Kharkovskii, Dai & Low, Private Outsourced Bayesian Optimization, ICML 2020",
        "A curator publishes transformed rows for a modeller; any one row may move by 1.",
        {
            "curator": (
                "PO-GP-UCB, the paper's curator, ε = e^1.1",
                "All columns of the release lie in a subspace that moves when one row moves.",
            ),
            "certified-curator": (
                "A curator with a proof, ε = e^1.1",
                "The same interface: a public projection, and noise on every entry.",
            ),
        },
    ),
    Paper(
        "Dubey, No-Regret Algorithms for Private Gaussian Process Bandit Optimization, "
        "AISTATS 2021",
        "One user is protected from all others. The proofs of both lemmas on the noise miscount "
        "the sensitivity. The statement of Lemma 2 prints for σ what its proof derives for σ²; "
        "what is false is the proof's.",
        {
            "joint-gp-ucb": (
                "Joint GP-UCB, least noise for the claim",
                "Algorithms 1 and 2 with exact calibration; the default.",
            ),
            "joint-gp-ucb-paper-noise": (
                "Joint GP-UCB, noise of Lemma 2's proof, B = 1",
                "For small rewards far more noise than the claim needs. Rewards are bounded, and "
                "the logarithm is dropped, as in Section 6.1.",
            ),
            "joint-gp-ucb-paper-noise-large-rewards": (
                "Joint GP-UCB, noise of Lemma 2's proof, B = 100",
                "The proof has L² where the squared sensitivity, of order L⁴, belongs.",
            ),
            "joint-gp-ucb-printed-noise-large-rewards": (
                "Joint GP-UCB, noise of Lemma 2 as it is stated, B = 100",
                "The statement prints the proof's σ² for σ: so much noise that nothing is lost, "
                "and nothing learnt.",
            ),
            "local-joint-gp-ucb": (
                "Local joint GP-UCB, least noise for the claim",
                "Algorithm 3 with exact calibration; the default.",
            ),
            "local-joint-gp-ucb-paper-noise": (
                "Local joint GP-UCB, noise of Lemma 5, α = 10",
                "The proof takes sensitivities 1 and L; they are √2 and 2L. At α = 10 the claim is "
                "false (11.92 at β = 0.1, 10.81 at β = 0.001); at α = 0.1 and 1 it holds.",
            ),
        },
    ),
    Paper(
        "Dai, Low & Jaillet, Differentially Private Federated Bayesian Optimization with "
        "Distributed Exploration, NeurIPS 2021",
        "One agent is protected from all others over the whole run. The claims are the losses that "
        "the paper publishes. Attacks are held against what is proved, where that is less.",
        {
            "dp-fts": (
                "DP-FTS, synthetic, q = 0.25, z = 1",
                "One region, so that only the moments accountant costs more noise than needed.",
            ),
            "dp-fts-de": ("DP-FTS-DE, synthetic, q = 0.25, z = 1", _MOMENTS),
            "dp-fts-de-q-0.15": ("DP-FTS-DE, synthetic, q = 0.15, z = 1", _MOMENTS),
            "dp-fts-de-q-0.5": ("DP-FTS-DE, synthetic, q = 0.5, z = 1", _MOMENTS),
            "dp-fts-de-z-1.2": ("DP-FTS-DE, synthetic, q = 0.25, z = 1.2", _MOMENTS),
            "dp-fts-de-z-1.5": ("DP-FTS-DE, synthetic, q = 0.25, z = 1.5", _MOMENTS),
            "dp-fts-de-calibrated": (
                "DP-FTS-DE, synthetic, q = 0.25, least z",
                "The least noise for the loss that is published for z = 1.",
            ),
            "dp-fts-de-landmines": (
                "DP-FTS-DE, landmines, q = 0.35, z = 1",
                f"{_MOMENTS} What agents gain from each other here is within its error, at any "
                "noise: docs/local-utility.md says what was tried.",
            ),
            "dp-fts-de-landmines-calibrated": (
                "DP-FTS-DE, landmines, q = 0.35, least z",
                "The least noise for the loss that is published for z = 1.",
            ),
        },
    ),
)
