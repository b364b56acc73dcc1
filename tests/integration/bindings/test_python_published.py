# SPDX-License-Identifier: Apache-2.0
"""The tests of the middleware for Python once more, with the frameworks as PyPI has them now: Flask, FastAPI,
Starlette, Django and Django REST framework. Wheels only, so that installing runs no code of theirs."""

import subprocess
import sys
from pathlib import Path

import pytest

from daemon.waiting import SECONDS_MAX
from python_package import environment, needs_package

pytestmark = needs_package

HERE = Path(__file__).parent
PACKAGES = ("flask", "fastapi", "starlette", "httpx", "django", "djangorestframework", "asgiref")
TESTS = ("test_python_options.py", "test_python_middleware.py", "test_python_outcomes.py", "test_python_starlette.py",
         "test_python_docs.py")


@pytest.fixture(scope="module", name="published")
def fixture_published(tmp_path_factory):
    """The folder that has them."""
    folder = tmp_path_factory.mktemp("published")
    try:
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--only-binary", ":all:", "--no-cache-dir",
                               "--target", folder, *PACKAGES], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=400)
        failed = done.returncode and (done.stderr.strip().splitlines() or ["no word"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        failed = str(error)
    if failed:
        pytest.skip(f"no packages of PyPI to be had: {failed}")
    return folder


@pytest.mark.parametrize("tests", TESTS)
def test_the_middleware_with_published_frameworks(published, tmp_path, tests):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "tests",
                           HERE / tests], capture_output=True, text=True, check=False, timeout=5 * SECONDS_MAX,
                          cwd=HERE, env=environment(PYTHONPATH=str(published)))
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr
