"""What a reader of a certificate of DP-FTS-DE must know."""

from __future__ import annotations

from dpaudit.certificate import Finding, Severity
from private_bo.federated.settings import Reliance
from private_bo.federated.subject import PrivateFederation, Sensitivity


def federated_findings(algorithm: PrivateFederation) -> tuple[Finding, ...]:
    """Findings of DP-FTS-DE: assumptions first, then what differs from the paper."""
    found = [
        Finding(
            "public-weights",
            Severity.WARNING,
            "Neighbours differ in one agent's vectors, which are zero in one of them; N and all "
            "weights are public and stay. If an agent's removal changed the softmax's sum, every "
            "other agent's weight would move too, and the claim would not cover that.",
            "Fix the list of agents before the run, and publish it.",
        ),
        Finding(
            "data-dependent-clip",
            Severity.WARNING,
            "The paper chose S by looking at how many vectors of the same agents are clipped, and "
            "its other settings by experiments on them; that choice is outside the claim.",
            "Choose clip and all other settings from public facts.",
        ),
    ]
    found += _sensitivity_finding(algorithm)
    found += _broadcast_finding(algorithm)
    found.append(_theorem_finding(algorithm))
    return tuple(found)


def _theorem_finding(algorithm: PrivateFederation) -> Finding:
    """What the regret theorem asks for, and is not so here."""
    message = (
        "The regret theorem multiplies the deviation of an agent's own draws by a β_t that grows "
        f"(Algorithm 2, line 6); here it is {algorithm.beta:g} in every round. "
    )
    remedy = "Set beta where the regret bound matters."
    if algorithm.reliance not in (Reliance.INVERSE_SQUARE, Reliance.NEVER):
        message += f"It asks for 1 − p_t = O(1/t²); here it is {algorithm.reliance}. "
        remedy = "Set beta, and reliance to 1/t^2, where the regret bound matters."
    if algorithm.refit_every is not None:
        message += "Its kernel is known; here every agent fits that of its own process. "
    return Finding("off-theorem", Severity.NOTE, message + "Privacy is not affected.", remedy)


def _sensitivity_finding(algorithm: PrivateFederation) -> list[Finding]:
    """How much smaller the true sensitivity is than what the noise is scaled to."""
    if algorithm.noise_scaled_to is Sensitivity.JOINT:
        return []
    shares = algorithm.sensitivity(Sensitivity.JOINT) / algorithm.sensitivity(Sensitivity.PAPER)
    if shares.min() > 1 - 1e-9:
        return []
    true, paper = (algorithm.certified(kind) for kind in (Sensitivity.JOINT, Sensitivity.PAPER))
    return [
        Finding(
            "noise-above-sensitivity",
            Severity.NOTE,
            "The noise is scaled to φ_max S/q, but by the public weights one agent moves the joint "
            f"release by {100 * float(shares.min()):.3g} % to {100 * float(shares.max()):.3g} % of "
            f"that: ε = {true:.4g} with the true sensitivity of every round, {paper:.4g} with the "
            f"paper's bound. The plan declares the {algorithm.declared} one.",
            "Set noise_scaled_to to joint, or calibrate the noise to the certified ε.",
        )
    ]


def _broadcast_finding(algorithm: PrivateFederation) -> list[Finding]:
    """Algorithm 1 counts one release more than its accounting."""
    T = algorithm.rounds
    if algorithm.last_broadcast:
        message = (
            f"Algorithm 1 releases for t = 0…{T}, which is {T + 1} times; the published loss "
            f"counts {T}. No agent acts on the last broadcast."
        )
    else:
        message = (
            f"Algorithm 1 releases for t = 0…{T}, but no agent acts on the broadcast of t = {T}: "
            f"it is not made, so that {T} releases run and are counted, as in the published loss."
        )
    remedy = "Leave last_broadcast false." if algorithm.last_broadcast else ""
    return [Finding("unused-broadcast", Severity.NOTE, message, remedy)]


def limits_of_claim(algorithm: PrivateFederation) -> tuple[str, ...]:
    """What the claim of DP-FTS-DE leaves out, one sentence each."""
    expected = float(algorithm.reliance.shares(algorithm.rounds).sum())
    return (
        f"All {algorithm.exchanges} broadcasts are counted, since every agent sees them all; an "
        f"agent acts on {expected:.3g} of them on average.",
        f"δ = {algorithm.target_delta:.3g} is the probability of any loss above ε; with "
        f"{algorithm.agents} agents it is not small.",
        f"An audit tests the claim of ε = {algorithm.claim().epsilon:.4g}, and few runs cannot "
        "refute a large one: set epsilon to the certified ε to test that, or raise the runs.",
        "The server is trusted: it sees every vector, and its samples must stay secret.",
        "That an agent takes part in the federation is not hidden, and neither is N.",
        "Agents are not authenticated: whoever can report in another agent's name replaces it.",
        "How many reports were missing, refused or clipped is no release; the server keeps it.",
        "What an agent's own queries show to whoever can watch them is outside the claim.",
        "The regret comes from the true objectives, and how often agents followed a broadcast from "
        "their draws; a run shows both to the owner of the data alone.",
    )
