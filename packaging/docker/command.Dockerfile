# The command in an image of its own: make static, then
# docker build -f packaging/docker/command.Dockerfile --build-arg ARCHITECTURE=x86_64 -t tollbar . ; then, in the directory of a rules file or a log,
# docker run --rm -v "$PWD:/work" tollbar rules check limits.toml
ARG ARCHITECTURE=x86_64

# Policies with a time zone read the zone's rules.
FROM debian:bookworm AS zones
RUN apt-get update && apt-get install -y --no-install-recommends tzdata

FROM scratch
ARG ARCHITECTURE
COPY --from=zones /usr/share/zoneinfo /usr/share/zoneinfo
COPY build/static/${ARCHITECTURE}/tollbar /bin/tollbar
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["/bin/tollbar"]
