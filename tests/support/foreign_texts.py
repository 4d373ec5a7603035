"""Certificates whose texts come from anybody."""

from __future__ import annotations

from hypothesis import strategies as st

from dpaudit import Finding, Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, Severity, Verdict
from dpaudit.accounting import AccountantName, Guarantee
from dpaudit.certificate import Certificate, SubjectRecord
from dpaudit.plan import TrustModel

NASTY = (
    "\x00\x01\x08\x0b\x0c\x0e\x1f\x7f\x85",  # control characters
    "\ufffe\uffff\U0001fffe",  # no characters
    "\u202e\u2066\ufeff\u2028",  # invisible ones
    "a\r\nb\tc\n\nd",
    "]]> <!-- --> <?xml?> &amp; <![CDATA[ %SRCROOT% {0} {{ [a](http://b) \\",
    "../../../etc/passwd.txt:3",
    "//host/share.py:7",
    "javascript:alert(1).py:2",
    "C:\\Windows\\a.py:9",
    "# a\n- b: *c\n---\n...\n!!python/object:os.system [x]",
    "大安區 調查 – Žižkov 🙂 סקר",
    "x" * 300,
)
"""Texts that mean something to XML, YAML, Markdown, SARIF, a path or a terminal."""

texts = st.one_of(st.sampled_from(NASTY), st.text(min_size=1, max_size=30))
"""Any text that can stand in a JSON file."""


@st.composite
def certificates(draw):
    """A small certificate with foreign text in every field that may hold one."""
    step = Invocation(
        Laplace(1.0), 1.0, PrivacyUnit("user"), ReplaceOne(), TrustModel.CENTRAL, at=draw(texts)
    )
    findings = (
        Finding(f"f-{draw(texts)}", severity, draw(texts), draw(texts), draw(texts))
        for severity in draw(st.lists(st.sampled_from(Severity), max_size=2))
    )
    return Certificate(
        SubjectRecord(draw(texts), {draw(texts): draw(texts)}, None, draw(texts)),
        None,
        Verdict.CERTIFIED,
        Plan.of(step),
        Guarantee(1.0, 0.0, AccountantName.PURE, None),
        findings=tuple(findings),
        not_covered=tuple(draw(st.lists(texts, max_size=2))),
        versions={draw(texts): draw(texts)},
    )
