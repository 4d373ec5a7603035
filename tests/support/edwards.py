"""Ed25519 by the formulas of RFC 8032 (section 5.1), slow and without a library."""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
NEUTRAL = (0, 1)


def root(value):
    """A square root modulo p, or None."""
    value %= P
    found = pow(value, (P + 3) // 8, P)
    if found * found % P != value:
        found = found * pow(2, (P - 1) // 4, P) % P
    return found if found * found % P == value else None


def add(one, other):
    (x, y), (u, v) = one, other
    k = D * x * u * y * v
    a = (x * v + u * y) * pow(1 + k, -1, P) % P
    return a, (y * v + x * u) * pow(1 - k, -1, P) % P


def times(number, point):
    found = NEUTRAL
    while number:
        if number & 1:
            found = add(found, point)
        point, number = add(point, point), number >> 1
    return found


def decoded(raw):
    """The point of 32 bytes, or None if there is none."""
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x = root((y * y - 1) * pow(D * y * y + 1, -1, P))
    if x is None:
        return None
    return (P - x if x % 2 != sign and x else x), y


def encoded(point):
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = decoded(bytes([0x58] + [0x66] * 31))


def holds(key, message, signature):
    """Whether S·B = R + k·A."""
    first, s = signature[:32], int.from_bytes(signature[32:], "little")
    digest = hashlib.sha512(first + key + message).digest()
    k = int.from_bytes(digest, "little") % L
    right = add(decoded(first), times(k, decoded(key)))
    return s < L and times(s, BASE) == right


def torsion():
    """The eight points of small order."""
    number = 2
    while True:
        point = decoded(number.to_bytes(32, "little"))
        number += 1
        if point is None:
            continue
        small = times(L, point)
        if times(4, small) != NEUTRAL:
            return [times(n, small) for n in range(8)]
