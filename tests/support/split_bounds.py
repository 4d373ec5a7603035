"""An event chosen on the first runs, and bounded on the rest: the two halves of one audit."""

from dpaudit.auditing.distinguishing.design import pilot_size
from dpaudit.auditing.evidence.events import as_scores, choose_event
from dpaudit.auditing.evidence.two_counts import joint_lower_bound


def split_lower_bound(scores_x, scores_x_prime, delta, confidence=0.95):
    """Lower bound on epsilon from independent runs: the first are the pilot, the rest the test."""
    first, second = as_scores(scores_x=scores_x), as_scores(scores_x_prime=scores_x_prime)
    cut, other_cut = pilot_size(first.size), pilot_size(second.size)
    event = choose_event(
        first[:cut],
        second[:other_cut],
        delta,
        test_runs=min(first.size - cut, second.size - other_cut),
        confidence=confidence,
    )
    return joint_lower_bound(event.count(first[cut:], second[other_cut:]), delta, confidence)
