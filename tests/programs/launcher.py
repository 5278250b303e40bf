"""``engine.distributed.run`` without what ``import engine`` brings: it needs none of that, and ranks import it anew."""

import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for name in ("engine", "engine.distributed"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(ROOT.joinpath(*name.split(".")))]

if __name__ == "__main__":
    from engine.distributed import run

    sys.exit(run.main())
