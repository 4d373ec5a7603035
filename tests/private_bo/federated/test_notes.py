"""What a reader of a certificate of DP-FTS-DE is told."""

import json
from dataclasses import replace

from dpaudit import Verdict, certify
from dpaudit.certificate import SubjectRecord
from dpaudit.project.targets import configuration
from private_bo.federated import (
    DPFTSDE,
    Reliance,
)

LANDMINES = DPFTSDE(
    agents=29, regions=4, rate=0.35, clip=22.0, features=100, rounds=60, reliance=Reliance.INVERSE
)
SMALL = DPFTSDE(agents=8, regions=2, rate=0.5, features=10, rounds=6, initial=3, clip=4.0)


def test_the_claim_is_certified_and_both_sensitivities_are_shown() -> None:
    certificate = certify(
        LANDMINES.plan(), subject=SubjectRecord("x", configuration(LANDMINES)),
        claim=LANDMINES.claim(), findings=LANDMINES.findings(),
        not_covered=LANDMINES.not_covered(),
    )  # fmt: skip
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee is not None
    assert {"moments", "rdp", "pld"} <= set(certificate.guarantee.compared)
    messages = {finding.rule: finding.message for finding in certificate.findings}
    assert "6.199" in messages["noise-above-sensitivity"]
    assert "10.38" in messages["noise-above-sensitivity"]
    assert "60 releases" in messages["unused-broadcast"]
    assert "public" in messages["public-weights"]
    json.dumps(certificate.to_dict())


def test_what_is_beside_the_theorem_is_stated() -> None:
    def message(**fields: object) -> str:
        found = replace(SMALL, **fields).findings()  # type: ignore[arg-type]
        return next(each.message for each in found if each.rule == "off-theorem")

    assert "here it is 1 in every round" in message()
    assert "here it is 2.5 in every round" in message(beta=2.5)
    assert "1/sqrt(t)" in message()
    assert "1 − p_t" not in message(reliance=Reliance.INVERSE_SQUARE)
    assert "fits" in message()
    assert "fits" not in message(refit_every=None)
    assert any("few runs cannot refute" in each for each in SMALL.not_covered())
