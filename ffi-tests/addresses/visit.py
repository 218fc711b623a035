"""The same program as visit.c, in Python."""

import sys

import tollbar

with tollbar.Table.open(sys.argv[1], "1/day", 10_000) as table:
    for address in sys.argv[2:]:
        try:
            key = tollbar.address_key(address)
        except ValueError:
            print("no address")
        else:
            print("passes" if table.allow(key) else "refused")
