"""Files that a zone cannot use. Each message has the file, the line of the directive, what was
found and what is expected, and leaves the file as it is."""

import grp
import os
import pwd
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import config, faces, places
from harness.client import count
from harness.config import CONTENT
from harness.server import check
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

LIMIT = 'policy="6/day"'
USER = os.geteuid()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run"


def http(path, more="capacity=1000", limit=LIMIT):
    return f"\ntollbar_zone $arg_k zone=z file={path} {limit} {more}; # here\n"


def trial(home, path, more="capacity=1000", limit=LIMIT):
    """`nginx -t`: its exit code, its complaints, and where the directive stands."""
    text = config.text(
        modules=[MODULE],
        ports=[8080],
        http=http(path, more, limit),
        server=f"location / {{ tollbar zone=z; {CONTENT} }}",
    )
    line = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# here")][0]
    code, said = check(home, text.replace("error.log", "stderr"))
    return (
        code,
        {line for line in said.splitlines() if "[emerg]" in line},
        f"in {home}/nginx.conf:{line}",
    )


def refused(home, path, expected, more="capacity=1000", limit=LIMIT):
    """nginx -t refuses the file with this message."""
    before = faces.without_times(path) if path.is_file() else None
    code, complaints, where = trial(home, path, more, limit)
    assert code == 1 and len(complaints) == 1, complaints
    said = complaints.pop()
    assert re.fullmatch(
        rf"(nginx: )?\[emerg\] {expected} {re.escape(where)}( \(\d+: .*\))?", said
    ), said
    assert before is None or faces.without_times(path) == before
    return said


def made(path, policies="6/day", capacity=1000, **options):
    with faces.tollbar().Table.open(path, policies, capacity, **options) as table:
        return table.now()


def test_a_missing_file(tmp_path, place):
    path = place / "table"
    refused(
        tmp_path,
        path,
        f'zone "z" has no file "{path}", which another program must make first, unless "capacity" '
        f"says for how many keys nginx makes it",
        more="",
    )
    assert not path.exists()
    said = refused(
        tmp_path,
        place / "none" / "table",
        f'zone "z" has its file in "{place}/none/", which must be a directory',
    )
    assert said.endswith("(2: No such file or directory)")


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n" * 9999])
@pytest.mark.parametrize("more", ["", "capacity=1000"])
def test_a_file_that_is_no_table(tmp_path, place, content, more):
    path = place / "table"
    path.write_bytes(content)
    refused(
        tmp_path,
        path,
        rf'zone "z" cannot use "{path}": not a tollbar table, it must be a table of this version '
        rf"of tollbar",
        more=more,
    )


def test_a_table_that_is_cut_or_damaged(tmp_path, place):
    path = place / "table"
    made(path)
    whole = path.read_bytes()
    expected = rf'zone "z" cannot use "{path}": .+, it must be a table of this version of tollbar'
    for content in (
        whole[:-4096],
        whole[:100],
        whole + bytes(8),
        whole[:24] + bytes(8) + whole[32:],
    ):
        path.write_bytes(content)
        refused(tmp_path, path, expected)
        refused(tmp_path, path, expected, more="")
    path.write_bytes(whole)
    assert trial(tmp_path, path)[0] == 0


def test_a_name_that_is_no_file(tmp_path, place):
    (place / "directory").mkdir()
    made(place / "table")
    (place / "link").symlink_to("table")
    (place / "dangling").symlink_to("nothing")
    for name in ("directory", "link", "dangling"):
        refused(
            tmp_path,
            place / name,
            rf'zone "z" cannot use "{place}/{name}": not a tollbar table, it must be .+',
        )
    said = refused(
        tmp_path,
        place / "table" / "below",
        rf'zone "z" cannot open "{place}/table/below": .+, nginx must be able to read and write it '
        rf"as user {USER}",
    )
    assert said.endswith("(20: Not a directory)")


def test_a_table_of_another_size_or_kind(tmp_path, place):
    path = place / "table"
    made(path)
    refused(
        tmp_path,
        path,
        f'zone "z" found a table for 1000 keys in "{path}", and has capacity=999, the numbers must '
        f"be equal",
        more="capacity=999",
    )
    kind = (
        f'zone "z" found a table with other options in "{path}", it must be one of on_full {{}}, '
        f"missing_key deny, clock {{}}, 1024 overrides and room 0, "
        'or "capacity" must be left out'
    )
    refused(tmp_path, path, kind.format("deny", "tsc"), more="capacity=1000 on_full=deny")
    refused(tmp_path, path, kind.format("evict-nearest", "wall"), limit='policy="6/month"')
    for number, options in enumerate(
        [{"on_full": "inherit"}, {"missing": "allow"}, {"clock": "wall"}, {"overrides": 5}]
    ):
        path = place / f"table{number}"
        made(path, **options)
        refused(
            tmp_path,
            path,
            kind.format("evict-nearest", "tsc").replace(str(place / "table"), str(path)),
        )
        assert trial(tmp_path, path, more="")[0] == 0


def test_a_table_with_other_policies_refuses_a_start(tmp_path, place):
    path = place / "table"
    made(path, ["6/day", "9/h"])
    for more in ("", "capacity=1000"):
        nginx = Tollbar(
            tmp_path / f"nginx{more}",
            modules=[MODULE],
            http=http(path, more, 'policy="8/day"'),
            server=f"location / {{ tollbar zone=z; {CONTENT} }}",
        )
        with pytest.raises(AssertionError) as error:
            nginx.start()
        wanted = (
            rf'zone "z" has the policy "8/day", and the table in "{path}" has "6/day", "9/h", one '
            rf"must be equal; "
            r'a reload or the command "tollbar table set-policy" changes a table\'s policy in '
            r"\S+/nginx.conf:\d+\n"
        )
        assert re.search(wanted, str(error.value)), error.value
    assert [
        faces.tollbar().Table.open(path, ["6/day", "9/h"], 1000).allow("a", policy=n)
        for n in (0, 1)
    ] == [True, True]


def test_a_log_cannot_change(launch, place):
    path = place / "table"
    log = 'policy="6/day algo sliding-log"'
    nginx = launch(http=http(path, limit=log), server=f"location / {{ tollbar zone=z; {CONTENT} }}")
    nginx.expected.append("cannot change the policy")
    assert count(nginx.volley("/?k=a", 4)) == 4
    for limit in ('policy="8/day algo sliding-log"', 'policy="8/day"'):
        assert not nginx.reload(http=http(path, limit=limit))
    said = [
        message for level, message in nginx.said("cannot change the policy") if level == "emerg"
    ]
    assert len(said) == 2 and all(
        f'of the table in "{path}", which was made with room 0: ' in one
        and ", so the zone must have another file in " in one
        for one in said
    ), said
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_a_file_that_others_may_write(tmp_path, place):
    path = place / "table"
    made(path)
    for mode, lets in (("0660", "0660"), ("0606", "0666")):
        path.chmod(int(mode, 8))
        for more in ("capacity=1000", ""):
            refused(
                tmp_path,
                path,
                rf'zone "z" cannot trust "{path}": user {USER} owns the file, of mode {mode}, and '
                rf"user {USER} its directory, of mode 0700; .+",
                more=more,
            )
            assert trial(tmp_path, path, more=f"{more} mode={lets}")[0] == 0
    path.chmod(0o600)
    place.chmod(0o777)
    refused(tmp_path, path, rf'zone "z" cannot trust "{path}": .+ its directory, of mode 0777; .+')
    place.chmod(0o700)


# Only root can give a file away, and become another user.
STRANGER = 12345
if USER == 0:

    def test_a_file_of_another_user(tmp_path, place):
        path = place / "table"
        made(path)

        def untrusted(owner, mode, holder, directory):
            return (
                rf'zone "z" cannot trust "{path}": user {owner} owns the file, of mode {mode}, and '
                rf"user {holder} its directory, of mode {directory}; "
                "both must belong to user 0 or root, other users must not write the file unless "
                '"mode" lets them, nor replace it; or the zone must have trust_anyone'
            )

        for more in ("capacity=1000", ""):
            os.chown(path, STRANGER, STRANGER)
            refused(tmp_path, path, untrusted(STRANGER, "0600", 0, "0700"), more=more)
            os.chown(place, STRANGER, STRANGER)
            refused(tmp_path, path, untrusted(STRANGER, "0600", STRANGER, "0700"), more=more)
            assert trial(tmp_path, path, more=f"{more} trust_anyone")[0] == 0
            os.chown(path, 0, 0)
            os.chown(place, 0, 0)

    def test_a_file_that_nginx_may_not_read():
        """nginx as another user than the file's, below a directory that both may read."""
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            unreadable(Path(directory))

    def unreadable(place):
        made(place / "table")
        home = place / "home"
        text = config.text(
            modules=[MODULE],
            ports=[8080],
            http=http(place / "table"),
            server=f"location / {{ tollbar zone=z; {CONTENT} }}",
        )
        check(home, text)
        for one in (home, *home.iterdir()):
            os.chown(one, STRANGER, STRANGER)
        done = subprocess.run(
            [places.program("nginx"), "-t", "-p", str(home), "-c", "nginx.conf", "-e", "stderr"],
            user=STRANGER,
            group=STRANGER,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = done.stdout.decode()
        assert done.returncode == 1 and re.search(
            rf'zone "z" cannot open "{place}/table": .+, nginx must be able to read and write it '
            rf"as user {STRANGER} in \S+ \(13: Permission denied\)",
            said,
        ), said

    def test_nginx_and_a_program_of_another_user_share_a_file(launch):
        """The directory belongs to root and to their group, and the file gets the group from it."""
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, 0, STRANGER)
            os.chmod(directory, 0o2771)
            path = Path(directory) / "table"
            nginx = launch(
                http=http(path, "capacity=1000 mode=0660"),
                server=f"location / {{ tollbar zone=z; {CONTENT} }}",
            )
            assert count(nginx.volley("/?k=a", 4)) == 4
            assert (path.stat().st_uid, path.stat().st_gid) == (0, STRANGER)
            assert (
                allowed_to_a_stranger(path, mode=0o660) == 2
                and count(nginx.volley("/?k=a", 9)) == 0
            )
            # The other user makes the file.
            path.unlink()
            assert allowed_to_a_stranger(path, mode=0o660) == 6
            nginx.expected.append("cannot trust")
            assert not nginx.reload()
            assert (
                nginx.reload(http=http(path, "capacity=1000 mode=0660 trust_anyone"))
                and count(nginx.volley("/?k=a", 9)) == 0
            )

    def allowed_to_a_stranger(path, **options):
        """How many of nine requests a process of the other user admits."""
        module = faces.tollbar()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(STRANGER)
                os.setuid(STRANGER)
                with module.Table.open(path, "6/day", 1000, **options) as table:
                    os._exit(sum(table.allow("a") for _ in range(9)))
            finally:
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    class Strangers(Tollbar):
        """An nginx whose workers are another user, as a system's are."""

        def write(self, **parts):
            super().write(**parts)
            path, group = self.home / "nginx.conf", grp.getgrgid(pwd.getpwnam("nobody").pw_gid)
            path.write_text(path.read_text().replace("user root;", f"user nobody {group.gr_name};"))

    def test_workers_of_another_user_use_the_table_that_the_master_has_opened(tmp_path, place):
        path = place / "table"
        server = f"""location / {{ tollbar zone=z; {CONTENT} }}
            location /json {{ tollbar_status_page json; }}
            location /metrics {{ tollbar_status_page prometheus; }}"""
        nginx = Strangers(
            tmp_path / "nginx", modules=[MODULE], workers=2, http=http(path), server=server
        )
        try:
            nginx.start()
            nobody = f"Uid:\t{pwd.getpwnam('nobody').pw_uid}\t"
            assert all(nobody in Path(f"/proc/{pid}/status").read_text() for pid in nginx.workers())
            assert count(nginx.volley("/?k=a", 4)) == 4
            nginx.kill_worker()
            assert nginx.reload(http=http(path, limit='policy="24/day"'))
            assert count(nginx.volley("/?k=a", 9)) == 2
            assert '"allowed":6,"denied":7,' in nginx.get("/json").body.decode()
            assert 'verdict="denied"} 7' in nginx.get("/metrics").body.decode()
        finally:
            nginx.stop()
        nginx.check_log()
