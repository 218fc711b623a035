# What `make packages` needs, in one image: docker build -f packaging/docker/builder.Dockerfile -t tollbar-builder . ; then, in a checkout,
# docker run --rm --privileged -v "$PWD:/tollbar" tollbar-builder make packages packages-test
FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends build-essential ca-certificates curl git golang-go \
    && curl -fsSL https://sh.rustup.rs | CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup sh -s -- -y --profile minimal --no-modify-path
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
COPY tools /tollbar/tools
COPY Cargo.toml /tollbar/
# Everything that the parts of `make packages` would install when they run.
RUN cd /tollbar && for part in lib debian roots rpm python musl-aarch64 cross-aarch64 recipes; do tools/setup.sh "$part" || exit 1; done
WORKDIR /tollbar
RUN git config --global --add safe.directory /tollbar
