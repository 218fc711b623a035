# nginx with tollbar's modules: docker build -f packaging/docker/nginx.Dockerfile --build-arg NGINX=1.28.0 -t nginx-tollbar .
#
# The official image of that version, with modules built against its sources: a module loads into the nginx only for which it was built.
ARG NGINX=1.28.0

FROM nginx:${NGINX} AS builder
RUN apt-get update && apt-get install -y --no-install-recommends build-essential ca-certificates curl libpcre2-dev libssl-dev zlib1g-dev \
    && curl -fsSL https://sh.rustup.rs | sh -s -- -y --profile minimal
RUN curl -fsSL "https://nginx.org/download/nginx-${NGINX_VERSION}.tar.gz" | tar -xz -C /tmp
COPY . /tollbar
WORKDIR /tollbar
RUN make nginx NGINX_SRC="/tmp/nginx-${NGINX_VERSION}"

FROM nginx:${NGINX}
COPY --from=builder /tollbar/build/nginx/*.so /etc/nginx/modules/
# The drop-in takes limit_req's directives as soon as it is loaded: delete its line to keep nginx's own.
RUN sed -i '1i load_module modules/ngx_http_tollbar_module.so;\nload_module modules/ngx_http_tollbar_limit_req_module.so;\nload_module modules/ngx_stream_tollbar_module.so;' /etc/nginx/nginx.conf \
    && nginx -t
