"""Keys: beside the formulas of RFC 8032, and as files that nobody overwrites."""

import hashlib
import stat
from pathlib import Path

import edwards
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpaudit import InputError
from dpaudit.signing.keys import key_id, load_private, load_public, new_key


def nobody():
    raise AssertionError("there is no password to ask for")


def saved(path, raw):
    key = Ed25519PublicKey.from_public_bytes(raw)
    encoding = serialization.Encoding.PEM
    path.write_bytes(key.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo))
    return path


def test_the_id_is_that_of_the_public_key_info():
    """The DER of an Ed25519 key is these twelve bytes and the point (RFC 8410, section 4)."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()
    info = bytes.fromhex("302a300506032b6570032100") + key.public_bytes_raw()
    assert key_id(key) == hashlib.sha256(info).hexdigest()


def test_all_points_of_small_order_are_refused(tmp_path):
    points = edwards.torsion()
    assert len({*points}) == 8
    for point in points:
        assert edwards.times(8, point) == edwards.NEUTRAL
        with pytest.raises(InputError, match=r"is a point of small order.*keygen\.$"):
            load_public(saved(tmp_path / "a.pub.pem", edwards.encoded(point)))


@pytest.mark.parametrize("y", [0, 1, 18])
@pytest.mark.parametrize("sign", [0, 1])
def test_a_point_has_one_text(tmp_path, y, sign):
    raw = (edwards.P + y | sign << 255).to_bytes(32, "little")
    with pytest.raises(InputError, match="small order"):
        load_public(saved(tmp_path / "a.pub.pem", raw))


def test_other_points_are_not(tmp_path):
    for number in range(50):
        key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"%d" % number).digest())
        raw = key.public_key().public_bytes_raw()
        assert load_public(saved(tmp_path / "a.pub.pem", raw)).public_bytes_raw() == raw


def test_a_new_key_is_its_owners_alone(tmp_path):
    public, path = new_key(tmp_path / "office.pem", None)
    assert path == tmp_path / "office.pub.pem"
    assert stat.S_IMODE((tmp_path / "office.pem").stat().st_mode) == 0o600
    assert key_id(load_public(path)) == key_id(public)
    private = load_private(tmp_path / "office.pem", nobody)
    assert key_id(private.public_key()) == key_id(public)


def test_a_password_keeps_it(tmp_path):
    public, _ = new_key(tmp_path / "office.pem", "oh, ε!")
    assert b"ENCRYPTED" in (tmp_path / "office.pem").read_bytes()
    key = load_private(tmp_path / "office.pem", lambda: "oh, ε!")
    assert key_id(key.public_key()) == key_id(public)
    with pytest.raises(InputError, match="has another password"):
        load_private(tmp_path / "office.pem", lambda: "oh, e!")


@pytest.mark.parametrize("there", ["a.pem", "a.pub.pem"])
def test_nothing_is_overwritten(tmp_path, there):
    (tmp_path / there).write_text("mine")
    with pytest.raises(
        InputError, match=r"cannot be made: File exists; give a new path, because no"
    ):
        new_key(tmp_path / "a.pem", None)
    assert [each.name for each in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "password"), [("a.pem", "x" * 1024), ("a.pem", ""), ("a.pem", "\ud800"), ("", None)]
)
def test_what_can_be_no_key_leaves_nothing(tmp_path, name, password):
    with pytest.raises(InputError, match="it needs a name, and a password of 1 to 1023 bytes"):
        new_key(tmp_path / name if name else "/", password)
    assert list(tmp_path.iterdir()) == []


def test_a_password_may_be_any_bytes_of_the_shell(tmp_path):
    public, _ = new_key(tmp_path / "a.pem", "\udcff\udcfe")
    key = load_private(tmp_path / "a.pem", lambda: "\udcff\udcfe")
    assert key_id(key.public_key()) == key_id(public)


def test_a_folder_that_takes_no_key_is_not_called_an_old_key(tmp_path):
    with pytest.raises(InputError, match=r"cannot be made: No such file .*; give a folder that"):
        new_key(tmp_path / "none" / "a.pem", None)


def test_no_link_is_followed(tmp_path):
    (tmp_path / "a.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="File exists"):
        new_key(tmp_path / "a.pem", None)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_leaves_no_half_of_a_key(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpaudit.signing.keys.os.fdopen", full)
    with pytest.raises(InputError, match="No space left"):
        new_key(tmp_path / "a.pem", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no key", b"\xff\xfe", b"-----BEGIN PUBLIC KEY-----\n"])
def test_what_is_no_key_is_one_sentence(tmp_path, content):
    path = tmp_path / "odd.pem"
    path.write_bytes(content)
    for load in (load_public, lambda path: load_private(path, nobody)):
        with pytest.raises(
            InputError, match=r"is not the half of a key that is needed here, in PEM; give"
        ):
            load(path)


def test_halves_are_not_mixed_up(tmp_path):
    _, public = new_key(tmp_path / "a.pem", None)
    with pytest.raises(InputError, match="is not the half of a key that is needed here"):
        load_public(tmp_path / "a.pem")
    with pytest.raises(InputError, match="is not the half of a key that is needed here"):
        load_private(public, nobody)
    with pytest.raises(InputError, match="does not exist"):
        load_public(Path("none.pem"))
