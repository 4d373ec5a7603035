import pytest

from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError
from dpaudit.plan import Group
from dpaudit.project.plan_file import read_plan_file

HEAD = '[plan]\nunit = "row"\nrelation = {relation}\ntrust = "{trust}"\n'


def read(tmp_path, body, relation="add-remove", trust="central"):
    path = tmp_path / "plan.toml"
    relation = relation if relation.startswith("{") else f'"{relation}"'
    path.write_text(HEAD.format(relation=relation, trust=trust) + body)
    return read_plan_file(path)


def invocation(**fields):
    return "[[invocation]]\n" + "\n".join(f"{name} = {value}" for name, value in fields.items())


def test_an_empty_file_has_no_plan(tmp_path):
    (tmp_path / "plan.toml").touch()
    with pytest.raises(InputError, match=r"plan file has no \[plan\]; add it"):
        read_plan_file(tmp_path / "plan.toml")


def test_every_field_is_read(tmp_path):
    content = read(
        tmp_path,
        "[claim]\nepsilon = 1\ndelta = 1e-6\n"
        + invocation(
            mechanism='"laplace"',
            scale=2,
            clip=[-1, 1],
            sensitivity=0.5,
            count=3,
            total=9,
            group='"g"',
            at='"here"',
            sampling='{ scheme = "poisson", rate = 0.01 }',
        ),
    )
    (only,) = content.plan.invocations
    assert only.mechanism.clip == (-1, 1)
    assert (only.count, only.total, only.group, only.at) == (3, 9, Group("g"), "here")
    assert only.sampling.rate == 0.01
    assert content.claim.epsilon == 1


@pytest.mark.parametrize(
    ("mechanism", "parameter"),
    [
        ("gaussian", "sigma = 2\nsensitivity = 1"),
        ("laplace", "scale = 2\nsensitivity = 1"),
        ("discrete-laplace", "scale = 2\nsensitivity = 1"),
        ("discrete-gaussian", "sigma = 2\nsensitivity = 1"),
        ("randomized-response", "p = 0.5"),
        ("opaque", 'label = "x"\nepsilon = 1'),
    ],
)
def test_every_mechanism_is_known(tmp_path, mechanism, parameter):
    content = read(tmp_path, f'[[invocation]]\nmechanism = "{mechanism}"\n{parameter}')
    assert content.plan.invocations[0].mechanism.kind == mechanism


def test_sensitivity_follows_from_the_contribution_and_the_relation(tmp_path):
    body = invocation(mechanism='"gaussian"', sigma=10, contribution=1)
    for relation, sensitivity in (("add-remove", 1), ("replace-one", 2), ("zero-out", 1)):
        plan = read(tmp_path, body, relation).plan
        assert plan.invocations[0].sensitivity == sensitivity
    replaced = guarantee(read(tmp_path, body, "replace-one").plan, 1e-5)
    assert replaced.epsilon == pytest.approx(0.726, abs=5e-4)


BALL = '{ kind = "metric-ball", radius = 10 }'


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "zero-out", BALL])
@pytest.mark.parametrize(
    ("fields", "width"),
    [
        ({"mechanism": '"laplace"', "scale": 2, "clip": [-1, 2]}, 3),
        ({"mechanism": '"gaussian"', "sigma": 2, "clip_norm": 1.5}, 3),
    ],
)
def test_a_clip_implies_that_the_value_may_move_from_end_to_end(tmp_path, fields, width, relation):
    """A query that is far below the clip on one data set, and far above on its neighbour."""
    content = read(tmp_path, invocation(**fields), relation)
    assert content.plan.invocations[0].sensitivity == width
    assert [finding.rule for finding in content.findings] == ["sensitivity-from-clip"]


@pytest.mark.parametrize(("relation", "way"), [("replace-one", 3), ("zero-out", 2), (BALL, 3)])
def test_a_local_clip_is_of_the_units_own_value(tmp_path, relation, way):
    body = invocation(mechanism='"laplace"', scale=2, clip=[-1, 2])
    assert read(tmp_path, body, relation, "local").plan.invocations[0].sensitivity == way


def test_a_record_may_turn_round_within_the_ball(tmp_path):
    """Radius 10 and contributions of norm 1: they may be opposite, so Laplace 1 costs ε = 2."""
    body = invocation(mechanism='"laplace"', scale=1, contribution=1)
    assert guarantee(read(tmp_path, body, BALL).plan).epsilon == 2
    body = invocation(mechanism='"laplace"', scale=1, clip=[-1, 1])
    assert guarantee(read(tmp_path, body, BALL).plan).epsilon == 2


@pytest.mark.parametrize("relation", ["replace-one", BALL])
def test_what_may_be_misread_is_said_aloud(tmp_path, relation):
    body = invocation(mechanism='"gaussian"', sigma=10, sensitivity=1)
    content = read(tmp_path, body, relation)
    assert [finding.rule for finding in content.findings] == ["sensitivity-under-replace-one"]
    body = invocation(mechanism='"randomized-response"', p=0.5)
    content = read(tmp_path, body, relation)
    assert (content.plan.invocations[0].sensitivity, content.findings) == (1, ())


def test_defaults_are_said_aloud(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(f'[plan]\nrelation = "add-remove"\n{GOOD}')
    content = read_plan_file(path)
    assert [finding.rule for finding in content.findings] == ["assumed-unit", "assumed-trust"]
    assert [finding.message.split()[-1] for finding in content.findings] == ["'row'.", "'central'."]


@pytest.mark.parametrize(
    "body",
    [
        'mechanism = "gaussian"\nsigma = 2',
        'mechanism = "laplace"\nscale = 2',
        'mechanism = "discrete-laplace"\nscale = 2',
        'mechanism = "discrete-gaussian"\nsigma = 2',
        'mechanism = "continual-laplace"\nscale = 2\nparticipations = 1\n'
        'factorization = { kind = "binary-tree", steps = 4 }',
    ],
)
def test_noise_without_a_sensitivity_says_what_to_write(tmp_path, body):
    with pytest.raises(InputError, match=r"write sensitivity = 1\.0 .*, or contribution = 1\.0 "):
        read(tmp_path, f"[[invocation]]\n{body}")
    for key in ("sensitivity", "contribution"):
        read(tmp_path, f"[[invocation]]\n{body}\n{key} = 1.0")


GOOD = invocation(mechanism='"gaussian"', sigma=1, sensitivity=1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", r"no \[\[invocation\]\]"),
        ("invocation = 3", "unknown key 'invocation'"),
        (GOOD.replace("mechanism =", "mechanizm ="), "'mechanizm' is unknown; did you mean 'mech"),
        (GOOD + "\ncolour = 1", "invocation 1: gaussian has an unknown key 'colour'"),
        (GOOD.replace("1", '"1"'), "sigma is '1'"),
        (GOOD.replace("sigma = 1", "sigma = nan"), "sigma is nan"),
        (GOOD.replace("sigma = 1", "sigma = inf"), "sigma is inf"),
        (GOOD.replace("sigma = 1", "sigma = -1"), "sigma is -1"),
        (GOOD.replace("sigma = 1", "sigma = true"), "sigma is True"),
        (GOOD.replace("sigma = 1\n", ""), "lacks the key 'sigma'"),
        (GOOD + "\ncount = 0", "count is 0; .*, because what never happens costs nothing"),
        (
            GOOD.replace("sigma = 1", "sigma = 0"),
            "sigma is 0; .* above 0, because without noise ε is infinite",
        ),
        (invocation(mechanism='"exponential"', epsilon=0.0), "because at ε = 0 nothing depends on"),
        (
            GOOD + '\nsampling = { scheme = "poisson", rate = 0 }',
            "rate is 0; .*, because a sample without units costs nothing: leave it out",
        ),
        (
            invocation(mechanism='"randomized-response"', p=0.5, k=1),
            "k is 1; .*, because with one possible answer nothing is revealed",
        ),
        (GOOD + "\ncount = 1.5", "count is 1.5"),
        (GOOD + "\ncontribution = 1", "both given"),
        (invocation(mechanism='"laplace"', scale=1, contribution=0.0), "contribution is 0"),
        (
            invocation(mechanism='"laplace"', scale=1, contribution="{}"),
            "{ bound = 1.0, rows = 5 }",
        ),
        (GOOD + '\nsampling = "poisson"', "poisson lacks the key 'rate'"),
        (GOOD + '\nsampling = { scheme = "poisson" }', "poisson lacks the key 'rate'"),
        (GOOD + '\nsampling = { scheme = "fixed-size", of = 3 }', 'example: .*"fixed-size", size'),
        (GOOD.replace('"gaussian"', '"magic"'), "mechanism is 'magic'"),
        (GOOD.replace('"gaussian"', "3"), "mechanism is 3"),
        (GOOD + "\n[claim]\nepsilon = -1", "epsilon is -1"),
        (GOOD + "\n[claim]\ndelta = 0.1", "states only delta; it must be a table like"),
        (GOOD + "\n[extra]\n", "unknown key 'extra'"),
        (GOOD + "\nsigma = 2", "is not TOML: .*; a key is there twice"),
        ((GOOD.replace("[[invocation]]", "[invocation]") + "\n") * 2, r"begin with \[\[NAME\]\]"),
        (GOOD.replace('"', "“"), "is not TOML: .*; write a text in straight quotes"),
        ("=", "is not TOML"),
    ],
)
def test_bad_plans_are_one_sentence(tmp_path, body, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, body)
    assert "\n" not in str(caught.value)


def test_bad_heads(tmp_path):
    path = tmp_path / "plan.toml"
    for head, message in [
        ("plan = 3", "plan is 3"),
        ('[plan]\nunit = "row"', "lacks the key 'relation'"),
        ('[plan]\nrelation = "cousin"', "relation is 'cousin'"),
        ('[plan]\nrelation = "add-remove"\ntrust = "x"', "trust is 'x'"),
        ('[plan]\nrelation = "add-remove"\nunit = 3', "unit is 3"),
    ]:
        path.write_text(head + "\n" + ("" if head == "plan = 3" else GOOD))
        with pytest.raises(InputError, match=message):
            read_plan_file(path)


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_plan_file(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a folder"):
        read_plan_file(tmp_path)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * 10_000_000)
    with pytest.raises(InputError, match="10000000 bytes"):
        read_plan_file(large)
    large.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_plan_file(large)
    large.write_text("a = " + "[" * 100_000)
    with pytest.raises(InputError, match=r"nested too deeply|not TOML"):
        read_plan_file(large)
