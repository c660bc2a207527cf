FROM python:3.13-slim AS build
WORKDIR /src
# Every package is pinned by its hash: what `make lock` chose, and nothing else.
COPY container container
RUN python -m venv /opt/ttsr-proxy \
    && /opt/ttsr-proxy/bin/pip install --no-cache-dir --require-hashes -r container/requirements.txt \
    && pip install --no-cache-dir --require-hashes -r container/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY ttsr_proxy ttsr_proxy
COPY rules rules
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/ttsr-proxy/bin/pip install --no-cache-dir --no-deps /wheel/*.whl

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home --home-dir /home/ttsr ttsr \
    && install --directory --owner=ttsr --group=ttsr /rules /state /project
COPY --from=build /opt/ttsr-proxy /opt/ttsr-proxy
ENV PATH=/opt/ttsr-proxy/bin:$PATH PYTHONUNBUFFERED=1
USER ttsr
WORKDIR /project
VOLUME ["/rules", "/state"]
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/healthz', timeout=2)"]
CMD ["ttsr-proxy", "serve", "--host", "0.0.0.0", "--rules", "/rules", "--state", "/state/state.db"]
