"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

python tools/oldest.py > oldest.txt
"""

import re
from pathlib import Path

text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
block = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
if block is None:
    raise SystemExit("pyproject.toml has no list of dependencies")
for name, version in re.findall(r'"([\w-]+)>=([\d.]+)"', block[1]):
    # the first release of a series may have been withdrawn: any of its patches will do
    print(f"{name}=={version}{'.*' if version.count('.') == 1 else ''}")
