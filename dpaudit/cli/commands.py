"""The commands. Each parses its words, calls the library and prints; nothing is decided here.

The options of ``audit`` are those fields of an ``AuditRequest`` and of its ``Execution`` that are
declared with one: name and words from the declaration, type from the annotation, help from the
docstring. The request itself refuses what has no meaning together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from dpaudit.cli.command import Service, derived
from dpaudit.cli.exits import Exit, exit_of, exit_of_opinion
from dpaudit.cli.options import (
    AllowWork,
    Anchor,
    CertificateFile,
    Checked,
    Delta,
    LedgerSurvives,
    RunFolder,
    Runnable,
    Seed,
    Settings,
    Stated,
    Witness,
    kept_of,
    number,
    option,
    typed,
    whole_number,
    working,
)

if TYPE_CHECKING:
    from dpaudit.workflow.outcomes import ProjectOutcome
    from dpaudit.workflow.verifying import Verification


def certify(
    subject: Annotated[
        str, typer.Argument(metavar="SUBJECT|PLAN.toml", help="module:Object, or a plan file.")
    ],
    settings: Settings = None,
    claim: Stated = None,
    delta: Delta = None,
    accountant: Annotated[
        str,
        option(
            "--accountant",
            "NAME",
            "best, pure, gaussian, zcdp, rdp, moments, bounded-range or pld.",
        ),
    ] = "best",
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Also test the code on neighbouring data; sealed code, on made-up rows.",
        ),
    ] = False,
    data: Annotated[str | None, option("--data", "NAME|PATH", "What to rehearse on.")] = None,
    witness: Witness = None,
    checked: Checked = False,
    output: CertificateFile = None,
) -> None:
    """Prove what can be proved of a plan, before any data exist."""
    from dpaudit.certificate import lacks_check
    from dpaudit.cli import show
    from dpaudit.workflow.certifying import certify_target, writer

    write = None if output is None else writer(output)
    with working(f"certify {subject}"):
        certificate = certify_target(
            subject,
            settings or (),
            delta,
            accountant,
            rehearse=rehearse,
            data=data,
            claim=claim,
            witness=True if checked and witness is None else witness,
        )
    if write is not None:
        show.remark(write(certificate))
    show.certificate(certificate)
    code = exit_of(certificate)
    if checked and (lacks := lacks_check(certificate)):
        show.remark(lacks)
        code = code or Exit.UNPROVEN
    raise typer.Exit(code)


def run(
    subject: Runnable,
    data: Annotated[
        str | None, option("--data", "NAME|PATH", "Data to run on; by default, the subject's own.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    output: RunFolder = Path("out"),
    float_noise: Annotated[
        bool,
        typer.Option(
            "--float-noise",
            help="Without a seed, draw noise in floating point, not from exact samplers.",
        ),
    ] = False,
    durability: LedgerSurvives = "process",
    anchor: Anchor = None,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse/--no-rehearsal", help="First test the code, on the same data."),
    ] = True,
    sealed: Annotated[
        bool,
        typer.Option("--sealed", help="Refuse the run if this machine cannot seal its code."),
    ] = False,
    witness: Witness = None,
    charging: Service = None,
) -> None:
    """Run a subject on data through a ledger; writes ledger, certificate and report.

    With --seed the run is an experiment. Without it, the noise comes from exact samplers (extra
    secure), unless --float-noise is given. If this machine can seal, the code of a SealedSubject
    runs in a process that cannot reach the data, and is not rehearsed.
    """
    from dpaudit.base import validate
    from dpaudit.base.chain import Durability
    from dpaudit.cli import show
    from dpaudit.workflow.running import run_subject

    with working(f"run {subject}", partial(kept_of, output)):
        certificate, files = run_subject(
            subject,
            settings or (),
            data,
            seed,
            output,
            float_noise=float_noise,
            durability=validate.member(Durability, durability=durability),
            anchor=anchor,
            rehearse=rehearse,
            charging=None if charging is None else charging(subject),
            witness=witness,
            sealed=sealed,
        )
    show.certificate(certificate, files=files)
    raise typer.Exit(exit_of(certificate))


def report(
    certificates: Annotated[
        list[Path], typer.Argument(metavar="CERT.json...", help="Certificates, or folders of them.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="File to write; its ending (.html, .pdf …) decides the format."
        ),
    ],
    owner: Annotated[
        Path | None,
        option(
            "--owner",
            "owner.json",
            "Add what only the owner of the data may see, with a banner that says so.",
        ),
    ] = None,
    second_opinion: Service = None,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate, or several, and render them for people or for machines."""
    from dpaudit.cli import show
    from dpaudit.reporting import render_to, renderer_for, require_shown
    from dpaudit.workflow.certifying import replaces
    from dpaudit.workflow.publishing import certificate_files
    from dpaudit.workflow.running import with_owner
    from dpaudit.workflow.verifying import load_verified

    renderer = renderer_for(output)
    if second_opinion:
        require_shown(renderer)
    replaced = replaces(output, "dpaudit")
    certificates = [file for path in certificates for file in certificate_files(path)]
    if owner is not None and len(certificates) > 1:
        raise typer.BadParameter("--owner goes with one certificate")
    with working(f"report {output.name}"):
        verified = [load_verified(path, allow_work=allow_work) for path in certificates]
        opinions = [second_opinion(each) for each in verified] if second_opinion else []
        if owner is not None:
            verified = [with_owner(verified[0], owner)]
        made = render_to(verified, output, opinions)
    show.written(made, replaced=replaced)


def card(
    file: Annotated[Path, typer.Argument(metavar="CERT.json", help="A certificate.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")] = Path(
        "README.md"
    ),
    name: Annotated[
        str | None, option("--name", "TEXT", "Name of the model; by default, the subject's.")
    ] = None,
    utility: Annotated[
        list[str] | None,
        option(
            "--utility",
            "NAME=SCORE[,SCORE]",
            "A score of the model, and of one without privacy: accuracy=0.85,0.91.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate, and write a model card of it, as Hugging Face shows it.

    The card says in words what is proved, what was attacked, and what stays open.
    """
    from dpaudit.cli import show
    from dpaudit.reporting import Utility
    from dpaudit.workflow.publishing import write_card

    scores = tuple(map(Utility.parse, utility or ()))
    with working(f"card {file.name}"):
        made = write_card(file, output, scores, name=name, replacing=force, allow_work=allow_work)
    show.written(made)


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A certificate or a ledger, or a signed file.")
    ],
    ledger: Annotated[
        Path | None, option("--ledger", "FILE", "The ledger of the certificate's run.")
    ] = None,
    anchor: Annotated[
        Path | None, option("--anchor", "FILE", "File that keeps the ledger's last hash.")
    ] = None,
    signed: Service = None,
    second_opinion: Service = None,
    checked: Checked = False,
    allow_work: AllowWork = False,
) -> None:
    """Recompute a certificate's guarantee, or check a ledger's chain, and who signed them.

    Exit code 0 says that FILE is sound, whatever the verdict in it.
    """
    from dpaudit.cli import show
    from dpaudit.workflow.verifying import verify_file

    check: Callable[..., Verification] = signed or verify_file
    with working(f"verify {file.name}"):
        found = check(
            file,
            ledger=ledger,
            anchor=anchor,
            opinion_on=second_opinion,
            allow_work=allow_work,
        )
    if checked and found.kind == "certificate" and (lacks := found.unchecked):
        found = replace(found, lacks=(*found.lacks, lacks))
    show.verification(found)
    raise typer.Exit(Exit.REFUTED if found.lacks else exit_of_opinion(found.opinion))


_SUBJECT = "SUBJECT|FILE.py:function|module:function"


def audit_options() -> dict[str, Any]:
    """Derive the options of the command, by the names of the fields that they give."""
    from dpaudit.project.audit_request import AuditRequest, Execution
    from dpaudit.project.describing import meanings

    target = typer.Argument(metavar=_SUBJECT, help=_sentence(meanings(AuditRequest)["target"]))
    found: dict[str, Any] = {"target": Annotated[str | None, target]}
    for kind in (AuditRequest, Execution):
        about, hints = meanings(kind), get_type_hints(kind)
        for each in (each for each in fields(kind) if "option" in each.metadata):
            usage, usual = each.metadata["option"], each.default
            shown = str(usual) if usual and usual is not MISSING else False
            words = _words(hints[each.name], usage)
            more = {"callback": _two} if words == tuple[str, str] else {}
            told = _sentence(about[each.name])
            found[each.name] = typed(words, usage, told, show_default=shown, **more)
    output = typer.Option("-o", "--output", help="Write the certificate with this audit (JSON).")
    return found | {"output": Annotated[Path | None, output]}


def _words(hint: Any, usage: str) -> Any:
    """The type of what is typed for a field: a flag has no words, a pair two, a table several."""
    (kind, *_) = (each for each in get_args(hint) or (hint,) if each is not NoneType)
    if " " not in usage:
        return bool
    if get_origin(hint) is Mapping:
        return list[str]
    return tuple[str, str] if usage.endswith("JSON JSON") else kind if kind in (int, float) else str


def _two(given: tuple[str, str] | None) -> tuple[str, str] | None:
    """Two data sets; the second is no option, which was taken for one where it was left out."""
    if given and given[1].startswith("--"):
        raise typer.BadParameter(
            f"after {given[0]!r:.40} there is {given[1]!r:.40}; give both data sets, X and X'"
        )
    return given


def _sentence(meaning: str) -> str:
    return meaning[:1].upper() + meaning[1:]


@derived(audit_options)
def audit(output: Path | None, **given: Any) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    from dpaudit.cli import show
    from dpaudit.project.audit_request import AuditRequest
    from dpaudit.workflow import attacking

    write = None
    if output is not None:
        from dpaudit.workflow.certifying import writer

        write = writer(output)
    request, journal = AuditRequest.of_options(given), given["journal"]
    request = replace(request, notice=partial(typer.echo, err=True))
    kept = "nothing is kept; with --journal FILE and --seed N, the same command would continue"
    if journal is not None:
        kept = f"finished runs are in {journal}; the same command continues from them"
    with working(f"audit {request.target}", kept):
        outcome = attacking.audit(request)
    if write is not None:
        show.remark(write(outcome.certificate()))
    show.audit(outcome)
    raise typer.Exit(outcome.exit_code)


def release(
    file: Annotated[Path, typer.Argument(metavar="RELEASE.toml", help="What is to be released.")],
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Print costs and expected errors; read no data."),
    ] = False,
    synthetic: Annotated[
        int | None,
        option("--synthetic", "N", "Try it on N made-up rows of the schema.", parser=whole_number),
    ] = None,
    cluster: Annotated[
        str | None,
        option("--cluster", "ADDRESS", "Process the rows on a dask cluster (tcp://…)."),
    ] = None,
    seed: Seed = None,
    output: RunFolder = Path("out"),
    durability: LedgerSurvives = "process",
    anchor: Anchor = None,
    witness: Witness = None,
    charging: Service = None,
) -> None:
    """Release declared queries over a table: CSV, Parquet, DuckDB or PostgreSQL.

    The file declares schema, privacy and queries; no code sees a row. Try --plan and --synthetic
    first: both leave the data alone.
    """
    from dpaudit.base import validate
    from dpaudit.base.chain import Durability
    from dpaudit.cli import show
    from dpaudit.workflow.releasing import planned, release_table

    if plan:
        with working(f"plan {file.name}"):
            certificate, costs = planned(file)
        show.planned(certificate, costs, file)
        raise typer.Exit(exit_of(certificate))
    with working(f"release {file.name}", partial(kept_of, output)):
        certificate, files = release_table(
            file,
            output,
            synthetic=synthetic,
            cluster=cluster,
            seed=seed,
            durability=validate.member(Durability, durability=durability),
            anchor=anchor,
            charging=None if charging is None else charging(str(file)),
            witness=witness,
        )
    show.released(certificate, files)
    if synthetic is None and charging is None:
        show.adds_up()
    raise typer.Exit(exit_of(certificate))


def list_kinds(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A mechanism, relation, sampling scheme, factorization or accountant: all its "
            "keys, and a plan that certifies.",
        ),
    ] = None,
    relations: Annotated[
        bool, typer.Option("--relations", help="What each relation means, and how to write it.")
    ] = False,
) -> None:
    """List what is installed, or describe one mechanism, relation or sampling scheme."""
    from dpaudit.cli import show
    from dpaudit.plan import Relation
    from dpaudit.project.describing import described

    if relations or name is not None:
        names = sorted(Relation.kinds()) if name is None else [name]
        show.descriptions([described(each) for each in names])
    else:
        show.inventory()


def explain(
    finding: Annotated[
        str | None,
        typer.Argument(metavar="[FINDING]", help="Its name in a report, such as float-noise."),
    ] = None,
) -> None:
    """Say why a finding is reported, and what to do about it."""
    from dpaudit.base import toml_tables
    from dpaudit.base.errors import InputError
    from dpaudit.base.finding_table import known_findings
    from dpaudit.base.validate import shown
    from dpaudit.cli import show
    from dpaudit.project.targets import own_packages
    from dpaudit.reporting.wording.words import RULES

    known = known_findings(*own_packages())
    if finding in RULES:
        show.print_result(f"{finding} is a rule of SARIF, not a finding: {RULES[finding]['help']}")
        return
    if finding is not None:
        finding = finding.removeprefix("finding/")  # as SARIF has it
        rules = {each.rule for each in known}
        if finding not in rules:
            hint = toml_tables.nearest(finding, rules)
            if near := sorted(rule for rule in rules if finding.lower() in rule)[:5]:
                hint = f"did you mean {' or '.join(map(repr, near))}?"
            elif not hint.startswith("did"):
                hint = "no finding has this name; dpaudit explain lists all that there are."
            raise InputError(f"finding is {shown(finding)}; {hint}")
        known = tuple(each for each in known if each.rule == finding)
    show.findings(known, in_full=finding is not None)


def checker(
    file: Annotated[Path, typer.Argument(metavar="[FILE.py]", help="Where it is written.")] = Path(
        "checker.py"
    ),
) -> None:
    """Write the independent checker: one file of Python that needs nothing but Python.

    python3 checker.py certificate.json proves a certificate's ε again where nothing is installed.
    """
    from importlib import resources

    from dpaudit.base import files
    from dpaudit.cli import show
    from dpaudit.workflow.certifying import replaces

    text = resources.files("dpaudit").joinpath("checker.py").read_text("utf-8")
    replaced = replaces(file, text.partition("\n")[0])
    show.written(files.write(file, text), replaced=replaced)


def calibrate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM|PLAN.toml", help="A mechanism, such as gaussian, or a plan file."
        ),
    ],
    claim: Stated = None,
    settings: Annotated[
        list[str] | None,
        option("--set", "KEY=VALUE", "A key of the invocation or of the plan, such as count=100."),
    ] = None,
    at: Annotated[str, option("--at", "LABEL", "Change the noise of this invocation only.")] = "",
    accuracy: Annotated[
        float | None,
        option(
            "--accuracy",
            "T",
            "Find the most noise that stays within T, instead of the least for a claim.",
            parser=number,
        ),
    ] = None,
    confidence: Annotated[
        float,
        option(
            "--confidence",
            "P",
            "The probability with which the noise stays within T.",
            parser=number,
        ),
    ] = 0.95,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the calibrated plan (TOML).")
    ] = None,
) -> None:
    """Find the least noise that certifies a claim, or the most noise that is accurate enough."""
    from dpaudit.cli import show
    from dpaudit.workflow.calibrating import calibrate_target
    from dpaudit.workflow.certifying import replaces

    replaced = output is not None and replaces(output, "[plan]")
    with working(f"calibrate {target}"):
        found = calibrate_target(target, settings or (), claim, at, accuracy, confidence)
    if output is not None:
        found.save(output)
    show.calibrated(found, output, replaced=replaced)


def check(
    project: Annotated[
        Path, typer.Argument(metavar="[dpaudit.toml]", help="The project file, or its folder.")
    ] = Path("dpaudit.toml"),
    since: Annotated[
        Path | None,
        option(
            "--since",
            "CERT",
            "Compare with an earlier certificate, or a folder of them; if something is "
            "worse, exit with 1 and keep the earlier ones.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder of the reports, in place of the project file's."
        ),
    ] = None,
    budgets: Service = None,
) -> None:
    """Certify, attack and report every subject of a project, and sum its budgets."""
    from dpaudit.cli import show
    from dpaudit.workflow.checking import check_project

    kept = (
        "reports are written once all work is done: the earlier ones stay, and the same command "
        "starts again"
    )
    with working("check", kept):
        outcome, files = check_project(project, since=since, reports=output, others=budgets)
    show.checked(outcome, files)
    raise typer.Exit(exit_of_project(outcome))


def exit_of_project(outcome: ProjectOutcome) -> Exit:
    """The worst row makes the exit code; less privacy than before is never better than 1."""
    from dpaudit.workflow.outcomes import Status

    code = {
        Status.CERTIFIED: Exit.CERTIFIED,
        Status.UNPROVEN: Exit.UNPROVEN,
        Status.EXCEEDED: Exit.REFUTED,
        Status.REFUTED: Exit.REFUTED,
        Status.ERROR: Exit.INPUT,
    }[outcome.status]
    return Exit.REFUTED if outcome.is_worse and code is not Exit.INPUT else code


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Folder to make, such as my-study.")],
    survey: Annotated[
        bool, typer.Option("--survey", help="An algorithm in Python, with attacks: a survey.")
    ] = False,
    counts: Annotated[
        bool, typer.Option("--counts", help="Counts and sums, by code that runs sealed.")
    ] = False,
    library: Annotated[
        bool, typer.Option("--library", help="Code that calls diffprivlib, certified as it is.")
    ] = False,
    training: Annotated[bool, typer.Option("--training", help="A private training.")] = False,
) -> None:
    """Start a project: a release of a table (or code), a project file, a test, CI."""
    from dpaudit.cli import show
    from dpaudit.project.scaffold.scaffolding import Kind, scaffold

    wanted = {
        Kind.SURVEY: survey,
        Kind.COUNTS: counts,
        Kind.LIBRARY: library,
        Kind.TRAINING: training,
    }
    kinds = [kind for kind, given in wanted.items() if given]
    if len(kinds) > 1:
        raise typer.BadParameter(f"--{kinds[0]} and --{kinds[1]} are both given; keep one")
    show.scaffolded(name, scaffold(name, *kinds))


def demo(
    output: RunFolder = Path("out/demo"),
    seed: Annotated[int, option("--seed", "N", "Seed of the experiment.", parser=whole_number)] = 1,
) -> None:
    """Certify, run, audit and report one algorithm on real house prices."""
    from dpaudit.cli import show
    from dpaudit.workflow.demo import run_demo

    kept = f"the same command replaces what is in {output}"
    with working("demo", kept):
        certificate, files = run_demo(output, seed)
    show.certificate(certificate, files=files)
    raise typer.Exit(exit_of(certificate))


def replay(
    subject: Runnable,
    data: Annotated[
        str | None, option("--data", "NAME|PATH", "Data to run on; by default, the subject's own.")
    ] = None,
    settings: Settings = None,
    seed: Annotated[int, option("--seed", "N", "Seed of the rehearsal.", min=0)] = 0,
    neighbour: Annotated[
        str, option("--neighbour", "TEXT", "Name of one neighbour; by default, all of them.")
    ] = "",
) -> None:
    """Compare runs on neighbouring data, release by release. Prints private values.

    Both runs get the same releases, so every difference comes from the data.
    """
    from dpaudit.cli import show
    from dpaudit.workflow.rehearsing import replay_subject

    with working(f"replay {subject}"):
        found = list(
            replay_subject(subject, settings or (), data=data, seed=seed, neighbour=neighbour)
        )
    if neighbour:
        show.one_neighbour(found[0])
    else:
        show.neighbours(found)
    raise typer.Exit(Exit.CERTIFIED if all(each.report.clean for each in found) else Exit.REFUTED)
