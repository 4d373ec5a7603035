"""The curve of Laplace noise that ends, by quadrature of its densities."""

import mpmath


def exact_delta(x: float, e: float, u: float) -> float:
    """∫ (p − e^x q)+ for P around e and Q around 0, split wherever the integrand may have a kink.

    Gauss and Legendre have no nodes at the ends, where the densities jump.
    """
    whole = 2 * (1 - mpmath.exp(-u))

    def density(y, centre):
        return mpmath.exp(-abs(y - centre)) / whole if abs(y - centre) <= u else mpmath.mpf(0)

    def excess(y):
        return max(density(y, e) - mpmath.exp(x) * density(y, 0), mpmath.mpf(0))

    kinks = {-u, u, e - u, e + u, 0.0, e, (x + e) / 2}
    inside = sorted(kink for kink in kinks if -u <= kink <= e + u)
    return float(mpmath.quad(excess, inside, method="gauss-legendre"))
