"""What the tests of the nginx modules stand on: a real nginx in a directory of its own, and clients
for it."""
