"""The counting of ngx_tollbar_conn.h without nginx: every order of events, and workers that are killed."""

import os
import subprocess

import pytest

from harness import places

HERE = places.ROOT / "nginx" / "tests" / "conn"
COMMON = places.ROOT / "nginx" / "common"
# In the short form; the long one is a matter of minutes.
KILLS = os.environ.get("TOLLBAR_CONN_KILLS", "200")


def build(tmp_path, name, *flags):
    program = tmp_path / name
    sources = [HERE / f"{name}.c", COMMON / "ngx_tollbar_conn_hash.c", COMMON / "ngx_tollbar_conn_process.c"]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu99", "-Wall", "-Wextra", "-O2", "-g", *flags, "-o", program, *sources,
                    "-lpthread"], check=True)
    return program


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


def test_every_order_of_steps(tmp_path):
    assert "orders" in run(build(tmp_path, "schedules"), *(["all"] if "TOLLBAR_CONN_KILLS" in os.environ else []))


@pytest.mark.parametrize("workers", ["2", "5"])
def test_killed_processes(tmp_path, workers):
    assert "0 above the limit" in run(build(tmp_path, "stress"), "processes", workers, KILLS)


def test_threads_under_a_sanitizer(tmp_path):
    program = build(tmp_path, "stress", "-fsanitize=thread", "-Wno-clobbered")
    # The sanitizer wants its addresses where they are without randomization.
    assert "0 above the limit" in run("setarch", "-R", program, "threads", "3", KILLS)


def test_who_is_gone(tmp_path):
    assert run(build(tmp_path, "lives")) == ""


# From the paper that describes SipHash: the key is 0 to 15, the message 0 to n - 1.
VECTORS = {0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5}

HASH = """
#include <stdio.h>
#include "ngx_tollbar_conn.h"
int main(void) {
    static const uint64_t seed[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    unsigned char message[16];
    size_t n;
    for (n = 0; n < 16; n++) {
        printf("%016llx\\n", (unsigned long long) ngx_tollbar_conn_siphash(seed, message, n));
        message[n] = (unsigned char) n;
    }
    return 0;
}
"""


def test_the_hash_is_siphash(tmp_path):
    (tmp_path / "hash.c").write_text(HASH)
    subprocess.run([os.environ.get("CC", "cc"), f"-I{COMMON}", "-o", tmp_path / "hash", tmp_path / "hash.c",
                    COMMON / "ngx_tollbar_conn_hash.c"], check=True)
    found = [int(line, 16) for line in run(tmp_path / "hash").split()]
    assert {n: found[n] for n in VECTORS} == VECTORS
