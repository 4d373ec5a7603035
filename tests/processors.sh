#!/usr/bin/env bash
# The tests that compute, and two reports, as on other processors: those that are named, or all three. SkylakeX is left
# out, and said, where this processor lacks it; Nehalem is also numpy without its dispatch.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
computing="tests/audits/test_paper_rows.py tests/private_bo/own/test_answers.py tests/dpaudit/accounting"
dispatched=$("$PYTHON" -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as names
print(*names)')
for core in ${*:-Haswell SkylakeX Nehalem}; do
  disabled=
  if [ "$core" = Nehalem ]; then disabled=$dispatched; fi
  if [ "$core" = SkylakeX ] && ! grep -qs avx512f /proc/cpuinfo; then
    echo "not run: SkylakeX"
    continue
  fi
  echo "as on $core, numpy without: ${disabled:-nothing}"
  export OPENBLAS_CORETYPE=$core NPY_DISABLE_CPU_FEATURES=$disabled
  "$PYTHON" -m pytest -n auto -m 'not pages' $computing
  "$PYTHON" -m audits.papers --compare curator dp-fts-de
done
