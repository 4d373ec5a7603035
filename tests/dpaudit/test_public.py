import subprocess
import sys

import dpaudit

PUBLIC = """
    AccountantName AddRemove AuditPair AuditRecord BinaryTree BudgetExceededError Certificate
    Claim ClosedLedgerError ContinualGaussian Contribution DiscreteGaussian DiscreteLaplace
    DpAuditError Durability ExponentialMechanism FileAnchor Finding FixedSizeSampling FloatNoise
    Gaussian Group Guarantee InconclusiveError IndividualGaussian InputError Invocation Laplace
    Ledger Mechanism Membership MetricBall Move Opaque Plan PlanMismatchError PoissonSampling
    PrivacyUnit RandomizedResponse
    Relation Release ReplaceOne RunResult Sampling SealedSubject SecureNoise Severity Subject Table
    TamperedError TrustModel UnsupportedError Verdict ZeroOut certify guarantee plot_curve
    plot_rounds plot_trade_off privacy_curve read_release read_release_file release_table
    write_report
"""
HEAVY = "{'torch', 'scipy', 'matplotlib', 'dp_accounting', 'sklearn'}"


def test_exported_names_are_these():
    assert dpaudit.__all__ == sorted(PUBLIC.split())
    for name in dpaudit.__all__:
        assert getattr(dpaudit, name) is not None


def test_import_is_light():
    code = f"import sys, dpaudit, private_bo;sys.exit(', '.join({HEAVY} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
