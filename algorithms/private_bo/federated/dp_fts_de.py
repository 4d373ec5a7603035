"""Federated Thompson sampling with distributed exploration, as subjects (Dai, Low & Jaillet 2021).

What protects an agent is the sampling of agents and the noise. :class:`DPFTSDE` is Algorithms 1
and 2, :class:`DPFTS` has one region, :class:`FTSDE` and :class:`FTS` have no privacy, and in
:class:`PlainTS` agents do not communicate.

>>> from dpaudit.ledger import Ledger
>>> algorithm = DPFTSDE(agents=8, rounds=3, rate=0.5, initial=3)
>>> rng = np.random.default_rng(0)
>>> problem = algorithm.load("synthetic", rng)
>>> with Ledger(algorithm.plan(), rng=rng) as ledger:
...     result = algorithm.run(problem, ledger, rng)
>>> len(ledger), result.summary["agents"], len(result.for_owner.series["simple regret"])
(3, 8, 4)
>>> round(DPFTSDE().published_loss, 2)
9.91
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting import AccountantName, compose, least_noise
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability, Positive, Rate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Claim, Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.base import Study, load_named, off_theorem_finding
from private_bo.federated.agents import AgentModel, Agents, Streams
from private_bo.federated.algorithms import (
    Aggregator,
    CanaryTransport,
    FilteringTransport,
    InProcessTransport,
    Server,
    Transport,
    central_server,
)
from private_bo.federated.problems import (
    FederatedProblem,
    ScaledObjective,
    ZeroedAgent,
    digits,
    landmines,
    synthetic,
)
from private_bo.federated.settings import Broadcast, OneRegion, Reliance, Settings
from private_bo.gp.types import Array, Bounded, between, single_threaded


@dataclass(frozen=True)
class Federation(Settings):
    """Base of the federated algorithms: fields as in the base class."""

    default_data: ClassVar[str] = "synthetic"
    agents_class: ClassVar[type[Agents]] = Agents

    def team(self, problem: FederatedProblem, streams: Streams) -> Agents:
        """All agents in this process."""
        numbers = range(self.agents)
        generators = [streams.agent(number) for number in numbers]
        model = AgentModel(self, problem.domain)
        return self.agents_class(model, problem.observe, numbers, generators)

    def play(self, server: Aggregator, transport: Transport) -> Broadcast:
        """Algorithm 1: every round between server and agents; returns the last broadcast."""
        broadcast = central_server(server, transport, self.exchanges)
        if self.exchanges == self.rounds:
            transport.finish(broadcast)
        return broadcast

    # -- data and result -------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> FederatedProblem:
        """``synthetic``, ``digits``, ``landmines`` (from DPAUDIT_DATA) or the path of its file."""
        return load_named(
            source,
            {
                "synthetic": lambda: synthetic(self.agents, seed=rng),
                "digits": lambda: digits(self.agents, seed=int(rng.integers(2**31))),
                "landmines": lambda: self._landmines(None, rng),
            },
            {".mat": lambda path: self._landmines(path, rng)},
            files=", or the path of a .mat file of landmine fields",
        )

    def _landmines(self, path: str | None, rng: np.random.Generator) -> FederatedProblem:
        seed = int(rng.integers(2**31))
        return self.check_data(landmines(None if path is None else Path(path), seed=seed))

    def check_data(self, problem: Any) -> FederatedProblem:
        """The problem, if it has as many agents as this federation."""
        found = validate.instance(FederatedProblem, data=problem)
        if found.agents != self.agents:
            raise InputError(
                f"data has {found.agents} agents; agents is {self.agents}, so set it to that."
            )
        return found

    def result(self, problem: FederatedProblem, agents: Agents) -> RunResult:
        """What ran; and for the owner how well it went, such as the simple regret of all agents.

        How often agents followed a broadcast is the owner's as well: how much an agent draws
        depends on what it has seen, and so does what it draws next.
        """
        regret = simple_regret(problem, agents, self.initial)
        owner = RunResult(
            summary={
                "rounds in which an agent followed the broadcast": sum(map(bool, agents.received)),
                "queries that followed a broadcast": sum(agents.received),
                "final simple regret": float(regret[:, -1].mean()),
            },
            series={"simple regret": regret.mean(axis=0).tolist()},
        )
        return RunResult(self.summary(problem.name), owner=owner)

    def summary(self, problem: str) -> dict[str, Any]:
        """What ran, on which problem."""
        return {
            "algorithm": type(self).__name__,
            "problem": problem,
            "agents": self.agents,
            "rounds": self.rounds,
        }


def simple_regret(problem: FederatedProblem, agents: Agents, initial: int) -> Array:
    """How far each agent's best query so far is from its optimum, (N, T + 1).

    The first column is after the initial points. Values are without noise.
    """
    found = np.take_along_axis(problem.table, agents.choices, axis=1)
    best = np.maximum.accumulate(found, axis=1)[:, initial - 1 :]
    return np.asarray(problem.optimum[:, None] - best)


class NonPrivateServer(Aggregator):
    """Exact weighted averages of all vectors: no sampling, no clipping, no noise, no claim."""

    def round(self, turn: int, reports: Iterable[object]) -> Broadcast:
        """Σ_n φ_n^(i) ω_n for every sub-region."""
        vectors = self.accepted(turn, reports)
        weights = self.weights.values[turn]
        total = np.zeros((len(weights), self.features))
        for n in sorted(vectors):
            total += np.outer(weights[:, n], vectors[n])
        return Broadcast(turn, total)


@dataclass(frozen=True)
class FTSDE(Federation):
    """Modified FTS with distributed exploration, without privacy (Section 5.1, Figure 2a)."""

    def run(self, data: Any, rng: np.random.Generator) -> RunResult:
        """Play every round without privacy."""
        problem = self.check_data(data)
        with single_threaded():
            agents = self.team(problem, Streams.of(rng))
            self.play(
                NonPrivateServer(self.public_weights, self.features), InProcessTransport(agents)
            )
            return self.result(problem, agents)


@dataclass(frozen=True)
class FTS(FTSDE):
    """Modified FTS: one region, the whole domain (Section 3.1 without its noise)."""

    regions: OneRegion = 1


@dataclass(frozen=True)
class PlainTS(FTS):
    """Thompson sampling by every agent on its own."""

    reliance: Reliance = Reliance.NEVER


class SamplingScheme(StrEnum):
    """How the server draws the agents of a round."""

    POISSON = "poisson"
    """Each with probability q, independently."""
    FIXED_SIZE = "fixed-size"
    """A subset of q N agents (footnote 14)."""


class Sensitivity(StrEnum):
    """How far one agent can move a round's joint release."""

    JOINT = "joint"
    """max_n (S/(q√P)) √(Σ_i φ_n^(i)²), from the public weights."""
    PAPER = "paper"
    """φ_max S/q, the paper's bound."""


_FAR = 1e6
_FINDINGS = FindingTable(__name__)
_PRESENT = {"agent", "present"}


@dataclass(frozen=True)
class DPFTSDE(Federation, Study):
    """DP-FTS-DE, Algorithms 1 and 2: fields as in the base class, and those of privacy.

    One agent is protected over the whole run: its vectors may as well have been zero. N and the
    weights are public. The claim is the privacy loss that the paper publishes: the classic moments
    accountant at T rounds. The plan declares what the public weights really allow, round by round.

    ``dpaudit audit`` tests the claim, and few runs cannot refute a large one: ε = 9.91, that of the
    defaults, takes at least 80 521. ``--set epsilon=4.1`` tests what the plan proves; 10 000 do.

    Attributes:
        rate: q.
        noise_multiplier: z.
        clip: S, a public constant.
        delta: δ; None for N^-1.1.
        epsilon: the ε that is claimed; None for the published loss.
        sampling: how agents are drawn. With subsets of fixed size, the relation is that an agent's
            vectors are replaced, which has twice the sensitivity.
        noise_scaled_to: the noise is z times this sensitivity.
        declared: the sensitivity that the plan states.
        last_broadcast: whether the server also answers the reports of t = T, as Algorithm 1 does,
            though no agent acts on that broadcast.

    Raises:
        InputError: if a field is out of its range, or q N < 1.
    """

    trust: ClassVar[TrustModel] = TrustModel.CENTRAL
    unit: ClassVar[PrivacyUnit] = PrivacyUnit("agent")
    server_class: ClassVar[type[Server]] = Server

    rate: Rate = 0.25
    noise_multiplier: Annotated[float, between(1e-18, 1e18)] = 1.0
    clip: Bounded = 11.0
    delta: OpenProbability | None = None
    epsilon: Positive | None = None
    sampling: SamplingScheme = SamplingScheme.POISSON
    noise_scaled_to: Sensitivity = Sensitivity.PAPER
    declared: Sensitivity = Sensitivity.JOINT
    last_broadcast: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is None and self.agents < 2:
            raise InputError("agents is 1; it must be at least 2, unless delta is given.")
        expected = self.rate * self.agents
        if expected < 1 - 1e-9:
            raise InputError(
                f"rate is {self.rate:g}, which samples {expected:g} of {self.agents} agents on "
                f"average; it must be at least {1 / self.agents:g}, for one agent."
            )
        if self.sampling is SamplingScheme.FIXED_SIZE and abs(expected - round(expected)) > 1e-9:
            raise InputError(
                f"rate is {self.rate:g}, which makes subsets of {expected:g} agents; under "
                f"fixed-size sampling it must be a multiple of 1/{self.agents}."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def target_delta(self) -> float:
        """δ, N^-1.1 where not given (Section 5)."""
        return self.agents**-1.1 if self.delta is None else self.delta

    @property
    def exchanges(self) -> int:
        """How many releases there are: T, for t = 0…T − 1, and one more with the last broadcast."""
        return self.rounds + int(self.last_broadcast)

    @property
    def scheme(self) -> PoissonSampling | FixedSizeSampling:
        """The sampling, as accountants know it."""
        if self.sampling is SamplingScheme.FIXED_SIZE:
            return FixedSizeSampling(round(self.rate * self.agents), self.agents)
        return PoissonSampling(self.rate)

    @property
    def relation(self) -> Relation:
        """Zero-out; for subsets of fixed size, for which theorems speak of it, replace-one."""
        return ReplaceOne() if self.sampling is SamplingScheme.FIXED_SIZE else ZeroOut()

    def sensitivity(self, kind: Sensitivity) -> Array:
        """How far one agent's vectors can move each release from where zeros leave it, (T,)."""
        weights = self.public_weights
        if kind is Sensitivity.PAPER:
            return weights.paper_sensitivity(self.clip, self.rate)
        return weights.true_sensitivity(self.clip, self.rate)

    @cached_property
    def sigmas(self) -> Array:
        """Standard deviation of the noise of each round, (T,)."""
        return np.asarray(self.noise_multiplier * self.sensitivity(self.noise_scaled_to))

    def invocations(self) -> Iterator[Invocation]:
        """One subsampled Gaussian of the joint vector for each stretch of rounds that are alike."""
        moved = self.relation.contribution_factor * self.sensitivity(self.declared)
        start = 0
        for pair, alike in groupby(zip(self.sigmas.tolist(), moved.tolist(), strict=True)):
            count = len(list(alike))
            last = start + count - 1
            yield self.invocation(
                Gaussian(pair[0]),
                pair[1],
                count=count,
                sampling=self.scheme,
                at=f"iterations {start} to {last}" if count > 1 else f"iteration {start}",
            )
            start += count

    @cached_property
    def releases(self) -> tuple[Invocation, ...]:
        """The invocation of which each round's release is one."""
        return tuple(each for each in self.invocations() for _ in range(each.count))

    @cached_property
    def published_loss(self) -> float:
        """ε of the classic moments accountant at T rounds of noise z: what the paper prints."""
        once = self.invocation(
            Gaussian(self.noise_multiplier),
            1.0,
            relation=ZeroOut(),
            count=self.rounds,
            sampling=PoissonSampling(self.rate),
        )
        return compose(Plan.of(once), AccountantName.MOMENTS).epsilon(self.target_delta).upper

    def claim(self) -> Claim:
        """The published loss, or ``epsilon`` where it is given; at δ = N^-1.1.

        The paper publishes none for subsets of fixed size: there it is what Rényi accounting gives.
        """
        if self.epsilon is not None:
            return Claim(self.epsilon, self.target_delta, "stated in the configuration")
        if self.sampling is SamplingScheme.FIXED_SIZE:
            proved = compose(self.plan(), AccountantName.RDP).epsilon(self.target_delta).upper
            return Claim(proved, self.target_delta, "Rényi accounting (footnote 14)")
        source = "Dai, Low & Jaillet 2021, Section 5: the moments accountant of Abadi et al. 2016"
        return Claim(self.published_loss, self.target_delta, source)

    def certified(self, declared: Sensitivity) -> float:
        """The ε that the least accountant proves if the plan declares that sensitivity."""
        plan = replace(self, declared=declared).plan()
        return compose(plan).epsilon(self.target_delta).upper

    def calibrated(self, epsilon: float | None = None) -> Self:
        """The same algorithm with the least z for which the certified ε meets a target.

        Args:
            epsilon: target at the same δ; by default the present claim, so that the published loss
                buys as little noise as it can.

        Raises:
            InputError: if no z meets it.

        >>> from private_bo.federated import DPFTS
        >>> published = DPFTS(agents=29, rate=0.35, rounds=60)
        >>> round(published.calibrated().noise_multiplier, 2)
        0.82
        """
        target = self.claim().epsilon if epsilon is None else validate.positive(epsilon=epsilon)

        def meets(multiplier: float) -> bool:
            plan = replace(self, noise_multiplier=multiplier).plan()
            return compose(plan, AccountantName.PLD).epsilon(self.target_delta).upper <= target

        found = least_noise(meets, tolerance=1e-5)
        if found is None:
            raise InputError(f"no noise multiplier meets epsilon {target}; choose a larger one.")
        return replace(self, noise_multiplier=found, epsilon=target)

    def findings(self) -> tuple[Finding, ...]:
        """Public weights, the two sensitivities, the unused broadcast, and the choice of S."""
        broadcast = "last-broadcast" if self.last_broadcast else "unused-broadcast"
        return (
            *(_FINDINGS("public-weights"), _FINDINGS("data-dependent-clip")),
            *self._sensitivity_finding(),
            # Algorithm 1 counts one release more than its accounting.
            _FINDINGS(broadcast, T=self.rounds, releases=self.rounds + 1),
            self._theorem_finding(),
        )

    def _theorem_finding(self) -> Finding:
        """What the regret theorem asks for, and is not so here."""
        message = (
            "The regret theorem multiplies the deviation of an agent's own draws by a β_t that "
            f"grows (Algorithm 2, line 6); here it is {self.beta:g} in every round. "
        )
        remedy = "Set beta where the regret bound matters."
        if self.reliance not in (Reliance.INVERSE_SQUARE, Reliance.NEVER):
            message += f"It requires 1 − p_t = O(1/t²); here 1 − p_t is {self.reliance}. "
            remedy = "Set beta, and reliance to 1/t^2, where the regret bound matters."
        if self.refit_every is not None:
            message += "It takes the kernel as known; here every agent fits its own. "
        return off_theorem_finding(message.rstrip(), remedy)

    def _sensitivity_finding(self) -> Iterator[Finding]:
        """How much smaller the true sensitivity is than what the noise is scaled to."""
        shares = self.sensitivity(Sensitivity.JOINT) / self.sensitivity(self.noise_scaled_to)
        if shares.min() <= 1 - 1e-9:
            yield _FINDINGS(
                "noise-above-sensitivity",
                least=100 * float(shares.min()),
                largest=100 * float(shares.max()),
                true=self.certified(Sensitivity.JOINT),
                paper=self.certified(Sensitivity.PAPER),
                declared=self.declared,
            )

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        expected = float(self.reliance.shares(self.rounds).sum())
        return (
            f"All {self.exchanges} broadcasts are counted, since every agent sees them all; an "
            f"agent acts on {expected:.3g} of them on average.",
            f"δ = {self.target_delta:.3g} is the probability of any loss above ε; with "
            f"{self.agents} agents it is not small.",
            f"An audit tests the claim of ε = {self.claim().epsilon:.4g}, and few runs cannot "
            "refute a large one: set epsilon to the certified ε to test that, or raise the runs.",
            "The server is trusted: it sees every vector, and its samples must stay secret.",
            "That an agent takes part in the federation is not hidden, and neither is N.",
            "Agents are not authenticated: whoever can report in another agent's name replaces it.",
            "The server keeps to itself how many reports were missing, refused or clipped.",
            "What an agent's own queries show to whoever can watch them is outside the claim.",
            "The regret comes from the true objectives, and how often agents followed a broadcast "
            "from their draws; a run shows both to the owner of the data alone.",
        )

    # -- audit -----------------------------------------------------------------------------------

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """A canary at the clip norm in every round, present or zero, in the worst place."""
        worst = int(self.public_weights.norms.max(axis=0).argmax())
        why = "a vector at the clip norm in every round, all others silent"
        one = {"agent": worst, "present": True}
        return (AuditPair(one, {"agent": worst, "present": False}, why),)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Transcripts of all rounds, seen along the canary's direction, all others silent.

        The canary sends S/√P times a public unit vector in every round, or zero, by the data
        ``{"agent": n, "present": true or false}``. What the broadcasts show beside that direction
        is noise alone, and left out.

        Returns:
            Shape (size, T, P).

        Raises:
            InputError: if the data are malformed.
        """
        agent, present = self.canary(data)
        shift = self.public_weights.values[:, :, agent] * (
            self.clip / (self.rate * np.sqrt(self.regions))
        )
        # One agent takes part independently from round to round, with probability q either way.
        taking_part = rng.random((size, self.exchanges)) < self.rate
        noise = rng.standard_normal((size, *shift.shape)) * self.sigmas[:, None]
        return np.asarray(noise + present * taking_part[:, :, None] * shift)

    def modelled(self) -> Iterator[tuple[dict[str, Any], CanaryTransport]]:
        """The canary of the first pair, present and zero: a test of the server, no agent acts."""
        pair = self.audit_pairs()[0]
        for data in (pair.x, pair.x_prime):
            agent, present = self.canary(data)
            vector = np.zeros(self.features)
            vector[0] = present * self.clip / math.sqrt(self.regions)
            yield data, CanaryTransport(agent, vector)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """What is seen along the canary's direction, (T, P)."""
        return np.stack(releases).reshape(len(releases), self.regions, -1)[:, :, 0]

    def canary(self, data: Any) -> tuple[int, bool]:
        """Which agent is the canary, and whether it is present, from a JSON value."""
        if not isinstance(data, dict) or set(data) != _PRESENT:
            raise InputError("data must be a table with the fields 'agent' and 'present'.")
        agent = validate.integer_at_least(0, self.agents - 1, agent=data["agent"])
        return agent, validate.instance(bool, present=data["present"])

    # -- neighbours ------------------------------------------------------------------------------

    def neighbours(self, data: FederatedProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One agent zeroed, ordinary or with an objective far beyond the others'; or replaced.

        Under zero-out two objectives of one agent are two moves apart, so none is replaced.
        """
        norms = self.public_weights.norms.max(axis=0)
        heaviest, lightest = int(norms.argmax()), int(norms.argmin())
        chosen = int(rng.integers(self.agents))
        for agent in dict.fromkeys((heaviest, lightest, chosen)):
            yield Move(_zeroed(data, agent), f"agent {agent} zeroed")
        for agent, factor, what in (
            (heaviest, _FAR, "values far above all others"),
            (chosen, -_FAR, "values far below all others"),
        ):
            distorted = ScaledObjective(data.objectives[agent], factor)
            other, recipe = data.with_agent(agent, distorted), f"agent {agent}, with {what}"
            if isinstance(self.relation, ZeroOut):
                zeroed = f"{recipe}, zeroed"
                yield Move(_zeroed(data, agent), zeroed, extreme=True, base=other)
            else:
                yield Move(other, f"{recipe}, instead", extreme=True)

    # -- run -------------------------------------------------------------------------------------

    def server(self, ledger: Ledger) -> Server:
        """The central server, which alone sees reports."""
        return self.server_class(
            self.public_weights,
            self.features,
            releases=self.releases,
            sampling=self.scheme,
            clip=self.clip,
            ledger=ledger,
        )

    def check_data(self, data: Any) -> Any:
        """The problem, or its neighbour without an agent; or a canary, which tests the server."""
        if isinstance(data, CanaryTransport):
            return data
        if isinstance(data, ZeroedAgent):
            self.check_data(data.problem)
            return data
        return super().check_data(data)

    def search(self, problem: Any, ledger: Ledger, rng: np.random.Generator) -> Agents | None:
        """Play every round; an agent's vectors leave the server only through the ledger."""
        server = self.server(ledger)
        if isinstance(problem, CanaryTransport):
            self.play(server, problem)
            return None
        silent = problem.agent if isinstance(problem, ZeroedAgent) else None
        with single_threaded():
            agents = self.team(problem if silent is None else problem.problem, Streams.of(rng))
            transport: Transport = InProcessTransport(agents)
            if silent is not None:
                transport = FilteringTransport(
                    transport, lambda sent: getattr(sent, "agent", None) != silent
                )
            self.play(server, transport)
        return agents

    def result(self, problem: Any, found: Agents | None) -> RunResult:
        """As in the base class; of a canary nothing."""
        if found is None:
            return RunResult(summary={"agents": 1})
        with single_threaded():
            truth = problem.problem if isinstance(problem, ZeroedAgent) else problem
            return super().result(truth, found)


def _zeroed(problem: FederatedProblem, agent: int) -> ZeroedAgent:
    """The neighbour of a problem in which an agent neither sees nor sends anything but zeros."""
    nothing = ScaledObjective(problem.objectives[agent], 0.0)
    return ZeroedAgent(problem.with_agent(agent, nothing), agent)


@dataclass(frozen=True)
class DPFTS(DPFTSDE):
    """DP-FTS: one region, the whole domain (Section 3.1). Fields as in :class:`DPFTSDE`."""

    regions: OneRegion = 1
