import subprocess
import sys

import dpaudit


def test_exported_names_are_these():
    assert dpaudit.__all__ == sorted(
        """
        AccountantName AddRemove AuditPair AuditRecord BudgetExceededError Certificate Claim
        ClosedLedgerError DiscreteGaussian DiscreteLaplace DpAuditError Finding FixedSizeSampling
        Gaussian Guarantee InputError Invocation Laplace Ledger Mechanism MetricBall Opaque Plan
        PlanMismatchError PoissonSampling PrivacyUnit RandomizedResponse Relation ReplaceOne
        RunResult Sampling Severity Subject TamperedError TrustModel UnsupportedError Verdict
        ZeroOut __version__ certify guarantee privacy_curve
        """.split()
    )
    for name in dpaudit.__all__:
        assert getattr(dpaudit, name) is not None


def test_import_is_light():
    code = (
        "import sys, dpaudit, private_bo;"
        "sys.exit(', '.join({'torch', 'scipy', 'matplotlib', 'dp_accounting'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
