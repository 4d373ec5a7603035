#!/usr/bin/env bash
# The tests that compute, and two reports, as on other processors; what this one lacks is left out, and said.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
computing="tests/audits/test_paper_rows.py tests/audits/test_paper_records.py tests/private_bo/own/test_local.py tests/dpaudit/accounting"
dispatched=$("$PYTHON" -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as names
print(*names)')
cores="Haswell"
if grep -qs avx512f /proc/cpuinfo; then cores="Haswell SkylakeX"; else echo "not run: SkylakeX"; fi
for core in $cores Nehalem; do
  disabled=
  if [ "$core" = Nehalem ]; then disabled=$dispatched; fi
  echo "as on $core, numpy without: ${disabled:-nothing}"
  export OPENBLAS_CORETYPE=$core NPY_DISABLE_CPU_FEATURES=$disabled
  "$PYTHON" -m pytest -n auto $computing
  "$PYTHON" -m audits.papers --compare curator dp-fts-de
done
