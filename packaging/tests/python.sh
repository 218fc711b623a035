#!/bin/sh
# python.sh [plain]: from the wheel to the first refusal, in FastAPI under gunicorn with eight
# workers, which admit exactly what the limit says; `plain` leaves the server out.
set -eu
. /tests/clock.sh
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --only-binary :all: --no-index --find-links /packages/python 'tollbar[command]'
/tmp/venv/bin/python - <<'EOF'
import tollbar
limiter = tollbar.Limiter("3/day")
assert [limiter.allow() for _ in range(5)] == [True] * 3 + [False] * 2
EOF
refused
# Rules in a file, by the library in the wheel and by the command.
printf 'version = 1\n[group.a]\nlimit = "1/day"\n' >/tmp/limits.toml
/tmp/venv/bin/python - <<'EOF'
from tollbar import rules
limits = rules.Rules("/tmp/limits.toml")
assert [limits.check({":address": "192.0.2.1"}).allowed for _ in range(2)] == [True, False]
EOF
/tmp/venv/bin/tollbar rules check /tmp/limits.toml
[ -s /tmp/venv/share/man/man1/tollbar.1 ]
if [ "${1:-}" != plain ]; then
    /tmp/venv/bin/pip install --quiet --only-binary :all: fastapi gunicorn uvicorn
    mkdir /tmp/app
    cp /tests/app.py /tests/ask.py /tmp/app
    python3 /tests/alone.py /tmp/venv/bin/python /tmp/app/ask.py
    refused
fi
report "from the wheel to the first refusal"
