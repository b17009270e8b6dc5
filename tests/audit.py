"""``make audit``: known vulnerabilities of the locked packages, and how many of them could be checked at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.txt"


def main() -> int:
    """Exit code 1 if a package has a known vulnerability; 0 also where nothing could be checked, which is said."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--disable-pip", "--require-hashes"]
    ran = subprocess.run(
        [*command, "--requirement", str(LOCK), "--format", "json"], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"nothing was checked: pip-audit cannot reach its data ({reason[:200]})")
        return 0
    checked = [package for package in packages if "skip_reason" not in package]
    vulnerable = [package for package in checked if package["vulns"]]
    for package in vulnerable:
        ids = ", ".join(found["id"] for found in package["vulns"])
        print(f"{package['name']} {package['version']}: {ids}")
    print(f"{len(checked)} of {len(packages)} packages checked, {len(vulnerable)} with known vulnerabilities")
    if len(checked) < len(packages):
        print("of the others pip-audit found no data: is pypi.org reachable?")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
