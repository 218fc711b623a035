#!/bin/sh
# python.sh [plain]: from the wheel to the first refusal, in FastAPI under gunicorn with eight
# workers, which admit exactly what the limit says; `plain` leaves the server out.
set -eu
. /tests/clock.sh
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --only-binary :all: --no-index --find-links /packages/python tollbar
/tmp/venv/bin/python - <<'EOF'
import tollbar
limiter = tollbar.Limiter("3/day")
assert [limiter.allow() for _ in range(5)] == [True] * 3 + [False] * 2
EOF
refused
if [ "${1:-}" != plain ]; then
    /tmp/venv/bin/pip install --quiet --only-binary :all: fastapi gunicorn uvicorn
    mkdir /tmp/app
    cp /tests/app.py /tests/ask.py /tmp/app
    python3 /tests/alone.py /tmp/venv/bin/python /tmp/app/ask.py
    refused
fi
report "from the wheel to the first refusal"
