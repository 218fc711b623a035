"""nginx with a rules file, and the library that reads it."""

import importlib.util
import os
import sys

from . import places
from .tollbar import Tollbar

SITE = places.ROOT / "examples" / "rules" / "site.toml"
LIBRARY = places.ROOT / "build" / "libtollbar-rules.so"

# The module and the Python binding load the library that this variable names.
os.environ.setdefault("TOLLBAR_RULES_LIBRARY", str(LIBRARY))


class Ruled(Tollbar):
    """An nginx whose access log has $tollbar_rules_status. It has its rules in a file that the test
    may change."""

    def write(self, **parts):
        super().write(**parts)
        path = self.home / "nginx.conf"
        path.write_text(path.read_text().replace("$tollbar_status", "$tollbar_rules_status"))

    def rules(self, text):
        (self.home / "rules.toml").write_text("version = 1\n" + text)


def binding():
    """The Python binding's module of rules, which needs no extension."""
    path = places.ROOT / "bindings" / "python" / "src" / "tollbar" / "rules.py"
    spec = importlib.util.spec_from_file_location("tollbar_rules_binding", path)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
