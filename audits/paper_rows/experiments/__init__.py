"""The papers' experiments, cell by cell and trial by trial, so that any one can be run again."""

from audits.paper_rows.experiments.base import Experiment

__all__ = ["Experiment", "experiments"]


def experiments() -> dict[str, Experiment]:
    """All experiments by name."""
    from audits.paper_rows.experiments import federated, joint, local, outsourced

    made = [*local.EXPERIMENTS, *outsourced.EXPERIMENTS, *joint.EXPERIMENTS, *federated.EXPERIMENTS]
    return {each.name: each for each in made}
