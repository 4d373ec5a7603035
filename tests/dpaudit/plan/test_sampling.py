import pytest
from examples import gaussian_invocation

from dpaudit import FixedSizeSampling, InputError, Invocation, PoissonSampling, TrustModel


def test_no_sample_is_larger_than_its_population():
    with pytest.raises(InputError, match="size is 5"):
        FixedSizeSampling(5, 4)


@pytest.mark.parametrize("sampling", [PoissonSampling(0.01), FixedSizeSampling(1, 100)])
def test_sampling_is_no_secret_under_local_trust(sampling):
    """Who sees that nothing was sent knows who was not drawn; the noise alone protects the rest."""
    with pytest.raises(InputError, match=r"local trust.*leave sampling out") as raised:
        gaussian_invocation(trust=TrustModel.LOCAL, sampling=sampling)
    assert str(raised.value).count(".") == 1
    for trust in set(TrustModel) - {TrustModel.LOCAL}:
        assert gaussian_invocation(trust=trust, sampling=sampling).sampling == sampling
    declared = gaussian_invocation(sampling=sampling).to_dict()
    with pytest.raises(InputError, match="local trust"):
        Invocation.from_dict({**declared, "trust": "local"})
