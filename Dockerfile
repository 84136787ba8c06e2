# The service in an image: nothing runs as root, and only BURSAR_HOME is written to, so the root
# file system may be mounted read-only (with a /tmp in memory).

FROM python:3.11-slim AS build
WORKDIR /opt/bursar/source
COPY requirements.lock ./
RUN python -m venv /opt/bursar/venv \
    && sed '/^# --- development ---$/,$d' requirements.lock > runtime.lock \
    && /opt/bursar/venv/bin/pip install --no-cache-dir --require-hashes --requirement runtime.lock
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY migrations migrations
COPY app app
RUN /opt/bursar/venv/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation .

FROM python:3.11-slim
COPY --from=build /opt/bursar/venv /opt/bursar/venv
RUN install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/bursar
ENV PATH=/opt/bursar/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    BURSAR_HOME=/var/lib/bursar \
    BURSAR_HOST=0.0.0.0 \
    BURSAR_PORT=8000
WORKDIR /var/lib/bursar
VOLUME ["/var/lib/bursar"]
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-c", \
  "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ['BURSAR_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
CMD ["bursard", "serve"]
