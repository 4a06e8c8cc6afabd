# A service that answers from a box, without torch: about 600 MB, a user without rights.
#
#   evenplace export runs/city --box box
#   docker build --tag evenplace-box .
#   docker run --publish 8000:8000 --env EVENPLACE_TOKEN --volume ./box:/box:ro evenplace-box
#
# tests/run/test_dockerfile.py runs these steps in a bare virtual environment.

FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.12-slim
COPY src/evenplace/run/box-requirements.txt /wheels/
RUN pip install --no-cache-dir --requirement /wheels/box-requirements.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps /wheels/evenplace-*.whl
RUN useradd --system --no-create-home evenplace
USER evenplace
EXPOSE 8000
HEALTHCHECK --start-period=10s --interval=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["evenplace", "serve", "/box", "--host", "0.0.0.0"]
