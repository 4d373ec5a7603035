"""What is said of a certificate that was verified."""

from dataclasses import replace

from examples import response_plan

from dpaudit import Claim
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.workflow.verifying import verification


def test_an_older_file_is_called_what_it_is() -> None:
    made = certify(response_plan(), subject=SubjectRecord("mine"), claim=Claim(1.0))
    assert verification(made).remarks == ()
    (remark,) = verification(replace(made, schema="dpaudit-certificate/2")).remarks
    assert "of dpaudit-certificate/2, in which no premise rests on another" in remark
